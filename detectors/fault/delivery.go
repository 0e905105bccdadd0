package fault

import (
	"cmp"
	"math"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// deliveryShare is the share above which duplicates, units with a skewed clock, and abandoned episodes are a fault.
const deliveryShare = .05

// The numbers of units over which skewed clocks and abandoned episodes are counted.
const (
	clockUnits     = 100
	abandonedUnits = 200
)

// Delivery tracks the telemetry faults of a whole group, which lie in how its telemetry arrives rather than in
// single signals. Each rule counts the marks of the last units. It applies at a marked unit if the share of marks
// is above deliveryShare, and above what chance explains given the baseline's own share (p < 1e-6). The rules apply
// once there is a baseline. Exported fields are its snapshot.
type Delivery struct {
	Duplicates marks // units with more than deliveryShare duplicate events
	Late       marks // units with more than deliveryShare events that came too late
	Skewed     marks // units whose times cannot be right
	Abandoned  marks // episodes that were abandoned; for blocks of decisions, blocks with more than deliveryShare of them
	Endings    endings

	Clocks map[ingest.Partition]*progress // by partition
}

// marks counts the marks of the last units for one rule.
type marks struct {
	Held  held
	Last  []uint16 // marks of the last units, a ring
	Next  int
	Sum   int64 // of Last
	Limit int64 // sum from which the marks are a fault; 0 if they are not judged

	Newest    int64 // marks of the last unit
	Warm      int64 // marks of the baseline's units
	WarmUnits int
}

// Observe adds a unit.
func (d *Delivery) Observe(u *ingest.Unit) {
	mark := func(leftOut int64) int64 {
		if float64(leftOut) > deliveryShare*float64(leftOut+u.Events) {
			return 1
		}
		return 0
	}
	skewed := int64(0)
	if d.skewed(u) {
		skewed = 1
	}
	d.Duplicates.observe(Duplicates, mark(u.Duplicates), faultUnits)
	d.Late.observe(Late, mark(u.Late), faultUnits)
	d.Skewed.observe(ClockSkew, skewed, clockUnits)
	abandoned := u.Abandoned
	if u.Decisions != nil {
		abandoned = mark(abandoned)
	}
	d.Abandoned.observe(Abandoned, abandoned, abandonedUnits)
	d.Endings.observe(u)
}

// Learn counts the last observed unit as one of the baseline.
func (d *Delivery) Learn() {
	d.Duplicates.learn()
	d.Late.learn()
	d.Skewed.learn()
	d.Abandoned.learn()
}

// Freeze sets the limits. Duplicate and late events are a fault even if they were usual in the baseline. Skewed
// clocks and abandoned episodes are a fault only if they were not, and skewed clocks only if clock is true.
func (d *Delivery) Freeze(clock bool) {
	d.Duplicates.freeze(faultUnits)
	d.Duplicates.Limit = min(d.Duplicates.Limit, faultUnits)
	d.Late.freeze(faultUnits)
	d.Late.Limit = min(d.Late.Limit, faultUnits)
	d.Skewed.freeze(clockUnits)
	if !clock || d.Skewed.usual() {
		d.Skewed.Limit = 0
	}
	d.Abandoned.freeze(abandonedUnits)
	if d.Abandoned.usual() {
		d.Abandoned.Limit = 0
	}
}

// Suspends returns the rule in force that makes the streams' values wrong, or "" for none. If some episodes are
// abandoned, the others are a biased selection.
func (d *Delivery) Suspends() string { return d.Abandoned.Held.Rule }

// StandsBy returns a rule in force despite which the streams are judged, or "" for none. Late steps are only a few
// steps of an episode, duplicates are dropped, and no detector uses the clock. With unfinished episodes, the
// existing units are valid, although they contain no information on these episodes.
func (d *Delivery) StandsBy() string {
	if rule := d.Late.Held.Rule; rule != "" {
		return rule
	}
	if rule := d.Duplicates.Held.Rule; rule != "" {
		return rule
	}
	return cmp.Or(d.Skewed.Held.Rule, d.Endings.rule())
}

// observe adds the marks of a unit to those of the given number of last units. When the rule ends, the count
// restarts, so that a share near the limit does not make the rule flap.
func (m *marks) observe(rule string, n int64, units int) {
	if len(m.Last) < units {
		m.Last = append(m.Last, 0)
		m.Next = len(m.Last) - 1
	}
	m.Sum += int64(short(n)) - int64(m.Last[m.Next])
	m.Last[m.Next] = short(n)
	m.Next = (m.Next + 1) % units
	m.Newest = n
	was := m.Held.Rule
	if n == 0 || m.Limit == 0 || m.Sum < m.Limit {
		rule = ""
	}
	if m.Held.settle(rule) == "" && was != "" {
		m.Last, m.Next, m.Sum = nil, 0, 0
	}
}

// short returns a number of episodes in two bytes, or the largest number that fits.
func short(n int64) uint16 { return uint16(min(n, math.MaxUint16)) }

// long is the inverse of short.
func long(n uint16) int64 { return int64(n) }

// beyondShort returns by how much numbers of episodes exceed what two bytes hold.
func beyondShort(all []int64) (sum int64) {
	for _, n := range all {
		sum += n - long(short(n))
	}
	return sum
}

func (m *marks) learn() {
	m.Warm += m.Newest
	m.WarmUnits++
}

// usual reports whether the baseline itself exceeds deliveryShare.
func (m *marks) usual() bool { return float64(m.Warm) > deliveryShare*float64(m.WarmUnits) }

func (m *marks) freeze(units int) {
	p := upperLimit(int(min(m.Warm, int64(m.WarmUnits))), m.WarmUnits)
	m.Limit = int64(tooMany(units, p, int(deliveryShare*float64(units))+1))
}

// Again returns a copy of the rules with only the limits, which follow from the baseline.
func (d *Delivery) Again() Delivery {
	return Delivery{
		Duplicates: marks{Limit: d.Duplicates.Limit}, Late: marks{Limit: d.Late.Limit}, Skewed: marks{Limit: d.Skewed.Limit}, Abandoned: marks{Limit: d.Abandoned.Limit},
	}
}
