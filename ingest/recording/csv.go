package recording

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// table reads the rows of a CSV file as JSON objects whose members are the columns, so that they are records like any
// others: of telemetry version 1, or for a mapping.
type table struct {
	comma rune
	keys  [][]byte // of the columns, in JSON with the colon; nil for one without a name, such as the index of pandas
	row   []byte   // a row that goes over several lines
	json  []byte   // the last row
}

// columnName is what a column may be called. Numbers and JSON do not match, so their lines are no header.
var columnName = regexp.MustCompile(`^[\pL_][^{}"\pC]{0,99}$`)

// tableOf returns the table of a header, nil if the line is none: it must name at least two columns, each once.
func tableOf(line []byte) *table {
	t := &table{comma: ','}
	for _, comma := range []rune{'\t', ';'} {
		if bytes.Count(line, []byte(string(comma))) > bytes.Count(line, []byte(string(t.comma))) {
			t.comma = comma
		}
	}
	names, err := t.values(line)
	if err != nil {
		return nil
	}
	seen := map[string]bool{}
	for _, name := range names {
		if name = strings.TrimSpace(name); name == "" {
			t.keys = append(t.keys, nil)
			continue
		}
		if seen[name] || !columnName.MatchString(name) {
			return nil
		}
		seen[name] = true
		key, _ := json.Marshal(name) // a string, which cannot fail
		t.keys = append(t.keys, append(key, ':'))
	}
	if len(seen) < 2 {
		return nil
	}
	return t
}

func (t *table) values(row []byte) ([]string, error) {
	r := csv.NewReader(bytes.NewReader(row))
	r.Comma, r.LazyQuotes, r.TrimLeadingSpace, r.FieldsPerRecord = t.comma, true, t.comma != '\t', -1
	return r.Read()
}

// begun reports whether a row goes on in the next line, since a quoted value has not ended.
func begun(row []byte) bool { return bytes.Count(row, []byte{'"'})%2 == 1 }

// object returns a row as JSON, valid until the next call. The error names no place.
func (t *table) object(row []byte) ([]byte, *ingest.RecordError) {
	values, err := t.values(row)
	if err != nil {
		return nil, &ingest.RecordError{Reason: ingest.ReasonWrongColumns, Msg: "not a row of a CSV file: " + err.Error()}
	}
	if len(values) != len(t.keys) {
		return nil, &ingest.RecordError{
			Reason: ingest.ReasonWrongColumns, Msg: fmt.Sprintf("the row has %d columns, but the header has %d", len(values), len(t.keys)),
		}
	}
	t.json = append(t.json[:0], '{')
	for i, value := range values {
		if t.keys[i] == nil || value == "" {
			continue
		}
		if len(t.json) > 1 {
			t.json = append(t.json, ',')
		}
		t.json = appendValue(append(t.json, t.keys[i]...), value)
	}
	t.json = append(t.json, '}')
	return t.json, nil
}

// appendValue appends a value as what it is in JSON: a number, true or false, a list, an object, or else a string.
func appendValue(to []byte, value string) []byte {
	switch strings.ToLower(value) {
	case "true", "false":
		return append(to, strings.ToLower(value)...)
	}
	switch c := value[0]; {
	case c == '-' || '0' <= c && c <= '9' || c == '[' || c == '{':
		if json.Valid([]byte(value)) {
			return append(to, value...)
		}
	case c == '.' || c == '+': // numbers that JSON writes otherwise
		if x, err := strconv.ParseFloat(value, 64); err == nil {
			return strconv.AppendFloat(to, x, 'g', -1, 64)
		}
	}
	text, _ := json.Marshal(value) // a string, which cannot fail
	return append(to, text...)
}
