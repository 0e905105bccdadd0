package assemble

import "github.com/rewardwatch/rewardwatch/ingest"

// Single builds units that consist of one event each. The zero value is not ready for use.
type Single struct {
	metrics *Metrics
	names   *names
	sums    tally
}

// NewSingle returns a Single that counts the values for which a unit has no room.
func NewSingle(m *Metrics) *Single { return &Single{metrics: m, names: newNames()} }

// Unit returns the unit of an event that is a whole episode. Its group and its end are left to the caller, who owns the
// unit.
func (s *Single) Unit(e *ingest.Event) *ingest.Unit {
	s.sums.begin(e)
	if ignored := s.sums.add(e, s.names); ignored > 0 {
		s.metrics.noSignal.Add(float64(ignored))
	}
	s.sums.keep(e)
	u := s.sums.unit(ingest.EndTerminated)
	u.Pos, u.Unfinished = e.Pos, -1
	return u
}

// isWhole reports whether an event that matches no open episode is an episode of its own: it ends at once, and its agent
// has no other episode that the event could show to be abandoned.
func (a *Assembler) isWhole(e *ingest.Event) bool {
	_, ends := endOf(e)
	return ends && a.agents[string(a.key.bytes[:a.key.agent])] == nil
}

// foldWhole adds an event that is a whole episode. It does what opening the episode and ending it would do, without the
// cost of either.
func (a *Assembler) foldWhole(p *policy, e *ingest.Event, emit func(*ingest.Unit)) (first ingest.Position, taken bool) {
	g := a.group(p, e)
	if g == nil {
		a.metrics.noGroup.Inc()
		return first, false
	}
	key := string(a.key.bytes[a.key.agentAt:])
	ep := a.take()
	ep.id, ep.step, ep.rest = key[a.key.ownAt-a.key.agentAt:], -1, false
	ep.begin(e)
	p.begun(e.Step)
	if ignored := ep.addStep(e, a.names); ignored > 0 {
		a.metrics.noSignal.Add(float64(ignored))
	}
	g.Used = a.events
	g.Endings.passed()
	end, _ := endOf(e)
	a.conclude(ep, g, key[:a.key.agent-a.key.agentAt], end, e, emit)
	ep.id = ""
	a.putBack(ep)
	return e.Pos, true
}
