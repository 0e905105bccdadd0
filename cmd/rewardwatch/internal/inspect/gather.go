// Package inspect describes recorded telemetry, and proposes a configuration for it.
package inspect

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/config"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/detectors/capacity"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/order"
)

// Limits on the objects that an inspection distinguishes. The report counts everything that exceeds them.
const (
	InspectedPolicies   = 500
	inspectedGroups     = 500 // of all policies
	InspectedSignals    = 512 // of a group
	InspectedAgents     = 10_000
	inspectedVersions   = 50
	inspectedLabels     = 64 // names
	InspectedValues     = 50 // of a label
	inspectedCategories = 1000
	inspectedDays       = 10_000
	InspectedLengths    = 10_000 // episodes from which the quantiles of their lengths are taken
)

// inspector is a processor that gathers statistics on telemetry: on each event, and on the units that the service would
// make and judge.
type inspector struct {
	cfg      *config.Config
	now      time.Time
	limit    *capacity.StreamLimit
	policies map[string]*inspectedPolicy
	order    []*inspectedPolicy
	groups   int
	leftOut  int64 // events of policies and groups beyond the limits
	refusals map[ingest.Reason]*refusal

	merger *order.Merger // merges the units of a topic's partitions; nil for files
	way    *engine.Route
}

// refusal counts the refused records of one reason and keeps the first.
type refusal struct {
	n     int64
	first ingest.RecordError
}

func newInspector(cfg *config.Config, now time.Time) *inspector {
	return &inspector{
		cfg: cfg, now: now, limit: capacity.NewStreamLimit(cfg.Limits.Streams), policies: map[string]*inspectedPolicy{},
		refusals: map[ingest.Reason]*refusal{},
	}
}

func (i *inspector) refuse(e *ingest.RecordError, _ []byte) {
	r := i.refusals[e.Reason]
	if r == nil {
		r = &refusal{first: *e}
		i.refusals[e.Reason] = r
	}
	r.n++
}

// Process implements ingest.Processor.
func (i *inspector) Process(_ context.Context, batch []ingest.Event) error {
	believed := order.Believed(i.now)
	for at := range batch {
		e := &batch[at]
		p := i.policy(e.Policy)
		if p == nil {
			i.leftOut++
			continue
		}
		p.see(e, i)
		p.of(i.cfg, e).Fold(e, believed, i.hand)
	}
	return nil
}

// hand processes a unit when it ends. Units of a topic wait until they can be sorted by their ends over all partitions.
func (i *inspector) hand(u *ingest.Unit) {
	if u.End == ingest.EndOpen {
		return
	}
	if i.merger == nil {
		i.policies[u.Group.Policy].judge(u)
		return
	}
	w := order.NewWaitingUnit(u)
	w.Enter(i.way, i.now)
	i.merger.Add([]order.WaitingUnit{w})
}

// release judges the units that have waited.
func (i *inspector) release() {
	for w := i.merger.Release(order.EndOfTime); w != nil; w = i.merger.Release(order.EndOfTime) {
		i.policies[w.Unit.Group.Policy].judge(w.Unit)
	}
}

// Idle implements ingest.Processor.
func (i *inspector) Idle(context.Context, time.Time) error { return nil }

// Snapshot implements ingest.Processor. An inspection keeps no state.
func (i *inspector) Snapshot(io.Writer) error { return nil }

// Restore implements ingest.Processor.
func (i *inspector) Restore(io.Reader) error { return nil }

// policy returns the policy with a name, and starts it if necessary. Beyond the limit, it returns nil.
func (i *inspector) policy(name string) *inspectedPolicy {
	p := i.policies[name]
	if p == nil && len(i.order) < InspectedPolicies {
		name = strings.Clone(name)
		cfg, _ := i.cfg.Settings().Policy(name)
		p = &inspectedPolicy{
			name: name, joins: newJoining(i.cfg.Settings().Feedback(name)), cfg: cfg, bank: bank.NewPolicy(name, cfg, i.limit), registry: prometheus.NewRegistry(),
			byKey: map[string]*inspectedGroup{}, byGroup: map[ingest.Group]*inspectedGroup{}, labels: map[string]*inspectedLabel{},
		}
		p.metrics = engine.NewIntakeMetrics(p.registry)
		i.policies[name] = p
		i.order = append(i.order, p)
	}
	return p
}

