package assemble

import "github.com/rewardwatch/rewardwatch/ingest"

// Single builds units that consist of a single event. Use NewSingle to create one.
type Single struct {
	metrics *Metrics
	names   *names
	sums    tally
}

// NewSingle returns a Single that counts the values that exceed the limits of a unit in m.
func NewSingle(m *Metrics) *Single { return &Single{metrics: m, names: newNames()} }

// Unit returns the unit of an event that is a whole episode. The caller owns the unit, and sets its group and End.
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

// isWhole reports whether an event without an open episode is an episode by itself: it ends its episode, and its agent
// has no open episodes that the event could show to be abandoned.
func (a *Assembler) isWhole(e *ingest.Event) bool {
	_, ends := endOf(e)
	return ends && a.agents[string(a.key.bytes[:a.key.agent])] == nil
}

// foldWhole adds an event that is a whole episode. The result is the same as opening and ending the episode, but takes
// less time.
func (a *Assembler) foldWhole(p *policy, e *ingest.Event, emit func(*ingest.Unit), decided func(*ingest.Decision)) (first ingest.Position, taken bool) {
	g := a.group(p, e)
	if g == nil {
		a.metrics.noGroup.Inc()
		a.over.group()
		return first, false
	}
	p.begun(e.Step)
	g.Used = a.events
	g.Endings.passed()
	key := a.texts.Hold(a.key.bytes[a.key.agentAt:])
	agent, id := key[:a.key.agent-a.key.agentAt], key[a.key.ownAt-a.key.agentAt:]
	end, _ := endOf(e)
	if len(p.split) == 0 && isPlain(e) {
		g.Endings.ended(0)
		p.ended()
		a.recent.add(ended{Key: a.key.hash(), Step: max(-1, e.Step), Came: arrived{First: max(0, e.Step)}, TS: e.TS, Owed: true})
		a.decide(g, agent, id, end, e, emit, decided)
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

// mostPlainOutcomes is the maximum number of outcomes of a plain event. Their names are compared with each other.
const mostPlainOutcomes = 8

// isPlain reports whether a whole episode is a step with a finite reward, and has nothing else except outcomes and one
// action. Most decisions are plain.
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

// decide passes on a plain event. It calls decided if that is not nil and a Decision can represent the unit. Otherwise,
// it calls emit with the same unit that a tally of the event would return.
func (a *Assembler) decide(g *group, agent, id string, end ingest.End, e *ingest.Event, emit func(*ingest.Unit), decided func(*ingest.Decision)) {
	d := a.decisionOf(agent, id, e)
	d.Reward = e.Reward + 0 // see add
	if decided == nil || len(a.values) > len(d.Values) || g.LeftOut != (leftOut{}) || g.Abandoned != 0 {
		d.Shape = a.shapeOf(g, e, end, 0)
		u := ingest.NewShortUnit()
		d.Fill(u, a.values)
		a.emitEpisode(u, g, agent, id, e, emit)
		return
	}
	g.ended(1, a.cfg.LengthSample)
	d.Shape = a.shapeOf(g, e, end, g.Endings.told())
	copy(d.Values[:], a.values)
	a.ord++
	a.metrics.ends[end].Inc()
	decided(d)
}

// decisionOf returns the decision for an event, without its reward and shape. It is valid until the next call. The
// other numbers are in a.values.
func (a *Assembler) decisionOf(agent, id string, e *ingest.Event) *ingest.Decision {
	a.values = appendValues(a.values[:0], e)
	a.decision = ingest.Decision{Agent: agent, Episode: id, TS: e.TS, Pos: e.Pos, Ord: a.ord}
	if e.Action.Kind == ingest.ActionCategory {
		a.decision.Action = e.Action.Category
	}
	return &a.decision
}

// appendValues appends the numbers of a plain event, except the reward, in the order of the signals of its shape.
func appendValues(values []float64, e *ingest.Event) []float64 {
	for _, x := range e.Action.Values {
		values = append(values, x+0)
	}
	for i := range e.Outcomes {
		values = append(values, e.Outcomes[i].X+0)
	}
	return values
}

// mostShapes is the maximum number of decision shapes that a group remembers, for different versions, ends and
// outcomes.
const mostShapes = 8

// shapeOf returns the shape for a plain event. It reuses one of the group's last shapes if possible.
func (a *Assembler) shapeOf(g *group, e *ingest.Event, end ingest.End, unfinished int64) *ingest.DecisionShape {
	for i, s := range g.shapes {
		if s.Unfinished == unfinished && hasShape(e, end, s) {
			g.shapes[0], g.shapes[i] = g.shapes[i], g.shapes[0]
			return s
		}
	}
	s := &ingest.DecisionShape{
		Group: g.Group, Versions: a.names.versions(e.Versions), Unfinished: unfinished, End: end, Kind: e.Action.Kind, Shadow: g.Shadow,
		Acts: e.Action.Kind == ingest.ActionCategory,
	}
	for i := range e.Action.Values {
		of := key{kind: scalarAction}
		if !e.Action.Scalar {
			of = key{actionComponent, a.names.component(i)}
		}
		s.Signals = append(s.Signals, ingest.DecisionSignal{Name: a.names.of(of), Outer: true})
	}
	for i := range e.Outcomes {
		s.Signals = append(s.Signals, ingest.DecisionSignal{Name: a.names.of(key{outcome, e.Outcomes[i].Name})})
	}
	if len(g.shapes) < mostShapes {
		g.shapes = append(g.shapes, s)
	} else {
		g.shapes[len(g.shapes)-1] = s
	}
	return s
}

// hasShape reports whether a plain event fits a shape of its group.
func hasShape(e *ingest.Event, end ingest.End, s *ingest.DecisionShape) bool {
	numbers := len(e.Action.Values)
	if s.End != end || s.Kind != e.Action.Kind || s.Versions != e.Versions || len(s.Signals) != numbers+len(e.Outcomes) {
		return false
	}
	if numbers > 0 && e.Action.Scalar != (s.Signals[0].Name == scalarAction.prefix()) {
		return false
	}
	for i := range s.Signals {
		if s.Signals[i].Outer != (i < numbers) || i >= numbers && s.Signals[i].Name[len(outcomePrefix):] != e.Outcomes[i-numbers].Name {
			return false
		}
	}
	return true
}
