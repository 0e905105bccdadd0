// Package stream judges one signal of a group by its quantities. Each quantity has the tests that suit its baseline.
package stream

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/fault"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
)

// Every score of a stream must stay below resolveScore for ResolveUnits consecutive units before its alarm resolves.
// After as many more units without an alarm, the incident closes.
const (
	ResolveUnits = 20
	resolveScore = .5
)

// Stream is one signal of one group. Exported fields are saved.
type Stream struct {
	Signal     string
	State      finding.State
	Quantities []*Quantity
	Fault      fault.Rules
	Told       string              // rule of the fault that was last reported; empty if the stream has no fault
	Alarmed    bool                // in drift, or in a fault that began during a drift
	Low        int                 // number of consecutive units since the alarm with every score below resolveScore
	AlarmedAt  int64               // ordinal of the unit at which it drifted
	Alert      *Alert              // the current drift, or the last one until the incident is over; otherwise nil
	InBaseline bool                // whether the frozen baseline includes the signal
	LateUnits  int                 // if not: number of units since the baseline that include the signal
	LateOf     int                 // number of units since the first of LateUnits, with and without the signal
	LateTrend  string              // quantity for whose trend the stream's own last baseline was refused; empty if it was not
	LateGiven  observations        // for a late outcome, the main quantity of LateFrom in these units
	LateFrom   string              // the signal of LateGiven
	Own        finding.BaselineRef // for a signal that is missing from the group's baseline
	OverLimit  bool                // not armed, because the policy has too many branches
	Shown      bool                // displayed but not judged, because the policy learns
	NoDeciles  bool                // only its outer deciles are not armed, because the policy has too many branches
}

// Find returns the quantity with the given name; nil if there is none.
func (s *Stream) Find(name string) *Quantity {
	for _, q := range s.Quantities {
		if q.Name == name {
			return q
		}
	}
	return nil
}

// Reach returns the smallest detectable changes of the main quantity and of amounts; nil if none are known.
func (s *Stream) Reach() []finding.Reach {
	var out []finding.Reach
	for _, name := range []string{signals.MainQuantity(s.Signal), signals.Amount} {
		if q := s.Find(name); q != nil {
			out = append(out, q.Reach...)
		}
	}
	return out
}

// MainRanks returns the ranks of the main quantity's baseline; nil if there is none.
func (s *Stream) MainRanks() *detectors.Ranks {
	if q := s.Find(signals.MainQuantity(s.Signal)); q != nil {
		return q.Ranks
	}
	return nil
}

// Quantity returns the quantity with the given name. It adds the quantity if there is none.
func (s *Stream) Quantity(name string) *Quantity { return s.Quantities[s.Place(name)] }

// Place returns the index of the quantity with the given name. It adds the quantity if there is none.
func (s *Stream) Place(name string) int {
	for i, q := range s.Quantities {
		if q.Name == name {
			return i
		}
	}
	s.Quantities = append(s.Quantities, &Quantity{Name: name})
	return len(s.Quantities) - 1
}

// Freeze makes the collected values the baseline of the stream. units is the number of units that they come from.
// Freeze does not start gauges, see StartGauges.
func (s *Stream) Freeze(units int, cfg *watch.Config, e Ends) {
	s.Own, s.LateUnits, s.LateOf, s.LateTrend, s.LateGiven = finding.BaselineRef{}, 0, 0, "", nil
	most := 0
	for _, q := range s.Quantities {
		if s.RepeatsMean(q) {
			q.thaw()
			continue
		}
		if q.freeze(s.Signal, cfg, e); q.Ranks != nil {
			most = max(most, len(q.Warm))
		}
	}
	s.Shown = cfg.Learning.Learns() && !slices.ContainsFunc(s.Quantities, func(q *Quantity) bool { return q.toJudge(s.Signal, cfg) })
	s.certify()
	s.InBaseline = most > 0
	s.Fault.Freeze(most, units)
}

