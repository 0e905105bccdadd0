package baseline

import (
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/lesson"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// LeastLearnt is the minimum number of units to learn from.
const LeastLearnt = 100

// nearlyAll is the minimum share of units with a profile of the same shape for the course of the rewards to be learned.
const nearlyAll = .95

// leastExplained is the minimum share of an outcome's variance that the reward must explain on units not learned from.
// Below it, the residual would add nothing to the outcome, and would use a part of the other tests' budget.
const leastExplained = .1

// mostAlike is the maximum correlation between the weighted course and the plain mean at which the course is judged.
// The correlation is the ratio between the sizes with which a uniform change shows in the two, so above it the weights
// gain hardly anything.
const mostAlike = .95

// Lesson is what was learned from a baseline about a quantity: how to compute it, and its values on the baseline. Each
// value is computed with what was learned from the other parts of the baseline.
type Lesson struct {
	how    *stream.Learnt
	values []stream.Observed
}

// Become makes the lesson the baseline of a quantity. If l is nil, it removes what was learned for the quantity before.
func (l *Lesson) Become(s *stream.Stream, name string) {
	if l != nil {
		q := s.Quantity(name)
		q.Learnt, q.Warm = l.how, l.values
	} else if q := s.Find(name); q != nil {
		q.Learnt, q.Warm = nil, nil
	}
}

// Quantity returns a new quantity with the lesson as its baseline; none if l is nil.
func (l *Lesson) Quantity(name string) []*stream.Quantity {
	if l == nil {
		return nil
	}
	return []*stream.Quantity{{Name: name, Warm: l.values}}
}

// newLesson combines held-out values with their units. It returns nil if the values hardly differ, since their ranks
// are then useless.
func newLesson(how *stream.Learnt, units []int32, values []float64) *Lesson {
	if detectors.NearlyConstant(detectors.NewRanks(values)) {
		return nil
	}
	l := &Lesson{how: how}
	for i, unit := range units {
		l.values = append(l.values, stream.Observed{Unit: unit, X: values[i]})
	}
	return l
}

// ResidualGiven learns to predict an outcome from a measure of the reward. The lesson is nil if the measure does not
// predict the outcome, or is the same quantity in another unit of measurement. enough is false if too few units have
// both.
func ResidualGiven(given string, rewards, outcomes []stream.Observed) (l *Lesson, enough bool) {
	units, x, y := paired(rewards, outcomes)
	if len(units) < LeastLearnt {
		return nil, false
	}
	residuals, model, explained := lesson.OutcomeGivenReward(x, y)
	if explained < leastExplained || lesson.OnALine(x, y) {
		return nil, true
	}
	return newLesson(&stream.Learnt{Outcome: model, Given: given}, units, residuals), true
}

// paired returns the values of two quantities in the units that have both. Both must be sorted by unit.
func paired(a, b []stream.Observed) (units []int32, x, y []float64) {
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

// profileShape is the shape of a profile: the number of segments, and the steps in each.
type profileShape struct {
	segments int
	steps    int64
}

// CourseLesson learns the weights of the course of the rewards. It returns nil if too few units have a profile of the
// same shape, or if the weights gain hardly anything.
func (w *Warmup) CourseLesson() *Lesson {
	shape, units, profiles := w.commonestShape()
	if shape.segments < 2 || len(units) < LeastLearnt || float64(len(units)) < nearlyAll*float64(w.Units) {
		return nil
	}
	scores, model := lesson.LearnDegradation(profiles)
	if model == nil || alike(scores, profiles) > mostAlike {
		return nil
	}
	return newLesson(&stream.Learnt{Course: model, Steps: shape.steps}, units, scores)
}

// commonestShape returns the shape that most profiles have, the first one in a tie, with the units that have it and
// their profiles.
func (w *Warmup) commonestShape() (commonest profileShape, units []int32, profiles [][]float32) {
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

func (u *Collected) shape() profileShape { return profileShape{len(u.Profile), u.Steps} }

// alike returns the correlation between the scores of profiles and their plain means.
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

// KeepProfile stores the course of the rewards of u with the most recently collected unit.
func (w *Warmup) KeepProfile(u *ingest.Unit) {
	last := &w.Each[len(w.Each)-1]
	last.Steps, last.Profile = u.ProfileSteps, slices.Clone(u.Profile)
}
