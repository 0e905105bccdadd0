package telemetry

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/mapping"
)

// Mapped is the format of JSON records with a different structure. A plan defines which of their values are the fields
// of telemetry version 1. A message contains one record per line.
type Mapped struct {
	Plan *mapping.Plan
	// Found, if not nil, is called for every field of an event for which its source had a value. field is its index in the
	// plan.
	Found func(field int)
}

// NewDecoder implements Format.
func (f Mapped) NewDecoder(o ingest.DecoderOptions) ingest.Decoder {
	p, d := f.Plan, newDecoder(o)
	if !o.AsRecorded && predictable(p) {
		d.predictor = &predictor{}
	}
	d.zone = p.Zone
	m := &mapped{
		d: d, plan: p, root: p.Root.Clone(), inArray: p.Element.Clone(), key: p.Key.Clone(), found: f.Found, seen: make([]bool, len(p.Fields)),
		later: make([]int, len(p.Fields)), decided: make([]bool, len(p.Conditions)),
	}
	for i, column := range p.Columns {
		next := i
		m.columns = append(m.columns, columnScan{Column: column, node: m.inArray.Member([]byte(column.Name), &next)})
	}
	return m
}

// mapped reads records with a different structure. It walks a record once, along the tree of values that the plan uses.
// It reads these values like those of telemetry version 1, and skips the others, which must be valid JSON. If the
// record has several events, it first walks the surrounding values into a template, and then each event.
//
// null is the same as leaving the member out. If a key is repeated, the last value that is not null counts.
//
// With most mappings, a predictor reads records with the same structure as previous ones faster than a walk, with the
// same result.
//
// It is large because each source of values has a method that reads it into reused memory.
type mapped struct {
	d     *decoder
	plan  *mapping.Plan
	found func(field int)

	root, inArray, key *mapping.Node // trees of the plan
	columns            []columnScan

	msg  *ingest.Message
	line []byte        // current record
	ev   *ingest.Event // event to fill
	scan scan          // state of reading the record
	doc  []byte        // JSON value from outside the record
	env  environment   // variables of expressions

	seen    []bool // fields that have a value
	decided []bool // conditions that have been tested
	later   []int  // offsets in line of the values for fields of the last element, or nowhere

	name     []byte            // name of the current element if the elements are members of an object
	template ingest.Event      // values that the elements have in common
	common   ingest.AsRecorded // their members as recorded
	values   int               // their number of numbers
}

// scan is the state of reading a record.
type scan struct {
	leftOut   bool // whether a condition is not met
	deciding  bool // whether only conditions are read, because the record has a fault
	array     int  // offset in line of the array or object of events, or of the leading column; or nowhere
	closing   byte // its closing bracket
	elements  int  // its number of elements
	lead      int  // index of the leading column
	element   int  // offset in line of the current element; nowhere outside of elements
	index     int  // index of the current element
	isLast    bool // whether it is the last element
	afterThat int  // offset in line after it
}

// columnScan is the state of reading a column.
type columnScan struct {
	mapping.Column
	node *mapping.Node // in the tree of an element

	array    int  // offset in line of the column, or nowhere
	closing  byte // its closing bracket
	elements int  // its number of elements
	value    int  // offset in line of its value in the current element, or nowhere
	after    int  // offset in line after that value
	name     []byte
	matched  int // number of its values that are part of an event

	places map[string]int // offsets in line of its values by name, if the names are not in the order of the leading column
}

// Reset implements Decoder.
func (m *mapped) Reset() { m.d.Reset() }

// Decode implements Decoder. It reports refused records and elements, and decodes the others.
func (m *mapped) Decode(dst []ingest.Event, msg *ingest.Message, refuse func(e *ingest.RecordError, raw []byte)) []ingest.Event {
	pos, refused := msg.Pos, 0
	around, spent := m.aroundBytes(msg), 0
	capped := func(e *ingest.RecordError, raw []byte) {
		if refused++; refused > ingest.MaxRefusals {
			raw = nil
		}
		refuse(e, raw)
	}
	m.msg = msg
	for rest := msg.Value; len(rest) > 0; {
		if m.line, rest = cutLine(rest); blank(m.line) {
			continue
		}
		switch spent += around; {
		case spent > maxAround:
			capped(&ingest.RecordError{Pos: pos, Reason: ingest.ReasonTooManyValues, Size: int64(len(m.line)), Msg: manyAround}, m.line)
			pos.Record++
		case m.inArray == nil:
			dst = m.decodeRecord(dst, pos, capped)
			pos.Record++
		default:
			dst, pos = m.decodeArray(dst, pos, capped)
		}
	}
	m.msg, m.line = nil, nil
	if pos.Record == 0 {
		refuse(&ingest.RecordError{
			Pos: pos, Reason: ingest.ReasonEmptyRecord, Size: int64(len(msg.Value)), Msg: "the message contains no record",
		}, msg.Value)
	}
	return dst
}

