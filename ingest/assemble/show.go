package assemble

import "github.com/rewardwatch/rewardwatch/ingest"

// show passes on a step that was added to an open episode, with its action and its outcomes: what guards count. A count of
// steps when their episodes end sees the episodes that end early first, and with them the reasons why they did.
func (a *Assembler) show(ep *episode, e *ingest.Event, emit func(*ingest.Unit), decided func(*ingest.Decision)) {
	g := ep.agent.group
	a.values = appendValues(a.values[:0], e)
	d := &a.decision
	*d = ingest.Decision{Agent: ep.agent.id, Episode: ep.id, TS: e.TS, Pos: e.Pos, Ord: a.ord, Shape: a.shapeOf(g, e, ingest.EndOpen, -1)}
	a.ord++
	if e.Action.Kind == ingest.ActionCategory {
		d.Action = e.Action.Category
	}
	if decided != nil && len(a.values) <= len(d.Values) && allFinite(a.values) {
		copy(d.Values[:], a.values)
		decided(d)
		return
	}
	u := ingest.NewShortUnit()
	d.Fill(u, a.values)
	emit(u)
}

func allFinite(values []float64) bool {
	for _, x := range values {
		if !finite(x) {
			return false
		}
	}
	return true
}
