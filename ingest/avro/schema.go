// Package avro rewrites Avro records as JSON.
package avro

import (
	"errors"
	"fmt"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/twmb/avro"
)

// Schema is the schema with which records were written.
type Schema struct{ root *node }

// Parse parses a schema in JSON. The schema may refer to types of the schemas in before, which are parsed in order.
func Parse(text string, before ...string) (*Schema, error) {
	if text == "" {
		return nil, errors.New("parse the Avro schema: it is empty")
	}
	var types avro.SchemaCache
	for i, b := range before {
		if _, err := parse(&types, b); err != nil {
			return nil, fmt.Errorf("parse referenced Avro schema %d: %w", i+1, err)
		}
	}
	parsed, err := parse(&types, text)
	if err != nil {
		return nil, fmt.Errorf("parse the Avro schema: %w", err)
	}
	root, err := compile(parsed.Root())
	if err != nil {
		return nil, fmt.Errorf("parse the Avro schema: %w", err)
	}
	return &Schema{root: root}, nil
}

func parse(types *avro.SchemaCache, text string) (*avro.Schema, error) {
	parsed, err := types.Parse(text)
	if err != nil {
		if plain, changed := tolerant(text); changed {
			parsed, err = types.Parse(plain)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%.*s", maxReason, err.Error())
	}
	return parsed, nil
}

// maxReason is the maximum number of characters of a parser error that are reported. The parser repeats its message for
// each level of a nested schema.
const maxReason = 300

// AppendJSON appends a record as one JSON object of at most limit bytes. The error has no position.
//
// A value of a union is written without its type. Bytes and fixed are base64, decimals are exact numbers, and enums are
// their symbols. Timestamps, including local ones, are RFC 3339 in UTC. Dates and times of day are ISO 8601. If they
// are not within the years 0 to 9999, or within a day, they remain numbers. NaN and infinities are unquoted.
func (s *Schema) AppendJSON(dst, value []byte, limit int) ([]byte, *ingest.RecordError) {
	w := writer{src: value, dst: dst, limit: len(dst) + limit}
	if !w.value(s.root) {
		return dst, w.err
	}
	if left := len(value) - w.at; left > 0 {
		w.fail(ingest.ReasonBadEncoding, fmt.Sprintf("does not match the Avro schema: %d bytes follow the record", left))
		return dst, w.err
	}
	return w.dst, nil
}