// inspectedPolicy is the data gathered on one policy.
type inspectedPolicy struct {
	name   string
	cfg    watch.Config
	bank   *bank.Policy
	events int64
	labels map[string]*inspectedLabel
	joins  *joining

	registry  *prometheus.Registry // for the metrics of the first stage
	metrics   *engine.IntakeMetrics
	settings  *engine.Settings // of the first stage
	intake    *engine.Intake
	partition int32

	key     []byte // of the group of the current event
	byKey   map[string]*inspectedGroup
	byGroup map[ingest.Group]*inspectedGroup
	order   []*inspectedGroup
}

// inspectedLabel counts the events with a label, and lists the label's values.
type inspectedLabel struct {
	events int64
	values map[string]struct{} // at most InspectedValues
}

// of returns the first stage for the partition of an event. Partitions are read one after the other.
func (p *inspectedPolicy) of(cfg *config.Config, e *ingest.Event) *engine.Intake {
	if partition := e.Pos.Partition.Number(); p.intake == nil || p.partition != partition {
		if p.settings == nil {
			p.settings = settingsFor(cfg, e)
		}
		p.intake, p.partition = engine.NewIntake(p.settings, p.metrics), partition
	}
	return p.intake
}

// see adds one event.
func (p *inspectedPolicy) see(e *ingest.Event, i *inspector) {
	p.events++
	p.joins.see(e)
	for _, l := range e.Labels {
		p.label(l)
	}
	if g := p.group(e, i); g != nil {
		g.see(e, i.now)
	} else {
		i.leftOut++
	}
}

func (p *inspectedPolicy) label(l ingest.Label) {
	known := p.labels[l.Name]
	if known == nil {
		if len(p.labels) == inspectedLabels {
			return
		}
		known = &inspectedLabel{values: map[string]struct{}{}}
		p.labels[l.Name] = known
	}
	known.events++
	if _, seen := known.values[l.Value]; !seen && len(known.values) < InspectedValues {
		known.values[strings.Clone(l.Value)] = struct{}{}
	}
}

// group returns the group of an event, and starts it if necessary. Beyond the limit, it returns nil.
func (p *inspectedPolicy) group(e *ingest.Event, i *inspector) *inspectedGroup {
	p.key = p.key[:0]
	for _, by := range p.cfg.GroupBy {
		value := groupValue(e, by)
		p.key = append(binary.AppendUvarint(p.key, uint64(len(value))), value...)
	}
	g := p.byKey[string(p.key)]
	if g == nil && i.groups < inspectedGroups {
		i.groups++
		g = newInspectedGroup(p.name, e, p.cfg.GroupBy)
		p.byKey[string(p.key)], p.byGroup[g.key] = g, g
		p.order = append(p.order, g)
	}
	return g
}

// groupValue returns the value of an event for a key of group_by.
func groupValue(e *ingest.Event, by string) string {
	name, isLabel := strings.CutPrefix(by, "labels.")
	if !isLabel {
		return e.Env
	}
	for _, l := range e.Labels {
		if l.Name == name {
			return l.Value
		}
	}
	return ""
}

// judge adds one unit, and judges it as the service would.
func (p *inspectedPolicy) judge(u *ingest.Unit) {
	g := p.byGroup[u.Group]
	if g == nil || u.Shadow {
		return
	}
	g.unit(u)
	g.splits.add(u)
	if len(p.cfg.KeptLabels()) == 0 {
		u.Labels = nil // the units of the service would not have labels
	}
	for _, f := range p.bank.Observe(u, time.Unix(0, u.EndTS)) {
		if f.Kind == finding.StreamChanged && f.To == finding.TelemetryFault {
			g.fault(f.Signal, f.Reason, f.At)
		}
	}
}

// inspectedGroup is the data gathered on one group.
type inspectedGroup struct {
	key    ingest.Group
	events int64
	agents map[uint64]struct{} // hashes of their names
	clock  inspectedClock

	versions [3]inspectedVersionList // of the policy, the environment and the reward function
	signals  map[signalKey]*inspectedSignal
	ordered  []*inspectedSignal
	byName   map[string]*inspectedSignal
	ignored  int64 // values of signals beyond the limit

	categories                map[string]int64
	otherCategories           int64
	categorySteps, valueSteps int64 // steps whose action is a category, and steps whose action is an array or a number that is not a category

	units, finished int64 // finished counts units that are not blocks
	ends            [ingest.Ends]int64
	lengths         lengthSample
	splits          splits
	faults          []inspectedFault
}

