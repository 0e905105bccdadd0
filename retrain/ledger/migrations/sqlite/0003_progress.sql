-- A request goes on after its delivery, until the telemetry of the new version has shown what came of it. Those that an earlier
-- build has delivered stay closed.
ALTER TABLE requests RENAME COLUMN incident   TO origin;  -- what asked for it: an incident, or a slot of a schedule, a person's id, a request to roll back
ALTER TABLE requests RENAME COLUMN expires_at TO due_at;  -- when the present state ends by itself
ALTER TABLE requests ADD COLUMN kind        TEXT NOT NULL DEFAULT 'retrain';
ALTER TABLE requests ADD COLUMN origin_kind TEXT NOT NULL DEFAULT 'incident';
ALTER TABLE requests ADD COLUMN parent      TEXT NOT NULL DEFAULT '';  -- the request of the policy before it
ALTER TABLE requests ADD COLUMN new_version TEXT NOT NULL DEFAULT '';  -- policy_version that the job has made
ALTER TABLE requests ADD COLUMN log         TEXT NOT NULL DEFAULT '';  -- the end of what the job printed

DROP INDEX requests_one_open;
CREATE UNIQUE INDEX requests_one_unfinished ON requests (policy) WHERE closed_at IS NULL;
CREATE INDEX        requests_overdue        ON requests (due_at) WHERE closed_at IS NULL;
CREATE INDEX        requests_of_policy      ON requests (policy, opened_at);

CREATE INDEX deliveries_of_target ON deliveries (target, started_at);

ALTER TABLE history ADD COLUMN by_whom TEXT NOT NULL DEFAULT '';
