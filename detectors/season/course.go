package season

import (
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/rewardwatch/rewardwatch/detectors"
)

// Course is a smooth function of the time of day: the coefficients of a constant, and of the cosine and the sine of one
// turn per day, of two turns, and so on.
type Course []float64

// mostTurns is the maximum number of turns per day: the shortest wave takes 6 hours.
const mostTurns = 4

// At returns the course at a time.
func (c Course) At(ts int64) float64 {
	var waves [2*mostTurns + 1]float64
	sum := 0.0
	for i, w := range turns(ts, waves[:len(c)]) {
		sum += c[i] * w
	}
	return sum
}

// turns fills waves with 1, and the cosine and the sine of one turn per day, of two turns, and so on.
func turns(ts int64, waves []float64) []float64 {
	if len(waves) == 0 {
		return nil
	}
	const day = int64(24 * time.Hour)
	sin, cos := math.Sincos(2 * math.Pi * float64(ts-day*floorDiv(ts, day)) / float64(day))
	c, s := cos, sin
	waves[0] = 1
	for i := 1; i+1 < len(waves); i += 2 {
		waves[i], waves[i+1] = c, s
		c, s = c*cos-s*sin, s*cos+c*sin
	}
	return waves
}

// fitCourse returns the least-squares fit to scores of a course with most turns per day; nil if the times do not
// determine the fit.
func fitCourse(scores []float64, times []int64, most int) Course {
	width := 2*most + 1
	products, sums, row := mat.NewSymDense(width, nil), mat.NewVecDense(width, nil), mat.NewVecDense(width, nil)
	for i, z := range scores {
		if times[i] == 0 {
			continue
		}
		turns(times[i], row.RawVector().Data)
		products.SymRankOne(products, 1, row)
		sums.AddScaledVec(sums, z, row)
	}
	var factors mat.Cholesky
	var solution mat.VecDense
	if !factors.Factorize(products) || factors.SolveVecTo(&solution, sums) != nil {
		return nil
	}
	return Course(solution.RawVector().Data)
}

// leastOfHour is the minimum number of values in an hour, relative to the mean of all hours: a course would be
// arbitrary at hours that it was not fitted to.
const leastOfHour = .1

// coversHours reports whether every hour of the day has enough of the times.
func coversHours(times []int64) bool {
	var n [hoursOfDay]float64
	for _, ts := range times {
		if ts != 0 {
			n[hourOfDay(ts)]++
		}
	}
	return slices.Min(n[:]) >= max(1, leastOfHour*float64(len(times))/hoursOfDay)
}

// courseOf returns the course that minimizes the sum of squares of scores about their means within strata, plus price
// for each of its turns; nil if no course is better than none. A course may cost more than none by up to advantage,
// since hours that are known to differ are likely to differ smoothly.
func courseOf(scores []float64, times []int64, strata []int, price, advantage float64) (best Course) {
	least := within(scores, times, strata, nil)
	for most := 1; most <= mostTurns; most++ {
		c := fitCourse(scores, times, most)
		if c == nil {
			break
		}
		cost := within(scores, times, strata, c) + price*float64(most)
		if cost < least || best == nil && cost < least+advantage {
			best, least = c, cost
		}
	}
	return best
}

// within returns the sum of squares of scores minus a course, about their means within strata.
func within(scores []float64, times []int64, strata []int, c Course) float64 {
	var n, sum, squares [hoursOfWeek]float64
	for i, z := range scores {
		if at := strata[i]; at >= 0 {
			left := z - c.At(times[i])
			n[at]++
			sum[at] += left
			squares[at] += left * left
		}
	}
	total := 0.0
	for at := range n {
		if n[at] > 0 {
			total += squares[at] - sum[at]*sum[at]/n[at]
		}
	}
	return total
}

// score returns the unbounded normal score of a value in the whole sample.
func score(all *detectors.Ranks, x float64) float64 { return math.Sqrt2 * math.Erfinv(2*all.Rank(x)-1) }
