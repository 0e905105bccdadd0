-- A rollback that is queued waits beside the policy's unfinished request.
DROP INDEX requests_one_unfinished;
CREATE UNIQUE INDEX requests_one_unfinished ON requests (policy) WHERE closed_at IS NULL AND state <> 'queued';
