// Package yamlfile reads YAML files strictly, and reports the position of every mistake and every value.
package yamlfile

import (
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
	"github.com/prometheus/common/model"

	"github.com/rewardwatch/rewardwatch/ingest/nearest"
)

// Problem is one mistake in a file.
type Problem struct {
	Place
	Path    string `json:"path"` // such as policies[0].baseline.units, "" for the file as a whole
	Message string `json:"message"`
}

// String returns file:line:column: path: message.
func (p Problem) String() string {
	text := p.Message
	if p.Path != "" {
		text = p.Path + ": " + text
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, text)
}

// Error lists all mistakes in one or several files.
type Error struct {
	Problems []Problem
}

// Error returns one line per problem.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// ErrorOf returns an *Error of the problems, sorted by place, or nil without any.
func ErrorOf(problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return &Error{Problems: problems}
}

// Place is a position in a file. Line and Column count from 1.
type Place struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

// Reader reads a YAML document into structs, strictly. Unknown keys, repeated keys, and values whose type does not
// match their field are problems, and all of them are collected. The yaml package's own strict decoder stops at the
// first one and reads numbers as strings.
type Reader struct {
	file     string
	places   map[string]Place // place of the value of each path
	unread   map[string]bool  // paths whose value could not be read
	null     map[string]bool  // paths whose value is empty
	anchors  map[string]ast.Node
	values   int  // in Values so far
	full     bool // Values hold too many
	problems []Problem
}

// Read reads text into the struct that dst points to, over the values it already holds. The returned reader knows the
// place of each value and all problems. Every place names the file.
func Read(file string, text []byte, dst any) *Reader {
	start := Place{file, 1, 1}
	r := &Reader{file: file, places: map[string]Place{"": start}, unread: map[string]bool{}, null: map[string]bool{}, anchors: map[string]ast.Node{}}
	content := strings.TrimPrefix(string(text), byteOrderMark)
	if at, found := notText(file, content); found {
		r.fault(at, "", "is not UTF-8: save the file with this encoding")
		return r
	}
	tokens := lexer.Tokenize(content)
	if at, message := tooMuch(tokens); at != nil {
		r.fault(r.placeOf(at), "", message)
		return r
	}
	document, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		r.syntaxError(err, tokens, content)
		return r
	}
	r.documents(document, reflect.ValueOf(dst).Elem())
	return r
}

func (r *Reader) syntaxError(err error, tokens token.Tokens, text string) {
	if line := conflict(text); line > 0 {
		r.fault(Place{r.file, line, 1}, "", "is not YAML: an unresolved merge conflict begins here: keep one of its sides, and remove the markers")
		return
	}
	var at yaml.Error
	if errors.As(err, &at) && at.GetToken() != nil {
		if open, message := unclosed(tokens, at.GetToken()); open != nil {
			r.fault(r.placeOf(open), "", "is not YAML: "+message)
			return
		}
		message := at.GetMessage()
		switch {
		case strings.Contains(message, "'\t'"):
			message = "a tab cannot indent a line: use spaces"
		case strings.HasPrefix(message, "mapping value is not allowed"):
			message = "a key is not allowed here: correct the indentation, or put a text with a colon in quotes"
		}
		r.fault(r.placeOf(at.GetToken()), "", "is not YAML: "+message)
		return
	}
	r.fault(r.places[""], "", "is not YAML: "+err.Error())
}

func (r *Reader) documents(file *ast.File, dst reflect.Value) {
	read := false
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.DirectiveType {
			continue
		}
		if read {
			r.fault(r.placeOf(cmp.Or(doc.Start, firstToken(doc.Body))), "", "only one YAML document is allowed")
			return
		}
		r.value("", r.places[""], doc.Body, dst)
		read = true
	}
}

func (r *Reader) placeOf(t *token.Token) Place {
	if t == nil || t.Position == nil {
		return r.places[""]
	}
	return Place{r.file, t.Position.Line, t.Position.Column}
}

func (r *Reader) fault(at Place, path, message string) {
	r.problems = append(r.problems, Problem{Place: at, Path: path, Message: message})
}

