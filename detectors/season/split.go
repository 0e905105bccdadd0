package season

import (
	"math"
	"slices"
	"time"
)

// coveredCycles returns how many cycles of the given number of hours fit between the first and the last of the times.
func coveredCycles(times []int64, hours int64) float64 {
	first, last := int64(math.MaxInt64), int64(0)
	for _, ts := range times {
		if ts != 0 {
			first, last = min(first, ts), max(last, ts)
		}
	}
	return float64(last-min(first, last)) / float64(hours*int64(time.Hour))
}

// circle is a set of hours of the week in which strata are contiguous; the first hour follows the last. place returns
// the place of an hour in the circle, and -1 for an hour that is not in it.
type circle struct {
	hours int
	place func(hourOfWeek int) int
}

// The ways to divide the week into circles. Longer cycles come first, so they win a tie.
var (
	weeks    = []circle{{hoursOfWeek, func(h int) int { return h }}}
	weekends = []circle{{hoursOfDay, func(h int) int { return onDays(h, h < 5*hoursOfDay) }}, {hoursOfDay, func(h int) int { return onDays(h, h >= 5*hoursOfDay) }}}
	days     = []circle{{hoursOfDay, func(h int) int { return h % hoursOfDay }}}
)

func onDays(hour int, on bool) int {
	if on {
		return hour % hoursOfDay
	}
	return -1
}

// split divides the hours and returns the number of strata; 0 if the times cover less than two days. Of the divisions
// that can be distinguished from a drift over the times, it chooses the one with the smallest sum of squares of scores
// plus price.
//
// If hours of the day are known to differ, a stratum of the day costs only hourPrice, because what is left of the
// season within a stratum does more harm than another level. For counts, least holds the numbers of steps with the
// event and without it for each value; each stratum has at least leastEvents of both. For ranked values, least is nil.
func (s *Season) split(scores []float64, least [][2]float64, times []int64, hours bool) int {
	ways := [][]circle{weeks, weekends, days}
	switch {
	case coveredCycles(times, hoursOfDay) < leastCycles:
		return 0
	case coveredCycles(times, hoursOfWeek) < leastCycles:
		ways = ways[2:]
	}
	var by [hoursOfWeek]hourSum
	m := 0.0
	for i, score := range scores {
		if times[i] != 0 {
			sum := hourSum{1, score, leastEvents, leastEvents}
			if least != nil {
				sum.events, sum.others = least[i][0], least[i][1]
			}
			hour := hourOfWeek(times[i], s.zone)
			by[hour] = by[hour].plus(sum, 1)
			m++
		}
	}
	best, chosen := math.Inf(1), ways[0]
	for _, circles := range ways {
		if _, cost, _ := cutAll(circles, &by, stratumPrice*math.Log(m)); cost < best {
			best, chosen = cost, circles
		}
	}
	price := stratumPrice * math.Log(m)
	if hours && chosen[0].hours == hoursOfDay {
		price = hourPrice
	}
	var strata int
	s.Strata, _, strata = cutAll(chosen, &by, price)
	return strata
}

// hourPrice is the price of a stratum of the day if hours are known to differ.
const hourPrice = 3

// cutAll divides all circles. It returns the stratum of each hour of the week, the total cost and the number of strata.
func cutAll(circles []circle, by *[hoursOfWeek]hourSum, price float64) (of [hoursOfWeek]uint8, cost float64, strata int) {
	for _, c := range circles {
		more, cut := c.sums(by).cut(price)
		cost += more
		for h := range hoursOfWeek {
			if at := c.place(h); at >= 0 && cut != nil {
				of[h] = uint8(strata + cut[at])
			}
		}
		if cut != nil {
			strata += slices.Max(cut) + 1
		}
	}
	return of, cost, strata
}

// hourSum holds the number of values of an hour and the sum of their scores. For counts, it also holds the numbers of
// steps with the event and without it.
type hourSum struct{ n, z, events, others float64 }

func (a hourSum) plus(b hourSum, sign float64) hourSum {
	return hourSum{a.n + sign*b.n, a.z + sign*b.z, a.events + sign*b.events, a.others + sign*b.others}
}

// hourSums holds the sums over all hours before each hour, for two consecutive copies of a circle, so that a stratum
// can span its end.
type hourSums struct {
	hours  int
	before [2*hoursOfWeek + 1]hourSum
}

func (c circle) sums(by *[hoursOfWeek]hourSum) *hourSums {
	var in [hoursOfWeek]hourSum
	for h := range hoursOfWeek {
		if at := c.place(h); at >= 0 {
			in[at] = in[at].plus(by[h], 1)
		}
	}
	s := &hourSums{hours: c.hours}
	for h := range 2 * c.hours {
		s.before[h+1] = s.before[h].plus(in[h%c.hours], 1)
	}
	return s
}

// cut divides the circle and returns the stratum of each hour and the cost: the sum of squares within strata, minus the
// sum over all values, plus the price of each stratum. It uses dynamic programming from each hour at which the first
// stratum may begin. If there are too few values for one stratum, the cost is infinite.
func (s *hourSums) cut(price float64) (cost float64, strata []int) {
	cost = math.Inf(1)
	var best, from [hoursOfWeek + 1]int
	begin := 0
	for first := range s.hours {
		if c := s.cutFrom(first, price, &from); c < cost {
			cost, best, begin = c, from, first
		}
	}
	if math.IsInf(cost, 1) {
		return cost, nil
	}
	strata = make([]int, s.hours)
	stratum := 0
	for end := s.hours; end > 0; end = best[end] {
		for h := best[end]; h < end; h++ {
			strata[(begin+h)%s.hours] = stratum
		}
		stratum++
	}
	return cost, strata
}

// cutFrom returns the cost of the best division whose first stratum begins at the hour first. It sets from[h] to the
// beginning of the stratum that ends at the hour h.
func (s *hourSums) cutFrom(first int, price float64, from *[hoursOfWeek + 1]int) float64 {
	var cost [hoursOfWeek + 1]float64
	for end := 1; end <= s.hours; end++ {
		cost[end] = math.Inf(1)
		for begin := range end {
			in := s.before[first+end].plus(s.before[first+begin], -1)
			if in.n < leastStratum || min(in.events, in.others) < leastEvents {
				break
			}
			if c := cost[begin] + price - in.z*in.z/in.n; c < cost[end] {
				cost[end], from[end] = c, begin
			}
		}
	}
	return cost[s.hours]
}

// Daily returns the p-value of the first harmonic of the day in scores. If hours of the day are alike, m R^2 / f
// approximately follows a chi-square distribution with two degrees of freedom, with R^2 the part of the variance that
// the harmonic explains, and f the dependence factor of the residuals. The p-value is 1 if the times cover less than
// two days.
func Daily(scores []float64, times []int64, factor func(rest []float64) float64) float64 {
	if coveredCycles(times, hoursOfDay) < leastCycles {
		return 1
	}
	harmonic := fitCourse(scores, times, 1)
	if harmonic == nil {
		return 1
	}
	var timed, rest []float64
	for i, z := range scores {
		if ts := times[i]; ts != 0 {
			timed, rest = append(timed, z), append(rest, z-harmonic.At(ts))
		}
	}
	_, variance := meanVariance(timed)
	if variance == 0 {
		return 1
	}
	_, left := meanVariance(rest)
	return math.Exp(-float64(len(rest)) * (1 - left/variance) / 2 / factor(rest))
}
