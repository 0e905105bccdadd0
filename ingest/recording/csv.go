package recording

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// table reads the rows of a CSV file as JSON objects whose members are the columns. They can then be read like any
// other records, as telemetry version 1 or with a mapping.
type table struct {
	keys  [][]byte // column names in JSON with a colon; nil for a column without a name, such as the index that pandas writes
	row   []byte   // row that spans several lines
	quote quotes   // state of the current row
	json  []byte   // the last row

	points bool // whether a number with a decimal point was seen
}

// columnName matches valid column names. Numbers and JSON do not match, so lines with them are not headers.
var columnName = regexp.MustCompile(`^[\pL_][^{}"\pC]{0,99}$`)

// tableOf returns the table for a header, or nil if the line is not a header. A header has at least two column names,
// all of them different.
func tableOf(line []byte) *table {
	t := &table{quote: quotes{comma: ','}}
	for _, comma := range []rune{'\t', ';'} {
		if bytes.Count(line, []byte(string(comma))) > bytes.Count(line, []byte(string(t.quote.comma))) {
			t.quote.comma = comma
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
		key, _ := json.Marshal(name) // cannot fail for a string
		t.keys = append(t.keys, append(key, ':'))
	}
	if len(seen) < 2 {
		return nil
	}
	return t
}

func (t *table) values(row []byte) ([]string, error) {
	r := csv.NewReader(bytes.NewReader(row))
	r.Comma, r.LazyQuotes, r.TrimLeadingSpace, r.FieldsPerRecord = t.quote.comma, true, t.quote.comma != '\t', -1
	values, err := r.Read()
	if err == nil && len(bytes.TrimRight(row[r.InputOffset():], "\r\n")) > 0 {
		return nil, errors.New("the quotes in a value are not balanced")
	}
	return values, err
}

// quotes tracks whether the bytes of a row are within quotes. A quote within a value that does not begin with one is an
// ordinary character.
type quotes struct {
	comma  rune
	open   bool
	closed bool // by the previous byte; if another quote follows, both stand for one quote in the value
	inside bool // a value has begun
}

// begin starts another row.
func (q *quotes) begin() { q.open, q.closed, q.inside = false, false, false }

func (q *quotes) read(part []byte) {
	for _, c := range part {
		switch {
		case q.open && c == '"':
			q.open, q.closed = false, true
		case q.open:
		case c == '"' && (q.closed || !q.inside):
			q.open, q.closed, q.inside = true, false, true
		case rune(c) == q.comma:
			q.closed, q.inside = false, false
		case c != ' ':
			q.closed, q.inside = false, true
		}
	}
}

// object returns a row as JSON. It is valid until the next call. The error has no position.
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
	t.points = t.points || t.quote.comma == ';' && slices.ContainsFunc(values, decimalPoint.MatchString)
	t.json = append(t.json[:0], '{')
	for i, value := range values {
		if t.keys[i] == nil || value == "" {
			continue
		}
		if len(t.json) > 1 {
			t.json = append(t.json, ',')
		}
		if t.quote.comma == ';' && !t.points && decimalComma.MatchString(value) {
			value = strings.Replace(value, ",", ".", 1)
		}
		t.json = appendValue(append(t.json, t.keys[i]...), value)
	}
	t.json = append(t.json, '}')
	return t.json, nil
}

// otherNumber matches numbers in notations that JSON does not have, such as -.5 or 2. with a point. Numbers with
// leading zeros do not match, because they are names.
var otherNumber = regexp.MustCompile(`^[+-]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d+)?$`)

var decimalPoint = regexp.MustCompile(`^[+-]?\d+\.\d+$`)

// decimalComma matches numbers with a decimal comma. Spreadsheets write them with semicolons as column separators.
var decimalComma = regexp.MustCompile(`^[+-]?(0|[1-9]\d*),\d+([eE][+-]?\d+)?$`)

// appendValue appends a value as JSON: as a number, boolean, array or object if it is one, and otherwise as a string.
func appendValue(to []byte, value string) []byte {
	switch strings.ToLower(value) {
	case "true", "false":
		return append(to, strings.ToLower(value)...)
	}
	if strings.ContainsRune("+-.0123456789[{", rune(value[0])) && json.Valid([]byte(value)) {
		return append(to, value...)
	}
	if otherNumber.MatchString(value) {
		if x, err := strconv.ParseFloat(value, 64); err == nil && !math.IsInf(x, 0) {
			return strconv.AppendFloat(to, x, 'g', -1, 64)
		}
	}
	text, _ := json.Marshal(value) // cannot fail for a string
	return append(to, text...)
}
