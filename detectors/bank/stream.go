package bank

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors"
)

// resolveUnits is for how many units in a row every score of a stream must stay below resolveScore before its alarm
// resolves, and how many more units then close the incident.
const (
	resolveUnits = 20
	resolveScore = .5
)

// stream is one signal of one group. Exported fields are its snapshot.
type stream struct {
	Signal     string
	State      State
	Quantities []*quantity
	Fault      fault
	Told       string       // the rule of the fault that was told last, "" where it is in none
	Alarmed    bool         // in drift, or in a fault that came upon a drift
	Low        int          // units in a row with every score below resolveScore, since the alarm
	AlarmedAt  int64        // ordinal of the unit at which it went to drift
	Alert      alert        // what is known of the drift, valid while Alarmed
	InBaseline bool         // whether the frozen baseline has the signal
	LateUnits  int          // units since the baseline that had the signal, where the baseline does not have it
	LateOf     int          // units since the first of these, with and without the signal
	LateTrend  string       // the quantity that moved on in the last baseline of its own that was refused, "" for none
	LateGiven  observations // of a late outcome, the main quantity of LateFrom of these units
	LateFrom   string       // the signal of LateGiven
	Own        BaselineRef  // of a signal that the group's baseline does not have
	OverLimit  bool         // left unarmed because the policy has too many branches
	NoDeciles  bool         // its outer deciles alone are, for that reason
}

func (s *stream) find(name string) *quantity {
	for _, q := range s.Quantities {
		if q.Name == name {
			return q
		}
	}
	return nil
}

// quantity finds the quantity of a name, or starts it.
func (s *stream) quantity(name string) *quantity { return s.Quantities[s.place(name)] }

// place finds the place of the quantity of a name, which it starts where there is none.
func (s *stream) place(name string) int {
	for i, q := range s.Quantities {
		if q.Name == name {
			return i
		}
	}
	s.Quantities = append(s.Quantities, &quantity{Name: name})
	return len(s.Quantities) - 1
}

// freeze makes the collected values of units units the baseline of the stream.
func (s *stream) freeze(units int, cfg *Config, e ends) {
	s.Own, s.LateUnits, s.LateOf, s.LateTrend, s.LateGiven = BaselineRef{}, 0, 0, "", nil
	most := 0
	for _, q := range s.Quantities {
		if s.repeatsMean(q) {
			q.thaw()
			continue
		}
		if q.freeze(e); q.Ranks != nil {
			most = max(most, len(q.Warm))
		}
	}
	if q := s.find(mainQuantity(s.Signal)); q != nil && q.Ranks != nil {
		q.Given = newGivenTest(cfg.Guaranteed, s.Signal)
		if q.Season == nil { // with a season the last units have another law than all of the baseline
			q.Shape = newShapeTest(q.Ranks, cfg.KS.Window)
		}
	}
	s.certify()
	s.startGauges()
	s.InBaseline = most > 0
	s.Fault.freeze(float64(most) >= usualShare*float64(units))
}

// repeatsMean reports whether a quantity is an outer decile that is the mean in every unit collected, as where units are
// single steps, or a signal keeps its value over an episode. It would tell nothing that the mean does not, and take a share
// of the budget; that units become uneven shows in their standard deviation, which was 0. Deciles that equal one another
// but not the mean are judged both: what one does then, the other need not.
func (s *stream) repeatsMean(q *quantity) bool {
	mean := s.find("mean")
	return isDecile(q.Name) && mean != nil && slices.EqualFunc(q.Warm, mean.Warm, func(a, b observed) bool {
		return a.Unit == b.Unit && a.X == b.X
	})
}

// branch is one armed test of a stream, seen from outside.
type branch struct {
	detector                    string
	alternative                 *detectors.Branch // nil for novelty, ks and guaranteed
	quantity                    *quantity
	score, statistic, threshold float64
	zeroed                      bool
	moving                      bool // whether it stands above 0
	started                     int64
}

// name tells the branch from the others of its stream.
func (b branch) name() string {
	if b.alternative == nil {
		return b.quantity.Name + " " + b.detector
	}
	return b.quantity.Name + " " + b.alternative.String()
}

// branches lists the armed tests of a stream.
func (s *stream) branches(yield func(branch)) {
	for _, q := range s.Quantities {
		q.branches(yield)
	}
}

