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

// DayFactor returns f_day = n var(day means) / var(x), with n the mean number of values per day: the variance of the
// day means, relative to that of means of independent values. day holds the day of each value. p is the p-value of
// f_day if days are alike: f_day (D - fitted) then approximately follows a chi-square distribution with D - fitted
// degrees of freedom, with D the number of days. fitted is the number of levels of days that have already been removed
// from x; 1 if only the mean has. With fewer than fitted + 2 days, or fewer than two values per day on average, f_day
// is 1 and p is 1.
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
	for _, d := range slices.Sorted(maps.Keys(sums)) { // sorted, or the last bit of the sum would depend on the order
		off := sums[d]/counts[d] - mean
		between += counts[d] * off * off
	}
	f = between / freedom / variance
	return f, distuv.ChiSquared{K: freedom}.Survival(f * freedom)
}

// hoursOfWeek is the number of hours in a week, which begins on Monday at 0:00. firstMonday is the number of hours
// between the Monday before the Unix epoch and the epoch.
const (
	hoursOfDay  = 24
	hoursOfWeek = 7 * hoursOfDay
	firstMonday = 3 * 24
)

// leastStratum is the minimum number of values of the sample in a stratum: with fewer, the score of the largest value
// would not reach the bound of the normal scores. Another stratum must reduce the sum of squares of the normal scores
// of m values by stratumPrice log m. That is twice what a boundary that may lie anywhere reduces it by chance (the
// Bayesian information criterion for a level and its boundary).
const (
	leastStratum = 100
	stratumPrice = 2
)

// leastCycles is the number of cycles that a sample must cover: within one cycle, a season cannot be distinguished from
// a drift.
const leastCycles = 2

// Season judges values relative to those of similar hours. It divides the hours of the day, the hours of working days
// and weekends, or the hours of the week into strata, such that the scores of the sample vary least within a stratum.
// Strata are contiguous on the circle of hours. Their number follows from the values, and each holds at least 100 of
// them. A ranked value is judged by its mid-rank within its stratum, a number in (0, 1). A share of steps is judged by
// its difference from the level of its stratum, and its counts by a frequency test that uses the stratum's rate.
// Neither depends on the season. A value without a time is judged among all values. Exported fields are saved.
type Season struct {
	Strata [hoursOfWeek]uint8 // the stratum of each hour
	Course Course             // of the scores of ranked values within strata; nil if it does not improve the fit enough
	Like   []*detectors.Ranks // of the sample's values by stratum, or of their scores minus the course; nil for shares
	Level  []float64          // the mean of the values of a stratum minus that of all
	Ranks  *detectors.Ranks   // of the judged values of the sample, see Own
	Rest   *detectors.Ranks   // of the adjusted values of the sample, if there is a course
	Zone   string             // time zone of the hours and days; UTC if empty

	all  *detectors.Ranks
	zone *time.Location
}

// New divides the hours for a sample with the given ranks and scores. times are those of the values, in Unix
// nanoseconds, and 0 for a value without a time. hours reports whether hours of the day are known to differ, and zone
// is the time zone of the hours and days. New returns nil if the sample covers less than two days, or if no division
// improves the fit enough.
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

// follow fits the course if the values cover all hours and more than half of them are distinct. With ties, the order of
// the scores would depend on the hours.
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

// adjusted returns the adjusted values of those in the sample that have a time.
func (s *Season) adjusted(sample []float64, times []int64) (out []float64) {
	for i, x := range sample {
		if times[i] != 0 {
			out = append(out, s.Adjusted(x, times[i]))
		}
	}
	return out
}

// free returns the number that is ranked within a stratum: the value itself or, with a course, its score minus the
// course.
func (s *Season) free(x float64, ts int64) float64 {
	if s.Course == nil {
		return x
	}
	return score(s.all, x) - s.Course.At(Clock(ts, s.zone))
}

// leastEvents is the minimum number of steps with the event, and of steps without it, in a stratum.
const leastEvents = 10

// OfCounts is like New, but for a sample of counts: the event occurred in the share shares[i] of steps[i] steps. Each
// stratum has at least leastEvents steps with the event and as many without it. OfCounts also returns nil if all shares
// of a stratum are the same: without spread, the distance of a new share from them has no scale.
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

// Attach restores what is not saved: the ranks of the whole sample and the time zone.
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

// Rank returns the number by which a new value is judged: its mid-rank within its stratum, or its difference from the
// stratum's level.
func (s *Season) Rank(x float64, ts int64) float64 {
	switch {
	case s.Like == nil:
		return s.Adjusted(x, ts)
	case ts == 0:
		return s.all.Rank(x)
	}
	return s.Like[s.stratum(ts)].Rank(s.free(x, ts))
}

// Stratum returns the stratum of a time; -1 without a time.
func (s *Season) Stratum(ts int64) int {
	if ts == 0 {
		return -1
	}
	return s.stratum(ts)
}

// StrataOf returns the stratum of each time; -1 without a time.
func (s *Season) StrataOf(times []int64) []int {
	out := make([]int, len(times))
	for i, ts := range times {
		out[i] = s.Stratum(ts)
	}
	return out
}