// RepeatsMean reports whether a quantity is an outer decile that equals the mean in every collected unit. This happens
// if units are single steps, or if a signal is constant within an episode. The decile would then use a share of the
// budget without adding anything to the mean. If the steps of a unit later differ, the standard deviation, which was 0,
// shows it. Deciles that equal each other but not the mean are both judged, as one may later change without the other.
func (s *Stream) RepeatsMean(q *Quantity) bool {
	mean := s.Find("mean")
	return signals.IsDecile(q.Name) && mean != nil && slices.EqualFunc(q.Warm, mean.Warm, func(a, b Observed) bool {
		return a.Unit == b.Unit && a.X == b.X
	})
}

// Branch is one armed test of a stream.
type Branch struct {
	Detector                    string
	Alternative                 detectors.Branch // zero for the novelty, KS and guaranteed tests
	Quantity                    *Quantity
	Score, statistic, Threshold float64
	zeroed                      bool
	Moving                      bool // whether it is above 0
	Started                     int64
}

// Name returns a name that is unique among the branches of the stream.
func (b Branch) Name() string {
	if b.Alternative == (detectors.Branch{}) {
		return b.Quantity.Name + " " + b.Detector
	}
	return b.Quantity.Name + " " + b.Alternative.String()
}

// Branches yields the armed tests of a stream.
func (s *Stream) Branches(yield func(Branch)) {
	for _, q := range s.Quantities {
		q.Branches(yield)
	}
}

// Branches yields the armed tests of the quantity; none while the quantity is still being validated.
func (q *Quantity) Branches(yield func(Branch)) {
	if q.Proving() {
		return
	}
	for i := range q.Tests {
		q.Tests[i].Branches(q, yield)
	}
}

// Armed returns the names of the stream's detectors that can page, sorted.
func (s *Stream) Armed() []string {
	var names []string
	s.Branches(func(b Branch) {
		if !slices.Contains(names, b.Detector) {
			names = append(names, b.Detector)
		}
	})
	slices.Sort(names)
	return names
}

// Reached reports whether a branch has reached its threshold, which means that the leading score is at least 1.
func (s *Stream) Reached() bool { return slices.ContainsFunc(s.Quantities, (*Quantity).Reached) }

// Reached reports whether a branch has reached its threshold.
func (q *Quantity) Reached() bool {
	if q.Proving() {
		return false
	}
	for i := range q.Tests {
		if q.Tests[i].Reached() {
			return true
		}
	}
	return false
}

// Leading returns the branch with the highest score, and the detectors with a score of at least resolveScore, highest
// first. The first branch wins a tie, so that a replay names the same branch.
func (s *Stream) Leading() (top Branch, names []string) {
	type scored struct {
		detector string
		score    float64
	}
	var best []scored
	s.Branches(func(b Branch) {
		if top.Quantity == nil || b.Score > top.Score {
			top = b
		}
		if b.Score >= resolveScore {
			i := slices.IndexFunc(best, func(s scored) bool { return s.detector == b.Detector })
			if i < 0 {
				best = append(best, scored{b.Detector, b.Score})
			} else {
				best[i].score = max(best[i].score, b.Score)
			}
		}
	})
	slices.SortFunc(best, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.detector, b.detector))
	})
	for _, b := range best {
		names = append(names, b.detector)
	}
	return top, names
}

// Alarm marks the stream as drifted. Before the drift resolves, every branch must pass through zero.
func (s *Stream) Alarm(ordinal int64) {
	s.State, s.Alarmed, s.Low, s.AlarmedAt = finding.Drift, true, 0, ordinal
	for _, q := range s.Quantities {
		q.hold()
	}
}

// Recovered counts a unit whose highest score is score, and reports whether a drift is over.
func (s *Stream) Recovered(score float64) bool {
	if score < resolveScore {
		s.Low++
	} else {
		s.Low = 0
	}
	if s.Low < ResolveUnits {
		return false
	}
	zeroed := true
	s.Branches(func(b Branch) { zeroed = zeroed && b.zeroed })
	return zeroed
}

// Reset sets the tests of all quantities back to zero.
func (s *Stream) Reset() {
	for _, q := range s.Quantities {
		q.Reset()
	}
}

// Settled returns the state of a stream without a fault or an alarm.
func (s *Stream) Settled() finding.State {
	if s.Shown || slices.ContainsFunc(s.Quantities, (*Quantity).IsArmed) {
		return finding.OK
	}
	return finding.WarmingUp
}

// ShownOnly is the reason why a signal of a policy that learns is not judged.
const ShownOnly = "shown but not judged, because the policy learns"