// cannotRead reports an unusable value, so that its range is not reported as well.
func (r *Reader) cannotRead(at Place, path, message string) {
	r.unread[path] = true
	r.fault(at, path, message)
}

// Report reports a problem with the value of a path, at its place or, if it was omitted, at that of the nearest
// enclosing value.
func (r *Reader) Report(path, message string) {
	var at *Place
	for around := path; ; around = around[:max(0, strings.LastIndexAny(around, ".["))] {
		if r.unread[around] {
			return
		}
		if here, ok := r.places[around]; ok && at == nil {
			at = &here
		}
		if around == "" {
			break
		}
	}
	r.fault(*at, path, message)
}

// File returns the name of the file.
func (r *Reader) File() string { return r.file }

// Place returns the place of the value of a path, or the start of the file if it was omitted.
func (r *Reader) Place(path string) Place {
	if at, ok := r.places[path]; ok {
		return at
	}
	return r.places[""]
}

// Given reports whether the file has the key of a path, even with an empty value.
func (r *Reader) Given(path string) bool {
	_, ok := r.places[path]
	return ok
}

// Set reports whether the file sets the value of a path, if only to 0 or an empty list. A key without a value and
// a section without keys do not.
func (r *Reader) Set(path string) bool { return r.Given(path) && !r.null[path] }

// Problems returns the problems, in no particular order.
func (r *Reader) Problems() []Problem { return r.problems }

// value reads one node. An empty value leaves dst as it is: a section whose keys are all commented out is not a
// mistake. at is the place of the node's key. A json.Unmarshaler accepts a value of any type; a struct with keys
// that is also an encoding.TextUnmarshaler accepts a string as its short form.
func (r *Reader) value(path string, at Place, n ast.Node, dst reflect.Value) {
	if any, ok := dst.Addr().Interface().(*Value); ok {
		*any = r.tree(path, n, 0)
		r.places[path] = cmp.Or(any.Place, at)
		return
	}
	n = r.resolve(path, n)
	if n == nil || n.Type() == ast.NullType {
		r.places[path], r.null[path] = at, true
		return
	}
	text, isText := dst.Addr().Interface().(encoding.TextUnmarshaler)
	if isText && (entriesOf(n) == nil || dst.Kind() != reflect.Struct || len(Fields(dst)) == 0) {
		r.text(path, n, text)
		return
	}
	if any, ok := dst.Addr().Interface().(json.Unmarshaler); ok && !isText {
		r.json(path, n, any)
		return
	}
	switch dst.Kind() {
	case reflect.Struct:
		r.places[path] = at
		r.mapping(path, n, dst)
	case reflect.Slice:
		r.places[path] = at
		r.list(path, n, dst)
	case reflect.Map:
		r.places[path] = at
		r.table(path, n, dst)
	default:
		r.scalar(path, n, dst)
	}
}

// resolve follows anchors and aliases. It reports an alias without an earlier anchor, and returns nil.
func (r *Reader) resolve(path string, n ast.Node) ast.Node {
	switch n := n.(type) {
	case *ast.AnchorNode:
		value := r.resolve(path, n.Value)
		r.anchors[n.Name.String()] = value
		return value
	case *ast.AliasNode:
		value, ok := r.anchors[n.Value.String()]
		if !ok {
			r.cannotRead(r.placeOf(n.GetToken()), path, unknownAnchor(n.Value.String()))
		}
		return value
	case *ast.TagNode:
		r.cannotRead(r.placeOf(n.GetToken()), path, "tags are not supported")
		return nil
	}
	return n
}

// unknownAnchor says that an alias has no anchor. A text such as * * * * * is read as one.
func unknownAnchor(name string) string {
	message := fmt.Sprintf("unknown anchor %q", name)
	if strings.Trim(name, "*_-.") == "" || strings.ContainsAny(name, " */,") {
		message += ": put a text that begins with * in quotes"
	}
	return message
}

func (r *Reader) mapping(path string, n ast.Node, dst reflect.Value) {
	entries := entriesOf(n)
	if entries == nil {
		r.wrongType(path, n, "keys and values")
		return
	}
	if len(entries) == 0 {
		r.null[path] = true
	}
	fields := Fields(dst)
	seen := map[string]bool{}
	for _, e := range entries {
		r.entry(path, e, fields, seen)
	}
}

