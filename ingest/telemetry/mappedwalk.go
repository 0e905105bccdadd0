package telemetry

import (
	"strconv"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/mapping"
)

// The functions in this file walk records along a tree of the values that the plan uses. They follow the conventions of
// json.go.

// walk reads a value for all of its uses, and walks the values within it.
func (m *mapped) walk(n *mapping.Node) bool {
	d := m.d
	if d.null() {
		return true
	}
	if n.Plain >= 0 && !m.scan.deciding {
		f := &m.plan.Fields[n.Plain]
		m.seen[n.Plain] = true
		return d.member(m.ev, f.Member) || m.named(f, f.Written)
	}
	if len(n.Wants) == 0 {
		return m.inside(n)
	}
	start := d.at
	for i, w := range n.Wants {
		if i > 0 {
			d.at = start
		}
		if !m.use(w) {
			return false
		}
	}
	if len(n.Names) == 0 && len(n.Places) == 0 {
		return true
	}
	d.at = start
	return m.inside(n)
}

// inside walks the values of an object or an array. It skips other values, which contain nothing that is used.
func (m *mapped) inside(n *mapping.Node) bool {
	switch c := m.d.peek(); {
	case c == '{' && len(n.Names) > 0:
		return m.object(n)
	case c == '[' && len(n.Places) > 0:
		return m.list(n)
	}
	return m.d.skip()
}

func (m *mapped) object(n *mapping.Node) bool {
	d := m.d
	if !d.enter() {
		return false
	}
	next := 0
	for first := true; ; first = false {
		more, ok := d.next(first, '}')
		if !more {
			return ok
		}
		key, ok := d.key()
		if !ok {
			return false
		}
		if child := n.Member(key, &next); child != nil {
			ok = m.walk(child)
		} else {
			ok = d.skip()
		}
		if !ok {
			return false
		}
	}
}

func (m *mapped) list(n *mapping.Node) bool {
	d := m.d
	if !d.enter() {
		return false
	}
	for place := 0; ; place++ {
		more, ok := d.next(place == 0, ']')
		if !more {
			return ok
		}
		if child := n.ElementAt(place); child != nil {
			ok = m.walk(child)
		} else {
			ok = d.skip()
		}
		if !ok {
			return false
		}
	}
}

// use reads a value for one use. The value must not be null.
func (m *mapped) use(w mapping.Want) bool {
	switch w.Kind {
	case mapping.ForCondition:
		return m.condition(w.Index)
	case mapping.ForEach:
		return m.events()
	case mapping.ForColumn:
		return m.column(&m.columns[w.Index])
	}
	d, f := m.d, &m.plan.Fields[w.Index]
	inElement := m.scan.element != nowhere
	switch {
	case m.scan.deciding, f.Last && inElement && !m.scan.isLast:
		return d.skip()
	case f.Last && !inElement:
		m.later[w.Index] = d.at
		return d.skip()
	}
	return m.read(w.Index)
}

// events counts the elements of the array or object of events, and records its offset.
func (m *mapped) events() (ok bool) {
	m.scan.array, m.scan.closing = m.d.at, ']'
	switch m.d.peek() {
	case '{':
		m.scan.closing = '}'
	case '[':
	default:
		return m.d.wrongType("an array or object of events at " + m.plan.Each)
	}
	m.scan.elements, ok = m.d.sized(m.scan.closing)
	return ok
}

// column counts the values of a column, and records its offset.
func (m *mapped) column(c *columnScan) (ok bool) {
	switch m.d.peek() {
	case '[':
		c.closing = ']'
	case '{':
		c.closing = '}'
	default:
		return m.d.wrongType("an array or an object, as " + c.Path + " is a column")
	}
	c.array = m.d.at
	c.elements, ok = m.d.sized(c.closing)
	return ok
}

// sized reads an array or an object, and returns its number of elements.
func (d *decoder) sized(closing byte) (n int, ok bool) {
	if !d.enter() {
		return 0, false
	}
	for {
		more, ok := d.next(n == 0, closing)
		if !more {
			return n, ok
		}
		if n == ingest.MaxElements {
			return n, d.fail(ingest.ReasonTooManyValues, d.at, "more than "+strconv.Itoa(ingest.MaxElements)+" events")
		}
		n++
		if closing == '}' {
			if _, ok := d.key(); !ok {
				return n, false
			}
		}
		if !d.skip() {
			return n, false
		}
	}
}

// condition reads a value that is tested by a condition. In a template, the value is part of a run that must repeat
// exactly, unless the condition only tests its existence.
func (m *mapped) condition(i int) bool {
	d, c := m.d, &m.plan.Conditions[i]
	if c.Exists {
		return d.skip() && m.decideOn(i, c.Met(nil, false))
	}
	lesson := d.lesson
	d.lesson = nil
	text, isScalar, ok := d.scalar()
	d.lesson = lesson
	return ok && m.decideOn(i, c.Met(text, isScalar))
}

// conditionIn tests a condition on a value that is not in the record.
func (m *mapped) conditionIn(i int, doc []byte) bool {
	return m.within(doc, func() bool { return m.d.null() || m.condition(i) })
}

// scalar reads a value. It returns the text of a string, or a number, true or false as written.
func (d *decoder) scalar() (text []byte, isScalar, ok bool) {
	start := d.at
	if d.peek() == '"' {
		text, ok = d.str()
		return text, true, ok
	}
	c := d.peek()
	if !d.skip() {
		return nil, false, false
	}
	return d.rec[start:d.at], c != '{' && c != '[', true
}

// within reads a value that is not in the record. Its faults have no column.
func (m *mapped) within(doc []byte, read func() bool) bool {
	d := m.d
	rec, at, depth := d.rec, d.at, d.depth
	d.rec, d.at, d.depth = doc, 0, 0
	d.space()
	ok := read() && d.end()
	d.rec, d.at, d.depth = rec, at, depth
	if !ok {
		d.fault.at = nowhere
	}
	return ok
}
