-- The history was the first: what a request orders, how an attempt to deliver it ended, and what was decided are never changed or
-- removed either.
CREATE TRIGGER order_is_never_changed
BEFORE UPDATE OF id, kind, origin_kind, origin, parent, policy, trigger_key, recipe, target, body, opened_at ON requests
BEGIN SELECT RAISE(ABORT, 'requests is append-only'); END;

CREATE TRIGGER request_is_never_deleted BEFORE DELETE ON requests
BEGIN SELECT RAISE(ABORT, 'requests is append-only'); END;

-- Of an attempt that was interrupted nobody knew the end; it may become known. To say the same again is no change.
CREATE TRIGGER delivery_that_ended_is_never_changed BEFORE UPDATE ON deliveries
WHEN old.finished_at IS NOT NULL AND old.result <> 'interrupted'
  AND (old.finished_at, old.result, old.status, old.error, old.response) IS NOT (new.finished_at, new.result, new.status, new.error, new.response)
BEGIN SELECT RAISE(ABORT, 'deliveries is append-only'); END;

CREATE TRIGGER attempt_is_never_changed BEFORE UPDATE OF request, attempt, target, started_at ON deliveries
BEGIN SELECT RAISE(ABORT, 'deliveries is append-only'); END;

CREATE TRIGGER delivery_is_never_deleted BEFORE DELETE ON deliveries
BEGIN SELECT RAISE(ABORT, 'deliveries is append-only'); END;

CREATE TRIGGER decision_is_never_changed BEFORE UPDATE ON decisions
BEGIN SELECT RAISE(ABORT, 'decisions is append-only'); END;

CREATE TRIGGER decision_is_never_deleted BEFORE DELETE ON decisions
BEGIN SELECT RAISE(ABORT, 'decisions is append-only'); END;
