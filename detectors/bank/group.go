package bank

import (
	"container/list"
	"slices"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// maxGroupSignals bounds the streams of one group; later signals are not followed.
const maxGroupSignals = 512

// group is the bank of one group: its streams, the baseline they share, and where they stand. Exported fields are its
// snapshot.
type group struct {
	Key     ingest.Group
	Number  int       // of the policy's groups in order of first unit, from 1 on; 0 of one that is warming up beside another
	Streams []*stream // sorted by signal
	Warmup  warmup

	Seen      int64  // units seen; the ordinal of the next one
	Blocks    blocks // where no episode ends
	Newcomers newcomers
	LastTS    int64
	Versions  versions
	Trail     trail

	Baseline BaselineRef
	FrozenAt time.Time
	FrozenTS int64
	Promise  Promise
	Share    float64 // of the policy's budget of false alarms, 0 before the first freeze

	ActionKind  ingest.ActionKind // of the baseline
	Categories  []string          // of the baseline, the commonest first, at most shownActions
	BaseActions map[string]int64  // counts of the baseline by category
	LastActions recentActions
	LikeActions *likeActions // of the baseline; nil where its actions tell nothing of rewards
	Explained   int64        // ordinal of the unit at which an old alarm was last explained

	Delivery delivery

	Line line // which baselines there were before

	gates gates // a part of the checkpoint of its own

	Unjudged string // FaultSilent or FaultEndless while the group cannot be judged, else ""

	Incident bool // an alarm has fired and the group has not gone quiet since
	Quiet    int  // units in a row without an open alarm, while Incident

	Positive, Negative float64
	Rewards            int64

	cfg          Config
	limit        *StreamLimit
	calibrations *Calibrations
	arrived      time.Time     // wall clock of the last unit, for silence
	changed      bool          // since it was saved
	saves        int           // that have it as it is, up to 2
	saved        *frozen       // what is saved of what does not change between baselines, nil where nothing is
	shown        *GroupSummary // nil where the group has changed since it was summarized

	resident                  *list.Element // of the groups in memory
	away                      *away         // not nil while it is evicted: see stub
	gatesSaved                bool          // the checkpoint has a part of the gates
	runningBytes, frozenBytes int           // of its parts

	actionShares *actionShares // of Categories
	scratch      scratch
	rules        []string // in force at the unit at hand, by stream; the memory is used again
}

// scratch is memory for the readings of one unit, which is used again for the next. Each goroutine has its own.
type scratch struct {
	values []reading
	hits   []int64 // of the actions that are judged
}

// actionCounts are the categories of one unit.
type actionCounts []ingest.Count

func newGroup(key ingest.Group, cfg Config, limit *StreamLimit, calibrations *Calibrations) *group {
	return &group{
		Key: key, cfg: cfg, limit: limit, calibrations: calibrations, actionShares: newActionShares(nil),
		changed: true,
	}
}

// touch notes that the group changes: it is to be saved, and summarized, anew.
func (g *group) touch() { g.changed, g.shown = true, nil }

// find gives the place of a signal's stream, and whether there is one.
func (g *group) find(signal string) (at int, found bool) {
	return slices.BinarySearchFunc(g.Streams, signal, func(s *stream, name string) int {
		return strings.Compare(s.Signal, name)
	})
}

// stream finds the stream of a signal, or starts it; nil where the signal is not to be followed.
func (g *group) stream(signal string) *stream {
	i, found := g.find(signal)
	if found {
		return g.Streams[i]
	}
	if len(g.Streams) >= maxGroupSignals || !g.cfg.Follows(signal) || !g.limit.take() {
		return nil
	}
	s := &stream{Signal: strings.Clone(signal)}
	g.Streams = slices.Insert(g.Streams, i, s)
	return s
}

// observe folds one unit in and returns what it changed. A unit that is judged is presented before.
func (g *group) observe(u *ingest.Unit, now time.Time, present func(*ingest.Unit)) []Finding {
	if rule := g.otherUnits(u); rule != "" {
		return g.show(u, rule, now)
	}
	if u = g.unit(u); u == nil {
		return nil
	}
	present(u)
	at := g.enter(u, now)
	defer func() { g.Trail.prune(g.Streams) }() // of the streams that there are then
	values := g.readings(u, &g.scratch)
	g.startStreams(u, values)
	g.Unjudged = ""
	rules := g.faults(u)
	if early := g.Newcomers.early(u); !early {
		g.feed(values, rules, at.Ordinal)
		g.witness(u, values, rules)
	}
	found := g.judge(rules, at)
	if g.quiet() {
		found = append(found, Finding{Kind: GroupQuiet, Group: g.Key, At: at})
	}
	if !g.Warmup.Done && !g.Incident && g.learns() { // never from the units of an open incident
		g.collect(u, values, rules)
	}
	if g.Warmup.Done && !g.Incident {
		g.collectLate(u, values, rules)
	}
	return found
}

// unit gives what is judged where a unit has come: itself, or the block that it completes, nil where that is not whole.
// A warm-up of blocks is let go of where an episode ends after all.
func (g *group) unit(u *ingest.Unit) *ingest.Unit {
	if u.End == ingest.EndBlock {
		return g.block(u)
	}
	if g.Blocks.Size > 0 {
		g.Blocks = blocks{}
		g.forgetWarmup()
	}
	return u
}

// enter gives the unit its ordinal and keeps what later findings need to know of it.
func (g *group) enter(u *ingest.Unit, now time.Time) UnitRef {
	at := g.ref(u)
	g.Seen++
	if wait := now.Sub(g.arrived); g.Unjudged == FaultSilent && !g.arrived.IsZero() {
		g.Warmup.LongestWait = max(g.Warmup.LongestWait, wait) // it was no silence after all
	}
	g.arrived = now
	g.LastTS = max(g.LastTS, u.EndTS)
	g.Positive += u.Reward.Positive
	g.Negative += u.Reward.Negative
	g.Rewards += u.Reward.N
	g.Versions.see(u.Versions, at.Ordinal)
	g.Trail.add(at, u)
	g.LastActions.add(at.Ordinal, u.Actions)
	return at
}

// ref is how findings refer to the unit at hand.
func (g *group) ref(u *ingest.Unit) UnitRef {
	return UnitRef{Ordinal: g.Seen, Agent: u.Agent, Episode: u.Episode, Pos: u.Pos, First: u.First, TS: u.EndTS}
}

// otherUnits gives the fault that shows where a unit is of another kind than those of the baseline, "" where it is not:
// episodes have stopped ending, or have begun to end, or agents no longer live long enough for blocks of their own.
func (g *group) otherUnits(u *ingest.Unit) string {
	block, blocks := u.End == ingest.EndBlock, g.Blocks.Size > 0
	switch {
	case g.Baseline.ID == "":
		return ""
	case block && !blocks:
		return FaultEndless
	case blocks && !block:
		return FaultEnding
	case u.Mixed && !g.Blocks.Mixed:
		return FaultMixed
	}
	return ""
}

// show keeps the values of a unit of another kind than the baseline's for the current distributions. It is not judged.
func (g *group) show(u *ingest.Unit, rule string, now time.Time) []Finding {
	at := g.enter(u, now)
	defer g.Trail.prune(g.Streams)
	for _, r := range g.readings(u, &g.scratch) {
		if i, found := g.find(r.signal); found && r.quantity == mainQuantity(r.signal) {
			g.Streams[i].quantity(r.quantity).show(r.x)
		}
	}
	return g.unjudged(rule, at)
}

// readings lists the quantities of a unit, the shares of the baseline's actions included. They are valid until the
// memory is used again.
func (g *group) readings(u *ingest.Unit, with *scratch) []reading {
	with.values = g.learntReadings(u, readings(u, with.values[:0]))
	if g.ActionKind == ingest.ActionCategory {
		with.values = slices.DeleteFunc(with.values, func(r reading) bool { return r.signal == actionSignal })
		g.actionShares.among(u.Actions, u.EndTS, with)
	}
	return with.values
}

// startStreams makes sure that every signal of the unit has its stream, those without a finite value included.
func (g *group) startStreams(u *ingest.Unit, values []reading) {
	for i, r := range values {
		if i == 0 || r.signal != values[i-1].signal {
			g.stream(r.signal)
		}
	}
	if len(u.Actions) > 0 {
		g.stream(actionSignal)
	}
	if u.Reward.NonFinite > 0 {
		g.stream("reward")
		g.stream("return")
	}
	for i := range u.Numeric {
		if u.Numeric[i].NonFinite > 0 {
			g.stream(u.Numeric[i].Signal)
		}
	}
}

// faults applies the fault rules and gives the rule in force for each stream, "" for none.
func (g *group) faults(u *ingest.Unit) []string {
	rules := g.rules[:0]
	for _, s := range g.Streams {
		rules = append(rules, s.checkFault(u, g.ActionKind))
	}
	g.rules = rules
	g.Delivery.observe(u)
	g.shareFaults(rules)
	return rules
}

// feed gives the unit's values to the tests; a fault suspends those of its stream.
func (g *group) feed(values []reading, rules []string, ordinal int64) {
	stream, next := -1, 0 // quantities of a stream come in a row, most in the order in which the stream holds them
	for _, r := range values {
		if stream < 0 || g.Streams[stream].Signal != r.signal {
			i, found := g.find(r.signal)
			if !found {
				continue
			}
			stream, next = i, 0
		}
		s := g.Streams[stream]
		if next >= len(s.Quantities) || s.Quantities[next].Name != r.quantity {
			next = s.place(r.quantity)
		}
		q := s.Quantities[next]
		next++
		if q.Name == mainQuantity(s.Signal) {
			q.show(r.x)
		}
		if rules[stream] == "" && g.sound(q, rules) {
			q.observe(r, ordinal, g.Incident)
		}
	}
}

// collect keeps the unit for the next baseline, but for the values of streams with a fault.
func (g *group) collect(u *ingest.Unit, values []reading, rules []string) {
	g.Delivery.learn()
	g.keep(u, values, rules)
}

// keep is collect for a unit whose delivery has been learnt from.
func (g *group) keep(u *ingest.Unit, values []reading, rules []string) {
	for _, r := range values {
		if i, found := g.find(r.signal); found && rules[i] == "" && !isLearnt(r.quantity) {
			q := g.Streams[i].quantity(r.quantity)
			q.Warm = append(q.Warm, observed{int32(g.Warmup.Units), r.x, r.steps})
		}
	}
	for i, s := range g.Streams {
		if rules[i] == "" {
			s.learn(u)
		}
	}
	g.Warmup.collect(u, g.Newcomers.age(u.Agent))
	if u.End == ingest.EndBlock {
		g.keepBlock(g.faultless(u, rules))
	} else if i, found := g.find("reward"); found && rules[i] == "" {
		g.Warmup.keepProfile(u)
	}
}

// judge moves every stream to the state that the unit has put it in.
func (g *group) judge(rules []string, at UnitRef) []Finding {
	var found []Finding
	for i, s := range g.Streams {
		f, changed := g.judgeStream(s, rules[i], at)
		if changed {
			found = append(found, f)
		}
	}
	return found
}

func (g *group) judgeStream(s *stream, rule string, at UnitRef) (Finding, bool) {
	from, alarmed, renewed := s.State, s.Alarmed, false
	switch {
	case rule != "":
		s.State = TelemetryFault
	case from == TelemetryFault && s.Alarmed:
		s.State = Drift
	case from == TelemetryFault, from == WarmingUp && g.Baseline.ID != "": // a learnt quantity may have proved itself
		s.State = s.settled()
	}
	switch s.State {
	case OK:
		g.watch(s, at)
	case Drift:
		renewed = g.followUp(s, at)
	}
	if s.State == OK && !alarmed && g.Delivery.standsBy() != "" { // never instead of an alarm, nor of its end
		s.State = TelemetryFault
	}
	switch {
	case g.moved(s, from):
		return g.finding(StreamChanged, s, from, at), true
	case renewed:
		return g.finding(StreamUpdated, s, from, at), true
	}
	return Finding{}, false
}

// watch alarms when a branch has reached its threshold.
func (g *group) watch(s *stream, at UnitRef) {
	if !s.reached() {
		return
	}
	top, names := s.leading()
	s.Alert = g.describe(s, top, names, at)
	s.alarm(at.Ordinal)
	g.Incident, g.Quiet = true, 0
}

// followUp resolves a drift that is over, and renews what is known of one that goes on, which it reports.
func (g *group) followUp(s *stream, at UnitRef) (renewed bool) {
	top, names := s.leading()
	if s.recovered(top.score) {
		s.State, s.Alarmed = OK, false
		return false
	}
	if !renews(at.Ordinal - s.AlarmedAt) {
		return false
	}
	s.Alert.Score = top.score
	s.Alert.Detectors = names
	if q := s.find(s.Alert.Quantity); q != nil {
		s.Alert.Effect, s.Alert.Histogram = s.effect(q, s.Alert.Onset.Ordinal)
	}
	// Of units that lie further back than the trail only what was told before is known.
	s.Alert.Offsets = byPartition(ingest.Widen(s.Alert.Offsets, g.Trail.offsets(s.Alert.Onset, g.Trail.Next-1)...))
	return true
}

// renews says how many units after an alarm its effect is measured anew.
func renews(units int64) bool {
	return units == 20 || units == 50 || units > 0 && units%100 == 0
}

// quiet counts the units after the last alarm of an incident has resolved, and restarts the detectors from zero when
// there were enough of them: a renewal, so that incidents come no more often than first alarms.
func (g *group) quiet() bool {
	if !g.Incident {
		return false
	}
	if slices.ContainsFunc(g.Streams, func(s *stream) bool { return s.Alarmed }) {
		g.Quiet = 0
		return false
	}
	if g.Quiet++; g.Quiet <= resolveUnits {
		return false
	}
	g.Incident, g.Quiet = false, 0
	for _, s := range g.Streams {
		s.reset()
	}
	return true
}

// finding reports a stream as it now stands.
func (g *group) finding(kind Kind, s *stream, from State, at UnitRef) Finding {
	f := Finding{Kind: kind, Group: g.Key, Signal: s.Signal, From: from, To: s.State, Reason: g.rule(s), At: at}
	if s.State == Drift || from == Drift {
		f.alert(s.Alert, g.baseline(s))
		f.Promise = g.Promise
	}
	if s.State == Drift {
		g.explain(&f, s.AlarmedAt)
	}
	if s.State == WarmingUp {
		f.Reason = g.missing(s)
	}
	return f
}

// moved reports whether a stream is in another state than before, or in a fault by another rule, which it notes.
func (g *group) moved(s *stream, from State) bool {
	told := s.Told
	s.Told = ""
	if s.State == TelemetryFault {
		s.Told = g.rule(s)
	}
	return s.State != from || s.Told != told
}

// rule gives the rule of the fault that a stream is in, "" for none.
func (g *group) rule(s *stream) string {
	switch {
	case s.Fault.Rule != "" || s.State != TelemetryFault:
		return s.Fault.Rule
	case s.Fault.Shared != "":
		return s.Fault.Shared
	case g.Unjudged != "":
		return g.Unjudged
	}
	return g.Delivery.standsBy()
}

// silence says that nothing has come for too long.
func (g *group) silence(now time.Time) []Finding {
	if at := g.silentAt(); at.IsZero() || now.Before(at) {
		return nil
	}
	return g.unjudged(FaultSilent, g.Trail.last())
}

// unjudged shows all streams of the group in a fault until its next finished unit. The detectors stay as they are: what
// they find must not depend on when the units arrived. A unit that is not judged ends a silence, but no silence ends what
// such units are told for.
func (g *group) unjudged(rule string, at UnitRef) []Finding {
	if g.Unjudged == rule || g.Unjudged != "" && rule == FaultSilent {
		return nil
	}
	g.Unjudged = rule
	var found []Finding
	for _, s := range g.Streams {
		from := s.State
		s.State = TelemetryFault
		if g.moved(s, from) {
			found = append(found, g.finding(StreamChanged, s, from, at))
		}
	}
	return found
}
