package literals

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

// Names returns the value of a name, which may contain dots, or false if the value is unknown.
type Names func(name string) (Value, bool)

var (
	words = pattern.MustCompile(`^[ \t\r\n\\]*(?:([rR]?(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'))|((?:[0-9][0-9_]*\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|([A-Za-z_]\w*(?:[ \t]*\.[ \t]*[A-Za-z_]\w*)*)|(\*\*|//|[\[\](){},:=*/+-]))`)
	blank = strings.NewReplacer(" ", "", "\t", "")
)

// maxDepth bounds the nesting of brackets and signs, and maxWords the number of tokens of an expression.
const maxDepth, maxWords = 20, 500

// Of evaluates an expression. It returns false if the value is unknown.
func Of(text string, names Names) (Value, bool) {
	e := &expression{names: names, rest: text}
	e.advance()
	v := e.sum(0)
	return v, !e.failed && e.word == "" && strings.TrimSpace(e.rest) == ""
}

// NumberOf returns the number at the beginning of a text, or NaN if the text begins with something else.
func NumberOf(text string, names Names) float64 {
	e := &expression{names: names, rest: text}
	e.advance()
	v := e.sum(0)
	if e.failed || !v.isNumber() {
		return math.NaN()
	}
	return v.Number
}

// expression is the state of evaluating an expression from left to right.
type expression struct {
	names  Names
	rest   string
	word   string // the next token, "" after the last
	kind   int    // kind of the next token
	count  int
	failed bool
}

// The kinds of tokens, which are the indices of their groups in the regular expression.
const (
	aString = iota + 1
	aNumber
	aName
	aSign
)

func (e *expression) advance() {
	e.word, e.kind = "", 0
	m := words.FindStringSubmatchIndex(e.rest)
	if e.count++; m == nil || e.count > maxWords {
		return
	}
	for kind := aString; kind <= aSign; kind++ {
		if m[2*kind] >= 0 {
			e.word, e.kind = e.rest[m[2*kind]:m[2*kind+1]], kind
		}
	}
	e.rest = e.rest[m[1]:]
}

// next consumes the next token if it is the given sign, and reports whether it did.
func (e *expression) next(sign string) bool {
	if e.kind != aSign || e.word != sign {
		return false
	}
	e.advance()
	return true
}

func (e *expression) fail() Value {
	e.failed = true
	return Value{}
}

func (e *expression) sum(depth int) Value { return e.chain(depth, e.product, "+", "-") }

func (e *expression) product(depth int) Value { return e.chain(depth, e.signed, "*", "//", "/") }

// chain evaluates a sequence of operands and left-associative operators of the same precedence.
func (e *expression) chain(depth int, operand func(depth int) Value, operators ...string) Value {
	v := operand(depth)
	for !e.failed {
		i := slices.IndexFunc(operators, e.next)
		if i < 0 {
			return v
		}
		v = e.calculate(v, operand(depth), operators[i])
	}
	return v
}

func (e *expression) signed(depth int) Value {
	if depth > maxDepth {
		return e.fail()
	}
	if e.next("-") {
		return e.calculate(Value{Kind: Int}, e.signed(depth+1), "-")
	}
	v := e.member(depth)
	if !e.failed && e.next("**") {
		return e.calculate(v, e.signed(depth+1), "**")
	}
	return v
}

func (e *expression) calculate(a, b Value, how string) Value {
	if e.failed || !a.isNumber() || !b.isNumber() {
		return e.fail()
	}
	out := Value{Kind: max(a.Kind, b.Kind)}
	switch how {
	case "+":
		out.Number = a.Number + b.Number
	case "-":
		out.Number = a.Number - b.Number
	case "*":
		out.Number = a.Number * b.Number
	case "//":
		out.Number = math.Floor(a.Number / b.Number)
	case "/":
		out.Kind, out.Number = Float, a.Number/b.Number
	case "**":
		if out.Number = math.Pow(a.Number, b.Number); b.Number < 0 {
			out.Kind = Float
		}
	}
	return out
}

// member evaluates a value and the keys or indices after it, as in config["lr"][0].
func (e *expression) member(depth int) Value { return e.within(e.single(depth), depth) }

func (e *expression) within(v Value, depth int) Value {
	for !e.failed && e.next("[") {
		key := e.sum(depth + 1)
		item, ok := v.Member(key.Text)
		if i := int(key.Number); key.Kind == Int && (v.Kind == List || v.Kind == Tuple) && i >= -len(v.Items) && i < len(v.Items) {
			item, ok = v.Items[(i+len(v.Items))%len(v.Items)], true
		} else if key.Kind != String {
			ok = false
		}
		if !ok || !e.next("]") {
			return e.fail()
		}
		v = item
	}
	return v
}

