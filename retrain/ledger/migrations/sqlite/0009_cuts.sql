-- The webhook of a request that had to wait for a person, its drifted data cut again. What was ordered first stays in requests.
CREATE TABLE cuts (
  request TEXT    PRIMARY KEY REFERENCES requests (id),
  at      INTEGER NOT NULL,
  body    BLOB    NOT NULL
) STRICT;

CREATE TRIGGER cut_of_a_decided_request_is_never_changed BEFORE UPDATE ON cuts
WHEN (SELECT state FROM requests WHERE id = old.request) <> 'awaiting_approval' OR old.request <> new.request
BEGIN SELECT RAISE(ABORT, 'cuts is append-only'); END;

CREATE TRIGGER cut_is_never_deleted BEFORE DELETE ON cuts
BEGIN SELECT RAISE(ABORT, 'cuts is append-only'); END;
