-- What a request is for and what was said of it, in one text a request, for full-text search; and the cause that it was asked for.
CREATE TABLE intents (
  request TEXT PRIMARY KEY REFERENCES requests (id),
  cause   TEXT NOT NULL,                         -- '' where no incident asked for it
  text    TEXT NOT NULL,
  -- Of words alone, as the parser would take addresses and names with hyphens for one word.
  words   TSVECTOR GENERATED ALWAYS AS (to_tsvector('simple', regexp_replace(text, '[\x01-\x2f\x3a-\x40\x5b-\x60\x7b-\x7f]+', ' ', 'g'))) STORED
);

CREATE INDEX intents_by_word ON intents USING gin (words);

-- JSON can have the character NUL, and jsonb cannot.
CREATE VIEW order_bodies AS
SELECT id, replace(convert_from(body, 'UTF8'), '\u0000', '\ufffd')::jsonb AS body FROM requests;

CREATE VIEW order_intents AS
SELECT id,
  coalesce(body #>> '{data,cause}', '') AS cause,
  concat_ws(chr(10),
    body #>> '{data,contract,objective}', body #>> '{data,contract,hypothesis}',
    body #>> '{data,contract,expected,text}', body #>> '{data,contract,owner}',
    (SELECT string_agg(value, chr(10)) FROM jsonb_array_elements_text(
      CASE WHEN jsonb_typeof(body #> '{data,evidence}') = 'array' THEN body #> '{data,evidence}' ELSE '[]' END) AS value)) AS text
FROM order_bodies;

CREATE FUNCTION request_has_an_intent() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN
  INSERT INTO intents (request, cause, text) SELECT id, cause, text FROM order_intents WHERE id = new.id;
  RETURN NULL;
END $$;

CREATE TRIGGER request_has_an_intent AFTER INSERT ON requests FOR EACH ROW EXECUTE FUNCTION request_has_an_intent();

CREATE FUNCTION history_is_part_of_the_intent() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN
  UPDATE intents SET text = concat_ws(chr(10), text, new.by_whom, new.reason) WHERE request = new.request;
  RETURN NULL;
END $$;

CREATE TRIGGER history_is_part_of_the_intent AFTER INSERT ON history FOR EACH ROW EXECUTE FUNCTION history_is_part_of_the_intent();

INSERT INTO intents (request, cause, text)
SELECT o.id, o.cause,
  concat_ws(chr(10), o.text, (SELECT string_agg(concat_ws(chr(10), h.by_whom, h.reason), chr(10) ORDER BY h.seq) FROM history h WHERE h.request = o.id))
FROM order_intents o;
