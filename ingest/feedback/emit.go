package feedback

import (
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// DelaySignal is the name of the signal for the time in seconds from a decision to its first feedback.
const DelaySignal = "feedback_delay"

// Advance passes the units of all decisions that are due before clock to emit, in the order in which they are due.
// clock is the event time up to which the partition has been read, and at is the position of the record that advanced
// it.
func (j *Joiner) Advance(clock int64, at ingest.Position, emit func(*ingest.Unit)) {
	j.ord = 0
	for {
		d, slot, due := j.store.next()
		if d == nil || due >= clock {
			return
		}
		p := j.byNumber[d.policy]
		final := int(d.stage) == p.rules.last()
		switch {
		case !d.has(flagDecided):
			j.metrics.lost(p.hash(j.store.key(d)), d.first.Partition.Number(), int64(d.records))
		case final:
			j.emit(j.whole(d, p.rules), d, due, at, emit)
			j.metrics.final.Inc()
		default:
			j.emit(j.soFar(d, p.rules), d, due, at, emit)
		}
		if final {
			j.finish(d, slot)
			continue
		}
		d.stage++
		j.store.again(d)
	}
}

// Ended returns the number of unit ordinals that the last call of Advance used.
func (j *Joiner) Ended() int32 { return j.ord }

// emit completes a unit and passes it on. u is nil if there is no unit.
func (j *Joiner) emit(u *ingest.Unit, d *decision, due int64, at ingest.Position, emit func(*ingest.Unit)) {
	ord := j.ord
	j.ord++ // also without a unit, so the ordinals of later units do not depend on whether there is one
	if u == nil {
		return
	}
	u.End, u.Shadow = ingest.EndWindow, j.store.groups.values[d.group].shadow
	u.Agent, u.Episode = string(j.store.agent(d)), string(j.store.key(d))
	u.StartTS, u.EndTS, u.First, u.Last = d.ts, due, d.first, d.last
	u.Events = 1 + int64(d.records)
	u.Pos, u.Ord = at, ord
	emit(u)
}

// whole returns the unit of a decision whose window has ended.
func (j *Joiner) whole(d *decision, r *rules) *ingest.Unit {
	j.load(d)
	e := j.begin(d)
	e.Action.Kind, e.Action.Category = d.actionKind, j.store.categories.values[d.category]
	e.Action.Scalar = d.has(flagScalar)
	for _, v := range j.held {
		switch v.kind {
		case action:
			e.Action.Values = append(e.Action.Values, v.x)
		case observation:
			e.Observation = append(e.Observation, ingest.Value{Name: v.name, X: v.x})
		case actionProb:
			e.ActionProb = ingest.Prob{P: v.x, Known: true}
		case targetProb:
			e.TargetProb = ingest.Prob{P: v.x, Known: true}
		}
	}
	j.feedback(d, r)
	u := j.single.Unit(&j.event)
	u.Group, u.Labels = j.store.groups.values[d.group].group, j.labels(d)
	if d.delay >= 0 {
		u.Numeric = append(u.Numeric, delayed(time.Duration(d.delay).Seconds()))
	}
	return u
}

// delayed returns the moments of DelaySignal for one delay.
func delayed(seconds float64) ingest.NamedMoments {
	m := ingest.NamedMoments{Signal: DelaySignal, Q10: seconds, Q90: seconds}
	m.Add(seconds)
	return m
}

// soFar returns a unit with a decision's feedback up to a horizon, or nil if there is none.
func (j *Joiner) soFar(d *decision, r *rules) *ingest.Unit {
	j.load(d)
	e := j.begin(d)
	j.feedback(d, r)
	if !e.HasReward && len(e.Outcomes)+len(e.RewardComponents) == 0 {
		return nil
	}
	u := j.single.Unit(&j.event)
	u.Group, u.Labels = j.store.groups.values[d.group].horizons[d.stage], j.labels(d)
	return u
}

// begin returns the event for a unit, with the fields that all units of the decision have.
func (j *Joiner) begin(d *decision) *ingest.Event {
	e := &j.event
	*e = ingest.Event{
		Pos: d.first, TS: d.ts, Versions: j.store.versions.values[d.versions], Step: -1, Length: -1,
		Action:      ingest.Action{Values: e.Action.Values[:0]},
		Observation: e.Observation[:0], Outcomes: e.Outcomes[:0], RewardComponents: e.RewardComponents[:0],
	}
	return e
}

// feedback adds the feedback so far to the event, and the defaults for missing values.
func (j *Joiner) feedback(d *decision, r *rules) {
	e := &j.event
	if e.HasReward = d.has(flagReward); e.HasReward {
		e.Reward = d.reward
	} else if r.reward != nil {
		e.HasReward, e.Reward = true, *r.reward
	}
	for _, v := range j.held {
		j.name(v)
	}
	for _, v := range r.defaults {
		if !j.holds(v.field) {
			j.name(v)
		}
	}
}

func (j *Joiner) holds(f field) bool {
	for _, v := range j.held {
		if v.field == f {
			return true
		}
	}
	return false
}

// name adds an outcome or a reward component to the event.
func (j *Joiner) name(v value) {
	switch named := (ingest.Value{Name: v.name, X: v.x}); v.kind {
	case component:
		j.event.RewardComponents = append(j.event.RewardComponents, named)
	case outcome:
		j.event.Outcomes = append(j.event.Outcomes, named)
	}
}
