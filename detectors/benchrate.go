//go:build benchdetection

package detectors

// FalseAlarmRate is the sum of the rates, a unit, at which the armed branches alarm falsely where independent units follow
// the law of the given values, of which there are to be many more than the baseline has. A branch's rate is
//
//	A exp(-theta f Height),   Lambda(theta)/theta = Kappa,   Lambda(theta) = log mean exp(theta (g - C))
//
// with the mean over the values, solved as Bootstrap does. Values are ranked among all, whatever their season.
func (t *RankTest) FalseAlarmRate(values []float64) float64 {
	weight := make([]float64, 2*t.ranks.Len()+1) // by twice the rank
	for _, x := range values {
		weight[t.ranks.twice(x)] += 1 / float64(len(values))
	}
	g := make([]float64, len(weight))
	return t.falseAlarmRate(weight, func(i int) []float64 {
		b := &t.Branches[i]
		for twice := range g {
			g[twice] = b.increment(rank{u: t.ranks.fresh(twice), z: t.ranks.z[twice]}) - b.C
		}
		return g
	})
}

// FalseAlarmRate is that of a RankTest, for episodes i at hits[i] of whose steps[i] steps it happened.
func (t *FrequencyTest) FalseAlarmRate(hits, steps []float64) float64 {
	places := map[[2]float64]int{}
	var distinct episodes
	var weight []float64
	for i := range hits {
		pair := [2]float64{hits[i], steps[i]}
		at, known := places[pair]
		if !known {
			at = len(weight)
			places[pair], weight = at, append(weight, 0)
			distinct.hits, distinct.steps = append(distinct.hits, hits[i]), append(distinct.steps, steps[i])
		}
		weight[at] += 1 / float64(len(hits))
	}
	g := make([]float64, len(weight))
	return t.falseAlarmRate(weight, func(i int) []float64 {
		for at := range g {
			g[at] = t.forms[i].increment(distinct.hits[at], distinct.steps[at], t.Offsets[i]) - t.Branches[i].C
		}
		return g
	})
}

// falseAlarmRate adds up the branches, of which increments gives g - C for values of the given weights.
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
