package bank

import "github.com/rewardwatch/rewardwatch/ingest"

// deliveryShare is the share of duplicates, of units with a skewed clock, and of abandoned episodes above which they are
// a fault.
const deliveryShare = .05

// Over how many units skewed clocks and abandoned episodes are counted.
const (
	clockUnits     = 100
	abandonedUnits = 200
)

// delivery follows the faults of a whole group: what is wrong with how its telemetry comes, and not with single signals.
// Each rule counts marks of the last units, and holds at a marked unit where there are more than deliveryShare, and more
// than the baseline's own share explains by chance (p < 1e-6). They are judged once there is a baseline. Exported fields
// are its snapshot.
type delivery struct {
	Duplicates marks // units of whose events more than deliveryShare came twice
	Skewed     marks // units whose times cannot be right
	Abandoned  marks // episodes that were given up

	Clocks map[int32]*progress // by partition
}

// marks counts marks over the last units.
type marks struct {
	Held  held
	Last  []int64 // a ring
	Next  int
	Sum   int64 // of Last
	Limit int64 // from which on they are a fault; 0 where they are not judged

	Newest    int64 // of the last unit
	Warm      int64 // of the units of the baseline
	WarmUnits int
}

// observe folds a unit in.
func (d *delivery) observe(u *ingest.Unit) {
	twice := int64(0)
	if float64(u.Duplicates) > deliveryShare*float64(u.Duplicates+u.Events) {
		twice = 1
	}
	skewed := int64(0)
	if d.skewed(u) {
		skewed = 1
	}
	d.Duplicates.observe(FaultDuplicates, twice, faultUnits)
	d.Skewed.observe(FaultClockSkew, skewed, clockUnits)
	d.Abandoned.observe(FaultAbandoned, u.Abandoned, abandonedUnits)
}

// learn counts the last unit observed as one of the baseline.
func (d *delivery) learn() {
	d.Duplicates.learn()
	d.Skewed.learn()
	d.Abandoned.learn()
}

// freeze sets the limits. Where units of the baseline come twice all the time, that is a fault all the same; what is
// wrong with clocks and ends is one only where it was not so in the baseline.
func (d *delivery) freeze(clock bool) {
	d.Duplicates.freeze(faultUnits)
	d.Duplicates.Limit = min(d.Duplicates.Limit, faultUnits)
	d.Skewed.freeze(clockUnits)
	if !clock || d.Skewed.usual() {
		d.Skewed.Limit = 0
	}
	d.Abandoned.freeze(abandonedUnits)
	if d.Abandoned.usual() {
		d.Abandoned.Limit = 0
	}
}

// suspends gives the rule in force that leaves the streams' values wrong, "" for none: of episodes some of which are
// given up, those that are left are no fair choice.
func (d *delivery) suspends() string { return d.Abandoned.Held.Rule }

// standsBy gives the rule in force that leaves the values right, "" for none: duplicates are dropped, and no detector
// goes by the clock.
func (d *delivery) standsBy() string {
	if rule := d.Duplicates.Held.Rule; rule != "" {
		return rule
	}
	return d.Skewed.Held.Rule
}

// observe folds in the marks of a unit, over the last units of which the rule is. When the rule ends it starts anew, so
// that a share near the limit does not come and go with each mark.
func (m *marks) observe(rule string, n int64, units int) {
	if len(m.Last) < units {
		m.Last = append(m.Last, 0)
		m.Next = len(m.Last) - 1
	}
	m.Sum += n - m.Last[m.Next]
	m.Last[m.Next] = n
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

func (m *marks) learn() {
	m.Warm += m.Newest
	m.WarmUnits++
}

// usual reports whether the baseline itself is above deliveryShare.
func (m *marks) usual() bool { return float64(m.Warm) > deliveryShare*float64(m.WarmUnits) }

func (m *marks) freeze(units int) {
	p := upperLimit(int(min(m.Warm, int64(m.WarmUnits))), m.WarmUnits)
	m.Limit = int64(tooMany(units, p, int(deliveryShare*float64(units))+1))
}

// shareFaults puts streams into the faults that falsify them without being their own: of the group, and, for the return,
// those of the rewards that it sums up. rules holds the rule in force by stream.
func (g *group) shareFaults(rules []string) {
	reward := ""
	if i, found := g.find("reward"); found {
		switch rules[i] {
		case FaultConstant, FaultClipped, FaultScale:
			reward = rules[i]
		}
	}
	for i, s := range g.Streams {
		s.Fault.Shared = g.Delivery.suspends()
		if s.Signal == "return" && reward != "" {
			s.Fault.Shared = reward
		}
		if rules[i] == "" {
			rules[i] = s.Fault.Shared
		}
	}
}
