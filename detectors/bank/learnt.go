package bank

import (
	"fmt"
	"math"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// The quantities that are worked out by what was learnt from the baseline: what an outcome is above the one to be expected
// with the reward, and the course of an episode's rewards weighted so that an even change shows best.
const (
	residualQuantity = "residual given reward"
	weightedQuantity = "weighted by covariance"
)

// leastLearnt is how many units it takes to learn from.
const leastLearnt = 100

// leastExplained is the part of an outcome's variance that the reward must tell of units not learnt from, or the residual
// would say nothing that the outcome does not, and cost the others a part of the budget.
const leastExplained = .1

// mostAlike is the correlation of the weighted course with the plain mean up to which it is judged: it is the ratio of the
// sizes at which an even change shows in the two, so that above it the weights gain hardly anything.
const mostAlike = .95

// provingUnits is how many units after a freeze a learnt quantity is held against before it is armed; if they do not bear it
// out, all units since are asked again after as many more.
const provingUnits = 100

// learnt is how a learnt quantity is worked out, and how far it is from being armed. One of Outcome and Course is set.
// Exported fields are its snapshot.
type learnt struct {
	Outcome *detectors.Regression // of the stream's outcome
	Given   string                // the signal that tells of the reward
	Course  *detectors.Degradation
	Steps   int64 // a segment of the profiles

	Proof   detectors.Proof
	Proved  bool   // and so armed
	Refuted string // why it is not, after enough units
}

func isLearnt(quantity string) bool {
	return quantity == residualQuantity || quantity == weightedQuantity
}

// lesson is what a baseline teaches of a quantity: how to work it out, and its values for the baseline, each worked out by
// what the other parts of the baseline taught.
type lesson struct {
	how    *learnt
	values []observed
}

// learn works out the learnt quantities of the collected units anew.
func (g *group) learn() {
	for _, s := range g.Streams {
		switch {
		case isOutcome(s.Signal):
			s.take(residualQuantity, g.residualLesson(s))
		case s.Signal == "reward":
			s.take(weightedQuantity, g.courseLesson())
		}
	}
}

// take makes a lesson the baseline of a quantity. Without one what had been learnt of it is forgotten.
func (s *stream) take(name string, l *lesson) {
	if l != nil {
		q := s.quantity(name)
		q.Learnt, q.Warm = l.how, l.values
	} else if q := s.find(name); q != nil {
		q.Learnt, q.Warm = nil, nil
	}
}

// dismiss lets go of the values of the lessons: a next baseline teaches anew.
func (g *group) dismiss() {
	for _, s := range g.Streams {
		for _, q := range s.Quantities {
			if q.Learnt != nil {
				q.Warm = nil
			}
		}
	}
}

// newLesson joins held-out values with their units; nil of values that hardly differ, which have no useful ranks.
func newLesson(how *learnt, units []int32, values []float64) *lesson {
	if detectors.NearlyConstant(detectors.NewRanks(values)) {
		return nil
	}
	l := &lesson{how: how}
	for i, unit := range units {
		l.values = append(l.values, observed{Unit: unit, X: values[i]})
	}
	return l
}

// residualLesson learns the outcome from the mean reward, or from the return of units without one; nil where that does not
// tell it.
func (g *group) residualLesson(s *stream) *lesson {
	for _, given := range []string{"reward", "return"} {
		if l, enough := residualGiven(given, g.warm(given), g.warm(s.Signal)); enough {
			return l
		}
	}
	return nil
}

// residualGiven learns an outcome from what tells of the reward; nil where that does not tell it, and not enough where too
// few units have both.
func residualGiven(given string, rewards, outcomes []observed) (l *lesson, enough bool) {
	units, x, y := paired(rewards, outcomes)
	if len(units) < leastLearnt {
		return nil, false
	}
	residuals, model, explained := detectors.OutcomeGivenReward(x, y)
	if explained < leastExplained {
		return nil, true
	}
	return newLesson(&learnt{Outcome: model, Given: given}, units, residuals), true
}

// warm gives what was collected of the main quantity of a signal.
func (g *group) warm(signal string) []observed {
	i, found := g.find(signal)
	if !found {
		return nil
	}
	q := g.Streams[i].find(mainQuantity(signal))
	if q == nil {
		return nil
	}
	return q.Warm
}

// paired joins what two quantities gave for the same units, both in order.
func paired(a, b []observed) (units []int32, x, y []float64) {
	for i, k := 0, 0; i < len(a) && k < len(b); {
		switch {
		case a[i].Unit < b[k].Unit:
			i++
		case a[i].Unit > b[k].Unit:
			k++
		default:
			units, x, y = append(units, a[i].Unit), append(x, a[i].X), append(y, b[k].X)
			i, k = i+1, k+1
		}
	}
	return units, x, y
}

// profileShape is how many segments of how many steps a profile has.
type profileShape struct {
	segments int
	steps    int64
}

// courseLesson learns the weights of the course of the rewards; nil where not nearly all units have one of the same shape,
// or where the weights gain hardly anything.
func (g *group) courseLesson() *lesson {
	shape, units, profiles := g.Warmup.commonestShape()
	if shape.segments < 2 || len(units) < leastLearnt || float64(len(units)) < usualShare*float64(g.Warmup.Units) {
		return nil
	}
	scores, model := detectors.LearnDegradation(profiles)
	if model == nil || alike(scores, profiles) > mostAlike {
		return nil
	}
	return newLesson(&learnt{Course: model, Steps: shape.steps}, units, scores)
}

// commonestShape gives the shape that most profiles have, of several the one met first, and the units that have it.
func (w *warmup) commonestShape() (commonest profileShape, units []int32, profiles [][]float32) {
	counts := map[profileShape]int{}
	for i := range w.Each {
		counts[w.Each[i].shape()]++
	}
	for i := range w.Each {
		if s := w.Each[i].shape(); counts[s] > counts[commonest] {
			commonest = s
		}
	}
	for i := range w.Each {
		if u := &w.Each[i]; u.shape() == commonest {
			units, profiles = append(units, int32(i)), append(profiles, u.Profile)
		}
	}
	return commonest, units, profiles
}

func (u *warmUnit) shape() profileShape { return profileShape{len(u.Profile), u.Steps} }

// alike is the correlation of the scores of profiles with their plain means.
func alike(scores []float64, profiles [][]float32) float64 {
	var sum, score, mean ingest.Moments
	for i, p := range profiles {
		plain := 0.0
		for _, v := range p {
			plain += float64(v) / float64(len(p))
		}
		score.Add(scores[i])
		mean.Add(plain)
		sum.Add(scores[i] + plain)
	}
	if score.M2 == 0 || mean.M2 == 0 {
		return 1
	}
	return (sum.M2 - score.M2 - mean.M2) / 2 / math.Sqrt(score.M2*mean.M2)
}

// learntReadings lists the learnt quantities of a unit, of which the others are given.
func (g *group) learntReadings(u *ingest.Unit, values []reading) []reading {
	for _, s := range g.Streams {
		for _, q := range s.Quantities {
			if q.Learnt == nil {
				continue
			}
			if x := q.Learnt.value(s.Signal, u, values); !math.IsNaN(x) && !math.IsInf(x, 0) {
				values = append(values, reading{signal: s.Signal, quantity: q.Name, x: x, ts: u.EndTS})
			}
		}
	}
	return values
}

// value works the quantity out, NaN where the unit lacks what it takes.
func (l *learnt) value(signal string, u *ingest.Unit, values []reading) float64 {
	if l.Course != nil {
		if u.ProfileSteps != l.Steps {
			return math.NaN()
		}
		return l.Course.Score(u.Profile)
	}
	return l.Outcome.Residual(mainReading(values, l.Given), mainReading(values, signal))
}

// mainReading gives the main quantity of a signal, NaN where the unit has none.
func mainReading(values []reading, signal string) float64 {
	for _, r := range values {
		if r.signal == signal && r.quantity == mainQuantity(signal) {
			return r.x
		}
	}
	return math.NaN()
}

// sound reports whether nothing that the quantity is worked out from has a fault, beside its own stream.
func (g *group) sound(q *quantity, rules []string) bool {
	if q.Learnt == nil || q.Learnt.Given == "" {
		return true
	}
	i, found := g.find(q.Learnt.Given)
	return !found || rules[i] == ""
}

// keepProfile keeps the course of the rewards of the unit last collected.
func (w *warmup) keepProfile(u *ingest.Unit) {
	last := &w.Each[len(w.Each)-1]
	last.Steps, last.Profile = u.ProfileSteps, u.Profile
}

// proving reports whether the quantity's test may not page yet.
func (q *quantity) proving() bool { return q.Learnt != nil && !q.Learnt.Proved }

// prove holds the quantity against a unit. Units of an open incident prove nothing.
func (q *quantity) prove(x float64, held bool) {
	if held || q.Rank == nil {
		return
	}
	l := q.Learnt
	l.Proof.Add(q.Rank, x)
	if l.Proof.Units%provingUnits != 0 {
		return
	}
	r, refuted := l.Proof.Refuted(q.Rank)
	l.Proved, l.Refuted = !refuted, ""
	if refuted {
		l.Refuted = fmt.Sprintf("%s: not armed, for the likelihood ratio of %q is %.2f on average over %d units, above %.2f",
			q.Name, r.Branch, r.Mean, l.Proof.Units, r.Limit)
	}
}

// notes says why quantities of the stream are not armed though others are, and which have a season.
func (s *stream) notes() []string {
	var notes []string
	if s.NoDeciles {
		notes = append(notes, fmt.Sprintf("%s, %s: not armed, for the policy has more than %d detector branches",
			lowDecile, highDecile, maxBranches))
	}
	for _, q := range s.Quantities {
		if q.Season != nil {
			notes = append(notes, fmt.Sprintf("%s: ranked within %d strata of the week", q.Name, len(q.Season.Like)))
		}
		switch l := q.Learnt; {
		case l == nil || q.candidates() == 0 || !q.proving():
		case l.Refuted != "":
			notes = append(notes, l.Refuted)
		default:
			notes = append(notes, fmt.Sprintf("%s: %d of %d units to be held against before it is armed",
				q.Name, l.Proof.Units, provingUnits))
		}
	}
	return notes
}
