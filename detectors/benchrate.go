//go:build benchdetection

package detectors

import "sort"

// FalseAlarmRate returns the sum of the false alarm rates of the armed branches, per unit, if independent units follow
// the distribution of the given values. The values ascend and must be many more than the baseline has. A branch's rate
// is
//
//	A exp(-theta f Height),   Lambda(theta)/theta = Kappa,   Lambda(theta) = log mean exp(theta (g - C))
//
// with the mean over the values, solved as in Bootstrap. Values are ranked among all, whatever their season.
func (t *RankTest) FalseAlarmRate(values []float64) float64 {
	weight := make([]float64, 2*t.ranks.Len()+1) // by twice the rank
	from := 0
	until := func(to, twice int) {
		weight[twice] += float64(to-from) / float64(len(values))
		from = to
	}
	for i, x := range t.ranks.Points {
		until(sort.SearchFloat64s(values, x), 2*t.ranks.below(i))
		until(sort.Search(len(values), func(k int) bool { return values[k] > x }), t.ranks.below(i)+t.ranks.below(i+1))
	}
	until(len(values), 2*t.ranks.Len())
	g := make([]float64, len(weight))
	return t.falseAlarmRate(weight, func(i int) []float64 {
		b := &t.Branches[i]
		for twice := range g {
			g[twice] = b.Branch().increment(rank{u: t.ranks.fresh(twice), z: t.ranks.scores.z[twice]}) - b.C
		}
		return g
	})
}

// FalseAlarmRate is the counterpart of RankTest.FalseAlarmRate for episodes in which the event happened at hits[i] of
// steps[i] steps. The weights sum to 1.
func (t *FrequencyTest) FalseAlarmRate(hits, steps, weight []float64) float64 {
	g := make([]float64, len(weight))
	return t.falseAlarmRate(weight, func(branch int) []float64 {
		for i := range g {
			g[i] = t.formsIn(-1)[branch].increment(hits[i], steps[i], t.Offsets[branch]) - t.Branches[branch].C
		}
		return g
	})
}

// falseAlarmRate returns the sum of the false alarm rates of the armed branches. increments returns g - C of a
// branch for each value; the values have the given weights.
func (w *Walks) falseAlarmRate(weight []float64, increments func(branch int) []float64) float64 {
	rate := 0.0
	for i := range w.Branches {
		if b := &w.Branches[i]; b.Height > 0 {
			d := drawnBranch{slopes: lambdaSlopes(increments(i), weight), unit: b.Kappa, logA: b.LogA, height: w.Factor * b.Height}
			rate += d.rate(1)
		}
	}
	return rate
}
