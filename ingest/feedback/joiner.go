// Package feedback joins the decisions of a partition with rewards and outcomes that arrive later in separate records.
// A unit for a decision is emitted when its window has ended in event time, and one more at each shorter horizon.
package feedback

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"math"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/assemble"
)

// Options configures a Joiner.
type Options struct {
	// Of returns the configuration of a policy. It must always return the same configuration for a policy.
	Of func(policy string) Config
	// GroupBy returns the labels that divide a policy into groups, as in assemble.Config.
	GroupBy func(policy string) []string
	// SplitBy returns the labels of decisions that their units keep, as in assemble.Config. It may be nil.
	SplitBy func(policy string) []string
	// RatedBy returns the outcomes that people rate, with the label that identifies the rater of each. It may be nil.
	// Units have a label named ingest.RaterLabel for each of these outcomes.
	RatedBy func(policy string) map[string]string
	// MaxOpen is the maximum number of open decisions. When it is reached, the decision that is due first is dropped.
	MaxOpen int
	// Shares divides MaxOpen between groups of policies. The last share is for policies that belong to no other share. nil
	// means a single share. ShareOf returns the index of a policy's share.
	Shares  []Share
	ShareOf func(policy string) int
}

// Joiner joins the records of one partition. It is not safe for concurrent use.
//
// It is large because decisions and feedback share one store, regardless of which arrives first.
type Joiner struct {
	options Options
	metrics *Metrics
	store   *store

	policies map[string]*policy
	byNumber []*policy           // nil for free numbers
	free     []uint32            // free numbers
	others   map[string]struct{} // policies without delayed feedback
	ofLast   *policy             // of the previous record with delayed feedback
	other    string              // policy of the previous record without delayed feedback
	shares   []*share

	accounted int64 // memory that is included in the metrics

	ord     int32 // number of units that the current record has ended
	single  *assemble.Single
	event   ingest.Event // for the current unit; reused
	held    []value      // values of the current decision; reused
	scratch []byte
	key     []byte
	content []byte
}

// policy is the joiner's state of a policy with delayed feedback.
type policy struct {
	beyond  bool   // whether the share has reached its limit of policies, so nothing is joined
	idle    bool   // whether it is listed in share.idle
	decided uint64 // turn of the last decision, see Decides
	name    string
	seed    uint64 // hash of the name, to be continued with a key
	number  uint32
	open    int // number of open decisions, including waiting feedback
	share   *share
	rules   *rules
	groupBy []string
	splitBy []string
	rated   []rated
}

// hash returns the hash of a key of the policy. It is the same in all processes.
func (p *policy) hash(key []byte) uint64 { return ingest.FNV1a(p.seed, key) }

// New returns a joiner without open decisions. Values that exceed the limits of a unit are counted in episodes.
func New(o Options, m *Metrics, episodes *assemble.Metrics) *Joiner {
	j := &Joiner{options: o, metrics: m, single: assemble.NewSingle(episodes)}
	j.reset()
	return j
}

func (j *Joiner) reset() {
	j.policies, j.byNumber, j.free, j.others, j.ofLast = map[string]*policy{}, nil, nil, map[string]struct{}{}, nil
	j.shares = newShares(j.options.Shares)
	j.other = ""
	j.metrics.bytes.Add(-j.accounted)
	j.accounted = 0
	j.store = newStore(j.withHorizons, func(policy uint32, key []byte) uint64 { return j.byNumber[policy].hash(key) }, j.due)
}

// due returns the next moment of a decision in Unix nanoseconds.
func (j *Joiner) due(d *decision) int64 {
	return d.ts + int64(j.byNumber[d.policy].rules.moments[d.stage])
}

// Close removes the open decisions from the metrics. Do not use the joiner afterwards.
func (j *Joiner) Close() {
	j.metrics.open.Sub(float64(j.store.n))
	j.reset()
}

// Open returns the number of open decisions, including feedback whose decision is missing.
func (j *Joiner) Open() int { return j.store.n }

