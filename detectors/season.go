package detectors

import (
	"maps"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat/distuv"
)

// DayFactor returns f_day = n var(day means) / var(x), with n the mean number of values per day: by how much more the
// means of days vary than those of as many independent values. day is the day of each value. p is the p-value of so
// large a factor if days are alike: f_day (D - fitted) then follows approximately a chi-square distribution with D -
// fitted degrees of freedom, with D the number of days. fitted is the number of levels of days that were removed from x
// before, 1 if only the mean was. Fewer than fitted + 2 days of at least two values each carry no information: f_day is
// 1 and p is 1.
func DayFactor(x []float64, day []int64, fitted int) (f, p float64) {
	sums, counts := map[int64]float64{}, map[int64]float64{}
	for i, v := range x {
		sums[day[i]] += v
		counts[day[i]]++
	}
	days := float64(len(sums))
	freedom := days - float64(fitted)
	mean, variance := meanVariance(x)
	if freedom < 2 || float64(len(x)) < 2*days || variance == 0 {
		return 1, 1
	}
	between := 0.0
	for _, d := range slices.Sorted(maps.Keys(sums)) { // sorted, or the last bit of the sum would be random
		off := sums[d]/counts[d] - mean
		between += counts[d] * off * off
	}
	f = between / freedom / variance
	return f, distuv.ChiSquared{K: freedom}.Survival(f * freedom)
}

// hoursOfWeek is the number of hours in a week, which begins on Monday at 0:00 UTC; firstMonday is the number of hours
// of its week that had passed at the Unix epoch.
const (
	hoursOfWeek = 7 * 24
	firstMonday = 3 * 24
)

// leastStratum is the least number of values of the sample in a stratum: with fewer, the rank of the largest would be
// less than the bound of the normal scores. Another stratum must save stratumPrice log m of the sum of squares of the
// normal scores of m values. That is twice what chance saves with a boundary that may lie anywhere (the Bayesian
// information criterion for a level and its boundary).
const (
	leastStratum = 100
	stratumPrice = 2
)

// leastCycles is the number of weeks that a sample must cover: within one week a season looks the same as a drift.
const leastCycles = 2

// Season ranks values among those of similar hours of the week. The 168 hours are split, as a circle, into contiguous
// strata such that the normal scores of the sample's values vary least within them. The number of strata follows from
// the values, and each holds at least 100 of them. The mid-rank of a value within its stratum, a number in (0, 1), has
// no season: it is what is judged. A value without a time is ranked among all. Exported fields are saved.
type Season struct {
	Strata [hoursOfWeek]uint8 // the stratum of each hour
	Like   []*Ranks           // of the sample's values, by stratum
	Level  []float64          // the mean of the values of a stratum minus that of all
	Ranks  *Ranks             // of the mid-ranks of the sample's own points

	all *Ranks
}

// NewSeason splits the week for a sample with the given ranks and the times of its values in Unix nanoseconds, 0 for
// none. It returns nil if the sample does not cover two weeks, or if no split is worth its price.
func NewSeason(sample []float64, ranks *Ranks, times []int64) *Season {
	if !coversWeeks(times) {
		return nil
	}
	s := &Season{all: ranks}
	strata := s.cut(newHourSums(sample, ranks, times))
	if strata < 2 {
		return nil
	}
	like := make([][]float64, strata)
	for i, x := range sample {
		if times[i] != 0 {
			like[s.stratum(times[i])] = append(like[s.stratum(times[i])], x)
		}
	}
	mean := meanOf(sample)
	for _, values := range like {
		s.Like = append(s.Like, NewRanks(values))
		s.Level = append(s.Level, meanOf(values)-mean)
	}
	s.Ranks = newUniformRanks(s.Own(sample, times))
	return s
}

// Attach restores the ranks that the season was made with.
func (s *Season) Attach(all *Ranks) {
	s.all = all
	s.Ranks.Prepare()
	for _, r := range s.Like {
		r.Prepare()
	}
}

// Rank returns the mid-rank of a new value within its stratum.
func (s *Season) Rank(x float64, ts int64) float64 { return s.like(ts).of(x).u }

// Own returns the mid-ranks of the sample itself, each leaving itself out.
func (s *Season) Own(sample []float64, times []int64) []float64 {
	out := make([]float64, len(sample))
	for i, x := range sample {
		out[i] = s.like(times[i]).own(x).u
	}
	return out
}

// Adjusted returns a value minus the level of its stratum: with the season removed, in its own unit of measurement.
func (s *Season) Adjusted(x float64, ts int64) float64 {
	if ts == 0 {
		return x
	}
	return x - s.Level[s.stratum(ts)]
}

// Sample returns the adjusted values of the sample that have a time, sorted.
func (s *Season) Sample() []float64 {
	var out []float64
	for i, r := range s.Like {
		for _, x := range r.Sample() {
			out = append(out, x-s.Level[i])
		}
	}
	slices.Sort(out)
	return out
}

