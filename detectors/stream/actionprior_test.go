package stream

import (
	"math"
	"strconv"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors"
)

// counted returns the counts of the given number of steps of a policy.
func counted(seed uint64, law func(actions int) []float64, actions, steps int) map[string]int64 {
	s, counts := newActing(9, seed, steps, law(actions)), map[string]int64{}
	for _, a := range s.unit() {
		counts[a.Name] = a.N
	}
	return counts
}

// If all actions are equally frequent, the number of times that each occurred is chance, and the prior must account for
// it, even with 500 steps of 1,000 actions, of which only about 390 occur. In the median over baselines, the prior uses
// at most the square root of the ratio between counts.
func TestActionPriorOfEquallyFrequentActions(t *testing.T) {
	for _, actions := range []int{80, 1000} {
		var unseen, ratios []float64
		for seed := range uint64(21) {
			prior := FitActionPrior(counted(seed, uniform, actions, 500))
			unseen = append(unseen, prior.Each/(500+prior.All)*float64(actions))
			ratios = append(ratios, (4+prior.Each)/(1+prior.Each))
		}
		if p := detectors.Quantiles(unseen, .5)[0]; p < .7 || p > 1.3 {
			t.Errorf("of %d actions, one that never came is taken for %.2f times as frequent as it is", actions, p)
		}
		if r := detectors.Quantiles(ratios, .5)[0]; r > 2 {
			t.Errorf("of %d actions, one that came 4 times is taken for %.2f times as frequent as one that came once", actions, r)
		}
	}
}

// If they are not, the prior must rely on the counts: an action that occurred 40 times as often is 40 times as
// frequent.
func TestActionPriorOfUnequalActions(t *testing.T) {
	for seed := range uint64(5) {
		prior := FitActionPrior(counted(seed, zipf, 80, 2000))
		if ratio := (400 + prior.Each) / (10 + prior.Each); ratio < 30 || ratio > 45 {
			t.Errorf("400 against 10 steps are taken for %.1f to 1", ratio)
		}
	}
}

// The prior must be valid for any counts, since a restored bank fits it again.
func TestActionPriorOfOddCounts(t *testing.T) {
	even := map[string]int64{}
	for i := range 40 {
		even[strconv.Itoa(i)] = 5
	}
	for _, base := range []map[string]int64{{"a": 1}, {"a": 1, "b": 1}, {"a": 1 << 40}, {"a": 1 << 40, "b": 1}, even} {
		prior := FitActionPrior(base)
		if !(prior.Each > 0) || !(prior.All > 0) || math.IsInf(prior.Each+prior.All, 0) {
			t.Errorf("%v has the prior %+v", base, prior)
		}
		if again := FitActionPrior(base); again != prior {
			t.Errorf("%v has the priors %+v and %+v", base, prior, again)
		}
	}
}
