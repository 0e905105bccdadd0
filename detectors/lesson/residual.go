// Package lesson learns from a baseline what to expect of a unit: its outcome from its reward, and how the rewards
// in the course of an episode depend on each other. Each part of the baseline itself is judged by what the other
// parts teach.
package lesson

import (
	"math"
	"slices"
	"sort"
)

// folds is the number of contiguous parts into which a baseline is split to learn from it. Each part is judged by
// what was learned from the others, so that the values of the baseline are as new to the model as later ones. The
// parts are contiguous because neighbours in time may be similar. There are many because errors decrease with the
// number of units to learn from: for Degradation with t segments and n episodes in k parts, new scores have about
// (1 - kt/((k-1)n)) / (1 - t/n) times the standard deviation of the held-out ones. At t = 25 and n = 500 that is
// .987 for 5 parts and .997 for 20.
const folds = 20

// fold returns the bounds of part k of n values in order, the end excluded.
func fold(n, k int) (from, to int) { return k * n / folds, (k + 1) * n / folds }

// without returns a copy of x without the elements from, ..., to-1.
func without[T any](x []T, from, to int) []T {
	return slices.Concat(x[:from], x[to:])
}

// The resolution of a regression: one knot per this many values of the sample, and a limit on their number.
const (
	valuesAKnot = 50
	mostKnots   = 12
)

// Regression is the expected outcome for a reward, learned without assuming a shape. The sample is split by reward into
// bins of about the same number of values, with equal rewards in the same bin, and straight lines join the means of the
// bins (Tukey's regressogram, 1961, with the lines of a frequency polygon). Beyond the outermost bins the outcome is
// that of the bin, so that there is no extrapolation to rewards never seen before. Its fields are its whole state.
type Regression struct {
	Rewards  []float64 // mean reward of each bin, ascending
	Outcomes []float64 // mean outcome of each bin
	Rounding float64   // largest residual that may be a rounding error
}

// A residual may be a rounding error up to roundingOfSpread standard deviations of the outcome, which covers telemetry
// in single precision. It may also be one up to roundingOfLevel of the largest value, the precision of the arithmetic
// here.
const (
	roundingOfSpread = 1e-6
	roundingOfLevel  = 0x1p-48
)

// rounding returns the largest residual of outcomes that may be a rounding error.
func rounding(outcomes []float64) float64 {
	mean, squares, largest := meanOf(outcomes), 0.0, 0.0
	for _, y := range outcomes {
		squares += (y - mean) * (y - mean)
		largest = max(largest, math.Abs(y))
	}
	return max(roundingOfSpread*math.Sqrt(squares/float64(len(outcomes))), roundingOfLevel*largest)
}

// OnALine reports whether the outcomes lie on one straight line over the rewards, except for rounding. The slices hold
// pairs of finite values, at least one.
func OnALine(rewards, outcomes []float64) bool {
	meanReward, meanOutcome, xx, xy := meanOf(rewards), meanOf(outcomes), 0.0, 0.0
	for i, x := range rewards {
		xx += (x - meanReward) * (x - meanReward)
		xy += (x - meanReward) * (outcomes[i] - meanOutcome)
	}
	slope := 0.0
	if xx > 0 {
		slope = xy / xx
	}
	left := 0.0
	for i, x := range rewards {
		off := outcomes[i] - meanOutcome - slope*(x-meanReward)
		left += off * off
	}
	return math.Sqrt(left/float64(len(rewards))) <= rounding(outcomes)
}

// NewRegression learns the outcome from the reward with at most the given number of bins. The slices hold pairs of
// finite values, at least one, in any order. It does not keep them.
func NewRegression(rewards, outcomes []float64, bins int) *Regression {
	order := make([]int, len(rewards))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool { return rewards[order[a]] < rewards[order[b]] })
	r := &Regression{Rounding: rounding(outcomes)}
	for from := 0; from < len(order); {
		to := binEnd(rewards, order, (len(r.Rewards)+1)*len(order)/bins, from)
		r.addBin(rewards, outcomes, order[from:to])
		from = to
	}
	return r
}

// binEnd returns where a bin that begins at from ends: at to or later, never between equal rewards.
func binEnd(rewards []float64, order []int, to, from int) int {
	to = max(to, from+1)
	for to < len(order) && rewards[order[to]] == rewards[order[to-1]] {
		to++
	}
	return min(to, len(order))
}

func (r *Regression) addBin(rewards, outcomes []float64, members []int) {
	reward, outcome := 0.0, 0.0
	for _, i := range members {
		reward += rewards[i] / float64(len(members))
		outcome += outcomes[i] / float64(len(members))
	}
	r.Rewards, r.Outcomes = append(r.Rewards, reward), append(r.Outcomes, outcome)
}

// Expected returns the expected outcome for a reward; NaN for NaN.
func (r *Regression) Expected(reward float64) float64 {
	if math.IsNaN(reward) {
		return math.NaN()
	}
	i, _ := slices.BinarySearch(r.Rewards, reward)
	switch {
	case i == 0:
		return r.Outcomes[0]
	case i == len(r.Rewards):
		return r.Outcomes[i-1]
	}
	part := (reward - r.Rewards[i-1]) / (r.Rewards[i] - r.Rewards[i-1])
	return r.Outcomes[i-1] + part*(r.Outcomes[i]-r.Outcomes[i-1])
}

// Residual returns the outcome minus the one expected for the reward, in the outcome's unit of measurement. It is 0
// if rounding explains the difference, so that tests do not judge rounding errors; NaN for NaN.
func (r *Regression) Residual(reward, outcome float64) float64 {
	residual := outcome - r.Expected(reward)
	if math.Abs(residual) <= r.Rounding {
		return 0
	}
	return residual
}

// OutcomeGivenReward learns to predict the outcome of a unit from its reward. rewards and outcomes are pairs of finite
// values in time order, at least folds of them. residuals are those of the same units, each by a regression on the
// other folds; model is learned from all units, for later ones. explained is the part of the outcome's variance that the
// reward explains on units that the regression had not seen (Stone's cross-validated R^2, 1974): at most 1, and 0 or
// less if the reward explains nothing.
func OutcomeGivenReward(rewards, outcomes []float64) (residuals []float64, model *Regression, explained float64) {
	n := len(rewards)
	bins := max(2, min(mostKnots, n/valuesAKnot))
	residuals = make([]float64, n)
	left, all := 0.0, 0.0
	for k := range folds {
		from, to := fold(n, k)
		others := without(outcomes, from, to)
		r := NewRegression(without(rewards, from, to), others, bins)
		mean := meanOf(others)
		for i := from; i < to; i++ {
			residuals[i] = r.Residual(rewards[i], outcomes[i])
			left += residuals[i] * residuals[i]
			all += (outcomes[i] - mean) * (outcomes[i] - mean)
		}
	}
	if all > 0 {
		explained = 1 - left/all
	}
	return residuals, NewRegression(rewards, outcomes, bins), explained
}

func meanOf(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}