// Cycle returns the name of the cycle: "day" or "week".
func (s *Season) Cycle() string {
	for h := range hoursOfWeek {
		if s.Strata[h] != s.Strata[h%hoursOfDay] {
			return "week"
		}
	}
	return "day"
}

// Own returns the numbers by which the values of the sample itself are judged. A mid-rank excludes the value itself.
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

// Adjusted returns a value minus the level of its stratum: the value without the season, in its own unit of
// measurement.
func (s *Season) Adjusted(x float64, ts int64) float64 {
	if ts == 0 {
		return x
	}
	return x - s.Level[s.stratum(ts)]
}

// Sample returns the adjusted values of those in the sample that have a time, sorted.
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

// Factor returns the dependence factor that remains within the strata of a ranked sample: the largest of the factors of
// neighbors, days and hours of the day, times the Inflation.
func (s *Season) Factor(sample []float64, times []int64) float64 {
	own := s.Own(sample, times)
	z := make([]float64, len(own))
	for i, u := range own {
		z[i] = detectors.NormalScore(u)
	}
	return max(1, s.days(z, times), s.hours(z, times, mostOfRanks), detectors.Dependence(own, s.Ranks)) * s.Inflation(times)
}

// FactorOfCounts is like Factor, for counts with the given scores within their strata.
func (s *Season) FactorOfCounts(scores []float64, times []int64) float64 {
	return max(1, s.days(scores, times), s.hours(scores, times, mostOfCounts), detectors.AllowedFactor(scores)) * s.Inflation(times)
}

// days returns the factor of days for scores within strata; 1 if there are too few days for the number of levels.
// Strata of the day are the same on all days, so they do not change the means of days.
func (s *Season) days(z []float64, times []int64) float64 {
	day := DaysOf(times, s.zone)
	daily, _ := DayFactor(z, day, min(len(s.Level), 7))
	if daily > 1 && s.Cycle() == "day" {
		daily, _ = DayFactor(z, day, 1)
	}
	return daily
}

// hours returns the factor of the hours of the day for scores within strata, or for their squares if that is larger:
// the part of the season that the strata leave recurs each day. The factor is at most most, since the effect does not
// add up over days.
func (s *Season) hours(z []float64, times []int64, most float64) float64 {
	var hour []int64
	var timed, squares []float64
	for i, v := range z {
		if times[i] != 0 {
			hour, timed, squares = append(hour, hourOfWeek(times[i], s.zone)%hoursOfDay), append(timed, v), append(squares, v*v)
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

// unevenHours is the p-value below which hours count as different within strata. The factor is then at most
// mostOfRanks, or mostOfCounts for counts, whose strata leave more of the season.
const (
	unevenHours  = .05
	mostOfRanks  = 1.5
	mostOfCounts = 2
)

// alarmUnits is the number of units of a pass up to which the error of the level affects all of them equally. It was
// chosen so that traffic with daily cycles stays within its budget with a margin.
const alarmUnits = 25

// Inflation returns 1 + 1/w, to account for the errors in the levels of the strata, which are means over w passes, one
// per day or week. The error of a level is as large as 1/w of the variance of a pass, and affects all units of the next
// pass. If passes differ in size, 1/w is the share of one pass among all units, averaged over units, in the stratum
// where it is largest. For strata of the day with passes of n > alarmUnits units, 1/w is multiplied by
// sqrt(alarmUnits/n), because evidence is rarely collected over a whole pass.
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
			passes[in][floorDiv(hourOf(ts, s.zone)-starts[in], cycles[in])]++
		}
	}
	largest := 0.0
	for i, in := range passes {
		squares, all := 0.0, 0.0
		for _, n := range in {
			squares += n * n // whole numbers, so the sum is exact in any order
			all += n
		}
		pass := squares / all // mean number of units in the pass of a unit
		if cycles[i] == hoursOfDay && pass > alarmUnits {
			pass = math.Sqrt(pass * alarmUnits)
		}
		largest = max(largest, pass/all)
	}
	return 1 + largest
}

// cycles returns the number of hours after which each stratum recurs: a week if the stratum includes all hours of the
// day, otherwise a day.
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

// start returns the hour of the week at which a stratum begins.
func (s *Season) start(stratum int) int64 {
	for h := range s.Strata {
		if int(s.Strata[h]) == stratum && int(s.Strata[(h+hoursOfWeek-1)%hoursOfWeek]) != stratum {
			return int64(h)
		}
	}
	return 0
}

func (s *Season) stratum(ts int64) int { return int(s.Strata[hourOfWeek(ts, s.zone)]) }

// hourOf returns the number of clock hours since the Monday before the Unix epoch.
func hourOf(ts int64, zone *time.Location) int64 {
	return floorDiv(Clock(ts, zone), int64(time.Hour)) + firstMonday
}

func hourOfWeek(ts int64, zone *time.Location) int64 {
	hour := hourOf(ts, zone)
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
