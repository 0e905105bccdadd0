-- When a start gave the present state more time, so that the next start does not; NULL if none has.
ALTER TABLE requests ADD COLUMN extended_at BIGINT;