// Takes reports whether the joiner processes the records of a policy.
func (j *Joiner) Takes(name string) bool { return j.policy(name) != nil }

// Watches reports whether any decision or feedback has been opened.
func (j *Joiner) Watches() bool { return j.store.seq > 0 }

// maxPolicies is the maximum number of policies that are remembered per share. A share may have its own limit, and
// policies with open decisions are always remembered.
const maxPolicies = 20_000

// policy returns a policy, or nil if it has no delayed feedback.
func (j *Joiner) policy(name string) *policy {
	if last := j.ofLast; last != nil && last.name == name && (!last.beyond || !last.share.hasRoom()) {
		return last
	}
	if j.other == name && name != "" {
		return nil
	}
	p := j.policies[name]
	if _, other := j.others[name]; p == nil && !other {
		p = j.meet(strings.Clone(name))
	}
	if p != nil {
		j.ofLast = p
	} else {
		j.other = name
	}
	return p
}

// meet adds a policy that is not known yet.
func (j *Joiner) meet(name string) *policy {
	c := j.options.Of(name)
	if !c.Enabled() {
		if len(j.others) >= maxPolicies {
			clear(j.others)
		}
		j.others[name] = struct{}{}
		return nil
	}
	s := j.shareOf(name)
	if s.known >= cmp.Or(s.MaxPolicies, maxPolicies) && !j.forgetIdle(s) && s.MaxPolicies > 0 {
		return &policy{name: name, beyond: true, share: s}
	}
	p := &policy{name: name, seed: ingest.FNV1a(ingest.FNVBasis, append([]byte(name), 0)), number: j.freeNumber(), rules: newRules(c), groupBy: j.options.GroupBy(name), share: s}
	if j.options.SplitBy != nil {
		p.splitBy = j.options.SplitBy(name)
	}
	if j.options.RatedBy != nil {
		p.rated = ratedOf(j.options.RatedBy(name))
	}
	j.policies[name], j.byNumber[p.number] = p, p
	s.known++
	s.rests(p)
	return p
}

func (j *Joiner) freeNumber() uint32 {
	if last := len(j.free) - 1; last >= 0 {
		n := j.free[last]
		j.free = j.free[:last]
		return n
	}
	j.byNumber = append(j.byNumber, nil)
	return uint32(len(j.byNumber) - 1)
}

// forgetIdle forgets a policy of the share that has no open decisions. It reports whether there was one.
func (j *Joiner) forgetIdle(s *share) bool {
	for len(s.idle) > 0 {
		p := s.idle[0]
		s.idle[0], s.idle = nil, s.idle[1:]
		if p.idle = false; p.open > 0 { // it is listed again when nothing is open
			continue
		}
		delete(j.policies, p.name)
		j.byNumber[p.number], j.free = nil, append(j.free, p.number)
		if s.known--; j.ofLast == p {
			j.ofLast = nil
		}
		return true
	}
	return false
}

// Decided returns the turn of the last decision of a policy, as passed to Decides. It returns 0 if the policy is not
// known.
func (j *Joiner) Decided(name string) uint64 {
	if p := j.policies[name]; p != nil {
		return p.decided
	}
	return 0
}

// Decides records the turn of a decision of a policy for which Takes returned true. Turns are not saved.
func (j *Joiner) Decides(name string, turn uint64) { j.policy(name).decided = turn }

// withHorizons returns a group with the groups of its horizons.
func (j *Joiner) withHorizons(k groupKey) groupOf {
	g := groupOf{groupKey: k, split: k.labels.Labels()}
	if p := j.policies[k.group.Policy]; p != nil {
		for _, name := range p.rules.names {
			g.horizons = append(g.horizons, ingest.NewGroup(k.group.Policy, append(k.group.Labels(), ingest.Label{Name: ingest.HorizonLabel, Value: name})...))
		}
	}
	return g
}

// Fold processes the next record of a policy for which Takes returned true. Advance must have been called with its
// time.
func (j *Joiner) Fold(e *ingest.Event, clock int64) { j.fold(e, clock, true) }