// decodeRecord appends the event of a record with one event.
func (m *mapped) decodeRecord(dst []ingest.Event, pos ingest.Position, refuse func(*ingest.RecordError, []byte)) []ingest.Event {
	dst, ev := ingest.NextEvent(dst, pos)
	m.begin(ev)
	if (m.predicted() || m.walked()) && m.conclude() && m.d.complete(ev) {
		m.accept()
		return dst
	}
	m.reject(pos, refuse)
	return dst[:len(dst)-1]
}

// decodeArray appends the events of a record with several events, and returns the next position.
func (m *mapped) decodeArray(dst []ingest.Event, pos ingest.Position, refuse func(*ingest.RecordError, []byte)) ([]ingest.Event, ingest.Position) {
	t := &m.template
	emptyEvent(t)
	m.begin(t)
	if !m.record() || !m.hasArray() || !m.conclude() || !m.sharesLittle() {
		m.reject(pos, refuse)
		pos.Record++
		return dst, pos
	}
	m.common, m.values = m.d.recorded, m.d.values
	m.scan.afterThat = m.scan.array + 1
	for i := range m.scan.elements {
		var ev *ingest.Event
		dst, ev = ingest.NextEvent(dst, pos)
		m.beginElement(ev, i)
		if m.element() && m.conclude() && m.d.complete(ev) {
			m.accept()
		} else {
			m.reject(pos, refuse)
			dst = dst[:len(dst)-1]
		}
		pos.Record++
	}
	return dst, m.refuseUnmatched(pos, refuse)
}

// begin starts reading the line as a record.
func (m *mapped) begin(ev *ingest.Event) {
	d := m.d
	d.rec, d.at, d.depth, d.values, d.deep, d.recorded = m.line, 0, 0, 0, 0, ingest.AsRecorded{}
	if len(d.index) > 0 {
		clear(d.index)
	}
	m.ev, m.scan = ev, scan{array: nowhere, element: nowhere}
	clear(m.seen)
	clear(m.decided)
	if m.plan.Programs {
		m.env.begin(m.msg)
	}
	if m.inArray != nil {
		for i := range m.later {
			m.later[i] = nowhere
		}
	}
	for i := range m.columns {
		m.columns[i].array, m.columns[i].matched = nowhere, 0
		clear(m.columns[i].places)
	}
}

// beginElement starts the event of the i-th element as a copy of the template.
func (m *mapped) beginElement(ev *ingest.Event, i int) {
	copyEvent(ev, &m.template)
	d := m.d
	m.advance(i)
	d.values, d.deep, d.recorded = m.values, 0, m.common
	if len(d.index) > 0 {
		clear(d.index)
	}
	m.ev, m.scan.element, m.scan.index, m.scan.isLast, m.scan.leftOut = ev, d.at, i, i == m.scan.elements-1, false
	m.env.hasElement = false
	for i := range m.seen {
		m.seen[i] = m.seen[i] && !m.plan.Fields[i].InElement
	}
	for i := range m.decided {
		m.decided[i] = m.decided[i] && !m.plan.Conditions[i].InElement
	}
}

// advance moves to the next element. This cannot fail, because all elements have been read before.
func (m *mapped) advance(i int) {
	d := m.d
	if len(m.columns) > 0 {
		m.advanceColumns(i)
		return
	}
	d.at, d.depth = m.scan.afterThat, 0
	d.next(i == 0, m.scan.closing)
	if m.scan.closing == '}' {
		name, _ := d.key()
		m.name = append(m.name[:0], name...)
	}
}

// advanceColumns moves each column to the next element. In an object, this is the member with the same name as in the
// leading column.
func (m *mapped) advanceColumns(i int) {
	lead := &m.columns[m.scan.lead]
	name, _ := m.nextOf(lead, i == 0)
	m.name = append(m.name[:0], name...)
	for k := range m.columns {
		c := &m.columns[k]
		if c.array == nowhere || c == lead {
			continue
		}
		if len(c.places) == 0 {
			if name, more := m.nextOf(c, i == 0); more && bytes.Equal(name, m.name) {
				c.matched++
				continue
			}
			m.find(c)
		}
		c.value = nowhere
		if at, has := c.places[string(m.name)]; has {
			c.value = at
			c.matched++
		}
	}
}

