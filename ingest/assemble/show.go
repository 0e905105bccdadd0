package assemble

import (
	"slices"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// show passes on a step that was added to an open episode, with its action and outcomes, which guards count. If steps
// were only counted when their episodes end, episodes that end early would come first, and with them the reasons for
// their early end.
func (a *Assembler) show(ep *episode, e *ingest.Event, emit func(*ingest.Unit), decided func(*ingest.Decision)) {
	d := a.decisionOf(ep.agent.id, ep.id, e)
	d.Shape = a.shapeOf(ep.agent.group, e, ingest.EndOpen, -1)
	a.ord++
	if decided != nil && len(a.values) <= len(d.Values) && !slices.ContainsFunc(a.values, func(x float64) bool { return !finite(x) }) {
		copy(d.Values[:], a.values)
		decided(d)
		return
	}
	u := ingest.NewShortUnit()
	d.Fill(u, a.values)
	emit(u)
}
