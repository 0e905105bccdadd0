package stream

import (
	"fmt"
	"math"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/lesson"
	"github.com/rewardwatch/rewardwatch/detectors/season"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// WeightedQuantity is the course of the rewards, with learned weights that make a uniform change easiest to detect.
const WeightedQuantity = "weighted by covariance"

// ProvingUnits is the number of units after a freeze on which a learned quantity is validated before it is armed. If
// they refute it, all units since the freeze are tested again after ProvingUnits more.
const ProvingUnits = 100

// Learnt holds how a learned quantity is computed and the progress of its validation. One of Outcome, Course, Law and
// Usual is set. Exported fields are saved.
type Learnt struct {
	Outcome *lesson.Regression // of the stream's outcome
	Given   string             // the signal that measures the reward
	Course  *lesson.Degradation
	Steps   int64             // steps per segment of the profiles
	Law     bool              // whether the quantity is a law of the steps, whose model the group has
	About   *season.DailyMean // the mean that mean squares of a law refer to; nil for 0
	Usual   *float64          // the value of the stream that is not an amount

	Proof   detectors.Proof
	Proved  bool   // and therefore armed
	Refuted string // the reason why it is not armed; empty until ProvingUnits units have been tested
}

// IsLearnt reports whether the quantity with the given name is learned from a baseline.
func IsLearnt(quantity string) bool {
	switch quantity {
	case signals.GivenReward, WeightedQuantity, signals.LawMean, signals.LawSquare, signals.LawMostMean, signals.LawMostSquare, signals.Amount:
		return true
	}
	return false
}

// usualShare is the minimum share of units with the same value for the other values to be judged separately. Below it,
// the mean shows nearly as much, and amounts would use a part of the other tests' budget.
const usualShare = .3

// UsualOf returns the most common value, and whether at least usualShare of the values equal it.
func UsualOf(values []float64) (usual float64, has bool) {
	usual, n := detectors.NewRanks(values).Mode()
	return usual, n > 0 && float64(n) >= usualShare*float64(len(values))
}

// OfAmounts returns a Learnt for amounts: the values that differ from the usual one. It needs no validation.
func OfAmounts(usual float64) *Learnt { return &Learnt{Usual: &usual, Proved: true} }

// Value returns the value of the quantity, computed from the unit and its other readings; NaN if an input is missing.
// Values of laws are computed elsewhere, so it returns NaN for these.
func (l *Learnt) Value(signal string, u *ingest.Unit, values []Reading) float64 {
	if l.Law {
		return math.NaN()
	}
	if l.Course != nil {
		if u.ProfileSteps != l.Steps {
			return math.NaN()
		}
		return l.Course.Score(u.Profile)
	}
	if l.Usual != nil {
		return Amount(reading(values, signal, signals.MainQuantity(signal)), reading(values, signal, signals.StepSD), *l.Usual)
	}
	return l.Outcome.Residual(MainReading(values, l.Given), MainReading(values, signal))
}

// MainReading returns the main quantity of a signal; NaN if the unit has none.
func MainReading(values []Reading, signal string) float64 {
	return reading(values, signal, signals.MainQuantity(signal))
}

func reading(values []Reading, signal, quantity string) float64 {
	for i := range values {
		if r := &values[i]; r.Signal == signal && r.Quantity == quantity {
			return r.X
		}
	}
	return math.NaN()
}

// Amount returns the mean of the steps of a unit that differ from the usual value, weighted by their distance from it.
// mean and sd are those of all steps of the unit. Amount returns NaN if all steps have the usual value, and the mean if
// sd is 0 or NaN.
func Amount(mean, sd, usual float64) float64 {
	switch {
	case mean == usual:
		return math.NaN()
	case sd > 0:
		return float64(float32(mean + sd*sd/(mean-usual))) // equal steps have equal amounts despite rounding
	}
	return mean
}

// Proving reports whether the quantity must not page yet because it is still being validated.
func (q *Quantity) Proving() bool { return q.Learnt != nil && !q.Learnt.Proved }

// Prove validates the quantity on a unit. Units of an open incident, for which held is true, do not count.
func (q *Quantity) Prove(r Reading, held bool) {
	var v value
	q.setValue(&v, &r, detectors.Within(q.tolerated))
	q.prove(&v, held)
}

func (q *Quantity) prove(v *value, held bool) {
	t := q.Rank()
	if held || t == nil {
		return
	}
	l := q.Learnt
	l.Proof.Add(t, v.lowered, v.raised)
	if l.Proof.Units%ProvingUnits != 0 {
		return
	}
	r, refuted := l.Proof.Refuted(t)
	l.Proved, l.Refuted = !refuted, ""
	if refuted {
		l.Refuted = fmt.Sprintf("%s: not armed because the mean likelihood ratio of %q is %.2f over %d values, above %.2f",
			q.Name, r.Branch, r.Mean, l.Proof.Units, r.Limit)
	}
}

// Notes returns which quantities of the stream are not armed and why, which have a season, which values are judged
// separately, and what is missing to find a fall of a rare rate.
func (s *Stream) Notes(unit finding.UnitName, provisional bool) []string {
	var notes []string
	if s.NoDeciles {
		notes = append(notes, fmt.Sprintf("%s, %s: not armed because the policy has more than %d detector branches",
			signals.LowDecile, signals.HighDecile, MaxBranches))
	}
	for _, q := range s.Quantities {
		if q.Season != nil {
			notes = append(notes, fmt.Sprintf("%s: %s within %d strata of the %s", q.Name, q.seasonVerb(), len(q.Season.Level), q.Season.Cycle()))
		}
		if note := q.rareNote(s.Signal, unit, provisional); note != "" {
			notes = append(notes, note)
		}
		switch l := q.Learnt; {
		case l != nil && l.Usual != nil && q.IsArmed():
			notes = append(notes, fmt.Sprintf("%s: the %d values of the baseline other than %s are judged separately",
				q.Name, q.Ranks.Len(), finding.Figure(*l.Usual)))
		case l == nil || q.Candidates(false) == 0 || !q.Proving():
		case l.Refuted != "":
			notes = append(notes, l.Refuted)
		default:
			notes = append(notes, fmt.Sprintf("%s: %d of the %d values needed to arm it",
				q.Name, l.Proof.Units, ProvingUnits))
		}
	}
	return notes
}