// refuseUnmatched reports each column that has names which the leading column lacks. Their values are not part of any
// event.
func (m *mapped) refuseUnmatched(pos ingest.Position, refuse func(*ingest.RecordError, []byte)) ingest.Position {
	for i := range m.columns {
		c, lead := &m.columns[i], &m.columns[m.scan.lead]
		if c.array == nowhere || c == lead || c.closing != '}' || c.matched >= c.elements {
			continue
		}
		m.d.fail(ingest.ReasonWrongColumns, c.array, fmt.Sprintf("names in %s that are not in %s: %d of %d", c.Path, lead.Path, c.elements-c.matched, c.elements))
		m.d.rec = m.line
		refuse(m.d.refusal(pos), m.line)
		pos.Record++
	}
	return pos
}

// find records the offsets of all values of a column, for columns whose names are in a different order. Searching for
// each name would take quadratic time.
func (m *mapped) find(c *columnScan) {
	if c.places == nil {
		c.places = make(map[string]int, c.elements)
	}
	for n := range c.elements {
		name, _ := m.nextOf(c, n == 0)
		if _, before := c.places[string(name)]; !before {
			c.places[string(name)] = c.value
		}
	}
}

// nextOf moves a column to its next value. If the column is an object, it returns the name of the value, which is valid
// until the next call.
func (m *mapped) nextOf(c *columnScan, first bool) (name []byte, more bool) {
	d := m.d
	if first {
		c.after = c.array + 1
	}
	c.value = nowhere
	d.at, d.depth = c.after, 0
	if more, _ = d.next(first, c.closing); !more {
		return nil, false
	}
	if c.closing == '}' {
		name, _ = d.key()
		c.name = append(c.name[:0], name...) // copied, because strings in the value may also have escapes
		name = c.name
	}
	c.value = d.at
	d.skip()
	c.after = d.at
	return name, true
}

// record walks the record. Conditions on headers and keys are tested first, because they may skip the record
// immediately.
func (m *mapped) record() bool {
	d := m.d
	if !d.fits() || !m.aroundValue() {
		return false
	}
	d.space()
	if d.peek() != '{' && len(m.root.Wants) == 0 {
		return d.notAnObject()
	}
	return m.walk(m.root) && d.end()
}

// element walks an element.
func (m *mapped) element() bool {
	d := m.d
	if len(m.columns) > 0 {
		return m.row()
	}
	if m.scan.closing == '}' && d.null() { // such as an agent that no longer exists
		m.scan.afterThat, m.scan.leftOut = d.at, true
		return false
	}
	ok := m.walk(m.inArray)
	if !ok {
		fault := d.fault
		d.at, d.depth = m.scan.element, 0
		d.skip() // cannot fail, because the array has been read before
		d.fault = fault
	}
	m.scan.afterThat = d.at
	return ok
}

// row walks the values of an element in all columns.
func (m *mapped) row() bool {
	for i := range m.columns {
		if c := &m.columns[i]; c.array != nowhere && c.value != nowhere {
			m.d.at, m.d.depth = c.value, 0
			if !m.walk(c.node) {
				return false
			}
		}
	}
	return true
}

// hasArray reports whether the record has events.
func (m *mapped) hasArray() bool {
	if !m.leads() {
		return false
	}
	switch {
	case m.scan.array == nowhere && len(m.columns) > 0:
		return m.d.fail(ingest.ReasonEmptyRecord, nowhere, "no array found at "+m.columns[0].Path+" or another column")
	case m.scan.array == nowhere:
		return m.d.fail(ingest.ReasonEmptyRecord, nowhere, "no array or object found at "+m.plan.Each)
	case m.scan.elements == 0:
		m.scan.leftOut = true
		return false
	}
	return true
}

// leads finds the column that determines the number of events. Arrays must have equal lengths. Among objects, it is the
// largest.
func (m *mapped) leads() bool {
	for i := range m.columns {
		c, lead := &m.columns[i], &m.columns[m.scan.lead]
		switch {
		case c.array == nowhere:
			continue
		case lead.array == nowhere || c.closing == '}' && lead.closing == '}' && c.elements > lead.elements:
			m.scan.lead = i
		case c.closing != lead.closing:
			return m.d.fail(ingest.ReasonWrongColumns, c.array, fmt.Sprintf("columns must be all arrays or all objects, but %s and %s differ", lead.Path, c.Path))
		case c.elements != lead.elements && c.closing == ']':
			return m.d.fail(ingest.ReasonWrongColumns, c.array, fmt.Sprintf("%s has %d elements, but %s has %d", c.Path, c.elements, lead.Path, lead.elements))
		}
	}
	if len(m.columns) > 0 {
		lead := &m.columns[m.scan.lead]
		m.scan.array, m.scan.closing, m.scan.elements = lead.array, lead.closing, lead.elements
	}
	return true
}

// accept completes the event.
func (m *mapped) accept() {
	if m.d.options.AsRecorded {
		m.ev.AsRecorded = m.asRecorded()
	}
	if m.found == nil {
		return
	}
	for i, seen := range m.seen {
		if seen {
			m.found(i)
		}
	}
}