// entriesOf returns the entries of a mapping, nil for any other node.
func entriesOf(n ast.Node) []*ast.MappingValueNode {
	switch n := n.(type) {
	case *ast.MappingNode:
		return append([]*ast.MappingValueNode{}, n.Values...)
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	}
	return nil
}

const (
	noMergeKeys = "merge keys (<<) are not supported"
	givenTwice  = "is a duplicate key"
)

func (r *Reader) entry(path string, e *ast.MappingValueNode, fields []Field, seen map[string]bool) {
	key, at, ok := r.keyOf(path, e, seen)
	if !ok {
		return
	}
	i := slices.IndexFunc(fields, func(f Field) bool { return f.Key == key })
	if i < 0 {
		r.fault(at, path, unknownKey(key, fields))
		return
	}
	r.value(Join(path, key), at, e.Value, fields[i].Value)
}

// keyOf returns the key of an entry and its place, unless it is a merge key or repeated.
func (r *Reader) keyOf(path string, e *ast.MappingValueNode, seen map[string]bool) (key string, at Place, ok bool) {
	key, at = e.Key.GetToken().Value, r.placeOf(e.Key.GetToken())
	if e.Key.IsMergeKey() {
		r.fault(at, path, noMergeKeys)
		return key, at, false
	}
	if seen[key] {
		r.fault(at, Join(path, key), givenTwice)
		return key, at, false
	}
	seen[key] = true
	return key, at, true
}

// table reads a map with arbitrary keys: the given map replaces the whole map.
func (r *Reader) table(path string, n ast.Node, dst reflect.Value) {
	entries := entriesOf(n)
	if entries == nil {
		r.wrongType(path, n, "keys and values")
		return
	}
	out := reflect.MakeMap(dst.Type())
	seen := map[string]bool{}
	for _, e := range entries {
		if key, at, ok := r.keyOf(path, e, seen); ok {
			value := reflect.New(dst.Type().Elem()).Elem()
			r.value(Join(path, key), at, e.Value, value)
			out.SetMapIndex(reflect.ValueOf(key), value)
		}
	}
	dst.Set(out)
}

// mostTypos is the number of letters in which a key may differ from the one that is suggested for it. A key that
// differs in more may be meant for something else: password is not password_env.
const mostTypos = 2

func unknownKey(key string, fields []Field) string {
	if key == "?" {
		return "the form \"? key\" is not supported: write the key and its value as \"key: value\""
	}
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.Key
	}
	hint := ""
	if near := nearest.Of(key, slices.Values(keys)); near != "" && nearest.Distance(key, near) <= mostTypos {
		hint = fmt.Sprintf(" (did you mean %q?)", near)
	}
	return fmt.Sprintf("unknown key %q%s; expected one of %s", key, hint, strings.Join(keys, ", "))
}

// Join returns the path of a key within the path of its parent.
func Join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// list replaces the content of a list: the given list is the whole list.
func (r *Reader) list(path string, n ast.Node, dst reflect.Value) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		r.wrongType(path, n, "a list")
		return
	}
	out := reflect.MakeSlice(dst.Type(), len(seq.Values), len(seq.Values))
	for i, v := range seq.Values {
		v = word(v)
		SetDefaults(out.Index(i))
		inside := fmt.Sprintf("%s[%d]", path, i)
		at := r.placeOf(firstToken(v))
		if v.Type() == ast.NullType {
			r.cannotRead(at, inside, "is empty")
			continue
		}
		r.value(inside, at, v, out.Index(i))
	}
	dst.Set(out)
}

// SetDefaults sets a list element to the defaults of its own UnmarshalYAML.
func SetDefaults(element reflect.Value) {
	if u, ok := element.Addr().Interface().(yaml.InterfaceUnmarshaler); ok {
		_ = u.UnmarshalYAML(func(any) error { return nil })
	}
}

// firstToken returns the token of a node that comes first in the file. The token of a mapping is its colon.
func firstToken(n ast.Node) *token.Token {
	switch n := n.(type) {
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			return firstToken(n.Values[0])
		}
	case *ast.MappingValueNode:
		return n.Key.GetToken()
	}
	return n.GetToken()
}