// signalKey is a signal as named in events: the prefix of its name, and the rest.
type signalKey struct{ prefix, name string }

// inspectedSignal summarizes one signal.
type inspectedSignal struct {
	name string
	ingest.Moments
	between bool  // some value is neither 0 nor 1
	units   int64 // number of units with the signal
}

// inspectedFault counts how often a fault by one rule began.
type inspectedFault struct {
	signal, rule string
	times        int64
	first        finding.UnitRef
}

func newInspectedGroup(policy string, e *ingest.Event, by []string) *inspectedGroup {
	labels := make([]ingest.Label, len(by))
	for at, key := range by {
		labels[at] = ingest.Label{Name: watch.GroupLabel(key), Value: strings.Clone(groupValue(e, key))}
	}
	return &inspectedGroup{
		key: ingest.NewGroup(policy, labels...), agents: map[uint64]struct{}{}, clock: newInspectedClock(),
		signals: map[signalKey]*inspectedSignal{}, byName: map[string]*inspectedSignal{}, categories: map[string]int64{},
		lengths: newLengthSample(),
	}
}

// see adds one event.
func (g *inspectedGroup) see(e *ingest.Event, now time.Time) {
	g.events++
	g.agent(e.AgentID)
	g.clock.see(e, now)
	for at, version := range [...]string{e.Versions.Policy, e.Versions.Env, e.Versions.Reward} {
		g.versions[at].see(version, e)
	}
	if e.HasReward {
		g.add(signalKey{prefix: "reward"}, e.Reward)
	}
	g.action(&e.Action)
	for _, v := range e.RewardComponents {
		g.add(signalKey{"reward_component.", v.Name}, v.X)
	}
	for _, v := range e.Observation {
		g.add(signalKey{"observation.", v.Name}, v.X)
	}
	for _, v := range e.Outcomes {
		g.add(signalKey{"outcome.", v.Name}, v.X)
	}
}

func (g *inspectedGroup) agent(id string) {
	if len(g.agents) == InspectedAgents {
		return
	}
	h := fnv.New64a()
	_, _ = io.WriteString(h, id) // never fails
	g.agents[h.Sum64()] = struct{}{}
}

// action counts a category, or summarizes numbers.
func (g *inspectedGroup) action(a *ingest.Action) {
	switch a.Kind {
	case ingest.ActionCategory:
		g.categorySteps++
		g.signal(signalKey{prefix: "action"})
		if _, known := g.categories[a.Category]; known || len(g.categories) < inspectedCategories {
			g.categories[a.Category]++
		} else {
			g.otherCategories++
		}
	case ingest.ActionNumeric:
		g.valueSteps++
	}
	for at, x := range a.Values {
		if a.Scalar {
			g.add(signalKey{prefix: "action"}, x)
		} else {
			g.add(signalKey{"action.", strconv.Itoa(at)}, x)
		}
	}
}

func (g *inspectedGroup) add(k signalKey, x float64) {
	s := g.signal(k)
	if s == nil {
		g.ignored++
		return
	}
	s.Add(x)
	s.between = s.between || x != 0 && x != 1
}

// signal returns the signal with a key, and starts it if necessary. Beyond the limit, it returns nil.
func (g *inspectedGroup) signal(k signalKey) *inspectedSignal {
	s := g.signals[k]
	if s == nil && len(g.ordered) < InspectedSignals {
		s = &inspectedSignal{name: k.prefix + k.name}
		g.signals[signalKey{k.prefix, strings.Clone(k.name)}] = s
		g.byName[s.name] = s
		g.ordered = append(g.ordered, s)
	}
	return s
}

