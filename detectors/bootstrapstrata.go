package detectors

import (
	"math"
	"slices"
)

// stratumOfCounts holds the distinct episodes of one stratum of a frequency test. first is the index of the first
// of them among the distinct episodes of all strata.
type stratumOfCounts struct {
	episodes
	first int
}

// frequencyWithin prepares the view of counts in strata. Units without a stratum are left out.
func (v *view) frequencyWithin(hits, steps []float64, strata []int) {
	v.place = make([]int32, len(hits))
	var all []stratumOfCounts
	for stratum := range slices.Max(strata) + 1 {
		of := episodes{steps: steps, hits: make([]float64, len(hits))}
		for i, h := range hits {
			if of.hits[i] = math.NaN(); strata[i] == stratum {
				of.hits[i] = h
			}
		}
		distinct, shares, place := of.distinct()
		units := 0.0
		for i, at := range place {
			if at >= 0 {
				v.place[i] = int32(len(v.weight)) + at
				units++
			}
		}
		all = append(all, stratumOfCounts{distinct, len(v.weight)})
		for _, w := range shares {
			v.weight = append(v.weight, w*units)
		}
	}
	total := 0.0
	for _, w := range v.weight {
		total += w
	}
	for i := range v.weight {
		v.weight[i] /= total
	}
	for i, of := range strata {
		if of < 0 || math.IsNaN(hits[i]) {
			v.place[i] = -1
		}
	}
	v.laws = lawsWithin(all, v.armed, v.weight)
}

// lawsWithin returns the laws of branches whose increments are normalized in each stratum. A stratum that was not drawn,
// or drawn without spread, is left out.
func lawsWithin(strata []stratumOfCounts, branches []CUSUM, weight []float64) laws {
	return func(times []float64, m float64, _ *scratch) func(int) law {
		return func(branch int) law {
			second, sums, whole := 0.0, slopeSums{}, 0.0
			for _, of := range strata {
				n := len(of.hits)
				drawn, real := make([]float64, n), weight[of.first:of.first+n]
				units := 0.0
				for _, t := range times[of.first : of.first+n] {
					units += t
				}
				for i, t := range times[of.first : of.first+n] {
					drawn[i] = t / units
				}
				sd := of.weightedSD(drawn)
				if !(sd > 0) {
					continue
				}
				f := newFrequencyBranch(branches[branch].Branch(), sd)
				k := f.offset(of.episodes, drawn, sd)
				for i, w := range drawn {
					g := f.increment(of.hits[i], of.steps[i], k)
					second += w * units / m * math.Exp(2*g)
					sums.add(math.Exp(thetaStep*g), real[i])
					whole += real[i]
				}
			}
			for i := range sums {
				sums[i] /= whole
			}
			return law{math.Sqrt(max(0, second-1)), sums.slopes()}
		}
	}
}
