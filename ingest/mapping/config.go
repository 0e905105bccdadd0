// Package mapping defines which values of differently structured records become the fields of telemetry version 1.
package mapping

import "encoding/json"

// Config maps records with a different structure to telemetry version 1. A path selects a value: `user.id`,
// `items[0].price`, or `["odd.name"].value`. With `each`, paths start at the element. With `columns`, they start at the
// name of a column. Paths with `$` start at the record.
type Config struct {
	Take    []Condition      `yaml:"take"`    // conditions that a record must meet, all of them; others are left out and counted
	Each    string           `yaml:"each"`    // path to an array or an object of events. `$` is the record itself
	Columns []string         `yaml:"columns"` // paths to arrays of equal length, or to objects. The values at the same index or name form an event
	Fields  map[string]Field `yaml:"fields"`  // the fields of telemetry v1, such as ts, outcomes or outcomes.conversion
}

// IsZero reports whether the mapping is empty, so that records are read as telemetry version 1.
func (c Config) IsZero() bool { return len(c.Take) == 0 && !c.isNested() && len(c.Fields) == 0 }

// isNested reports whether a record contains several events.
func (c Config) isNested() bool { return c.Each != "" || len(c.Columns) > 0 }

// Source says where a value comes from. Exactly one of its keys is given.
type Source struct {
	Path       string          `yaml:"path"`       // path of the value
	Header     string          `yaml:"header"`     // header of the message
	Key        json.RawMessage `yaml:"key"`        // `true` for the message key as text, or a path in a JSON key
	Index      bool            `yaml:"index"`      // use the event's index in `each` or `columns` as the value, or for an object, its name
	Expression string          `yaml:"expression"` // expression that uses `record`, `element`, `key` or `headers`
}

// Condition is a condition that a record must meet to be read. Values are compared as written.
type Condition struct {
	Source `yaml:",inline"`

	In     []Literal       `yaml:"in"`     // accepted values
	NotIn  []Literal       `yaml:"not_in"` // values to reject. A missing value is accepted
	Exists json.RawMessage `yaml:"exists"` // whether a value other than `null` must exist
}

// Field is the source of a field of telemetry version 1. A string is short for `path`.
type Field struct {
	Source `yaml:",inline"`

	Value   json.RawMessage            `yaml:"value"`   // constant
	Default json.RawMessage            `yaml:"default"` // value to use if missing or `null`
	Choices map[string]json.RawMessage `yaml:"choices"` // map from values in the record to their replacements
	Scale   float64                    `yaml:"scale"`   // factor by which numbers are multiplied (0 means 1)
	Unit    string                     `yaml:"unit"`    // unit of a numeric `ts`: `s`, `ms`, `us` or `ns` (by default, inferred from its size)
	Zone    string                     `yaml:"zone"`    // time zone of a `ts` without an offset, such as `UTC` or `Europe/Berlin`. Also allows other forms of ISO 8601 and `DD.MM.YYYY`
	Last    bool                       `yaml:"last"`    // set only for the last event of `each` or `columns`
}

// UnmarshalText sets Path.
func (f *Field) UnmarshalText(text []byte) error {
	f.Path = string(text)
	return nil
}

// Literal is a JSON string, number or boolean.
type Literal struct{ JSON json.RawMessage }

// UnmarshalJSON stores the JSON text unchanged.
func (l *Literal) UnmarshalJSON(text []byte) error {
	l.JSON = append(l.JSON[:0:0], text...)
	return nil
}

// text returns the literal in the form in which values of records are compared with it: strings are unquoted. ok is
// false for other types.
func (l Literal) text() (text string, ok bool) {
	switch kindOf(l.JSON) {
	case aString:
		ok = json.Unmarshal(l.JSON, &text) == nil
		return text, ok
	case aNumber, aBoolean:
		return string(l.JSON), true
	}
	return "", false
}
