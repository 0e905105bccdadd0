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

	Incident bool // an alarm has fired and the group has not gone quiet since
	Quiet    int  // units in a row without an open alarm, while Incident

	Silent bool

	Positive, Negative float64
	Rewards            int64

	cfg     Config
	arrived time.Time // wall clock of the last unit, for silence
}

// actionCounts are the categories of one unit.
type actionCounts []ingest.Count

func newGroup(key ingest.Group, cfg Config) *group {
	return &group{Key: key, cfg: cfg}
}

// stream finds the stream of a signal, or starts it; nil where the signal is not to be followed.
func (g *group) stream(signal string) *stream {
	i, found := slices.BinarySearchFunc(g.Streams, signal, func(s *stream, name string) int {
		return strings.Compare(s.Signal, name)
	})
	if found {
		return g.Streams[i]
	}
	if len(g.Streams) >= maxGroupSignals || !g.cfg.Follows(signal) {
		return nil
	}
	s := &stream{Signal: strings.Clone(signal)}
	g.Streams = slices.Insert(g.Streams, i, s)
	return s
}

// observe folds one unit in and returns what it changed.
func (g *group) observe(u *ingest.Unit, now time.Time) []Finding {
	at := g.enter(u, now)
	if u.End == ingest.EndBlock {
		g.Blocks++
		g.showBlock(u)
		return nil
	}
	values := g.readings(u)
	g.startStreams(u, values)
	rules := g.faults(u)
	collecting := !g.Warmup.Done && !g.Incident // never from the units of an open incident
	g.feed(values, rules, at.Ordinal, collecting)
	found := g.judge(rules, at)
	if g.quiet() {
		found = append(found, Finding{Kind: GroupQuiet, Group: g.Key, At: at})
	}
	if collecting {
		g.Warmup.collect(u)
	}
	g.Trail.prune(g.Streams)
	return found
}

// enter gives the unit its ordinal and keeps what later findings need to know of it.
func (g *group) enter(u *ingest.Unit, now time.Time) UnitRef {
	at := UnitRef{
		Ordinal: g.Seen, Agent: u.Agent, Episode: u.Episode, Pos: u.Pos, First: u.First, TS: u.EndTS,
	}
	g.Seen++
	g.arrived, g.Silent = now, false
	g.LastTS = max(g.LastTS, u.EndTS)
	g.Positive += u.Reward.Positive
	g.Negative += u.Reward.Negative
	g.Rewards += u.Reward.N
	g.Versions.see(u.Versions, at.Ordinal)
	g.Trail.add(at, u)
	g.keepActions(u.Actions)
	return at
}

// showBlock keeps the values of a block of steps for the current distributions: it is shown but not judged.
func (g *group) showBlock(u *ingest.Unit) {
	values := g.readings(u)
	g.startStreams(u, values)
	for _, r := range values {
		if s := g.stream(r.signal); s != nil {
			s.quantity(r.quantity).show(r.x)
		}
	}
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

// feed gives the unit's values to the tests and to the next baseline; a fault suspends both for its stream.
func (g *group) feed(values []reading, rules []string, ordinal int64, collecting bool) {
	for _, r := range values {
		i, found := slices.BinarySearchFunc(g.Streams, r.signal, func(s *stream, name string) int {
			return strings.Compare(s.Signal, name)
		})
		if !found {
			continue
		}
		q := g.Streams[i].quantity(r.quantity)
		q.show(r.x)
		if rules[i] != "" {
			continue
		}
		q.observe(r.x, ordinal, g.Incident)
		if collecting {
			q.Warm = append(q.Warm, r.x)
		}
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
	from := s.State
	switch {
	case rule != "":
		s.State = TelemetryFault
	case s.State == TelemetryFault && s.Alarmed:
		s.State = Drift
	case s.State == TelemetryFault:
		s.State = s.settled()
	case s.State == OK:
		g.watch(s, at)
	case s.State == Drift:
		return g.followUp(s, at)
	}
	if s.State == from {
		return Finding{}, false
	}
	return g.finding(StreamChanged, s, from, at), true
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

// followUp resolves a drift that is over, and renews what is known of one that goes on.
func (g *group) followUp(s *stream, at UnitRef) (Finding, bool) {
	top, names := s.leading()
	if s.recovered(top.score) {
		s.State, s.Alarmed = OK, false
		return g.finding(StreamChanged, s, Drift, at), true
	}
	if !renews(at.Ordinal - s.AlarmedAt) {
		return Finding{}, false
	}
	s.Alert.Score = top.score
	s.Alert.Detectors = names
	if q := s.find(s.Alert.Quantity); q != nil {
		s.Alert.Effect = effect(q, at.Ordinal-s.Alert.Onset.Ordinal+1)
	}
	s.Alert.Offsets = g.Trail.offsets(s.Alert.Onset)
	return g.finding(StreamUpdated, s, Drift, at), true
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
	f := Finding{Kind: kind, Group: g.Key, Signal: s.Signal, From: from, To: s.State, Reason: s.Fault.Rule, At: at}
	if s.State == Drift || from == Drift {
		f.alert(s.Alert, g.Baseline)
	}
	if s.State == WarmingUp {
		f.Reason = g.missing(s)
	}
	return f
}

// silence puts every stream of the group into a fault when nothing has come for too long.
func (g *group) silence(now time.Time) []Finding {
	if g.Silent || g.Baseline.ID == "" || g.arrived.IsZero() || now.Sub(g.arrived) < g.Warmup.longestSilence() {
		return nil
	}
	g.Silent = true
	var found []Finding
	at := g.Trail.last()
	for _, s := range g.Streams {
		from := s.State
		s.Fault.settle(FaultSilent)
		s.State = TelemetryFault
		if from != TelemetryFault {
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