func (e *expression) single(depth int) Value {
	word := e.word
	switch {
	case depth > maxDepth:
	case e.kind == aString:
		return e.text(word)
	case e.kind == aNumber:
		e.advance()
		return number(word)
	case e.kind == aName:
		e.advance()
		return e.named(blank.Replace(word), depth)
	case e.next("("):
		return e.tuple(depth + 1)
	case e.next("["):
		items, _ := e.items("]", depth+1)
		return Value{Kind: List, Items: items}
	case e.next("{"):
		return e.dict(depth + 1)
	}
	return e.fail()
}

// text evaluates a string. Its value is unknown if it has escapes or consists of several literals.
func (e *expression) text(word string) Value {
	e.advance()
	body := strings.TrimLeft(word, "rR")
	if strings.Contains(body, `\`) || e.kind == aString {
		return e.fail()
	}
	return Value{Kind: String, Text: body[1 : len(body)-1]}
}

func number(word string) Value {
	x, err := strconv.ParseFloat(strings.ReplaceAll(word, "_", ""), 64)
	if err != nil {
		x = math.NaN()
	}
	if strings.ContainsAny(word, ".eE") {
		return Value{Kind: Float, Number: x, Text: word}
	}
	return Value{Kind: Int, Number: x, Text: word}
}

func (e *expression) named(name string, depth int) Value {
	switch name {
	case "None":
		return Value{}
	case "True":
		return Value{Kind: Bool, Number: 1}
	case "False":
		return Value{Kind: Bool}
	}
	if e.next("(") {
		return e.called(name, depth+1)
	}
	v, ok := e.names(name)
	if !ok {
		return e.fail()
	}
	return v
}

// called evaluates a call of one of the few supported functions.
func (e *expression) called(name string, depth int) Value {
	if name == "dict" {
		return e.keywords(depth)
	}
	items, _ := e.items(")", depth)
	if of, isGet := strings.CutSuffix(name, ".get"); isGet && !e.failed {
		return e.get(of, items)
	}
	if e.failed || len(items) != 1 {
		return e.fail()
	}
	if name == "bool" && items[0].Kind == Bool || name == "str" && items[0].Kind == String {
		return items[0]
	}
	if items[0].Kind == String { // as in settings that contain 3e-4
		items[0] = number(items[0].Text)
	}
	if !items[0].isNumber() || math.IsNaN(items[0].Number) {
		return e.fail()
	}
	switch name {
	case "int":
		return Value{Kind: Int, Number: math.Trunc(items[0].Number)}
	case "float":
		return Value{Kind: Float, Number: items[0].Number, Text: items[0].Text}
	}
	return e.fail()
}

// get evaluates the get method of a dictionary: the value of the key, or else the second argument.
func (e *expression) get(name string, arguments []Value) Value {
	of, ok := e.names(name)
	if !ok || of.Kind != Dict || len(arguments) == 0 || len(arguments) > 2 {
		return e.fail()
	}
	if v, found := of.Member(arguments[0].Text); found {
		return v
	}
	if len(arguments) == 2 {
		return arguments[1]
	}
	return Value{}
}

// tuple evaluates parentheses: a single value, or a tuple.
func (e *expression) tuple(depth int) Value {
	items, comma := e.items(")", depth)
	if len(items) == 1 && !comma {
		return items[0]
	}
	return Value{Kind: Tuple, Items: items}
}

// items evaluates values up to a closing bracket, and reports whether there is a comma among them.
func (e *expression) items(until string, depth int) (out []Value, comma bool) {
	for !e.failed && !e.next(until) {
		out = append(out, e.sum(depth))
		if !e.next(",") {
			if !e.next(until) {
				e.failed = true
			}
			return out, comma
		}
		comma = true
	}
	return out, comma
}

func (e *expression) dict(depth int) Value {
	out := Value{Kind: Dict}
	for !e.failed && !e.next("}") {
		if e.next("**") {
			e.merge(&out, e.sum(depth))
		} else {
			key := e.sum(depth)
			if e.failed || key.Kind != String || !e.next(":") {
				return e.fail()
			}
			out.with(key.Text, e.sum(depth))
		}
		if !e.next(",") && (e.kind != aSign || e.word != "}") {
			return e.fail()
		}
	}
	return out
}

// keywords evaluates the arguments of dict().
func (e *expression) keywords(depth int) Value {
	out := Value{Kind: Dict}
	for !e.failed && !e.next(")") {
		key, isName := e.word, e.kind == aName
		switch {
		case e.next("**"):
			e.merge(&out, e.sum(depth))
		case !isName:
			return e.fail()
		default:
			e.advance()
			if e.next("=") {
				out.with(key, e.sum(depth))
			} else { // dict(other)
				e.merge(&out, e.within(e.named(blank.Replace(key), depth), depth))
			}
		}
		if !e.next(",") && (e.kind != aSign || e.word != ")") {
			return e.fail()
		}
	}
	return out
}

func (e *expression) merge(to *Value, of Value) {
	if e.failed || of.Kind != Dict {
		e.failed = true
		return
	}
	for i, key := range of.Keys {
		to.with(key, of.Items[i])
	}
}
