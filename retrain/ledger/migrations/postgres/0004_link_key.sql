-- What the links that decide on a request are signed with; made when the first one is.
CREATE TABLE link_key (
  id      INTEGER PRIMARY KEY CHECK (id = 1),
  key     BYTEA   NOT NULL,
  made_at BIGINT  NOT NULL
);