// FoldFrom processes feedback from a different topic than the decisions, for a policy for which Takes returned true. It
// neither advances the clock nor ends a decision, so the units and their positions depend only on the partition of the
// decisions.
func (j *Joiner) FoldFrom(e *ingest.Event, clock int64) { j.fold(e, clock, false) }

// Holds reports whether the decision or feedback with the same key as a record is open. Takes must have returned true
// for its policy.
func (j *Joiner) Holds(e *ingest.Event) bool {
	p := j.policy(e.Policy)
	if p.beyond {
		return false
	}
	key := p.rules.config.KeyOf(e)
	if key == "" {
		return false
	}
	j.key = append(j.key[:0], key...)
	d, _ := j.store.find(p.number, p.hash(j.key), j.key)
	return d != nil
}

// fold implements Fold for own records of this partition, and FoldFrom for others.
func (j *Joiner) fold(e *ingest.Event, clock int64, own bool) {
	p := j.policy(e.Policy)
	if p.beyond {
		p.share.beyond()
		return
	}
	key := p.rules.config.KeyOf(e)
	decides := IsDecision(e)
	switch {
	case key == "":
		j.metrics.noKey.Inc()
		return
	case decides && (e.TS == 0 || e.TS > clock): // the clock has already advanced to any credible time
		j.metrics.noTime.Inc()
		return
	}
	j.key = append(j.key[:0], key...)
	d, hash := j.store.find(p.number, p.hash(j.key), j.key)
	switch {
	case d == nil && !decides && p.share.ended.has(hash):
		j.metrics.late.Inc()
	case d == nil && p.share.ended.has(hash) && p.rules.config.Key != byAgent: // agents decide again
		j.metrics.repeated.Inc()
	case d == nil && p.share.full():
		j.metrics.dropped.Inc()
	case d == nil:
		j.open(p, e, hash, decides, clock)
	case decides && d.has(flagDecided):
		j.metrics.repeated.Inc()
	case decides:
		j.adopt(p, d, e)
	default:
		j.match(d, e, clock, own)
	}
}

// IsDecision reports whether a record is a decision. Feedback has neither an action nor an observation.
func IsDecision(e *ingest.Event) bool {
	return e.Action.Kind != ingest.ActionNone || len(e.Observation) > 0
}

// open opens a decision with the first record of a key, which may be feedback that arrives before its decision.
func (j *Joiner) open(p *policy, e *ingest.Event, hash uint64, decides bool, clock int64) {
	for j.store.n >= j.options.MaxOpen {
		j.dropFirst()
	}
	d, slot := j.store.add(hash)
	d.policy, d.first, d.last, d.ts = p.number, e.Pos, e.Pos, e.TS
	p.open++
	p.share.open++
	j.metrics.open.Inc()
	j.held = j.held[:0]
	if decides {
		j.decide(p, d, e)
	} else {
		if d.ts == 0 || d.ts > clock {
			d.ts = clock
		}
		d.stage = uint8(p.rules.last())
	}
	j.addNumbers(d, e, decides)
	if !decides {
		j.remember(d, e)
	}
	j.scratch = j.store.write(d, j.key, []byte(e.AgentID), j.held, j.scratch)
	j.store.schedule(d, slot)
	j.account()
}

// account updates the memory metric.
func (j *Joiner) account() {
	if now := j.store.bytes(); now != j.accounted {
		j.metrics.bytes.Add(now - j.accounted)
		j.accounted = now
	}
}

// decide sets the fields that only the decision itself contains.
func (j *Joiner) decide(p *policy, d *decision, e *ingest.Event) {
	d.flags |= flagDecided
	j.metrics.decided(p.hash(j.key), e.Pos.Partition.Number(), e.TS, p.rules.moments[p.rules.last()])
	d.ts, d.stage = e.TS, 0
	d.group = j.store.groups.take(groupKey{
		assemble.GroupOf(p.groupBy, e), assemble.InShadow(p.groupBy, e), ingest.NewGroup("", assemble.LabelsOf(p.splitBy, e)...),
	})
	d.versions = j.store.versions.take(e.Versions)
	d.category = j.store.categories.take(e.Action.Category)
	d.actionKind = e.Action.Kind
	if e.Action.Scalar {
		d.flags |= flagScalar
	}
}