// unit adds a unit: its return, its length, and the signals that it has.
func (g *inspectedGroup) unit(u *ingest.Unit) {
	g.units++
	g.ends[u.End]++
	if u.End != ingest.EndBlock {
		g.finished++
		g.lengths.add(float64(u.Length))
		g.add(signalKey{prefix: "episode_length"}, float64(u.Length))
		g.present("episode_length", true)
		if u.HasReturn {
			g.add(signalKey{prefix: "return"}, u.Return)
			g.present("return", true)
		}
	}
	g.present("reward", u.Reward.N+u.Reward.NonFinite > 0)
	scalar := false
	for at := range u.Numeric {
		n := &u.Numeric[at]
		g.present(n.Signal, n.N+n.NonFinite > 0)
		scalar = scalar || n.Signal == "action"
	}
	g.present("action", len(u.Actions) > 0 && !scalar)
}

func (g *inspectedGroup) present(signal string, is bool) {
	if s := g.byName[signal]; s != nil && is {
		s.units++
	}
}

func (g *inspectedGroup) fault(signal, rule string, at finding.UnitRef) {
	for n := range g.faults {
		if f := &g.faults[n]; f.signal == signal && f.rule == rule {
			f.times++
			return
		}
	}
	g.faults = append(g.faults, inspectedFault{signal, rule, 1, at})
}

// inspectedClock summarizes the time stamps of a group.
type inspectedClock struct {
	without, backward, ahead int64 // events without a time, with a time before that of the previous event, and with a time in the future
	past, all                inspectedSpan
	days                     map[int64]struct{}
	before                   int64 // time of the previous event in the partition
	partition                int32
}

// inspectedSpan is the first and the last of several times, or 0 if there are none.
type inspectedSpan struct{ first, last int64 }

func (s *inspectedSpan) add(ts int64) {
	if s.first == 0 || ts < s.first {
		s.first = ts
	}
	s.last = max(s.last, ts)
}

func newInspectedClock() inspectedClock { return inspectedClock{days: map[int64]struct{}{}} }

func (c *inspectedClock) see(e *ingest.Event, now time.Time) {
	if e.TS == 0 {
		c.without++
		return
	}
	if c.partition != e.Pos.Partition.Number() {
		c.partition, c.before = e.Pos.Partition.Number(), 0
	}
	if e.TS < c.before-order.ClockTolerance.Nanoseconds() {
		c.backward++
	}
	c.before = e.TS
	c.all.add(e.TS)
	if e.TS > order.Believed(now) {
		c.ahead++
	} else {
		c.past.add(e.TS)
	}
	if len(c.days) < inspectedDays {
		c.days[e.TS/int64(24*time.Hour)] = struct{}{}
	}
}

// inspectedVersionList lists the versions of one kind, in order of appearance.
type inspectedVersionList struct {
	list   []inspectedVersion
	latest int   // index in list
	others int64 // events of versions beyond the limit
}

type inspectedVersion struct {
	name        string
	events      int64
	first, last inspectedPlace
}

// inspectedPlace is a record and its time, 0 if it has none.
type inspectedPlace struct {
	pos ingest.Position
	ts  int64
}

func (v *inspectedVersionList) see(name string, e *ingest.Event) {
	if name == "" {
		return
	}
	here := inspectedPlace{e.Pos, e.TS}
	at := v.find(name)
	if at == len(v.list) {
		if at == inspectedVersions {
			v.others++
			return
		}
		v.list = append(v.list, inspectedVersion{name: strings.Clone(name), first: here})
	}
	v.latest = at
	v.list[at].events++
	v.list[at].last = here
}

// find returns the index of a version, or the length of the list if it is new.
func (v *inspectedVersionList) find(name string) int {
	if v.latest < len(v.list) && v.list[v.latest].name == name {
		return v.latest
	}
	for at := range v.list {
		if v.list[at].name == name {
			return at
		}
	}
	return len(v.list)
}

// lengthSample is the mean length of episodes, and a uniform sample of their lengths for quantiles (Vitter's
// algorithm R, with a fixed seed, so that the same telemetry results in the same report).
type lengthSample struct {
	n    int64
	mean float64
	kept []float64
	rng  *rand.Rand
}

func newLengthSample() lengthSample { return lengthSample{rng: rand.New(rand.NewPCG(1, 2))} }

func (s *lengthSample) add(x float64) {
	s.n++
	s.mean += (x - s.mean) / float64(s.n)
	if len(s.kept) < InspectedLengths {
		s.kept = append(s.kept, x)
	} else if at := s.rng.Int64N(s.n); at < InspectedLengths {
		s.kept[at] = x
	}
}
