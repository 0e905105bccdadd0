package detectors

import "math"

// laws returns the laws of branches on a quantity whose distinct episodes have the given weights.
func (e episodes) laws(branches []CUSUM, weight []float64) laws {
	return func(times []float64, m float64, s *scratch) func(int) law {
		for i := range times {
			times[i] /= m
		}
		sd := e.weightedSD(times)
		return func(branch int) law {
			f, g := newFrequencyBranch(branches[branch].Branch, sd), ofLength(&s.g, len(times))
			k := f.offset(e, times, sd)
			second := 0.0
			for i, w := range times {
				g[i] = f.increment(e.hits[i], e.steps[i], k)
				if w > 0 {
					second += w * math.Exp(2*g[i])
				}
			}
			return law{math.Sqrt(max(0, second-1)), lambdaSlopes(g, weight)}
		}
	}
}
