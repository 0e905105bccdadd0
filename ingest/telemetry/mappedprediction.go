package telemetry

import (
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/mapping"
)

// predictable reports whether templates can replace walks with a plan. Each value may be used only once, and must be in
// the record itself or be read after it.
func predictable(p *mapping.Plan) bool {
	if p.Element != nil || p.Key != nil {
		return false
	}
	for i := range p.Conditions {
		if p.Conditions[i].Origin != mapping.FromPath {
			return false
		}
	}
	literals := 0
	for i := range p.Fields {
		f := &p.Fields[i]
		literals += len(f.Value) + len(f.Default)
		if f.Choices != nil || f.Own != nil || f.Last || !predictableOrigin(f) {
			return false
		}
	}
	return literals <= maxLiterals && wantsOnce(p.Root)
}

// maxLiterals is the maximum number of bytes of a plan's constants and defaults. Templates do not count the numbers
// that they read, so the limit must ensure that these and the numbers in constants and defaults never exceed MaxValues
// together.
const maxLiterals = ingest.MaxValues - maxTemplateValues

// predictableOrigin reports whether a field is in the record, or is read after it without numbers that count towards
// MaxValues.
func predictableOrigin(f *mapping.PlannedField) bool {
	switch f.Origin {
	case mapping.FromPath, mapping.FromConstant:
		return true
	case mapping.FromHeader, mapping.FromKey:
		return f.IsText
	}
	return false
}

// wantsOnce reports whether no value in a tree is used twice, or both as a whole and in part.
func wantsOnce(n *mapping.Node) bool {
	if len(n.Wants) > 1 || len(n.Wants) == 1 && len(n.Members)+len(n.Elements) > 0 {
		return false
	}
	for _, children := range [][]*mapping.Node{n.Members, n.Elements} {
		for _, child := range children {
			if !wantsOnce(child) {
				return false
			}
		}
	}
	return true
}

// predicted reads the record with a template if one fits. Otherwise, it returns false and resets the event.
func (m *mapped) predicted() bool {
	d := m.d
	if d.predictor == nil || !d.predictor.wanted(d) {
		return false
	}
	if d.predictor.predict(d, m.ev) {
		t := &d.predictor.templates[d.predictor.last]
		copy(m.seen, t.seen)
		copy(m.decided, t.decided)
		return true
	}
	emptyEvent(m.ev)
	d.at, d.depth, d.values, d.deep = 0, 0, 0, 0
	return false
}

// walked walks the record, and makes a template from it if the predictor has started a lesson.
func (m *mapped) walked() bool {
	d, ok := m.d, m.record()
	if d.lesson == nil {
		return ok
	}
	ev := m.ev
	if !ok {
		ev = nil
	}
	if m.scan.leftOut {
		d.predictor.governor.discount()
	}
	if t := d.predictor.learn(d, ev); t != nil {
		t.seen, t.decided = append(t.seen[:0], m.seen...), append(t.decided[:0], m.decided...)
	}
	return ok
}
