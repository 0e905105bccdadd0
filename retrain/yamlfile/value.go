package yamlfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// Kind is the type of a Value. An integer and a float are both numbers.
type Kind int

// The kinds. Absent is that of the zero Value.
const (
	Absent Kind = iota
	Null
	Boolean
	Number
	String
	List
	Mapping
)

// String returns the name of the kind in messages.
func (k Kind) String() string {
	return [...]string{"nothing", "null", "a boolean", "a number", "a string", "a list", "a mapping"}[k]
}

// The limits for Values in a file, so that nested aliases cannot fill the memory.
const (
	maxDepth  = 64
	maxValues = 10000
)

// Value is any YAML value, with its place. A field of this type accepts anything.
type Value struct {
	Kind    Kind
	Scalar  string           // the text of a string; a boolean or number as JSON writes it
	Items   []Value          // of a list
	Members map[string]Value // of a mapping
	Place   Place
	Key     Place // of the key of a member of a mapping

	verbatim int // column at which the text of a string appears literally, 0 if it is escaped or folded
}

// At returns the place of byte i of a string, or that of the whole string if it is escaped or folded.
func (v Value) At(i int) Place {
	at := v.Place
	if v.verbatim > 0 {
		at.Column = v.verbatim + utf8.RuneCountInString(v.Scalar[:i])
	}
	return at
}

// Plain reports whether the value is a string on one line without quotes.
func (v Value) Plain() bool { return v.verbatim > 0 && v.verbatim == v.Place.Column }

// Float returns a number, or NaN for anything else.
func (v Value) Float() float64 {
	x, err := strconv.ParseFloat(v.Scalar, 64)
	if v.Kind != Number || err != nil {
		return math.NaN()
	}
	return x
}

