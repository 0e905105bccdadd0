// Package mapping says which values of records of another shape are the fields of telemetry version 1.
package mapping

import "encoding/json"

// Config maps records of another shape to telemetry version 1. Without fields, records are telemetry version 1.
//
// A path names a value in a record: user.id, items[0].price, or ["odd.name"].value. With each, paths begin at the
// element, and those that begin with $ at the record.
type Config struct {
	Take   []Condition      `yaml:"take"`   // conditions that a record must meet, all of them; others are left out and counted
	Each   string           `yaml:"each"`   // path of an array each element of which is an event; $ is the record itself
	Fields map[string]Field `yaml:"fields"` // the fields of telemetry v1, such as ts, outcomes or outcomes.conversion
}

// IsZero reports whether records are telemetry version 1.
func (c Config) IsZero() bool { return len(c.Take) == 0 && c.Each == "" && len(c.Fields) == 0 }

// Source says where a value comes from. Exactly one of its keys is given.
type Source struct {
	Path       string          `yaml:"path"`       // where the value is in the record
	Header     string          `yaml:"header"`     // name of a header of the message
	Key        json.RawMessage `yaml:"key"`        // true for the key of the message as text, or a path in a key that is JSON
	Expression string          `yaml:"expression"` // what computes the value from record, element, key and headers
}

// Condition is what a record must meet to be taken. Values are compared as they are written.
type Condition struct {
	Source `yaml:",inline"`

	In     []Literal       `yaml:"in"`     // the value is one of these
	NotIn  []Literal       `yaml:"not_in"` // the value is none of these, or missing
	Exists json.RawMessage `yaml:"exists"` // true: there is a value; false: there is none, or null
}

// Field is where a field of telemetry version 1 comes from. A string in place of it is a path.
type Field struct {
	Source `yaml:",inline"`

	Value   json.RawMessage            `yaml:"value"`   // a constant, in place of a source
	Default json.RawMessage            `yaml:"default"` // the value where it is missing or null
	Choices map[string]json.RawMessage `yaml:"choices"` // what stands for certain values; other values stay as they are
	Scale   float64                    `yaml:"scale"`   // what a number of the record is multiplied by; 0 stands for 1
	Unit    string                     `yaml:"unit"`    // unit of a ts that is a number: s, ms, us or ns; by its size without one
	Last    bool                       `yaml:"last"`    // whether only the last element has the field
}

// UnmarshalText reads a path.
func (f *Field) UnmarshalText(text []byte) error {
	f.Path = string(text)
	return nil
}

// Literal is a string, a number, true or false, as it is written in JSON.
type Literal struct{ JSON json.RawMessage }

// UnmarshalJSON keeps the value.
func (l *Literal) UnmarshalJSON(text []byte) error {
	l.JSON = append(l.JSON[:0:0], text...)
	return nil
}

// text returns the literal as records are compared with it: a string without its quotes.
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
