package stream

import (
	"maps"
	"math"
	"slices"
)

// ActionPrior estimates the probability of an action from the number of times that it was taken: (times + each) /
// (steps + all). This is the mean of a gamma distribution of the rates of actions, given the counts. The counts show
// how far the rates differ and how many actions never occurred. If all actions are about equally frequent, the prior
// removes the noise in the counts, which would otherwise look like the preference of a new policy.
type ActionPrior struct{ Each, All float64 }

// JeffreysPrior returns the prior of mixes that were frozen by builds that did not fit a prior.
func JeffreysPrior(categories int) ActionPrior {
	return ActionPrior{Each: .5, All: float64(categories+1) / 2}
}

// The shapes of the gamma distribution that are tried: e^-3 (very unequal rates) to e^5 (almost equal rates).
const (
	leastLogShape = -3
	mostLogShape  = 5
	logShapeStep  = .25
)

// roots returns the sum of sqrt(times + each) over the actions of a baseline and those absent from it.
func (p ActionPrior) roots(base map[string]int64) float64 {
	sum := max(0, p.All/p.Each-float64(len(base))) * math.Sqrt(p.Each)
	for _, n := range slices.Sorted(maps.Values(base)) { // sorted, or the sum would depend on the map's order
		sum += math.Sqrt(float64(n) + p.Each)
	}
	return sum
}

// FitActionPrior fits the prior to the counts of a baseline by maximum likelihood. Under the prior, counts are negative
// binomial, truncated at 0, since an action that never occurred has no name (Fisher, Corbet & Williams, Journal of
// Animal Ecology 1943).
func FitActionPrior(base map[string]int64) ActionPrior {
	timesOf := map[int64]float64{} // number of actions by count
	for _, n := range base {
		timesOf[n]++
	}
	counts := slices.Sorted(maps.Keys(timesOf)) // sorted, or sums would depend on the map's order
	steps, best, prior := float64(Total(base)), math.Inf(-1), ActionPrior{}
	for log := float64(leastLogShape); log <= mostLogShape; log += logShapeStep {
		shape := math.Exp(log)
		mean := meanOfAll(shape, steps/float64(len(base)))
		likelihood := -float64(len(base)) * math.Log(-math.Expm1(logNever(shape, mean)))
		for _, n := range counts {
			likelihood += timesOf[n] * logNegativeBinomial(float64(n), shape, mean)
		}
		if likelihood > best {
			best, prior = likelihood, ActionPrior{Each: shape, All: shape * steps / mean}
		}
	}
	return prior
}

// meanOfAll returns the mean count of all actions; seen is the mean count of those that occurred.
func meanOfAll(shape, seen float64) float64 {
	low, high := 0., seen
	for range 50 {
		mean := (low + high) / 2
		if mean > -seen*math.Expm1(logNever(shape, mean)) {
			high = mean
		} else {
			low = mean
		}
	}
	return high
}

// logNever returns the logarithm of the probability that an action never occurs.
func logNever(shape, mean float64) float64 { return -shape * math.Log1p(mean/shape) }

// logNegativeBinomial returns the logarithm of the probability of a count.
func logNegativeBinomial(n, shape, mean float64) float64 {
	all, _ := math.Lgamma(shape + n)
	never, _ := math.Lgamma(shape)
	orders, _ := math.Lgamma(n + 1)
	return all - never - orders + logNever(shape, mean) + n*math.Log(mean/(shape+mean))
}