// adopt joins a decision with feedback that arrived before it.
func (j *Joiner) adopt(p *policy, d *decision, e *ingest.Event) {
	early := d.ts
	j.load(d)
	j.decide(p, d, e)
	d.first = e.Pos
	if d.last.Partition != e.Pos.Partition {
		d.last = e.Pos // the feedback comes from another topic
	}
	if early-e.TS > int64(p.rules.moments[p.rules.last()]) {
		j.metrics.late.Add(float64(d.records))
		j.held, d.reward, d.records, d.flags = j.held[:0], 0, 0, d.flags&^flagReward
	} else {
		d.delay = max(0, early-e.TS)
		j.metrics.matched.Add(float64(d.records))
		j.metrics.delay.Observe(time.Duration(d.delay).Seconds())
	}
	j.addNumbers(d, e, true)
	slot, _ := j.store.places.find(d.hash)
	j.rewrite(d, []byte(e.AgentID))
	j.store.reschedule(d, slot)
}

// match joins feedback with its open decision.
func (j *Joiner) match(d *decision, e *ingest.Event, clock int64, own bool) {
	ts := e.TS
	if ts == 0 {
		ts = clock
	}
	p := j.byNumber[d.policy]
	switch {
	case d.has(flagDecided) && ts > d.ts+int64(p.rules.moments[p.rules.last()]):
		j.metrics.late.Inc()
		return
	case j.remember(d, e):
		j.metrics.repeatedRecords.Inc()
		return
	}
	if d.has(flagDecided) {
		delay := max(0, ts-d.ts)
		if d.delay < 0 {
			d.delay = delay
		}
		j.metrics.matched.Inc()
		j.metrics.delay.Observe(time.Duration(delay).Seconds())
		j.rewardVersion(d, e)
	}
	if own {
		d.last = e.Pos
	}
	if len(e.Outcomes)+len(e.RewardComponents) == 0 {
		j.addReward(d, e)
		return
	}
	j.load(d)
	j.addNumbers(d, e, false)
	j.rewrite(d, j.store.agent(d))
}

// rewardVersion records the version of the reward function that produced the feedback.
func (j *Joiner) rewardVersion(d *decision, e *ingest.Event) {
	v := j.store.versions.values[d.versions]
	if e.Versions.Reward == "" || e.Versions.Reward == v.Reward {
		return
	}
	before := d.versions
	v.Reward = e.Versions.Reward
	d.versions = j.store.versions.take(v)
	j.store.versions.give(before)
}

// load reads the numbers of a decision into j.held.
func (j *Joiner) load(d *decision) { j.held = j.store.values(d, j.held[:0]) }

// rewrite replaces the numbers of a decision with j.held.
func (j *Joiner) rewrite(d *decision, agent []byte) {
	before, layout := d.text, d.layout
	key := append(j.key[:0], j.store.key(d)...)
	j.key = key
	if len(agent) == 0 {
		agent = j.store.agent(d)
	}
	j.scratch = j.store.write(d, key, agent, j.held, j.scratch)
	j.store.texts.drop(before)
	j.store.layouts.give(layout)
}

// remember reports whether a feedback record was delivered before, and remembers it if not.
func (j *Joiner) remember(d *decision, e *ingest.Event) (repeated bool) {
	b := binary.LittleEndian.AppendUint64(j.content[:0], uint64(e.TS))
	b = appendNumber(b, e.Reward)
	for _, v := range e.RewardComponents {
		b = appendNumber(append(b, v.Name...), v.X)
	}
	for _, v := range e.Outcomes {
		b = appendNumber(append(b, v.Name...), v.X)
	}
	j.content = b
	h := fnv.New32a()
	_, _ = h.Write(b) // never fails
	sum := max(1, h.Sum32())
	if e.TS != 0 {
		for _, before := range d.seen {
			if before == sum {
				return true
			}
		}
	}
	d.seen[d.records%seenRecords] = sum
	d.records++
	return false
}

