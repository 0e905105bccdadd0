-- The webhook of a request that had to wait for a person, its drifted data cut again. What was ordered first stays in requests.
CREATE TABLE cuts (
  request TEXT   PRIMARY KEY REFERENCES requests (id),
  at      BIGINT NOT NULL,
  body    BYTEA  NOT NULL
);

CREATE FUNCTION refuse_to_change_a_decided_cut() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN
  IF old.request <> new.request OR (SELECT state FROM requests WHERE id = old.request) <> 'awaiting_approval' THEN
    RAISE EXCEPTION 'cuts is append-only';
  END IF;
  RETURN new;
END $$;

CREATE TRIGGER cut_of_a_decided_request_is_never_changed BEFORE UPDATE ON cuts
FOR EACH ROW EXECUTE FUNCTION refuse_to_change_a_decided_cut();

CREATE TRIGGER cut_is_never_deleted BEFORE DELETE OR TRUNCATE ON cuts
FOR EACH STATEMENT EXECUTE FUNCTION refuse_to_change_the_ledger();
