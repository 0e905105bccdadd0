-- Times are Unix milliseconds.

CREATE TABLE requests (
  id              TEXT   PRIMARY KEY,
  incident        TEXT   NOT NULL UNIQUE,        -- at most one request an incident
  policy          TEXT   NOT NULL,
  trigger_key     TEXT   NOT NULL,
  target          TEXT   NOT NULL,
  state           TEXT   NOT NULL,
  reason          TEXT   NOT NULL,               -- why it is in that state, in words
  body            BYTEA  NOT NULL,               -- the webhook's body, byte for byte the same in every attempt
  attempts        BIGINT NOT NULL,               -- attempts begun
  opened_at       BIGINT NOT NULL,
  expires_at      BIGINT NOT NULL,
  next_attempt_at BIGINT NOT NULL,
  closed_at       BIGINT                         -- NULL while open
);

CREATE UNIQUE INDEX requests_one_open   ON requests (policy) WHERE state = 'open';
CREATE INDEX        requests_due        ON requests (target, next_attempt_at) WHERE state = 'open';
CREATE INDEX        requests_cooldown   ON requests (policy, trigger_key, opened_at);
CREATE INDEX        requests_newest     ON requests (opened_at);

-- What became of requests: never changed, only added to.
CREATE TABLE history (
  seq     BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  request TEXT   NOT NULL REFERENCES requests (id),
  at      BIGINT NOT NULL,
  state   TEXT   NOT NULL,
  reason  TEXT   NOT NULL
);

CREATE INDEX history_request ON history (request);

CREATE FUNCTION refuse_to_change_history() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'history is append-only'; END $$;

CREATE TRIGGER history_is_never_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON history
FOR EACH STATEMENT EXECUTE FUNCTION refuse_to_change_history();

-- One row an attempt, written before it is made and completed after it.
CREATE TABLE deliveries (
  request     TEXT   NOT NULL REFERENCES requests (id),
  attempt     BIGINT NOT NULL,                   -- from 1
  target      TEXT   NOT NULL,
  started_at  BIGINT NOT NULL,
  finished_at BIGINT,                            -- NULL while in flight
  result      TEXT   NOT NULL,
  status      BIGINT NOT NULL,                   -- 0 where no answer came
  error       TEXT   NOT NULL,
  response    TEXT   NOT NULL,                   -- beginning of the answer's body
  PRIMARY KEY (request, attempt)
);

CREATE INDEX deliveries_newest ON deliveries (started_at);

-- Why incidents did or did not lead to a request: the first time of each reason.
CREATE TABLE decisions (
  incident TEXT   NOT NULL,
  reason   TEXT   NOT NULL,
  at       BIGINT NOT NULL,
  policy   TEXT   NOT NULL,
  request  TEXT   NOT NULL,
  detail   TEXT   NOT NULL,
  PRIMARY KEY (incident, reason)
);

CREATE INDEX decisions_newest ON decisions (at);

-- Targets that answered 410 Gone. Another name or URL is another target.
CREATE TABLE disabled_targets (
  target  TEXT   NOT NULL,
  url     TEXT   NOT NULL,
  at      BIGINT NOT NULL,
  request TEXT   NOT NULL,
  PRIMARY KEY (target, url)
);