// Factor returns the dependence factor that is left within the strata of the sample: the larger of that of neighbours
// and that of days, times 1 + 1/w for the errors in the levels of the strata. The levels are means over w passes, one
// per week. The error of a level is as much as 1/w of the variance of a pass, and affects all units of the next one.
func (s *Season) Factor(sample []float64, times []int64) float64 {
	own := s.Own(sample, times)
	z, day := make([]float64, len(own)), make([]int64, len(own))
	for i, u := range own {
		z[i], day[i] = normalScore(u), times[i]/int64(24*time.Hour)
	}
	daily, _ := DayFactor(z, day, min(len(s.Like), 7))
	return max(1, daily, Dependence(own, s.Ranks)) * (1 + s.largestPass(times))
}

// largestPass returns the mean share of the units of one pass among all, for the stratum with the largest; 1/w with w
// equal passes.
func (s *Season) largestPass(times []int64) float64 {
	passes := make([]map[int64]float64, len(s.Like))
	for i := range passes {
		passes[i] = map[int64]float64{}
	}
	for _, ts := range times {
		if ts != 0 {
			in := s.stratum(ts)
			passes[in][floorDiv(hourOf(ts)-s.start(in), hoursOfWeek)]++
		}
	}
	largest := 0.0
	for i, r := range s.Like {
		share := 0.0
		for _, n := range passes[i] {
			share += n * n // whole numbers: exact in any order
		}
		largest = max(largest, share/float64(r.Len())/float64(r.Len()))
	}
	return largest
}

// start returns the hour at which a stratum begins.
func (s *Season) start(stratum int) int64 {
	for h := range s.Strata {
		if int(s.Strata[h]) == stratum && int(s.Strata[(h+hoursOfWeek-1)%hoursOfWeek]) != stratum {
			return int64(h)
		}
	}
	return 0
}

func (s *Season) like(ts int64) *Ranks {
	if ts == 0 {
		return s.all
	}
	return s.Like[s.stratum(ts)]
}

func (s *Season) stratum(ts int64) int {
	hour := hourOf(ts)
	return int(s.Strata[hour-hoursOfWeek*floorDiv(hour, hoursOfWeek)])
}

// hourOf returns the number of hours since the Monday before the Unix epoch.
func hourOf(ts int64) int64 { return floorDiv(ts, int64(time.Hour)) + firstMonday }

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// coversWeeks reports whether times lie far enough apart to identify a season.
func coversWeeks(times []int64) bool {
	first, last := int64(math.MaxInt64), int64(0)
	for _, ts := range times {
		if ts != 0 {
			first, last = min(first, ts), max(last, ts)
		}
	}
	return last > first && last-first >= leastCycles*hoursOfWeek*int64(time.Hour)
}

// hourSums holds the numbers of values and the sums of their normal scores before an hour, for two consecutive copies
// of the same week, so that a stratum may cross the end of the week.
type hourSums struct {
	n, z [2*hoursOfWeek + 1]float64
	m    float64
}

func newHourSums(sample []float64, ranks *Ranks, times []int64) *hourSums {
	var n, z [hoursOfWeek]float64
	s := &hourSums{}
	for i, x := range sample {
		if times[i] != 0 {
			hour := hourOf(times[i])
			hour -= hoursOfWeek * floorDiv(hour, hoursOfWeek)
			n[hour]++
			z[hour] += ranks.own(x).z
			s.m++
		}
	}
	for h := range 2 * hoursOfWeek {
		s.n[h+1] = s.n[h] + n[h%hoursOfWeek]
		s.z[h+1] = s.z[h] + z[h%hoursOfWeek]
	}
	return s
}

// cut splits the week and returns the number of strata. It minimises the sum of squares within strata plus the price,
// by dynamic programming from each hour that may begin the first stratum.
func (s *Season) cut(sums *hourSums) int {
	price := stratumPrice * math.Log(sums.m)
	least := math.Inf(1)
	var best, from [hoursOfWeek + 1]int
	begin := 0
	for first := range hoursOfWeek {
		if cost := sums.cutFrom(first, price, &from); cost < least {
			least, best, begin = cost, from, first
		}
	}
	if math.IsInf(least, 1) {
		return 0
	}
	strata := 0
	for end := hoursOfWeek; end > 0; end = best[end] {
		for h := best[end]; h < end; h++ {
			s.Strata[(begin+h)%hoursOfWeek] = uint8(strata)
		}
		strata++
	}
	return strata
}

// cutFrom returns the cost of the best split whose first stratum begins at an hour, minus the sum of squares of all,
// and where the stratum that ends at each later hour begins.
func (s *hourSums) cutFrom(first int, price float64, from *[hoursOfWeek + 1]int) float64 {
	var cost [hoursOfWeek + 1]float64
	for end := 1; end <= hoursOfWeek; end++ {
		cost[end] = math.Inf(1)
		for begin := range end {
			n := s.n[first+end] - s.n[first+begin]
			if n < leastStratum {
				break
			}
			z := s.z[first+end] - s.z[first+begin]
			if c := cost[begin] + price - z*z/n; c < cost[end] {
				cost[end], from[end] = c, begin
			}
		}
	}
	return cost[hoursOfWeek]
}

func meanOf(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}
