package telemetry

import (
	"bytes"
	"encoding/json"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/jsontext"
	"github.com/rewardwatch/rewardwatch/ingest/mapping"
)

// read reads the value of a field. The value must not be null.
func (m *mapped) read(i int) bool {
	f := &m.plan.Fields[i]
	m.seen[i] = true
	if f.Choices != nil {
		start := m.d.at
		text, isScalar, ok := m.d.scalar()
		if !ok {
			return false
		}
		if choice, is := f.Choices[string(text)]; is && isScalar {
			return m.literal(f, choice) || m.named(f, "its choices")
		}
		m.d.at = start
	}
	return m.set(f, f.Scale) || m.named(f, f.Written)
}

// literal sets a field to a constant of the mapping. An empty constant means null.
func (m *mapped) literal(f *mapping.PlannedField, value []byte) bool {
	d := m.d
	if len(value) == 0 {
		return true
	}
	rec, at := d.rec, d.at
	d.rec, d.at = value, 0
	ok := d.null() || m.set(f, 1)
	d.rec, d.at = rec, at
	if !ok {
		d.fault.at = nowhere
	}
	return ok
}

// set sets a field to the next value.
func (m *mapped) set(f *mapping.PlannedField, scale float64) bool {
	d, ev := m.d, m.ev
	switch {
	case f.Component != "":
		return m.component(f, scale)
	case f.Exponent >= 0:
		start := d.at
		return d.timeIn(&ev.TS, f.Exponent) && d.note(timeInUnit, f.Exponent, start)
	case f.Own != nil:
		d.own = f.Own
		ok := d.member(ev, f.Member)
		d.own = nil
		return ok
	}
	ok := d.member(ev, f.Member)
	if scale != 1 && f.Name == "reward" {
		ev.Reward *= scale
		d.noteScale(scale)
	}
	return ok
}

// component sets one component of a field, such as outcomes.conversion.
func (m *mapped) component(f *mapping.PlannedField, scale float64) bool {
	d, ev, start := m.d, m.ev, m.d.at
	switch f.Name {
	case "episode.r":
		ev.HasEpisode = true
		ok := d.number(&ev.Return)
		ev.Return *= scale
		d.note(episodeReturn, 0, start)
		d.noteScale(scale)
		return ok
	case "episode.l":
		return d.count(&ev.Length) && d.note(episodeLength, 0, start)
	}
	if string(f.Member) == "labels" {
		return d.label(ev, f.Component)
	}
	var x float64
	if _, ok := d.component(&x, false); !ok || !d.counted() {
		return false
	}
	list := &ev.Observation
	switch string(f.Member) {
	case "outcomes":
		list = &ev.Outcomes
	case "reward_components":
		list = &ev.RewardComponents
	}
	d.noteComponent(list, d.put(list, f.Component, x*scale), start)
	d.noteScale(scale)
	return true
}

// timeIn reads a Unix time whose unit is 10^exponent nanoseconds, as a number or as a number in a string. It also reads
// RFC 3339 strings.
func (d *decoder) timeIn(dst *int64, exponent int) bool {
	start := d.at
	var n numeral
	switch {
	case d.peek() == '"':
		text, ok := d.str()
		if !ok {
			return false
		}
		if ns, ok := parseTime(text, d.zone); ok {
			*dst = ns
			return true
		}
		rec, at := d.rec, d.at
		d.rec, d.at = text, 0
		n, ok = d.numeral()
		ok = ok && d.at == len(text)
		d.rec, d.at = rec, at
		if !ok {
			return d.fail(ingest.ReasonBadTimestamp, start, "not an RFC 3339 time or a Unix time")
		}
	case d.atNumeral():
		var ok bool
		if n, ok = d.numeral(); !ok {
			return false
		}
	default:
		return d.wrongType("an RFC 3339 string or a Unix time")
	}
	ns, ok := n.nanoseconds(exponent)
	if !ok {
		return d.fail(ingest.ReasonBadTimestamp, start, "not a Unix time between 1970 and 2262 in the unit that the mapping sets")
	}
	*dst = ns
	return true
}

// named adds the name of the field and the source of its value to a fault. It returns false.
func (m *mapped) named(f *mapping.PlannedField, source string) bool {
	switch m.d.fault.reason {
	case ingest.ReasonInvalidJSON, ingest.ReasonInvalidUTF8, ingest.ReasonTooDeep:
		if f.Origin == mapping.FromPath {
			return false // the fault is in the record itself
		}
	}
	m.d.fault.msg = f.Name + " from " + source + ": " + m.d.fault.msg
	return false
}

// aroundValue reads the values that the plan uses from a JSON key, and tests the conditions on the key and the headers.
func (m *mapped) aroundValue() bool {
	for i := range m.plan.Conditions {
		c := &m.plan.Conditions[i]
		text, has := []byte(nil), false
		switch c.Origin {
		case mapping.FromHeader:
			text, has = m.header(c.Header)
		case mapping.FromKey:
			text, has = m.msg.Key, m.msg.Key != nil
		}
		if has && !m.decideOn(i, c.Met(text, true)) {
			return false
		}
	}
	if m.key == nil || len(m.msg.Key) == 0 {
		return true
	}
	if m.within(m.msg.Key, func() bool { return m.walk(m.key) }) {
		return true
	}
	if m.d.fault.reason == ingest.ReasonInvalidJSON {
		m.d.fault.msg = "the key of the message: " + m.d.fault.msg
	}
	return false
}

// header returns the value of a header. If several have the same name, it returns the last one.
func (m *mapped) header(name string) (value []byte, ok bool) {
	for i := len(m.msg.Headers) - 1; i >= 0; i-- {
		if h := &m.msg.Headers[i]; h.Key == name {
			return h.Value, true
		}
	}
	return nil, false
}

// fromText sets a field to the text of a header or key. If the field is not a string and the text is valid JSON, it is
// read as JSON.
func (m *mapped) fromText(i int, text []byte) bool {
	if f := &m.plan.Fields[i]; !f.IsText {
		if bare := bytes.TrimSpace(text); json.Valid(bare) {
			return m.from(i, bare)
		}
	}
	m.doc = jsontext.AppendString(m.doc[:0], text)
	return m.from(i, m.doc)
}

// from sets a field to a value that is not in the record.
func (m *mapped) from(i int, doc []byte) bool {
	return m.within(doc, func() bool { return m.d.null() || m.read(i) })
}

// asRecorded returns the members as recorded. An observation that the mapping assembles from components is written from
// these.
func (m *mapped) asRecorded() *ingest.AsRecorded {
	recorded := m.d.recorded
	if len(m.ev.Observation) > 0 && m.plan.Assembled {
		object := []byte{'{'}
		for _, v := range m.ev.Observation {
			object = jsontext.AppendStrictNumber(jsontext.AppendKey(object, v.Name), v.X)
		}
		recorded.Observation = append(object, '}')
	}
	return &recorded
}