func (q *quantity) branches(yield func(branch)) {
	if w := q.walks(); w != nil && !q.proving() {
		for i := range w.Branches {
			if b := &w.Branches[i]; b.Height > 0 {
				yield(branch{
					b.Family.String(), &b.Branch, q, b.Score(), b.Walk, b.Height, b.Zeroed, b.Walk > 0, b.StartedAt,
				})
			}
		}
	}
	if n := q.Novel; n != nil && n.Height > 0 {
		yield(branch{
			DetectorNovelty, nil, q, n.Score(), float64(n.Walk), float64(n.Height), n.Zeroed, n.Walk > 0, n.StartedAt,
		})
	}
	if t := q.Shape; t != nil && t.Threshold > 0 {
		yield(t.branch(q))
	}
	if t := q.Given; t != nil && t.Test != nil {
		yield(t.branch(q))
	}
}

// armed lists the detectors of the stream that can page.
func (s *stream) armed() []string {
	var names []string
	s.branches(func(b branch) {
		if !slices.Contains(names, b.detector) {
			names = append(names, b.detector)
		}
	})
	slices.Sort(names)
	return names
}

// reached reports whether a branch has reached its threshold: whether the score of the leading one is at least 1.
func (s *stream) reached() bool { return slices.ContainsFunc(s.Quantities, (*quantity).reached) }

func (q *quantity) reached() bool {
	if w := q.walks(); w != nil && !q.proving() && w.Reached() {
		return true
	}
	return q.Novel != nil && q.Novel.Score() >= 1 || q.Shape != nil && q.Shape.Score >= 1 ||
		q.Given != nil && q.Given.Test != nil && q.Given.Test.Score() >= 1
}

// leading gives the branch that has gone furthest, and the detectors with a score of at least resolveScore, the
// highest first. The first branch wins a tie, so that a replay names the same one.
func (s *stream) leading() (top branch, names []string) {
	var best map[string]float64
	s.branches(func(b branch) {
		if top.quantity == nil || b.score > top.score {
			top = b
		}
		if b.score >= resolveScore && b.score > best[b.detector] {
			if best == nil {
				best = map[string]float64{}
			}
			best[b.detector] = b.score
		}
	})
	for name := range best {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(best[b], best[a]), cmp.Compare(a, b))
	})
	return top, names
}

// alarm marks the stream as drifted: from here on every branch has to pass through zero before it resolves.
func (s *stream) alarm(ordinal int64) {
	s.State, s.Alarmed, s.Low, s.AlarmedAt = Drift, true, 0, ordinal
	for _, q := range s.Quantities {
		q.hold()
	}
}

// recovered reports whether a drift is over, after a unit that left the highest score at score.
func (s *stream) recovered(score float64) bool {
	if score < resolveScore {
		s.Low++
	} else {
		s.Low = 0
	}
	if s.Low < resolveUnits {
		return false
	}
	zeroed := true
	s.branches(func(b branch) { zeroed = zeroed && b.zeroed })
	return zeroed
}

func (s *stream) reset() {
	for _, q := range s.Quantities {
		q.reset()
	}
}

// settled is the state of a stream that has neither a fault nor an alarm.
func (s *stream) settled() State {
	if len(s.armed()) > 0 {
		return OK
	}
	return WarmingUp
}

// unarmed says why a stream of a frozen baseline has no armed detector, or "".
func (s *stream) unarmed(units, wanted int) string {
	if len(s.armed()) > 0 {
		return ""
	}
	if !s.InBaseline && s.LateTrend != "" {
		return movedOn(s.LateTrend, s.LateUnits, wanted)
	}
	if !s.InBaseline {
		return fmt.Sprintf("fewer than %d units of the baseline have the signal; %d of %d for a baseline of its own",
			MinBaselineUnits, s.LateUnits, wanted)
	}
	if s.OverLimit {
		return fmt.Sprintf("the policy has more than %d detector branches; this signal is shown only", maxBranches)
	}
	for _, q := range s.Quantities {
		if w := q.walks(); w != nil && w.TooDependent() {
			return fmt.Sprintf("units are too dependent: factor %.1f is above 4, so no promise can be made", w.Factor)
		}
	}
	return fmt.Sprintf("no detector is carried by a baseline of %d units; more units would arm some", units)
}

// factor is the largest dependence factor over the quantities of a stream, 0 before a freeze.
func (s *stream) factor() float64 {
	f := 0.0
	for _, q := range s.Quantities {
		if w := q.walks(); w != nil {
			f = max(f, w.Factor)
		}
		if q.Novel != nil {
			f = max(f, 1)
		}
	}
	return f
}