func (r *Reader) text(path string, n ast.Node, dst encoding.TextUnmarshaler) {
	r.places[path] = r.placeOf(n.GetToken())
	switch n := n.(type) {
	case *ast.StringNode, *ast.LiteralNode, *ast.IntegerNode, *ast.FloatNode:
		if err := dst.UnmarshalText([]byte(scalarText(n))); err != nil {
			msg := err.Error()
			if _, duration := dst.(*model.Duration); duration {
				msg = fmt.Sprintf("must be a duration such as 30s, 5m, 12h or 2d, not %q", scalarText(n))
			}
			r.cannotRead(r.placeOf(n.GetToken()), path, msg)
		}
	default:
		r.wrongType(path, n, "a string")
	}
}

// json reads a value of any type into a json.Unmarshaler.
func (r *Reader) json(path string, n ast.Node, dst json.Unmarshaler) {
	value := r.tree(path, n, 0)
	if value.Kind == Absent {
		r.unread[path] = true
		return
	}
	text, err := json.Marshal(value)
	if err == nil {
		err = dst.UnmarshalJSON(text)
	}
	if err != nil {
		r.cannotRead(value.Place, path, err.Error())
	}
	r.places[path] = value.Place
}

func scalarText(n ast.Node) string {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value
	case *ast.LiteralNode:
		return n.Value.Value
	}
	return n.GetToken().Value
}

func (r *Reader) scalar(path string, n ast.Node, dst reflect.Value) {
	r.places[path] = r.placeOf(n.GetToken())
	switch dst.Kind() {
	case reflect.String:
		if n.Type() != ast.StringType && n.Type() != ast.LiteralType {
			r.wrongType(path, n, "a string")
			return
		}
		dst.SetString(scalarText(n))
	case reflect.Bool:
		b, ok := n.(*ast.BoolNode)
		if !ok {
			r.wrongType(path, n, "true or false")
			return
		}
		dst.SetBool(b.Value)
	case reflect.Int, reflect.Int32, reflect.Int64:
		r.integer(path, n, dst)
	case reflect.Float64:
		r.number(path, n, dst)
	default:
		panic(fmt.Sprintf("config field %s has the unsupported type %s", path, dst.Type()))
	}
}

// maxWhole is the limit from which floats no longer represent every whole number.
const maxWhole = 1 << 53

// likeWhole matches numbers with an exponent that the YAML parser treats as strings, because they have no point.
var likeWhole = regexp.MustCompile(`^[-+]?(0|[1-9][0-9]*)[eE][-+]?[0-9]+$`)

// whole returns the value of a number such as 1e6, which is whole in JSON Schema too.
func whole(n ast.Node) (int64, bool) {
	x, text := 0.5, n.GetToken().Value
	switch n := n.(type) {
	case *ast.FloatNode:
		x = n.Value
	case *ast.StringNode:
		if n.Token.Type == token.StringType && likeWhole.MatchString(n.Value) {
			x, _ = strconv.ParseFloat(n.Value, 64) // infinite if it is too large
		}
	}
	digits, _, _ := strings.Cut(strings.ToLower(text), "e")
	tiny := x == 0 && strings.ContainsAny(digits, "123456789") // such as 1e-400, which is not 0
	return int64(x), x == math.Trunc(x) && math.Abs(x) < maxWhole && !tiny
}

// octal matches numbers that are octal only in YAML 1.1.
var octal = regexp.MustCompile(`^[-+]?0[0-9_]+$`)

// refuseOctal reports a number that begins with 0, which people and parsers read differently. It returns whether
// the number is one.
func refuseOctal(r *Reader, path string, n ast.Node) bool {
	_, whole := n.(*ast.IntegerNode)
	is := whole && octal.MatchString(n.GetToken().Value)
	if is {
		r.cannotRead(r.placeOf(n.GetToken()), path, "must not begin with 0, which some parsers read as octal")
	}
	return is
}

