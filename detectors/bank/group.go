package bank

import (
	"slices"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/actions"
	"github.com/rewardwatch/rewardwatch/detectors/baseline"
	"github.com/rewardwatch/rewardwatch/detectors/battery"
	"github.com/rewardwatch/rewardwatch/detectors/blocks"
	"github.com/rewardwatch/rewardwatch/detectors/budget"
	"github.com/rewardwatch/rewardwatch/detectors/capacity"
	"github.com/rewardwatch/rewardwatch/detectors/factor"
	"github.com/rewardwatch/rewardwatch/detectors/fault"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/gate"
	"github.com/rewardwatch/rewardwatch/detectors/history"
	"github.com/rewardwatch/rewardwatch/detectors/offpolicy"
	"github.com/rewardwatch/rewardwatch/detectors/raters"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/strata"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/detectors/trail"
	"github.com/rewardwatch/rewardwatch/detectors/versions"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// maxGroupSignals is the maximum number of streams of a group. Further signals are not followed, except for up to
// maxPrimarySignals primary ones.
const (
	maxGroupSignals   = 512
	maxPrimarySignals = 64
)

// group is the bank of one group: its streams, the baseline they share, and their state. Exported fields are saved.
//
// It is large because each unit changes most of it, and because findings, saves and evictions must agree on its
// contents. Parts with a separate lifetime are types in other packages.
type group struct {
	Key             ingest.Group
	Number          int // among the policy's groups, in order of first unit, from 1; 0 for a version that warms up in parallel
	battery.Battery     // use Join only in trials (unit also ends warm-ups), Branches only in memory (see branchCount)
	Warmup          baseline.Warmup

	Seen     int64 // number of units seen, which is the ordinal of the next one
	LastTS   int64
	Versions versions.Record
	Trail    trail.Trail

	Baseline finding.BaselineRef
	FrozenAt time.Time
	FrozenTS int64
	Promise  finding.Promise
	Share    float64 // of the policy's budget of false alarms; 0 before the first freeze

	Categories  []string         // of the baseline, the most common first, at most stream.ShownActions
	BaseActions map[string]int64 // counts of the baseline by category
	LastActions trail.Actions
	LikeActions *actions.Like // of the baseline; nil if its actions carry no information about rewards
	Explained   int64         // ordinal of the unit at which an old alarm was last explained

	OffPolicy *offpolicy.Follower // nil if the baseline lacks the probabilities of its actions

	Line line // the succession of baselines before the current one

	Strata *strata.Strata // of the baseline; nil if its units do not divide into strata

	Raters raters.Raters // of outcomes that people rate

	Laws factor.Laws // of the steps, with the scores of recent units; the model is in the frozen part of the checkpoint

	History *history.History // of the main quantities; a version that warms up shares the history of its group
	gates   gate.Gates       // in a separate part of the checkpoint

	Unjudged string // fault.Silent or fault.NoEpisodeEnds while the group cannot be judged, otherwise empty

	Incident bool // an alarm was raised and the group has not gone quiet since
	Quiet    int  // number of consecutive units without an open alarm during an incident

	Probation probation // of the incident, if its baseline is provisional
	Weekends  int       // number of weekends on trial since the baseline was accepted

	Positive, Negative float64
	Rewards            int64

	cfg          *watch.Config // of the policy
	limit        *capacity.StreamLimit
	calibrations *budget.Calibrations
	arrived      time.Time             // wall clock time of the last unit, to detect silence
	came         bool                  // a unit has arrived since the group was restored
	used         time.Time             // latest possible time of the last unit before the restore, if there is no clock; else zero
	changed      bool                  // since the last save
	saved        *frozen               // saved form of what only changes with the baseline; nil if nothing is saved
	shown        *finding.GroupSummary // nil if the group has changed since it was summarized
	offered      bool                  // whether its current state has been published to readers

	hold                      *hold                 // set while units of the group wait for a calibration
	branches                  int                   // see branchCount
	counted                   bool                  // whether branches is current
	resident                  *capacity.Resident    // in the list of groups in memory
	away                      *away                 // set while the group is evicted, see stub
	joined                    *ingest.DecisionShape // of the last decision, if only Join has changed the group since
	gatesSaved                bool                  // whether the checkpoint has a part for the gates
	runningBytes, frozenBytes int                   // sizes of its parts
}

func newGroup(key ingest.Group, cfg *watch.Config, limit *capacity.StreamLimit, calibrations *budget.Calibrations) *group {
	return &group{
		Key: key, cfg: cfg, limit: limit, calibrations: calibrations, Battery: battery.New(), History: &history.History{},
		changed: true, Raters: raters.Raters{},
	}
}

// rated returns a unit with the raters' levels removed, and with its labels added to the observations of its steps. While
// a policy learns, its decisions get a step even without observations.
func (g *group) rated(u *ingest.Unit, of lane) *ingest.Unit {
	u = factor.InContext(u, g.cfg.Causes.Context(), g.cfg.Causes.Memory > 0 && g.cfg.Learning.Learns())
	if len(g.cfg.Raters) == 0 {
		return u
	}
	return g.Raters.Adjust(u, g.cfg.Raters, g.cfg.Causes.SplitBy, raters.Phase{Collecting: !g.Warmup.Done, Incident: g.Incident, Aside: u.Shadow || of == laneIgnored})
}

// touch marks the group as changed, so that it is saved and summarized again.
func (g *group) touch() {
	g.changed, g.shown, g.offered, g.counted, g.joined = true, nil, false, false, nil
}

// stream returns the stream of a signal. It adds the stream if there is none; nil if the signal is not followed.
func (g *group) stream(signal string) *stream.Stream {
	i, found := g.Find(signal)
	if found {
		return g.Streams[i]
	}
	most := maxGroupSignals
	if signals.Primary(signal) {
		most += maxPrimarySignals
	}
	if len(g.Streams) >= most || !g.cfg.Follows(signal) || !g.limit.Take() {
		return nil
	}
	s := &stream.Stream{Signal: strings.Clone(signal)}
	g.Streams = slices.Insert(g.Streams, i, s)
	return s
}

// Observe adds a unit and returns the resulting findings. It calls present before the unit is judged.
func (g *group) Observe(u *ingest.Unit, now time.Time, present func(*ingest.Unit)) []finding.Finding {
	if g.Baseline.ID != "" {
		if rule := g.OtherUnits(u); rule != "" {
			return g.show(u, rule, now)
		}
	}
	part := u
	if u = g.unit(u); u == nil {
		return g.heard(now) // a block that fills slowly is not a silence
	}
	if u != part {
		defer g.recycle(u)
	}
	present(u)
	at := g.enter(u, now)
	g.beginVersion(at.Ordinal)
	defer func() { g.Trail.Prune(g.Streams) }() // of the streams that exist at the end
	values := g.Readings(u, nil)
	g.startStreams(u, values)
	g.Unjudged = ""
	rules := g.Faults(u)
	found := g.judgeUnit(u, values, rules, at)
	if g.collects() {
		g.collect(u, values, rules)
	}
	found = append(found, g.review(at)...)
	g.ratchet(at.Ordinal)
	if g.Warmup.Done && !g.Incident {
		g.collectLate(u, values, rules)
	}
	return found
}

// judgeUnit feeds the values of a unit to the tests and returns their findings.
func (g *group) judgeUnit(u *ingest.Unit, values []stream.Reading, rules []string, at finding.UnitRef) []finding.Finding {
	if early := g.Newcomers.Early(u); !early {
		g.feed(values, rules, at.Ordinal)
		g.earned(u, rules, at.Ordinal)
		g.followLaws(rules, at.Ordinal)
		g.gates.Witness(u, values, &g.Battery, rules)
	}
	found := g.judge(rules, at)
	if g.quiet() {
		found = append(found, finding.Finding{Kind: finding.GroupQuiet, Group: g.Key, At: at})
	}
	return found
}

// unit returns the unit to judge: the unit itself, or the block that it completes; nil if the block is not complete. It
// drops a warm-up of blocks of steps if an episode does end.
func (g *group) unit(u *ingest.Unit) *ingest.Unit {
	if u.End == ingest.EndBlock {
		return g.block(u)
	}
	if g.Blocks.OfSteps() {
		g.Blocks = blocks.Joiner{}
		g.forgetWarmup()
	}
	return g.Join(u)
}

// recycle lets the next block of decisions reuse the memory of a judged one, unless a warm-up keeps it.
func (g *group) recycle(block *ingest.Unit) {
	if len(g.Blocks.Kept) == 0 {
		g.Blocks.Recycle(block)
	}
}

// enter assigns the unit its ordinal and records what later findings need from it.
func (g *group) enter(u *ingest.Unit, now time.Time) finding.UnitRef {
	at := g.ref(u)
	g.Seen++
	g.hear(now)
	g.LastTS = max(g.LastTS, u.EndTS)
	g.History.Begin(at.Ordinal, g.LastTS)
	g.Positive += u.Reward.Positive
	g.Negative += u.Reward.Negative
	g.Rewards += u.Reward.N
	g.Versions.See(u.Versions, at)
	g.History.Version(at.Ordinal, g.LastTS, g.Versions.Newest())
	g.Trail.Add(at, u)
	g.LastActions.Add(at.Ordinal, u.Actions)
	g.Strata.Add(u, at.Ordinal)
	return at
}

// hear records that telemetry of the group has arrived.
func (g *group) hear(now time.Time) {
	if wait := now.Sub(g.arrived); g.Unjudged == fault.Silent && !g.arrived.IsZero() {
		g.Warmup.LongestWait = max(g.Warmup.LongestWait, wait) // it was not a silence after all
	}
	g.arrived, g.came = now, true
}

// heard records the arrival of telemetry of the group that is not judged yet. It ends a silence, as a unit does.
func (g *group) heard(now time.Time) (found []finding.Finding) {
	if g.hear(now); g.Unjudged != fault.Silent {
		return nil
	}
	g.Unjudged = ""
	for _, s := range g.Streams {
		from := s.State
		switch {
		case s.Alarmed && s.Fault.Rule == "" && s.Fault.Shared == "":
			s.State = finding.Drift // delivery faults never replace an alarm
		case g.rule(s) != "":
		default:
			s.State = s.Settled()
		}
		if g.moved(s, from) {
			found = append(found, g.finding(finding.StreamChanged, s, from, g.Trail.Last()))
		}
	}
	return found
}

func (g *group) ref(u *ingest.Unit) finding.UnitRef {
	return finding.UnitRef{Ordinal: g.Seen, Agent: u.Agent, Episode: u.Episode, Pos: u.Pos, First: u.First, TS: u.EndTS}
}

// show adds the values of a unit that cannot be judged, being of another kind, to the current distributions.
func (g *group) show(u *ingest.Unit, rule string, now time.Time) []finding.Finding {
	at := g.enter(u, now)
	defer g.Trail.Prune(g.Streams)
	g.Show(g.Readings(u, nil))
	return g.unjudged(rule, at)
}

// startStreams adds streams for all signals of the unit, including those without a finite value. Primary signals come
// first: otherwise hundreds of observations could reach the limits before them.
func (g *group) startStreams(u *ingest.Unit, values []stream.Reading) {
	var others []string
	next := 0 // index of the signal
	start := func(signal string) {
		_, found := g.FindNext(next, signal)
		next++
		switch {
		case found:
		case signals.Primary(signal):
			g.stream(signal)
		case g.cfg.Follows(signal): // otherwise every unit would list it again
			others = append(others, signal)
		}
	}
	for i := range values {
		if i == 0 || values[i].Signal != values[i-1].Signal {
			start(values[i].Signal)
		}
	}
	if len(u.Actions) > 0 {
		start(signals.Action)
	}
	if u.Reward.NonFinite > 0 {
		start("reward")
		start("return")
	}
	for i := range u.Numeric {
		if u.Numeric[i].NonFinite > 0 {
			start(u.Numeric[i].Signal)
		}
	}
	for _, signal := range others {
		g.stream(signal)
	}
}

// feed passes the unit's values to the tests, except for those of streams with a fault.
func (g *group) feed(values []stream.Reading, rules []string, ordinal int64) {
	stream, found := 0, false
	next, signal := 0, 0 // the quantities of a stream are consecutive, mostly in the stream's order
	for i := range values {
		r := &values[i]
		if i == 0 || r.Signal != values[i-1].Signal {
			stream, found = g.FindNext(signal, r.Signal)
			next, signal = 0, signal+1
		}
		if !found {
			continue
		}
		s := g.Streams[stream]
		if next >= len(s.Quantities) || s.Quantities[next].Name != r.Quantity {
			next = s.Place(r.Quantity)
		}
		q := s.Quantities[next]
		next++
		if q.Name == signals.MainQuantity(s.Signal) {
			q.Show(r.X)
			g.History.Add(s.Signal, r.X)
		}
		if rules[stream] == "" && g.Sound(q, rules) && !g.newGround(s.Signal) {
			q.Observe(r, ordinal, g.Incident)
		}
	}
}

// collect adds the unit to the next baseline, except for the values of streams with a fault.
func (g *group) collect(u *ingest.Unit, values []stream.Reading, rules []string) {
	g.Delivery.Learn()
	g.keep(u, values, rules)
}

// keep does the work of collect for a unit that the delivery rules have already learned from.
func (g *group) keep(u *ingest.Unit, values []stream.Reading, rules []string) {
	for _, r := range values {
		if i, found := g.Find(r.Signal); found && rules[i] == "" && !stream.IsLearnt(r.Quantity) {
			q := g.Streams[i].Quantity(r.Quantity)
			q.Warm = append(q.Warm, stream.Observed{Unit: int32(g.Warmup.Units), X: r.X, Steps: r.Steps})
		}
	}
	for i, s := range g.Streams {
		if rules[i] == "" {
			s.Fault.Learn(s.Signal, u)
		}
	}
	g.Warmup.Collect(u, g.Newcomers.Age(u.Agent), g.Seen-1)
	g.keepSteps(u, rules)
	if u.Propensity != nil && g.EarnedSoundly(rules) {
		g.Warmup.KeepPropensity(u)
	}
	if u.End == ingest.EndBlock {
		g.keepBlock(g.faultless(u, rules))
		return
	}
	if i, found := g.Find("reward"); found && rules[i] == "" {
		g.Warmup.KeepProfile(u)
	}
	g.keepDecision(u, rules)
}

func (g *group) judge(rules []string, at finding.UnitRef) []finding.Finding {
	var found []finding.Finding
	for i, s := range g.Streams {
		found = g.judgeStream(found, s, rules[i], at)
	}
	return found
}

// judgeStream appends the finding of a stream whose state has changed, or whose drift was measured again.
func (g *group) judgeStream(found []finding.Finding, s *stream.Stream, rule string, at finding.UnitRef) []finding.Finding {
	from, alarmed, renewed := s.State, s.Alarmed, false
	switch {
	case rule != "":
		s.State = finding.TelemetryFault
	case from == finding.TelemetryFault && s.Alarmed:
		s.State = finding.Drift
	case from == finding.TelemetryFault, from == finding.WarmingUp && g.Baseline.ID != "": // learned quantities get validated
		s.State = s.Settled()
	}
	switch s.State {
	case finding.OK:
		g.watch(s, at)
	case finding.Drift:
		renewed = g.followUp(s, at)
	}
	if s.State == finding.OK && !alarmed && g.Delivery.StandsBy() != "" { // never in place of an alarm or its end
		s.State = finding.TelemetryFault
	}
	switch {
	case g.moved(s, from):
		return append(found, g.finding(finding.StreamChanged, s, from, at))
	case renewed:
		return append(found, g.finding(finding.StreamUpdated, s, from, at))
	}
	return found
}

// awaitsFalls reports whether short falls of the return raise no alarm.
func (g *group) awaitsFalls() bool { return g.cfg.Learning.Learns() && g.Blocks.Size == 0 }

// watch raises an alarm if a branch has reached its threshold, unless this may be a short fall while the policy learns.
func (g *group) watch(s *stream.Stream, at finding.UnitRef) {
	if !s.Reached() || g.awaitsFalls() && !g.Incident && battery.MayPass(s, at.Ordinal) {
		return
	}
	top, names := s.Leading()
	a := g.describe(s, top, names, at)
	s.Alert = &a
	if !g.Incident && g.tryWeekend(s, at) {
		s.Alert = nil
		return
	}
	s.Alert.Improvement = g.improvement(s)
	s.Alarm(at.Ordinal)
	if !g.Incident {
		g.History.Keep(s.Alert.Onset.Ordinal)
		g.beginOffPolicy(s.Alert.Onset.Ordinal)
	}
	g.open(g.baseline(s), at)
}

// followUp resolves a drift that is over. If the drift continues, followUp measures it again at some units, and reports
// whether it did.
func (g *group) followUp(s *stream.Stream, at finding.UnitRef) (renewed bool) {
	top, names := s.Leading()
	if s.Recovered(top.Score) {
		s.State, s.Alarmed = finding.OK, false
		return false
	}
	if !finding.Renews(at.Ordinal - s.AlarmedAt) {
		return false
	}
	s.Alert.Score, s.Alert.Detectors = top.Score, names
	g.renew(s, at)
	return true
}

// renew measures again how far a stream with an alarm has moved.
func (g *group) renew(s *stream.Stream, at finding.UnitRef) {
	if q := s.Find(s.Alert.Quantity); q != nil {
		s.Alert.Effect, s.Alert.Histogram = s.Effect(q, s.Alert.Onset.Ordinal)
	}
	s.Alert.Improvement = g.improvement(s)
	// For units that are no longer in the trail, only the ranges reported before are known.
	s.Alert.Offsets = trail.ByPartition(ingest.Widen(s.Alert.Offsets, g.Trail.Offsets(s.Alert.Onset, at.Ordinal)...))
}

// quiet counts the units after the last alarm of an incident, or after the weekend that it is on trial for. After
// enough of them, it restarts the detectors from zero, so that incidents are no more frequent than first alarms.
func (g *group) quiet() bool {
	if !g.Incident {
		return false
	}
	if p := &g.Probation; p.Weekend && p.Fresh == 0 || slices.ContainsFunc(g.Streams, func(s *stream.Stream) bool { return s.Alarmed }) {
		g.Quiet = 0
		return false
	}
	if g.Quiet++; g.Quiet <= stream.ResolveUnits {
		return false
	}
	g.Incident, g.Quiet, g.Probation = false, 0, probation{}
	for _, s := range g.Streams {
		s.Reset()
		s.Alert = nil
	}
	g.beginOffPolicy(g.Seen)
	return true
}

// finding returns a finding with the current state of a stream.
func (g *group) finding(kind finding.Kind, s *stream.Stream, from finding.State, at finding.UnitRef) finding.Finding {
	f := finding.Finding{Kind: kind, Group: g.Key, Signal: s.Signal, From: from, To: s.State, Reason: g.rule(s), At: at}
	if s.State == finding.Drift || from == finding.Drift {
		s.Alert.Tell(&f, g.baseline(s))
		f.Promise, f.Provisional = g.Promise, g.Probation.On
	}
	if s.State == finding.Drift {
		g.explain(&f, s.AlarmedAt)
	}
	if s.State == finding.WarmingUp {
		f.Reason = g.missing(s)
	}
	return f
}

// moved reports whether a stream has changed its state or the rule of its fault, and records the rule.
func (g *group) moved(s *stream.Stream, from finding.State) bool {
	told := s.Told
	s.Told = ""
	if s.State == finding.TelemetryFault {
		s.Told = g.rule(s)
	}
	return s.State != from || s.Told != told
}

// rule returns the rule of a stream's current fault; empty if there is none.
func (g *group) rule(s *stream.Stream) string {
	switch {
	case s.Fault.Rule != "" || s.State != finding.TelemetryFault:
		return s.Fault.Rule
	case s.Fault.Shared != "":
		return s.Fault.Shared
	case g.Unjudged != "":
		return g.Unjudged
	}
	return g.Delivery.StandsBy()
}

// silence returns findings if nothing has arrived for too long.
func (g *group) silence(now time.Time) []finding.Finding {
	if at := g.silentAt(); at.IsZero() || now.Before(at) {
		return nil
	}
	return g.unjudged(fault.Silent, g.Trail.Last())
}

// unjudged sets all streams of the group to a fault, until its next finished unit or, if it is silent, until telemetry
// arrives. It leaves the detectors unchanged, since their findings must not depend on when units arrive. A unit that is
// not judged ends a silence, but a silence does not end the fault of units that are not judged.
func (g *group) unjudged(rule string, at finding.UnitRef) []finding.Finding {
	if g.Unjudged == rule || g.Unjudged != "" && rule == fault.Silent {
		return nil
	}
	g.Unjudged = rule
	var found []finding.Finding
	for _, s := range g.Streams {
		from := s.State
		s.State = finding.TelemetryFault
		if g.moved(s, from) {
			found = append(found, g.finding(finding.StreamChanged, s, from, at))
		}
	}
	return found
}
