// Package literals evaluates Python expressions that consist of literals, arithmetic, and names whose values are known.
// It does not run Python, and returns no value for any other expression.
package literals

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

// Kind is the Python type of a value.
type Kind int

// The kinds. A pipeline file cannot contain tuples, because YAML has only lists.
const (
	None Kind = iota
	Bool
	Int
	Float
	String
	List
	Tuple
	Dict
)

// Value is a Python value. The Keys of a Dict are in source order, and its Items are their values.
type Value struct {
	Kind   Kind
	Number float64 // of an Int or Float; 1 for True
	Text   string  // of a String; the source of an Int or Float, "" if it was computed
	Keys   []string
	Items  []Value
}

// Member returns the value of a key of a Dict.
func (v Value) Member(key string) (Value, bool) {
	for i, k := range v.Keys {
		if k == key {
			return v.Items[i], true
		}
	}
	return Value{}, false
}

// isNumber reports whether a value is an Int or a Float.
func (v Value) isNumber() bool { return v.Kind == Int || v.Kind == Float }

// with sets a key of a Dict.
func (v *Value) with(key string, item Value) {
	for i, k := range v.Keys {
		if k == key {
			v.Items[i] = item
			return
		}
	}
	v.Keys, v.Items = append(v.Keys, key), append(v.Items, item)
}

// plainNumber matches a number that YAML reads as Python does.
var plainNumber = pattern.MustCompile(`^(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?$`)

// YAML returns the value in YAML's flow style, or false if a pipeline file cannot contain it.
func (v Value) YAML() (string, bool) {
	switch v.Kind {
	case None:
		return "null", true
	case Bool:
		return strconv.FormatBool(v.Number == 1), true
	case Int, Float:
		return v.number()
	case String:
		return quoted(v.Text)
	case List, Dict:
		return v.collection()
	}
	return "", false
}

func (v Value) number() (string, bool) {
	if math.IsNaN(v.Number) || math.Abs(v.Number) > 1e15 {
		return "", false
	}
	if text := strings.ReplaceAll(v.Text, "_", ""); plainNumber.MatchString(text) {
		return text, true
	}
	out := strconv.FormatFloat(v.Number, 'f', -1, 64)
	if v.Kind == Float && !strings.Contains(out, ".") {
		out += ".0"
	}
	return out, true
}

func (v Value) collection() (string, bool) {
	parts := make([]string, len(v.Items))
	for i, item := range v.Items {
		text, ok := item.YAML()
		if !ok {
			return "", false
		}
		if v.Kind == Dict {
			key, ok := quoted(v.Keys[i])
			if !ok {
				return "", false
			}
			text = key + ": " + text
		}
		parts[i] = text
	}
	if v.Kind == Dict {
		return "{" + strings.Join(parts, ", ") + "}", true
	}
	return "[" + strings.Join(parts, ", ") + "]", true
}

// maxString bounds the length of a string in bytes.
const maxString = 200

// quoted returns a quoted string, or false if a pipeline file cannot contain it.
func quoted(s string) (string, bool) {
	unprintable := strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
	if unprintable || len(s) > maxString || !utf8.ValidString(s) || strings.Contains(s, "{{") || strings.Contains(s, "}}") {
		return "", false
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(s)
	return strings.TrimSuffix(b.String(), "\n"), err == nil
}
