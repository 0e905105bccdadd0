// Package season finds hours of the day and of the week that differ, and compares values with those from similar hours.
package season

import (
	"maps"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/rewardwatch/rewardwatch/detectors"
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

// hoursOfWeek is the number of hours in a week, which begins on Monday at 0:00; firstMonday is the number of hours of its
// week that had passed at the Unix epoch.
const (
	hoursOfDay  = 24
	hoursOfWeek = 7 * hoursOfDay
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

// leastCycles is the number of cycles that a sample must cover: within one, a season looks the same as a drift.
const leastCycles = 2

// Season judges values among those of similar hours. The hours of the day, those of working days and of weekends apart,
// or those of the week are split, as circles, into contiguous strata such that the scores of the sample's values vary
// least within them. The number of strata follows from the values, and each holds at least 100 of them. A ranked value
// is judged by its mid-rank within its stratum, a number in (0, 1); a share of steps by itself minus the level of its
// stratum, and its counts by a frequency test that knows the stratum. Both have no season. A value without a time is
// judged among all. Exported fields are saved.
type Season struct {
	Strata [hoursOfWeek]uint8 // the stratum of each hour
	Course Course             // of the scores of ranked values: what the hour explains within the strata; nil if that is not worth its price
	Like   []*detectors.Ranks // of the sample's values, by stratum, or of their scores minus the course; nil of shares
	Level  []float64          // the mean of the values of a stratum minus that of all
	Ranks  *detectors.Ranks   // of the judged values of the sample
	Rest   *detectors.Ranks   // of the sample minus the levels, if there is a course
	Zone   string             // time zone whose hours and days these are; UTC if empty

	all  *detectors.Ranks
	zone *time.Location
}

// New splits the hours for a sample with the given ranks, scores and times of its values in Unix nanoseconds, 0 for
// none. hours says that hours of the day are known to differ, and zone whose hours and days they are. New returns nil if
// the sample does not cover two days, or if no split is worth its price.
func New(sample, scores []float64, ranks *detectors.Ranks, times []int64, hours bool, zone *time.Location) *Season {
	s := &Season{all: ranks, Zone: zoneName(zone), zone: zone}
	strata := s.split(scores, nil, times, hours)
	if strata < 2 {
		return nil
	}
	s.follow(sample, scores, times, hours)
	like, ranked := make([][]float64, strata), make([][]float64, strata)
	for i, x := range sample {
		if times[i] != 0 {
			at := s.stratum(times[i])
			like[at], ranked[at] = append(like[at], x), append(ranked[at], s.free(x, times[i]))
		}
	}
	mean := meanOf(sample)
	for i, values := range like {
		s.Like = append(s.Like, detectors.NewRanks(ranked[i]))
		s.Level = append(s.Level, meanOf(values)-mean)
	}
	if s.Course != nil {
		s.Rest = detectors.NewRanks(s.adjusted(sample, times))
	}
	s.Ranks = detectors.NewUniformRanks(s.Own(sample, times))
	return s
}

// follow finds the course of values that differ, if they cover all hours. The scores of ties would be in the order of their
// hours.
func (s *Season) follow(sample, scores []float64, times []int64, hours bool) {
	clock := Clocks(times, s.zone)
	if 2*s.all.Distinct() <= len(sample) || !coversHours(clock) {
		return
	}
	price, advantage := stratumPrice*math.Log(float64(len(sample))), 0.0
	if hours {
		price, advantage = hourPrice, 2*hourPrice
	}
	s.Course = courseOf(scores, clock, s.StrataOf(times), price, advantage)
}

// adjusted returns the adjusted values of the sample that have a time.
func (s *Season) adjusted(sample []float64, times []int64) (out []float64) {
	for i, x := range sample {
		if times[i] != 0 {
			out = append(out, s.Adjusted(x, times[i]))
		}
	}
	return out
}

// free returns the number that is ranked within a stratum: the value, or its score minus the course.
func (s *Season) free(x float64, ts int64) float64 {
	if s.Course == nil {
		return x
	}
	return score(s.all, x) - s.Course.At(Clock(ts, s.zone))
}

// leastEvents is the least number of steps of a stratum with the event, and without it.
const leastEvents = 10

// OfCounts does the same for a sample of counts: the event happened at the share shares[i] of steps[i] steps. Each
// stratum has enough steps with the event, and without it. OfCounts also returns nil if all shares of a stratum are the
// same: without spread, nothing says how far a new share is from them.
func OfCounts(shares, steps, scores []float64, times []int64, hours bool, zone *time.Location) *Season {
	s, least := &Season{Zone: zoneName(zone), zone: zone}, make([][2]float64, len(shares))
	for i, share := range shares {
		hits := math.Round(share * steps[i])
		least[i] = [2]float64{hits, steps[i] - hits}
	}
	strata := s.split(scores, least, times, hours)
	if strata < 2 {
		return nil
	}
	in, of, all, allOf := make([]float64, strata), make([]float64, strata), 0.0, 0.0
	first, spread := make([]float64, strata), make([]bool, strata)
	for i, counts := range least {
		if times[i] != 0 {
			at := s.stratum(times[i])
			if of[at] == 0 {
				first[at] = shares[i]
			}
			spread[at] = spread[at] || shares[i] != first[at]
			in[at] += counts[0]
			of[at] += steps[i]
		}
		all, allOf = all+counts[0], allOf+steps[i]
	}
	if slices.Contains(spread, false) {
		return nil
	}
	for i, h := range in {
		s.Level = append(s.Level, h/of[i]-all/allOf)
	}
	s.Ranks = detectors.NewRanks(s.Own(shares, times))
	return s
}

// Attach restores the ranks that the season was made with, and its time zone.
func (s *Season) Attach(all *detectors.Ranks) {
	s.all, s.zone = all, Zone(s.Zone)
	s.Ranks.Prepare()
	if s.Rest != nil {
		s.Rest.Prepare()
	}
	for _, r := range s.Like {
		r.Prepare()
	}
}

// Rank returns the value by which a new value is judged.
func (s *Season) Rank(x float64, ts int64) float64 {
	switch {
	case s.Like == nil:
		return s.Adjusted(x, ts)
	case ts == 0:
		return s.all.Rank(x)
	}
	return s.Like[s.stratum(ts)].Rank(s.free(x, ts))
}

// Stratum returns the stratum of a time, -1 if there is none.
func (s *Season) Stratum(ts int64) int {
	if ts == 0 {
		return -1
	}
	return s.stratum(ts)
}

// StrataOf returns the strata of times.
func (s *Season) StrataOf(times []int64) []int {
	out := make([]int, len(times))
	for i, ts := range times {
		out[i] = s.Stratum(ts)
	}
	return out
}

// Cycle returns the name of the cycle.
func (s *Season) Cycle() string {
	for h := range hoursOfWeek {
		if s.Strata[h] != s.Strata[h%hoursOfDay] {
			return "week"
		}
	}
	return "day"
}

// Own returns the values by which those of the sample itself are judged: mid-ranks leave the value itself out.
func (s *Season) Own(sample []float64, times []int64) []float64 {
	out := make([]float64, len(sample))
	for i, x := range sample {
		switch {
		case s.Like == nil:
			out[i] = s.Adjusted(x, times[i])
		case times[i] == 0:
			out[i] = s.all.OwnRank(x)
		default:
			out[i] = s.Like[s.stratum(times[i])].OwnRank(s.free(x, times[i]))
		}
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
	switch {
	case s.Like == nil:
		return s.Ranks.Sample()
	case s.Rest != nil:
		return s.Rest.Sample()
	}
	var out []float64
	for i, r := range s.Like {
		for _, x := range r.Sample() {
			out = append(out, x-s.Level[i])
		}
	}
	slices.Sort(out)
	return out
}

// Factor returns the dependence factor that is left within the strata of a ranked sample: the largest of those of
// neighbours, of days and of the hours of the day, times the Inflation.
func (s *Season) Factor(sample []float64, times []int64) float64 {
	own := s.Own(sample, times)
	z := make([]float64, len(own))
	for i, u := range own {
		z[i] = detectors.NormalScore(u)
	}
	return max(1, s.days(z, times), s.hours(z, times, mostOfRanks), detectors.Dependence(own, s.Ranks)) * s.Inflation(times)
}

// FactorOfCounts returns the same of counts with the given scores within their strata.
func (s *Season) FactorOfCounts(scores []float64, times []int64) float64 {
	return max(1, s.days(scores, times), s.hours(scores, times, mostOfCounts), detectors.AllowedFactor(scores)) * s.Inflation(times)
}

// days returns the factor of days of scores within strata; 1 of too few days for their levels. Those of strata of the day are
// the same on all days, and leave the means of days as they are.
func (s *Season) days(z []float64, times []int64) float64 {
	day := DaysOf(times, s.zone)
	daily, _ := DayFactor(z, day, min(len(s.Level), 7))
	if daily > 1 && s.Cycle() == "day" {
		daily, _ = DayFactor(z, day, 1)
	}
	return daily
}

// hours returns the factor of the hours of the day of scores within strata, or of their squares if that is larger: what
// the strata leave of the season comes again each day. It is at most most, since it does not add up over days.
func (s *Season) hours(z []float64, times []int64, most float64) float64 {
	var hour []int64
	var timed, squares []float64
	for i, v := range z {
		if times[i] != 0 {
			hour, timed, squares = append(hour, s.hourOfWeek(times[i])%hoursOfDay), append(timed, v), append(squares, v*v)
		}
	}
	fitted := min(len(s.Level)+max(0, len(s.Course)-1), hoursOfDay/2)
	level, p := DayFactor(timed, hour, fitted)
	spread, q := DayFactor(squares, hour, 1)
	f := 1.0
	if p < unevenHours {
		f = level
	}
	if q < unevenHours {
		f = max(f, spread)
	}
	return min(f, most)
}

// unevenHours is the p-value below which hours differ within strata. That makes the factor of counts, of which strata leave
// more, at most mostOfCounts.
const (
	unevenHours  = .05
	mostOfRanks  = 1.5
	mostOfCounts = 2
)

// alarmUnits is the number of units of a pass up to which all of them count as far from their level as it is from the truth.
// It was chosen so that traffic with cycles of the day keeps its budget with a margin.
const alarmUnits = 25

// Inflation returns 1 + 1/w for the errors in the levels of the strata, which are means over w passes, one per day or
// week. The error of a level is as much as 1/w of the variance of a pass, and affects all units of the next one. With
// unequal passes, 1/w is the mean share of the units of one pass among all; it is that of the stratum with the largest.
// Of strata of the day with passes of n > alarmUnits units, 1/w is multiplied by sqrt(alarmUnits/n): evidence is rarely
// collected over a whole pass.
func (s *Season) Inflation(times []int64) float64 {
	passes := make([]map[int64]float64, len(s.Level))
	for i := range passes {
		passes[i] = map[int64]float64{}
	}
	cycles, starts := s.cycles(), make([]int64, len(s.Level))
	for i := range starts {
		starts[i] = s.start(i)
	}
	for _, ts := range times {
		if ts != 0 {
			in := s.stratum(ts)
			passes[in][floorDiv(s.hourOf(ts)-starts[in], cycles[in])]++
		}
	}
	largest := 0.0
	for i, in := range passes {
		squares, all := 0.0, 0.0
		for _, n := range in {
			squares += n * n // whole numbers: exact in any order
			all += n
		}
		pass := squares / all // units of the pass of a unit, on average
		if cycles[i] == hoursOfDay && pass > alarmUnits {
			pass = math.Sqrt(pass * alarmUnits)
		}
		largest = max(largest, pass/all)
	}
	return 1 + largest
}

// cycles returns the number of hours after which each stratum comes again: those of a week if it has all hours of the
// day, and else those of a day, on days that have it.
func (s *Season) cycles() []int64 {
	hours := make([]map[int]bool, len(s.Level))
	for h, in := range s.Strata {
		if hours[in] == nil {
			hours[in] = map[int]bool{}
		}
		hours[in][h%hoursOfDay] = true
	}
	out := make([]int64, len(hours))
	for i := range out {
		if out[i] = hoursOfDay; len(hours[i]) == hoursOfDay {
			out[i] = hoursOfWeek
		}
	}
	return out
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

func (s *Season) stratum(ts int64) int { return int(s.Strata[s.hourOfWeek(ts)]) }

// hourOf returns the number of hours on the clock since the Monday before the Unix epoch.
func (s *Season) hourOf(ts int64) int64 {
	return floorDiv(Clock(ts, s.zone), int64(time.Hour)) + firstMonday
}

func (s *Season) hourOfWeek(ts int64) int64 {
	hour := s.hourOf(ts)
	return hour - hoursOfWeek*floorDiv(hour, hoursOfWeek)
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

func meanOf(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

func meanVariance(x []float64) (mean, variance float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		variance += (v - mean) * (v - mean) / float64(len(x))
	}
	return mean, variance
}