// Unarmed returns the reason why a stream of a frozen baseline has no armed detector; empty if it has one.
func (s *Stream) Unarmed(unit finding.UnitName, units, wanted int) string {
	if len(s.Armed()) > 0 {
		return ""
	}
	if !s.InBaseline && s.LateTrend != "" {
		return MovedOn(s.LateTrend, unit, s.LateUnits, wanted)
	}
	if !s.InBaseline {
		return fmt.Sprintf("fewer than %d %s in the baseline contain the signal; collected %d of %d for a separate baseline",
			watch.MinBaselineUnits, unit.Many(), s.LateUnits, wanted)
	}
	if s.Shown {
		return ShownOnly
	}
	if s.OverLimit {
		return fmt.Sprintf("the policy has more than %d detector branches; this signal is only displayed", MaxBranches)
	}
	for _, q := range s.Quantities {
		if w := q.Walks(); w != nil && w.TooDependent() {
			return fmt.Sprintf("%s are too dependent (factor %.1f, limit 4): the false alarm rate cannot be calibrated", unit.Many(), w.Factor)
		}
	}
	return fmt.Sprintf("a baseline of %s is too small to arm a detector", unit.Count(int64(units)))
}

// Factor returns the largest dependence factor of the quantities of a stream; 0 before a freeze.
func (s *Stream) Factor() float64 {
	f := 0.0
	for _, q := range s.Quantities {
		for i := range q.Tests {
			f = max(f, q.Tests[i].Factor())
		}
	}
	return f
}

// ByNeed returns the quantities of the stream to arm first, and those to arm only if there is room left.
func (s *Stream) ByNeed() (first, last []*Quantity) {
	for _, q := range s.Quantities {
		if signals.IsDecile(q.Name) && s.Signal != "reward" {
			last = append(last, q)
		} else {
			first = append(first, q)
		}
	}
	return first, last
}

// MaxBranches is the maximum number of branches that a policy may arm.
const MaxBranches = 1000

// MostCandidates is the maximum number of branches of a quantity's tests: ten for ranks, or fewer for a frequency,
// three for rarity, and one each for novelty, the sliding test and the guaranteed test.
const MostCandidates = 16

// Sound reports whether the stream has no telemetry fault.
func (s *Stream) Sound() bool { return s.State != finding.TelemetryFault }

// Dropped returns the branches that the baseline is too small to support, with the number of units that would suffice.
func (s *Stream) Dropped() []finding.DroppedBranch {
	var out []finding.DroppedBranch
	for _, q := range s.Quantities {
		w := q.Walks()
		if w == nil {
			continue
		}
		for i := range w.Branches {
			if b := &w.Branches[i]; !b.Carries {
				out = append(out, finding.DroppedBranch{Branch: q.Name + " " + b.Branch().String(), Units: b.CarriedBy(w.Factor)})
			}
		}
	}
	return out
}

// SummarizeDetectors returns the leading branch of each detector, sorted by name.
func (s *Stream) SummarizeDetectors() []finding.DetectorSummary {
	var leading []Branch
	s.Branches(func(b Branch) {
		i := slices.IndexFunc(leading, func(have Branch) bool { return have.Detector == b.Detector })
		switch {
		case i < 0:
			leading = append(leading, b)
		case b.Score > leading[i].Score:
			leading[i] = b
		}
	})
	if len(leading) == 0 {
		return nil
	}
	const others = 3 // room for those that the bank adds: the sliding test and two gauges
	out := make([]finding.DetectorSummary, 0, len(leading)+others)
	for _, b := range leading {
		out = append(out, finding.DetectorSummary{
			Detector: b.Detector, Score: b.Score, Statistic: b.statistic, Threshold: b.Threshold, Branch: b.Name(),
		})
	}
	slices.SortFunc(out, func(a, b finding.DetectorSummary) int { return strings.Compare(a.Detector, b.Detector) })
	return out
}

// MovedOn returns a message that a warm-up of the given number of units was refused because of a trend, with the
// progress of the next one.
func MovedOn(what string, unit finding.UnitName, collected, units int) string {
	return fmt.Sprintf("%s was not stationary over the last %s; collecting a new baseline, %d of %d", what, unit.Count(int64(units)), collected, units)
}
