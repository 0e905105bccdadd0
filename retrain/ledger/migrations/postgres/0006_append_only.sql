-- The history was the first: what a request orders, how an attempt to deliver it ended, and what was decided are never changed or
-- removed either.
CREATE FUNCTION refuse_to_change_the_ledger() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION '% is append-only', tg_table_name; END $$;

CREATE TRIGGER order_is_never_changed
BEFORE UPDATE OF id, kind, origin_kind, origin, parent, policy, trigger_key, recipe, target, body, opened_at ON requests
FOR EACH STATEMENT EXECUTE FUNCTION refuse_to_change_the_ledger();

CREATE TRIGGER request_is_never_deleted BEFORE DELETE OR TRUNCATE ON requests
FOR EACH STATEMENT EXECUTE FUNCTION refuse_to_change_the_ledger();

-- Of an attempt that was interrupted nobody knew the end; it may become known. To say the same again is no change.
CREATE TRIGGER delivery_that_ended_is_never_changed BEFORE UPDATE ON deliveries
FOR EACH ROW WHEN (old.finished_at IS NOT NULL AND old.result <> 'interrupted' AND old.* IS DISTINCT FROM new.*)
EXECUTE FUNCTION refuse_to_change_the_ledger();

CREATE TRIGGER attempt_is_never_changed BEFORE UPDATE OF request, attempt, target, started_at ON deliveries
FOR EACH STATEMENT EXECUTE FUNCTION refuse_to_change_the_ledger();

CREATE TRIGGER delivery_is_never_deleted BEFORE DELETE OR TRUNCATE ON deliveries
FOR EACH STATEMENT EXECUTE FUNCTION refuse_to_change_the_ledger();

CREATE TRIGGER decision_is_never_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON decisions
FOR EACH STATEMENT EXECUTE FUNCTION refuse_to_change_the_ledger();
