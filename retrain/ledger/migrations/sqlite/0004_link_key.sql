-- What the links that decide on a request are signed with; made when the first one is.
CREATE TABLE link_key (
  id      INTEGER PRIMARY KEY CHECK (id = 1),
  key     BLOB    NOT NULL,
  made_at INTEGER NOT NULL
) STRICT;
