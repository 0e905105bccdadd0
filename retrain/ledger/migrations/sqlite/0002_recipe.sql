-- By name; its contract and config, as they were when the request was opened, are parts of the body.
ALTER TABLE requests ADD COLUMN recipe TEXT NOT NULL DEFAULT '';
