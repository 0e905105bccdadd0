-- What a request is for and what was said of it, in one text a request, for full-text search; and the cause that it was asked for.
CREATE TABLE intents (
  seq     INTEGER PRIMARY KEY,
  request TEXT NOT NULL UNIQUE REFERENCES requests (id),
  cause   TEXT NOT NULL,                         -- '' where no incident asked for it
  text    TEXT NOT NULL
) STRICT;

CREATE VIRTUAL TABLE intent_words USING fts5 (text, content = 'intents', content_rowid = 'seq', tokenize = 'unicode61 remove_diacritics 0');

CREATE TRIGGER intent_is_indexed AFTER INSERT ON intents
BEGIN INSERT INTO intent_words (rowid, text) VALUES (new.seq, new.text); END;

CREATE TRIGGER intent_is_indexed_again AFTER UPDATE ON intents
BEGIN
  INSERT INTO intent_words (intent_words, rowid, text) VALUES ('delete', old.seq, old.text);
  INSERT INTO intent_words (rowid, text) VALUES (new.seq, new.text);
END;

CREATE VIEW order_bodies AS SELECT id, CAST(body AS TEXT) AS body FROM requests;

CREATE VIEW order_intents AS
SELECT id,
  coalesce(json_extract(body, '$.data.cause'), '') AS cause,
  concat_ws(char(10),
    json_extract(body, '$.data.contract.objective'), json_extract(body, '$.data.contract.hypothesis'),
    json_extract(body, '$.data.contract.expected.text'), json_extract(body, '$.data.contract.owner'),
    (SELECT group_concat(value, char(10)) FROM json_each(body, '$.data.evidence'))) AS text
FROM order_bodies;

CREATE TRIGGER request_has_an_intent AFTER INSERT ON requests
BEGIN INSERT INTO intents (request, cause, text) SELECT id, cause, text FROM order_intents WHERE id = new.id; END;

CREATE TRIGGER history_is_part_of_the_intent AFTER INSERT ON history
BEGIN
  UPDATE intents SET text = concat_ws(char(10), text, new.by_whom, new.reason) WHERE request = new.request;
END;

INSERT INTO intents (request, cause, text)
SELECT o.id, o.cause,
  concat_ws(char(10), o.text, (SELECT group_concat(concat_ws(char(10), h.by_whom, h.reason), char(10)) FROM history h WHERE h.request = o.id))
FROM order_intents o;
