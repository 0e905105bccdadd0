package telemetry

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/jsontext"
	"github.com/rewardwatch/rewardwatch/ingest/mapping"
)

// environment provides the variables of expressions for one record. They are set when the first expression needs them.
type environment struct {
	machine               mapping.Machine
	env                   mapping.Env
	msg                   *ingest.Message
	hasRecord, hasElement bool
	hasMessage            bool
	fault                 *fault // why the record could not be read; kept, so the record is not read again for each element
}

func (e *environment) begin(msg *ingest.Message) {
	e.msg, e.hasRecord, e.hasElement, e.hasMessage, e.fault = msg, false, false, false, nil
}

// maxTree is the maximum number of values in a record or element that an expression uses, because the run time may grow
// with their square.
const maxTree = 1 << 14

// compute evaluates the expression for a field, and writes the result to m.doc as JSON.
func (m *mapped) compute(p *mapping.Program, field string) bool {
	if !m.prepare(p) {
		return false
	}
	value, err := m.env.machine.Run(p, m.env.env)
	if err == nil {
		m.doc, err = appendValue(m.doc[:0], value)
	}
	if err != nil {
		return m.d.fail(ingest.ReasonBadExpression, nowhere, "the expression for "+field+": "+err.Error())
	}
	return true
}

// prepare sets the variables that an expression uses.
func (m *mapped) prepare(p *mapping.Program) bool {
	e, d := &m.env, m.d
	at, depth := d.at, d.depth
	defer func() { d.at, d.depth = at, depth }()
	if !e.hasMessage {
		e.env.Key, e.env.Headers, e.hasMessage = string(e.msg.Key), make(map[string]string, len(e.msg.Headers)), true
		for _, h := range e.msg.Headers {
			e.env.Headers[h.Key] = string(h.Value)
		}
	}
	if p.Record && !e.hasRecord && !m.recordTree() {
		return false
	}
	if !p.Element || m.scan.element == nowhere || e.hasElement {
		return true
	}
	e.env.Element, e.hasElement = m.elementTree()
	return e.hasElement
}

// recordTree reads the whole record.
func (m *mapped) recordTree() (ok bool) {
	e, d, left := &m.env, m.d, maxTree
	if e.fault != nil {
		d.fault = *e.fault
		return false
	}
	d.at, d.depth = 0, 0
	d.space()
	if e.env.Record, e.hasRecord = d.tree(&left); !e.hasRecord {
		e.fault = new(d.fault)
	}
	return e.hasRecord
}

// elementTree reads the current element. With columns, it is an object of their values.
func (m *mapped) elementTree() (element any, ok bool) {
	d, left := m.d, maxTree
	if len(m.columns) == 0 {
		d.at, d.depth = m.scan.element, 0
		return d.tree(&left)
	}
	row := map[string]any{}
	for i := range m.columns {
		c := &m.columns[i]
		if c.array == nowhere || c.value == nowhere {
			continue
		}
		d.at, d.depth = c.value, 0
		if row[c.Name], ok = d.tree(&left); !ok {
			return nil, false
		}
	}
	return row, true
}

// tree reads a value of any type. It fails if the value contains more than *left values.
func (d *decoder) tree(left *int) (value any, ok bool) {
	if *left--; *left < 0 {
		return nil, d.fail(ingest.ReasonTooManyValues, nowhere, "more than "+strconv.Itoa(maxTree)+" values for an expression")
	}
	switch c := d.peek(); {
	case c == '{':
		return d.treeObject(left)
	case c == '[':
		return d.treeArray(left)
	case c == '"':
		text, ok := d.str()
		return string(text), ok
	case c == 't' && d.literal("true"):
		return true, true
	case c == 'f' && d.literal("false"):
		return false, true
	case d.null():
		return nil, true
	}
	if x, ok := d.word(); ok {
		return x, true
	}
	n, ok := d.numeral()
	if !ok {
		return nil, false
	}
	if n.integer {
		if i, ok := n.int(); ok {
			return i, true
		}
	}
	return n.float(), true
}

func (d *decoder) treeObject(left *int) (value any, ok bool) {
	if !d.enter() {
		return nil, false
	}
	object := map[string]any{}
	for first := true; ; first = false {
		more, ok := d.next(first, '}')
		if !more {
			return object, ok
		}
		key, ok := d.key()
		if !ok {
			return nil, false
		}
		name := string(key)
		v, ok := d.tree(left)
		if !ok {
			return nil, false
		}
		if v != nil || object[name] == nil {
			object[name] = v
		}
	}
}

func (d *decoder) treeArray(left *int) (value any, ok bool) {
	if !d.enter() {
		return nil, false
	}
	array := []any{}
	for first := true; ; first = false {
		more, ok := d.next(first, ']')
		if !more {
			return array, ok
		}
		v, ok := d.tree(left)
		if !ok {
			return nil, false
		}
		array = append(array, v)
	}
}

// appendValue appends the result of an expression as JSON.
func appendValue(dst []byte, value any) ([]byte, error) {
	switch v := value.(type) {
	case nil:
		return append(dst, "null"...), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	case int:
		return strconv.AppendInt(dst, int64(v), 10), nil
	case int64:
		return strconv.AppendInt(dst, v, 10), nil
	case float64:
		return jsontext.AppendStrictNumber(dst, v), nil
	case string:
		return jsontext.AppendString(dst, v), nil
	}
	text, err := json.Marshal(value)
	if err != nil { // rarely, so this is cheaper than copying every list
		text, err = json.Marshal(withTexts(value))
	}
	return append(dst, text...), err
}

// withTexts converts the keys of all objects to strings, as JSON requires. Objects from fromPairs and groupBy may have
// other keys.
func withTexts(value any) any {
	object := map[string]any{}
	switch v := value.(type) {
	case map[any]any:
		for key, x := range v {
			object[fmt.Sprint(key)] = withTexts(x)
		}
	case map[any][]any:
		for key, x := range v {
			object[fmt.Sprint(key)] = withTexts(x)
		}
	case map[string]any:
		for key, x := range v {
			object[key] = withTexts(x)
		}
	case []any:
		list := make([]any, len(v))
		for i, x := range v {
			list[i] = withTexts(x)
		}
		return list
	default:
		return value
	}
	return object
}