// Keys returns the keys of a mapping in order.
func (v Value) Keys() []string {
	keys := make([]string, 0, len(v.Members))
	for key := range v.Members {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// MarshalJSON writes the value without its places. A float stays a float: 3.0 does not become 3.
func (v Value) MarshalJSON() ([]byte, error) {
	switch v.Kind {
	case Boolean, Number:
		return []byte(v.Scalar), nil
	case String:
		return quote(v.Scalar)
	case List:
		return json.Marshal(append([]Value{}, v.Items...)) // [] if empty
	case Mapping:
		return json.Marshal(maps.Collect(maps.All(v.Members))) // {} if empty
	}
	return []byte("null"), nil
}

// quote writes a string as readable JSON: > stays >.
func quote(s string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(s)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// tree reads any node.
func (r *Reader) tree(path string, n ast.Node, depth int) Value {
	n = r.resolve(path, n)
	if n == nil {
		return Value{}
	}
	at := r.placeOf(firstToken(n))
	r.values++
	if depth > maxDepth || r.values > maxValues {
		if !r.full {
			r.fault(at, path, fmt.Sprintf("is nested deeper than %d or has more than %d values", maxDepth, maxValues))
		}
		r.full = true
		return Value{}
	}
	switch n := n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return Value{Kind: Mapping, Members: r.members(path, n, depth), Place: at}
	case *ast.SequenceNode:
		v := Value{Kind: List, Items: make([]Value, len(n.Values)), Place: at}
		for i, item := range n.Values {
			if r.full {
				break
			}
			v.Items[i] = r.tree(fmt.Sprintf("%s[%d]", path, i), word(item), depth+1)
		}
		return v
	}
	return r.leaf(path, n, at)
}

func (r *Reader) members(path string, n ast.Node, depth int) map[string]Value {
	members := map[string]Value{}
	for _, e := range entriesOf(n) {
		key, ok := r.key(path, e, members)
		if ok && !r.full {
			v := r.tree(JoinAny(path, key), e.Value, depth+1)
			v.Key = r.placeOf(e.Key.GetToken())
			members[key] = v
		}
	}
	return members
}

// key returns the key of an entry of a mapping with arbitrary keys, false if it cannot be used.
func (r *Reader) key(path string, e *ast.MappingValueNode, members map[string]Value) (string, bool) {
	t := e.Key.GetToken()
	if e.Key.IsMergeKey() {
		r.fault(r.placeOf(t), path, noMergeKeys)
		return "", false
	}
	switch e.Key.(type) {
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
	default:
		r.fault(r.placeOf(t), path, "a key must be a string")
		return "", false
	}
	if _, twice := members[t.Value]; twice {
		r.fault(r.placeOf(t), JoinAny(path, t.Value), givenTwice)
		return "", false
	}
	return t.Value, true
}

func (r *Reader) leaf(path string, n ast.Node, at Place) Value {
	v := Value{Place: at}
	switch n := n.(type) {
	case *ast.NullNode:
		v.Kind = Null
	case *ast.BoolNode:
		v.Kind, v.Scalar = Boolean, strconv.FormatBool(n.Value)
	case *ast.StringNode:
		if n.Token.Type == token.StringType && likeNumber.MatchString(n.Value) {
			return r.float(path, at, n.Value)
		}
		v.Kind, v.Scalar, v.verbatim = String, n.Value, verbatim(n.Token, n.Value)
	case *ast.LiteralNode:
		v.Kind, v.Scalar = String, n.Value.Value
	case *ast.IntegerNode:
		if refuseOctal(r, path, n) {
			return Value{}
		}
		v.Kind, v.Scalar = Number, fmt.Sprint(n.Value)
	case *ast.FloatNode:
		return r.float(path, at, n.Token.Value)
	default:
		r.fault(at, path, "must be a JSON value, not "+describe(n))
		return Value{}
	}
	return v
}

// likeNumber matches numbers that the YAML parser treats as strings: floats without a point, such as 3e-4, and integers
// of more than 64 bits.
var likeNumber = regexp.MustCompile(`^[-+]?[0-9]+([eE][-+]?[0-9]+)?$`)

// float parses a float and writes it as JSON that stays a float: 3.0 does not become 3.
func (r *Reader) float(path string, at Place, text string) Value {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !strings.ContainsAny(text, ".eE") {
		r.fault(at, path, text+" is too large a number")
		return Value{}
	}
	scalar := strconv.FormatFloat(x, 'g', -1, 64)
	if !strings.ContainsAny(scalar, "e.") {
		scalar += ".0"
	}
	return Value{Kind: Number, Scalar: scalar, Place: at}
}

// verbatim returns the column at which a text appears literally in the file, 0 if it is escaped or spans lines.
func verbatim(t *token.Token, text string) int {
	if t == nil || t.Position == nil || text == "" || strings.Contains(strings.TrimSpace(t.Origin), "\n") {
		return 0
	}
	before, _, found := strings.Cut(strings.TrimLeft(t.Origin, " \t\n"), text)
	if !found {
		return 0
	}
	return t.Position.Column + utf8.RuneCountInString(before)
}

// JoinAny returns the path of a key within the path of its mapping. A key that could be mistaken for a path is quoted:
// env["a.b"].
func JoinAny(path, key string) string {
	plain := key != ""
	for _, c := range key {
		plain = plain && (c == '_' || c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z')
	}
	if plain {
		return Join(path, key)
	}
	return fmt.Sprintf("%s[%q]", path, key)
}

// otherBooleans are the words that YAML 1.1 takes for booleans and YAML 1.2 for strings.
var otherBooleans = []string{"yes", "no", "on", "off"}

// OtherBooleans reports words without quotes in a value that are booleans in YAML 1.1, but would be strings, which Python
// takes for true.
func OtherBooleans(path string, v Value) []Problem {
	var out []Problem
	if v.Kind == String && v.Plain() && slices.Contains(otherBooleans, strings.ToLower(v.Scalar)) {
		out = append(out, Problem{Place: v.Place, Path: path, Message: fmt.Sprintf("must be true or false, or a string in quotes, not %s", v.Scalar)})
	}
	for i, item := range v.Items {
		out = append(out, OtherBooleans(fmt.Sprintf("%s[%d]", path, i), item)...)
	}
	for _, key := range v.Keys() {
		out = append(out, OtherBooleans(JoinAny(path, key), v.Members[key])...)
	}
	return out
}
