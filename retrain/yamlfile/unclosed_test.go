package yamlfile

import (
	"fmt"
	"testing"
)

// An unclosed quote or bracket is reported where it begins, and a second document at its line.
func TestWhatIsNotClosedIsNamedWhereItBegins(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\nb: 'x\nc: 2\nd: 'y'\n":           "f:2:4: is not YAML: the quote that begins here ends only in line 4",
		"a: \"x\nb: 2\nc: \"y\"\n":              "f:1:4: is not YAML: the quote that begins here ends only in line 3",
		"a: 1\nb: [x, y\nc: 3\nd: [z]\n":        "f:2:4: is not YAML: [ is not closed",
		"a:\n  b: {x: 1\n  c: 2\n":              "f:2:6: is not YAML: { is not closed",
		"a: 1\n---\nb: 2\n":                     "f:2:1: only one YAML document is allowed",
		"a: 'x\n  y'\nb: : 1\n":                 "f:3:4: is not YAML: found an invalid key for this map",
		"a: [1,\n  2]\nb:\n  c: 1\n   d: [3]\n": "f:4:6: is not YAML: mapping value is not allowed in this context",
	} {
		var x struct {
			A int `yaml:"a"`
		}
		if got := fmt.Sprint(Read("f", []byte(text), &x).Problems()); got != "["+want+"]" {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
