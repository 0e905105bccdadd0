// Package feedback joins the decisions of a partition with rewards and outcomes that arrive later, in separate records.
// A decision is judged when its window is over by event time, and once at each shorter horizon.
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

// Options say which policies have feedback that comes later, and how much is held.
type Options struct {
	// Of returns the configuration of a policy. It must return the same one throughout the joiner's life.
	Of func(policy string) Config
	// GroupBy returns the labels that divide a policy, as in assemble.Config.
	GroupBy func(policy string) []string
	// SplitBy returns the labels of decisions that their units keep, as in assemble.Config; nil for none.
	SplitBy func(policy string) []string
	// RatedBy returns the label of the rater by outcome that people rate; nil for none. Units have a label of
	// ingest.RaterLabel for each.
	RatedBy func(policy string) map[string]string
	// MaxOpen is the most decisions held open: above it, the one that is due first is dropped.
	MaxOpen int
	// Shares divide MaxOpen, the last one for the policies of no other. nil for one share of all. ShareOf returns the index
	// of a policy's share.
	Shares  []Share
	ShareOf func(policy string) int
}

// Joiner joins the records of one partition. It is not safe for concurrent use.
//
// It is large because decision and feedback meet in one store, whichever comes first.
type Joiner struct {
	options Options
	metrics *Metrics
	store   *store

	policies map[string]*policy
	byNumber []*policy           // nil for numbers that are free
	free     []uint32            // these numbers
	others   map[string]struct{} // policies without feedback that comes later
	ofLast   *policy             // of the previous record with such feedback
	other    string              // policy of the previous record without
	shares   []*share

	accounted int64 // memory in the metrics

	ord     int32 // number of units that the record in hand has ended
	single  *assemble.Single
	event   ingest.Event // of the unit in hand; its memory is reused
	held    []value      // likewise
	scratch []byte
	key     []byte
	content []byte
}

// policy is what the joiner knows of a policy with feedback that comes later.
type policy struct {
	beyond  bool   // the share has as many others as it may have: nothing is joined
	idle    bool   // it is listed in share.idle
	decided uint64 // turn of the last decision, see Decides
	name    string
	seed    uint64 // hash of the name, to be continued with a key
	number  uint32
	open    int // decisions, and feedback that waits
	share   *share
	rules   *rules
	groupBy []string
	splitBy []string
	rated   []rated
}

// hash returns the hash of a key of the policy. It is the same in every process.
func (p *policy) hash(key []byte) uint64 { return fnv1a(p.seed, key) }

// fnv1a continues an FNV-1a hash of 64 bits. Package hash/fnv would allocate one for each record.
func fnv1a(hash uint64, text []byte) uint64 {
	const prime = 1099511628211
	for _, b := range text {
		hash = (hash ^ uint64(b)) * prime
	}
	return hash
}

// fnvBasis is the FNV-1a hash of nothing.
const fnvBasis = 14695981039346656037

// New returns a joiner without open decisions. Values for which a unit has no room are counted with those of episodes.
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

// due returns the next moment at which a decision is judged, in Unix nanoseconds.
func (j *Joiner) due(d *decision) int64 {
	return d.ts + int64(j.byNumber[d.policy].rules.moments[d.stage])
}

// Close removes the open decisions from the metrics. The joiner must not be used afterwards.
func (j *Joiner) Close() {
	j.metrics.open.Sub(float64(j.store.n))
	j.reset()
}

// Open returns the number of open decisions, with feedback whose decision is missing.
func (j *Joiner) Open() int { return j.store.n }

// Takes reports whether the records of a policy are joined here.
func (j *Joiner) Takes(name string) bool { return j.policy(name) != nil }

// Watches reports whether a record of any policy with such feedback has been folded in.
func (j *Joiner) Watches() bool { return j.store.seq > 0 }

// maxPolicies is how many policies of a share are known at a time, unless it has a limit or more have open decisions.
const maxPolicies = 20_000

// policy returns a policy, nil if it has no feedback that comes later.
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

// meet looks up a policy that is not known.
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
	p := &policy{name: name, seed: fnv1a(fnvBasis, append([]byte(name), 0)), number: j.freeNumber(), rules: newRules(c), groupBy: j.options.GroupBy(name), share: s}
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

// forgetIdle forgets a policy of a share of which nothing is open, and reports whether there was one.
func (j *Joiner) forgetIdle(s *share) bool {
	for len(s.idle) > 0 {
		p := s.idle[0]
		s.idle[0], s.idle = nil, s.idle[1:]
		if p.idle = false; p.open > 0 { // it is listed again when nothing is
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

// Decided returns the turn of the last decision of a policy, as given to Decides; 0 if the policy is not known.
func (j *Joiner) Decided(name string) uint64 {
	if p := j.policies[name]; p != nil {
		return p.decided
	}
	return 0
}

// Decides notes the turn of a decision of a policy that Takes has accepted. It is not saved.
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

// Fold takes the next record of a policy that Takes has accepted. Advance must have been called with its time.
func (j *Joiner) Fold(e *ingest.Event, clock int64) { j.fold(e, clock, true) }

// FoldFrom takes feedback of a policy that Takes has accepted from another topic than the decisions. It neither moves
// the clock nor ends a decision: which units come, and at which record, depends on the partition of the decisions alone.
func (j *Joiner) FoldFrom(e *ingest.Event, clock int64) { j.fold(e, clock, false) }

// Holds reports whether the key of a record of a policy that Takes has accepted is open.
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

// fold is Fold for the records of this partition, own, and FoldFrom for others.
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
	case decides && (e.TS == 0 || e.TS > clock): // the clock has moved to any credible time
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

// IsDecision tells a decision from feedback, which has neither an action nor an observation.
func IsDecision(e *ingest.Event) bool {
	return e.Action.Kind != ingest.ActionNone || len(e.Observation) > 0
}

// open begins with the first record of a key: the decision, or feedback that arrives before it.
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

// account updates the metric of the memory in use.
func (j *Joiner) account() {
	if now := j.store.bytes(); now != j.accounted {
		j.metrics.bytes.Add(now - j.accounted)
		j.accounted = now
	}
}

// decide takes over what only the decision itself says.
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

// adopt joins a decision with the feedback that has arrived before it.
func (j *Joiner) adopt(p *policy, d *decision, e *ingest.Event) {
	early := d.ts
	j.load(d)
	j.decide(p, d, e)
	d.first = e.Pos
	if d.last.Partition != e.Pos.Partition {
		d.last = e.Pos // the feedback came from another topic
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

// rewardVersion notes which reward function has produced the feedback.
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

// rewrite replaces the numbers of a decision by j.held.
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

// remember reports whether a feedback record has been delivered before, and remembers it.
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

// addNumbers folds the numbers of a record into the decision and j.held. Rewards and their components add up; of an
// outcome, the last value counts.
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

// mostValues bounds what feedback can add to a decision. A unit has room for fewer signals, and counts the others.
const mostValues = 2 * ingest.MaxValues

// place returns a value in j.held, 0 if it is new; nil if there is no room.
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

// dropFirst gives up the decision that is due first, to make room.
func (j *Joiner) dropFirst() {
	d, slot, _ := j.store.next()
	j.metrics.dropped.Inc()
	j.finish(d, slot)
}

// finish closes a decision, or feedback whose decision did not come. Later records of a decision are recognized.
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

// ended recognizes decisions that are closed: the last mostEnded, and up to as many before them.
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
