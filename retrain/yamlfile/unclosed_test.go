package yamlfile

import (
	"fmt"
	"testing"
)

// An unclosed quote or bracket is reported where it begins. What is not supported is reported with what would be right.
func TestWhatIsNotClosedIsNamedWhereItBegins(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\nb: 'x\nc: 2\nd: 'y'\n":                              "f:2:4: is not YAML: the quote that begins here ends only in line 4",
		"a: \"x\nb: 2\nc: \"y\"\n":                                 "f:1:4: is not YAML: the quote that begins here ends only in line 3",
		"a: 1\nb: [x, y\nc: 3\nd: [z]\n":                           "f:2:4: is not YAML: [ is not closed",
		"a:\n  b: {x: 1\n  c: 2\n":                                 "f:2:6: is not YAML: { is not closed",
		"a: 1\n<<<<<<< HEAD\na: 2\n=======\na: 3\n>>>>>>> other\n": "f:2:1: is not YAML: an unresolved merge conflict begins here: keep one of its sides, and remove the markers",
		"b:\n\tc: 1\n":                                             "f:2:1: is not YAML: a tab cannot indent a line: use spaces",
		"? a\n: 1\n":                                               "f:1:1: the form \"? key\" is not supported: write the key and its value as \"key: value\"",
		"a: 1\n---\nb: 2\n":                                        "f:2:1: only one YAML document is allowed",
		"a: 'x\n  y'\nb: : 1\n":                                    "f:3:4: is not YAML: found an invalid key for this map",
		"a: [1,\n  2]\nb:\n  c: 1\n   d: [3]\n":                    "f:4:6: is not YAML: a key is not allowed here: correct the indentation, or put a text with a colon in quotes",
		"a: Note: x\n":                                             "f:1:4: is not YAML: a key is not allowed here: correct the indentation, or put a text with a colon in quotes",
	} {
		var x struct {
			A int `yaml:"a"`
		}
		if got := fmt.Sprint(Read("f", []byte(text), &x).Problems()); got != "["+want+"]" {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
