package yamlfile

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// document is the struct that the tests read.
type document struct {
	V Value `yaml:"v"`
}

func read(text string) (Value, []Problem) {
	var d document
	r := Read("f.yaml", []byte(text), &d)
	return d.V, r.Problems()
}

func TestValues(t *testing.T) {
	for text, want := range map[string]struct {
		kind Kind
		json string
	}{
		"5": {Number, "5"}, "+5": {Number, "5"}, "-7": {Number, "-7"}, "18446744073709551615": {Number, "18446744073709551615"},
		"3.0": {Number, "3.0"}, "0.001": {Number, "0.001"}, "3e-4": {Number, "0.0003"}, "1E6": {Number, "1e+06"}, ".5": {Number, "0.5"},
		"true": {Boolean, "true"}, "~": {Null, "null"}, "": {Null, "null"}, "yes": {String, `"yes"`}, "'3e-4'": {String, `"3e-4"`},
		`"5"`: {String, `"5"`}, "2026-01-01": {String, `"2026-01-01"`}, "'it''s'": {String, `"it's"`}, `"a\tb"`: {String, `"a\tb"`},
		"[]": {List, "[]"}, "{}": {Mapping, "{}"}, "[1, [], {}, null, x]": {List, `[1,[],{},null,"x"]`},
		"{1: x, true: y, a.b: {c: d}}": {Mapping, `{"1":"x","a.b":{"c":"d"},"true":"y"}`},
		"|\n  two\n  lines":            {String, `"two\nlines"`},
		"[&a {x: 1}, *a]":              {List, `[{"x":1},{"x":1}]`},
	} {
		v, problems := read("v: " + text)
		got, err := json.Marshal(v)
		if err != nil || v.Kind != want.kind || string(got) != want.json || len(problems) > 0 {
			t.Errorf("%s gives %s %s, want %s %s; %v %v", text, v.Kind, got, want.kind, want.json, problems, err)
		}
	}
}

func TestValuesThatCannotBe(t *testing.T) {
	billion := "v:\n  - &a0 [x, x]\n"
	for i := 1; i < 30; i++ {
		billion += fmt.Sprintf("  - &a%d [*a%d, *a%d]\n", i, i-1, i-1)
	}
	for text, want := range map[string]string{
		"v: .inf":                    "f.yaml:1:4: v: must be a JSON value, not the number .inf",
		"v: [1e999]":                 "f.yaml:1:5: v[0]: 1e999 is too large a number",
		"v: 99999999999999999999999": "f.yaml:1:4: v: 99999999999999999999999 is too large a number",
		"v: {a: 1, a: 2}":            "f.yaml:1:11: v.a: is a duplicate key",
		"v:\n  a.b: 1\n  a.b: 2":     `f.yaml:3:3: v["a.b"]: is a duplicate key`,
		"v: {<<: {a: 1}}":            "f.yaml:1:5: v: merge keys (<<) are not supported",
		"v: {~: 1}":                  "f.yaml:1:5: v: a key must be a string",
		"v: *a":                      `f.yaml:1:4: v: unknown anchor "a"`,
		"v: {a: !!str 5}":            "f.yaml:1:8: v.a: tags are not supported",
		billion:                      "has more than 10000 values",
		"v: &a [*a]":                 "is nested deeper than 64",
		"v: " + strings.Repeat("[", 80) + strings.Repeat("]", 80): "is nested deeper than 64",
	} {
		_, problems := read(text)
		if len(problems) != 1 || !strings.Contains(problems[0].String(), want) {
			t.Errorf("%.40s: %v, want %s", text, problems, want)
		}
	}
}

// Mistakes within a text are reported with their column if the text is literal in the file.
func TestPlaceWithinAText(t *testing.T) {
	for text, want := range map[string]string{
		"v: ü {{ x }}":             "1:6",
		`v: "ü {{ x }}"`:           "1:7",
		"v: 'ü {{ x }}'":           "1:7",
		`v: "\u00fc {{ x }}"`:      "1:4", // escaped: the place of the whole text
		"v: |\n  {{ x }}\n":        "1:4",
		"v: {k: [a, 'b {{ x }}']}": "",
	} {
		v, problems := read(text)
		if v.Kind == Mapping {
			v, want = v.Members["k"].Items[1], "1:15"
		}
		at := v.At(strings.Index(v.Scalar, "{{"))
		if got := fmt.Sprintf("%d:%d", at.Line, at.Column); got != want || len(problems) > 0 {
			t.Errorf("%s: %s, want %s; %v", text, got, want, problems)
		}
	}
}

func FuzzValue(f *testing.F) {
	for _, text := range []string{"a: 1", "[&a {x: 1}, *a]", "&a [*a]", "{? [x] : y}", "|\n  two", "3e-4", "-.inf", `"\x00"`, "010", "? a"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, first := read("v: " + text)
		written, err := json.Marshal(v)
		if err != nil {
			t.Fatalf("%q gives what is no JSON: %v", text, err)
		}
		if again, problems := read("v: " + string(written)); len(problems) > 0 && len(first) == 0 {
			t.Errorf("%q gives %s, which is not read again: %v %v", text, written, again, problems)
		}
	})
}
