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
	p.begun(e.Step)
	g.Used = a.events
	g.Endings.passed()
	key := string(a.key.bytes[a.key.agentAt:])
	agent, id := key[:a.key.agent-a.key.agentAt], key[a.key.ownAt-a.key.agentAt:]
	end, _ := endOf(e)
	if isPlain(e) {
		g.Endings.ended(0)
		p.ended()
		a.recent.add(ended{Key: a.key.hash(), Step: max(-1, e.Step), Came: arrived{First: max(0, e.Step)}, TS: e.TS, Owed: true})
		a.emitEpisode(a.plainUnit(e, end), g, agent, id, e, emit)
		return e.Pos, true
	}
	ep := a.take()
	ep.id, ep.step, ep.rest = id, -1, false
	ep.begin(e)
	if ignored := ep.addStep(e, a.names); ignored > 0 {
		a.metrics.noSignal.Add(float64(ignored))
	}
	a.conclude(ep, g, agent, end, e, emit)
	ep.id = ""
	a.putBack(ep)
	return e.Pos, true
}

// mostPlainOutcomes bounds the outcomes of a plain event, whose names are compared with each other.
const mostPlainOutcomes = 8

// isPlain reports whether a whole episode is a step with a finite reward, and with nothing else than outcomes and one
// action: most decisions are.
func isPlain(e *ingest.Event) bool {
	if !e.HasReward || !finite(e.Reward) || e.HasEpisode || e.ActionProb.Known || e.TargetProb.Known || len(e.Observation) > 0 ||
		len(e.RewardComponents) > 0 || len(e.Outcomes) > mostPlainOutcomes {
		return false
	}
	if n := len(e.Action.Values); n > 1 || n == 1 && (!e.Action.Scalar || !finite(e.Action.Values[0])) {
		return false
	}
	for i := range e.Outcomes {
		if !finite(e.Outcomes[i].X) {
			return false
		}
		for j := range i {
			if e.Outcomes[i].Name == e.Outcomes[j].Name {
				return false
			}
		}
	}
	return true
}

// plainUnit returns the unit of a plain event: the one that a tally of the event would return.
func (a *Assembler) plainUnit(e *ingest.Event, end ingest.End) *ingest.Unit {
	u := a.cfg.Units.Get()
	u.End, u.Versions, u.StartTS, u.EndTS, u.First, u.Last = end, a.names.versions(e.Versions), e.TS, e.TS, e.Pos, e.Pos
	x := e.Reward + 0 // see add
	u.Length, u.HasReturn, u.Return, u.RewardQ10, u.RewardQ90 = 1, true, x, x, x
	u.LongestConstant, u.ConstantReward, u.ActionKind, u.Events = 1, x, e.Action.Kind, 1
	u.Profile, u.ProfileSteps = append(u.Profile, float32(x)), 1
	u.Reward.Add(x)
	if len(e.Action.Values) == 0 && len(e.Outcomes) == 0 {
		u.Numeric = nil // as empty lists of other units are
	}
	if e.Action.Kind != ingest.ActionCategory {
		u.Actions = nil
	} else {
		u.Actions = append(u.Actions, ingest.Count{Name: e.Action.Category, N: 1, Reward: x})
	}
	for _, x := range e.Action.Values {
		n := ingest.NamedMoments{Signal: scalarAction.prefix(), Q10: x + 0, Q90: x + 0}
		n.Add(x + 0)
		u.Numeric = append(u.Numeric, n)
	}
	for i := range e.Outcomes {
		n := ingest.NamedMoments{Signal: a.names.outcome(i, e.Outcomes[i].Name)}
		n.Add(e.Outcomes[i].X + 0)
		u.Numeric = append(u.Numeric, n)
	}
	return u
}