// reject reports that a record or an element is not an event. It is either skipped or refused.
func (m *mapped) reject(pos ingest.Position, refuse func(*ingest.RecordError, []byte)) {
	if !m.scan.leftOut && m.d.fault.reason != ingest.ReasonTooLarge {
		m.decide()
	}
	if !m.scan.leftOut {
		m.d.rec = m.line
		refuse(m.d.refusal(pos), m.line)
	} else if m.d.options.LeftOut != nil {
		m.d.options.LeftOut(pos)
	}
}

// decide tests the conditions of a record or an element that has a fault, because it may have to be skipped instead of
// refused.
func (m *mapped) decide() {
	d, fault := m.d, m.d.fault
	m.scan.deciding = true
	if m.scan.element != nowhere {
		d.at, d.depth = m.scan.element, 0
		_ = m.element() && m.conditions()
	} else {
		d.rec, d.at, d.depth = m.line, 0, 0
		_ = m.record() && m.conditions()
	}
	m.scan.deciding = false
	d.fault = fault
}

// conclude reads the fields whose values are not in the record, or missing in it.
func (m *mapped) conclude() bool {
	if !m.conditions() {
		return false
	}
	inElement := m.scan.element != nowhere
	for _, i := range m.plan.After {
		f := &m.plan.Fields[i]
		if f.InElement != inElement || f.Last && !m.scan.isLast {
			continue
		}
		if !m.outside(i, f) {
			return false
		}
		if !m.seen[i] && f.Default != nil && !m.literal(f, f.Default) {
			return m.named(f, "its default")
		}
	}
	if m.ev.Length >= 0 && !m.ev.HasEpisode {
		m.ev.Length = -1 // the length of an episode that continues
	}
	return true
}

// outside reads a field whose source is not a path, or whose value was only located before.
func (m *mapped) outside(i int, f *mapping.PlannedField) bool {
	d := m.d
	switch f.Origin {
	case mapping.FromPath:
		if f.Last && !m.seen[i] && m.later[i] != nowhere {
			d.at = m.later[i]
			return m.read(i)
		}
	case mapping.FromConstant:
		return m.literal(f, f.Value) || m.named(f, f.Written)
	case mapping.FromHeader:
		if value, ok := m.header(f.Header); ok {
			return m.fromText(i, value)
		}
	case mapping.FromKey:
		if m.msg.Key != nil {
			return m.fromText(i, m.msg.Key)
		}
	case mapping.FromIndex:
		return m.fromText(i, m.indexText())
	case mapping.FromExpression:
		return m.compute(f.Program, f.Name) && m.from(i, m.doc)
	}
	return true
}

// conditions tests the conditions that the walk has not tested.
func (m *mapped) conditions() bool {
	inElement := m.scan.element != nowhere
	for i := range m.plan.Conditions {
		c := &m.plan.Conditions[i]
		if m.decided[i] || c.InElement != inElement {
			continue
		}
		switch c.Origin {
		case mapping.FromExpression:
			if !m.compute(c.Program, "take") || !m.conditionIn(i, m.doc) {
				return false
			}
		case mapping.FromIndex:
			m.decideOn(i, c.Met(m.indexText(), true))
		}
		if !m.decided[i] && !m.decideOn(i, c.Absent) {
			return false
		}
	}
	return true
}

// indexText returns the index of the element, or its name in an object.
func (m *mapped) indexText() []byte {
	if m.scan.closing == '}' {
		return m.name
	}
	return strconv.AppendInt(nil, int64(m.scan.index), 10)
}

// decideOn records whether a condition is met.
func (m *mapped) decideOn(i int, met bool) bool {
	m.decided[i] = true
	m.scan.leftOut = !met
	return met
}

// emptyEvent resets an event. It keeps the capacity of its slices.
func emptyEvent(ev *ingest.Event) {
	*ev = ingest.Event{
		Pos: ev.Pos, Step: -1, Length: -1,
		Labels: ev.Labels[:0], Action: ingest.Action{Values: ev.Action.Values[:0]},
		RewardComponents: ev.RewardComponents[:0], Observation: ev.Observation[:0], Outcomes: ev.Outcomes[:0],
	}
}

// copyEvent makes to a copy of from, except for its position. It reuses the slices of to.
func copyEvent(to, from *ingest.Event) {
	pos, labels, values := to.Pos, to.Labels[:0], to.Action.Values[:0]
	components, observation, outcomes := to.RewardComponents[:0], to.Observation[:0], to.Outcomes[:0]
	*to = *from
	to.Pos = pos
	to.Labels = append(labels, from.Labels...)
	to.Action.Values = append(values, from.Action.Values...)
	to.RewardComponents = append(components, from.RewardComponents...)
	to.Observation = append(observation, from.Observation...)
	to.Outcomes = append(outcomes, from.Outcomes...)
}