func appendNumber(b []byte, x float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
}

func (j *Joiner) addReward(d *decision, e *ingest.Event) {
	if e.HasReward {
		d.reward += e.Reward
		d.flags |= flagReward
	}
}

// addNumbers adds the numbers of a record to the decision and to j.held. Rewards and their components are summed. For
// an outcome, the last value counts.
func (j *Joiner) addNumbers(d *decision, e *ingest.Event, decides bool) {
	j.addReward(d, e)
	if decides {
		for _, x := range e.Action.Values {
			j.held = append(j.held, value{field: field{action, ""}, x: x})
		}
		for _, v := range e.Observation {
			j.held = append(j.held, value{field: field{observation, v.Name}, x: v.X})
		}
		if e.ActionProb.Known {
			j.held = append(j.held, value{field: field{actionProb, ""}, x: e.ActionProb.P})
		}
		if e.TargetProb.Known {
			j.held = append(j.held, value{field: field{targetProb, ""}, x: e.TargetProb.P})
		}
	}
	for _, v := range e.RewardComponents {
		if x := j.place(component, v.Name); x != nil {
			*x += v.X
		}
	}
	if !decides {
		j.rate(j.byNumber[d.policy], e)
	}
	for _, v := range e.Outcomes {
		if x := j.place(outcome, v.Name); x != nil {
			*x = v.X
		}
	}
}

// mostValues is the maximum number of values of a decision. A unit has room for fewer signals, and counts the others.
const mostValues = 2 * ingest.MaxValues

// place returns a pointer to a value in j.held. It is 0 if it is new. It returns nil if there is no room.
func (j *Joiner) place(k kind, name string) *float64 {
	for i := range j.held {
		if j.held[i].kind == k && j.held[i].name == name {
			return &j.held[i].x
		}
	}
	if len(j.held) >= mostValues {
		return nil
	}
	j.held = append(j.held, value{field: field{k, name}})
	return &j.held[len(j.held)-1].x
}

// dropFirst drops the decision that is due first, to make room.
func (j *Joiner) dropFirst() {
	d, slot, _ := j.store.next()
	j.metrics.dropped.Inc()
	j.finish(d, slot)
}

// finish closes a decision, or feedback whose decision has not arrived. Later records for a closed decision are
// recognized.
func (j *Joiner) finish(d *decision, slot uint32) {
	if d.has(flagDecided) {
		j.byNumber[d.policy].share.ended.add(d.hash)
	}
	j.close(d, slot)
}

func (j *Joiner) close(d *decision, slot uint32) {
	p := j.byNumber[d.policy]
	p.share.open--
	if p.open--; p.open == 0 {
		p.share.rests(p)
	}
	j.store.remove(d, slot)
	j.metrics.open.Dec()
}

// Forget drops the open decisions of a policy.
func (j *Joiner) Forget(name string) {
	p := j.policies[name]
	if p == nil {
		return
	}
	for s, ds := range j.store.slabs {
		for i := range ds {
			if d := &ds[i]; d.seq != 0 && d.policy == p.number {
				j.metrics.dropped.Inc()
				j.close(d, uint32(s*slab+i))
			}
		}
	}
}

// ended recognizes closed decisions: at least the last mostEnded ones, and at most twice as many.
type ended struct{ now, before map[uint64]struct{} }

const mostEnded = 1 << 14

func (r *ended) add(hash uint64) {
	if len(r.now) >= mostEnded || r.now == nil {
		r.now, r.before = map[uint64]struct{}{}, r.now
	}
	r.now[hash] = struct{}{}
}

func setOf(hashes []uint64) map[uint64]struct{} {
	set := make(map[uint64]struct{}, len(hashes))
	for _, hash := range hashes {
		set[hash] = struct{}{}
	}
	return set
}

func (r *ended) has(hash uint64) bool {
	_, now := r.now[hash]
	_, before := r.before[hash]
	return now || before
}
