// Package hours finds hours of the day at which units depend on each other more than at others.
package hours

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/season"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
)

const (
	// differentSums is the level at which the dependence of units differs between hours of the day. Without a test, the errors
	// of the factors of hours would delay all alarms.
	differentSums = .01
	// mostCompared bounds the series that are compared. Those of primary signals come first.
	mostCompared = 64
)

// Compare finds the hours of the day at which units of a baseline depend on each other more than at others, if hours of
// the day differ, so that the evidence of these hours counts less. units is their number.
func Compare(streams []*stream.Stream, units int, e stream.Ends) {
	if !e.Hours || !season.SumsDiffer(compared(streams, units, e), e.Times, e.Zone, differentSums) {
		return
	}
	for _, s := range streams {
		for _, q := range s.Quantities {
			if follows(q) {
				times, inflation := q.TimesOf(e), 1.0
				if q.Season != nil {
					inflation = q.Season.Inflation(times)
				}
				q.Hours = season.NewHourFactors(scoresOf(q, times), times, q.Walks().Factor, inflation, e.Zone)
			}
		}
	}
}

// follows reports whether the evidence of the quantity may count less at some hours.
func follows(q *stream.Quantity) bool { return q.Mix == nil && q.Ranks != nil && q.Walks() != nil }

// compared returns the scores of quantities by unit, NaN where a unit has none. It omits learned quantities, which are
// scored differently in the baseline than later, and quantities that equal another one, such as the return of single
// steps, which equals the reward.
func compared(streams []*stream.Stream, units int, e stream.Ends) (series [][]float64) {
	var used []*stream.Quantity
	for _, primary := range []bool{true, false} {
		for _, s := range streams {
			for _, q := range s.Quantities {
				same := func(other *stream.Quantity) bool { return slices.Equal(q.Warm, other.Warm) }
				if signals.Primary(s.Signal) != primary || !follows(q) || q.Learnt != nil || len(series) >= mostCompared ||
					slices.ContainsFunc(used, same) {
					continue
				}
				used = append(used, q)
				for _, z := range scoresOf(q, q.TimesOf(e)) {
					series = append(series, byUnit(q, z, units))
				}
			}
		}
	}
	return series
}

// byUnit returns values of the collected units, NaN of the others.
func byUnit(q *stream.Quantity, values []float64, units int) []float64 {
	out := slices.Repeat([]float64{math.NaN()}, units)
	for i, o := range q.Warm {
		out[o.Unit] = values[i]
	}
	return out
}

// scoresOf returns the scores of the collected values as the walks judge them, with mean 0 and variance 1: those of shares
// within their strata, or the normal scores of ranks, for tests of the level, and their squares, for those of the spread.
func scoresOf(q *stream.Quantity, times []int64) [][]float64 {
	if q.Counts() {
		hits, steps, strata := make([]float64, len(q.Warm)), make([]float64, len(q.Warm)), make([]int, len(q.Warm))
		for i, o := range q.Warm {
			hits[i], steps[i] = math.Round(o.X*o.Steps), o.Steps
		}
		if q.Season != nil {
			strata = q.Season.StrataOf(times)
		}
		return [][]float64{detectors.CountScores(hits, steps, strata)}
	}
	own, ranks := q.WarmValues(), q.JudgedRanks()
	if q.Season != nil {
		own = q.Season.Own(own, times)
	}
	squares := make([]float64, len(own))
	for i, x := range own {
		own[i] = detectors.NormalScore(ranks.OwnRank(x))
		squares[i] = own[i] * own[i]
	}
	return [][]float64{withoutTrend(standardized(own)), standardized(squares)}
}

// withoutTrend subtracts the least squares line over the units, and overwrites the values. The level of a policy that learns
// may rise over its baseline. Taken for dependence, the rise would delay alarms at all hours.
func withoutTrend(x []float64) []float64 {
	units := make([]float64, len(x))
	for i := range units {
		units[i] = float64(i)
	}
	at, slope := stat.LinearRegression(units, x, nil, false)
	for i := range x {
		x[i] -= at + slope*units[i]
	}
	return x
}

// standardized shifts and scales values in place to mean 0 and variance 1. If all are equal, they become 0.
func standardized(x []float64) []float64 {
	mean, sd := stat.PopMeanStdDev(x, nil)
	for i := range x {
		if x[i] -= mean; sd > 0 {
			x[i] /= sd
		}
	}
	return x
}