func (r *Reader) integer(path string, n ast.Node, dst reflect.Value) {
	if refuseOctal(r, path, n) {
		return
	}
	i, ok := n.(*ast.IntegerNode)
	if x, is := whole(n); is {
		r.setWhole(path, n, dst, x, true)
		return
	}
	if !ok {
		if exceeds(n, math.MaxInt64) {
			r.cannotRead(r.placeOf(n.GetToken()), path, "is too large")
			return
		}
		r.wrongType(path, n, "a whole number")
		return
	}
	x, fits := int64(0), false
	switch v := i.Value.(type) {
	case int64:
		x, fits = v, true
	case uint64:
		x, fits = int64(v), v <= math.MaxInt64
	}
	r.setWhole(path, n, dst, x, fits)
}

func (r *Reader) setWhole(path string, n ast.Node, dst reflect.Value, x int64, fits bool) {
	if !fits || dst.OverflowInt(x) {
		r.cannotRead(r.placeOf(n.GetToken()), path, "is too large")
		return
	}
	dst.SetInt(x)
}

func (r *Reader) number(path string, n ast.Node, dst reflect.Value) {
	if refuseOctal(r, path, n) {
		return
	}
	switch n := n.(type) {
	case *ast.FloatNode:
		dst.SetFloat(n.Value)
	case *ast.IntegerNode:
		switch v := n.Value.(type) {
		case int64:
			dst.SetFloat(float64(v))
		case uint64:
			dst.SetFloat(float64(v))
		}
	case *ast.StringNode: // a number without a point, such as 1e-3
		if exceeds(n, math.MaxFloat64) {
			r.cannotRead(r.placeOf(n.GetToken()), path, "is too large")
			return
		}
		x, err := strconv.ParseFloat(n.Value, 64)
		if n.Token.Type != token.StringType || !likeNumber.MatchString(n.Value) || err != nil {
			r.wrongType(path, n, "a finite number")
			return
		}
		dst.SetFloat(x)
	default:
		r.wrongType(path, n, "a finite number")
	}
}

// meantAsNumber matches plain text that people mean as a number, although the YAML parser treats it as a string.
var meantAsNumber = regexp.MustCompile(`^[-+]?(0|[1-9][0-9_]*)(\.[0-9_]*)?([eE][-+]?[0-9]+)?$`)

// isNumber reports whether a node is a number to a person, which the YAML parser treats as a string.
func isNumber(n ast.Node) bool {
	s, ok := n.(*ast.StringNode)
	return ok && s.Token.Type == token.StringType && meantAsNumber.MatchString(s.Value)
}

// exceeds reports whether a node is such a number, and beyond a limit.
func exceeds(n ast.Node, limit float64) bool {
	if !isNumber(n) {
		return false
	}
	x, _ := strconv.ParseFloat(strings.ReplaceAll(scalarText(n), "_", ""), 64) // infinite if it is too large
	return math.Abs(x) > limit
}

func (r *Reader) wrongType(path string, n ast.Node, want string) {
	message := fmt.Sprintf("must be %s, not %s", want, describe(n))
	if _, plain := n.(ast.ScalarNode); plain && want == "a string" {
		message += "; put it in quotes"
	}
	r.cannotRead(r.placeOf(firstToken(n)), path, message)
}

func describe(n ast.Node) string {
	if isNumber(n) {
		return "the number " + n.GetToken().Value
	}
	switch n.Type() {
	case ast.MappingType, ast.MappingValueType:
		return "keys and values"
	case ast.SequenceType:
		return "a list"
	case ast.StringType, ast.LiteralType:
		return "a string"
	case ast.BoolType:
		return "true or false"
	case ast.IntegerType, ast.FloatType, ast.InfinityType, ast.NanType:
		return "the number " + n.GetToken().Value
	}
	return n.Type().YAMLName()
}

// Field is a key of a struct with the field that it sets.
type Field struct {
	Key   string
	Field reflect.StructField
	Owner reflect.Type
	Value reflect.Value
}

// Fields returns the keys of a struct in the order of its fields, with those of an inlined struct in its place.
func Fields(v reflect.Value) []Field {
	var out []Field
	for i := range v.NumField() {
		field := v.Type().Field(i)
		key, options, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		switch {
		case options == "inline":
			out = append(out, Fields(v.Field(i))...)
		case key != "" && key != "-":
			out = append(out, Field{Key: key, Field: field, Owner: v.Type(), Value: v.Field(i)})
		}
	}
	return out
}
