package bank

import (
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
	Streams []*stream // sorted by signal
	Warmup  warmup

	Seen     int64 // units seen; the ordinal of the next one
	Blocks   int64 // of them, blocks of steps
	LastTS   int64
	Versions versions
	Trail    trail

	Baseline  BaselineRef
	FrozenAt  time.Time
	FrozenTS  int64
	PromisedN float64
	Share     float64 // of the policy's budget of false alarms, 0 before the first freeze

	ActionKind  ingest.ActionKind // of the baseline
	Categories  []string          // of the baseline, the commonest first, at most shownActions
	BaseActions map[string]int64  // counts of the baseline by category
	LastActions []actionCounts    // of the last units, a ring
	NextActions int

	Unjudged string // FaultSilent or FaultEndless while the group cannot be judged, else ""

	Incident bool // an alarm has fired and the group has not gone quiet since
	Quiet    int  // units in a row without an open alarm, while Incident

	Positive, Negative float64
	Rewards            int64

	cfg     Config
	limit   *StreamLimit
	arrived time.Time // wall clock of the last unit, for silence
}

// actionCounts are the categories of one unit.
type actionCounts []ingest.Count

func newGroup(key ingest.Group, cfg Config, limit *StreamLimit) *group {
	return &group{Key: key, cfg: cfg, limit: limit}
}

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

// observe folds one unit in and returns what it changed.
func (g *group) observe(u *ingest.Unit, now time.Time) []Finding {
	at := g.enter(u, now)
	defer g.Trail.prune(g.Streams)
	values := g.readings(u)
	g.startStreams(u, values)
	if u.End == ingest.EndBlock {
		return g.block(values, at)
	}
	g.Unjudged = ""
	rules := g.faults(u)
	g.feed(values, rules, at.Ordinal)
	found := g.judge(rules, at)
	if g.quiet() {
		found = append(found, Finding{Kind: GroupQuiet, Group: g.Key, At: at})
	}
	if !g.Warmup.Done && !g.Incident { // never from the units of an open incident
		g.collect(u, values, rules)
	}
	return found
}

// enter gives the unit its ordinal and keeps what later findings need to know of it.
func (g *group) enter(u *ingest.Unit, now time.Time) UnitRef {
	at := UnitRef{
		Ordinal: g.Seen, Agent: u.Agent, Episode: u.Episode, Pos: u.Pos, First: u.First, TS: u.EndTS,
	}
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
	g.keepActions(u.Actions)
	return at
}

// block keeps the values of a block of steps for the current distributions: it is shown but not judged. Where there is
// a baseline of episodes, that they have stopped ending is a fault.
func (g *group) block(values []reading, at UnitRef) []Finding {
	g.Blocks++
	for _, r := range values {
		if i, found := g.find(r.signal); found {
			g.Streams[i].quantity(r.quantity).show(r.x)
		}
	}
	if g.Baseline.ID == "" {
		return nil
	}
	return g.unjudged(FaultEndless, at)
}

// readings lists the quantities of a unit, the shares of the baseline's actions included.
func (g *group) readings(u *ingest.Unit) []reading {
	values := readings(u, make([]reading, 0, 16))
	if g.ActionKind != ingest.ActionCategory {
		return values
	}
	values = slices.DeleteFunc(values, func(r reading) bool { return r.signal == actionSignal })
	judged, listed := g.judgedActions()
	for _, category := range judged {
		if x, ok := share(u.Actions, category, listed); ok {
			values = append(values, reading{actionSignal, shareName(category), x})
		}
	}
	return values
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
	rules := make([]string, len(g.Streams))
	for i, s := range g.Streams {
		rules[i] = s.checkFault(u, g.ActionKind)
	}
	return rules
}

// feed gives the unit's values to the tests; a fault suspends those of its stream.
func (g *group) feed(values []reading, rules []string, ordinal int64) {
	for _, r := range values {
		i, found := g.find(r.signal)
		if !found {
			continue
		}
		q := g.Streams[i].quantity(r.quantity)
		q.show(r.x)
		if rules[i] == "" {
			q.observe(r.x, ordinal, g.Incident)
		}
	}
}

// collect keeps the unit for the next baseline, but for the values of streams with a fault.
func (g *group) collect(u *ingest.Unit, values []reading, rules []string) {
	for _, r := range values {
		if i, found := g.find(r.signal); found && rules[i] == "" {
			q := g.Streams[i].quantity(r.quantity)
			q.Warm = append(q.Warm, r.x)
		}
	}
	for i, s := range g.Streams {
		if rules[i] == "" {
			s.learnLevels(u)
		}
	}
	g.Warmup.collect(u)
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
	from, renewed := s.State, false
	switch {
	case rule != "":
		s.State = TelemetryFault
	case from == TelemetryFault && s.Alarmed:
		s.State = Drift
	case from == TelemetryFault:
		s.State = s.settled()
	}
	switch s.State {
	case OK:
		g.watch(s, at)
	case Drift:
		renewed = g.followUp(s, at)
	}
	switch {
	case s.State != from:
		return g.finding(StreamChanged, s, from, at), true
	case renewed:
		return g.finding(StreamUpdated, s, from, at), true
	}
	return Finding{}, false
}

// watch alarms when a branch has reached its threshold.
func (g *group) watch(s *stream, at UnitRef) {
	top, names := s.leading()
	if top.quantity == nil || top.score < 1 {
		return
	}
	s.Alert = g.describe(top, names, at)
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
		s.Alert.Effect = effect(q, at.Ordinal-s.Alert.Onset.Ordinal+1)
	}
	s.Alert.Offsets = g.Trail.offsets(s.Alert.Onset)
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
		f.alert(s.Alert, g.Baseline)
	}
	if s.State == WarmingUp {
		f.Reason = g.missing(s)
	}
	return f
}

// rule gives the rule of the fault that a stream is in, "" for none.
func (g *group) rule(s *stream) string {
	if s.Fault.Rule == "" && s.State == TelemetryFault {
		return g.Unjudged
	}
	return s.Fault.Rule
}

// silence says that nothing has come for too long.
func (g *group) silence(now time.Time) []Finding {
	if g.Baseline.ID == "" || g.arrived.IsZero() || now.Sub(g.arrived) < g.Warmup.longestSilence() {
		return nil
	}
	return g.unjudged(FaultSilent, g.Trail.last())
}

// unjudged shows all streams of the group in a fault until its next finished unit. The detectors stay as they are: what
// they find must not depend on when the units arrived.
func (g *group) unjudged(rule string, at UnitRef) []Finding {
	if g.Unjudged != "" {
		return nil
	}
	g.Unjudged = rule
	var found []Finding
	for _, s := range g.Streams {
		if from := s.State; from != TelemetryFault {
			s.State = TelemetryFault
			found = append(found, g.finding(StreamChanged, s, from, at))
		}
	}
	return found
}

func (g *group) keepActions(actions []ingest.Count) {
	if len(actions) == 0 {
		return
	}
	if len(g.LastActions) < currentUnits {
		g.LastActions = append(g.LastActions, actions)
		return
	}
	g.LastActions[g.NextActions] = actions
	g.NextActions = (g.NextActions + 1) % currentUnits
}
