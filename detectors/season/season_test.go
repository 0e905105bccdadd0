package season

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors"
)

// daily returns 14 days of 40 values; each day has its own random level.
func daily(rng *rand.Rand, level float64) (x []float64, day []int64) {
	for d := range int64(14) {
		of := level * rng.NormFloat64()
		for range 40 {
			x, day = append(x, of+rng.NormFloat64()), append(day, d)
		}
	}
	return x, day
}

func TestDayFactorOfEqualDays(t *testing.T) {
	rng := rand.New(rand.NewPCG(70, 0))
	const runs, level = 2000, .01
	refused, sum := 0.0, 0.0
	for range runs {
		x, day := daily(rng, 0)
		f, p := DayFactor(x, day, 1)
		sum += f / runs
		if p < level {
			refused++
		}
	}
	if most := level + 3*math.Sqrt(level*(1-level)/runs); refused/runs > most {
		t.Errorf("%.4f of equal days differ, want at most %.4f", refused/runs, most)
	}
	// The factor follows a chi-square distribution over its 13 degrees of freedom: variance 2/13.
	if math.Abs(sum-1) > 4*math.Sqrt(2./13/runs)+.01 {
		t.Errorf("mean factor %.3f, want 1", sum)
	}
}

func TestDayFactorOfDifferentDays(t *testing.T) {
	rng := rand.New(rand.NewPCG(71, 0))
	const level = .4 // the mean of a day of 40 values then has variance 1/40 + .16
	sum := 0.0
	const runs = 400
	for range runs {
		x, day := daily(rng, level)
		f, p := DayFactor(x, day, 1)
		sum += f / runs
		if p > .01 {
			t.Fatalf("factor %.2f has p = %.3f", f, p)
		}
	}
	want := (1 + 40*level*level) / (1 + level*level)
	if math.Abs(sum-want) > .1*want {
		t.Errorf("mean factor %.2f, want about %.2f", sum, want)
	}
	if f, p := DayFactor([]float64{1, 2, 3, 4}, []int64{0, 0, 1, 1}, 1); f != 1 || p != 1 {
		t.Errorf("two days give %v, %v", f, p)
	}
}

// A rise over the days, whatever its shape, does not count as a difference between days, and differences are found
// despite a rise.
func TestDayFactorInARise(t *testing.T) {
	rng := rand.New(rand.NewPCG(73, 0))
	const runs, level = 2000, .001
	for _, c := range []struct {
		name  string
		rise  func(part float64) float64
		found float64 // minimum share of runs that find different days: steep rises hide some
	}{
		{"none", func(float64) float64 { return 0 }, .9},
		{"line", func(part float64) float64 { return 2 * part }, .65},
		{"bend", func(part float64) float64 { return 10 * (1 - math.Exp(-5*part)) }, .4},
	} {
		differ, found, sum := 0., 0., 0.
		for range runs {
			for _, of := range []float64{0, .4} {
				x, day := daily(rng, of)
				for i := range x {
					x[i] += c.rise(float64(i) / float64(len(x)))
				}
				f, p := DayFactorInRise(x, day)
				switch {
				case p >= level:
				case of == 0:
					differ++
				default:
					found, sum = found+1, sum+f
				}
			}
		}
		t.Logf("%s: %v of equal and %v of different days differ, by %.2f", c.name, differ, found, sum/found)
		if most := level + 3*math.Sqrt(level*(1-level)/runs); differ/runs > most {
			t.Errorf("%s: %.4f of equal days differ, want at most %.4f", c.name, differ/runs, most)
		}
		if found < c.found*runs {
			t.Errorf("%s: %v of %d different days are found", c.name, found, runs)
		}
	}
	if f, p := DayFactorInRise([]float64{1, 2, 3, 4}, []int64{0, 0, 1, 1}); f != 1 || p != 1 {
		t.Errorf("two days give %v, %v", f, p)
	}
}

// saturdays returns perDay values per day over a number of weeks; those of Saturdays and Sundays are higher.
func saturdays(rng *rand.Rand, perDay int, weeks float64, size float64) (x []float64, times []int64) {
	const monday = 4 * 24 * int64(time.Hour) // 5 January 1970
	gap := int64(24*time.Hour) / int64(perDay)
	for i := range int64(weeks * 7 * float64(perDay)) {
		v := rng.NormFloat64()
		if (i/int64(perDay))%7 >= 5 {
			v += size
		}
		x, times = append(x, v), append(times, monday+i*gap)
	}
	return x, times
}

func seasonOf(x []float64, times []int64) *Season {
	ranks, z := detectors.NewRanks(x), make([]float64, len(x))
	for i, v := range x {
		z[i] = detectors.NormalScore(ranks.OwnRank(v))
	}
	return New(x, z, ranks, times, false, nil)
}

func TestSeasonFindsTheWeekend(t *testing.T) {
	const perDay, weeks = 24, 4
	x, times := saturdays(rand.New(rand.NewPCG(72, 0)), perDay, weeks, 1.5)
	s := seasonOf(x, times)
	if s == nil || len(s.Like) != 2 {
		t.Fatalf("season %+v, want two strata", s)
	}
	wrong := 0
	for h := range s.Strata {
		if (s.Strata[h] == s.Strata[5*24+12]) != (h >= 5*24) {
			wrong++
		}
	}
	if wrong > 12 {
		t.Errorf("%d hours in the wrong stratum: %v", wrong, s.Strata)
	}
	own := s.Own(x, times)
	if f := s.Factor(x, times); f < 1.25 || f > 1.6 { // four weeks: 1 + 1/4, plus what remains by chance
		t.Errorf("factor %.2f within strata of four weeks", f)
	}
	if plain, _ := DayFactor(x, daysOf(times), 1); plain < 4 {
		t.Errorf("factor %.2f of days without strata, want more than 4", plain)
	}
	for i, r := range s.Like { // mid-ranks within a stratum are those of its own values
		if got := s.Rank(r.Points[0]-1, atHour(s.start(i))); got != .5/float64(r.Len()+1) {
			t.Errorf("a value below all of stratum %d has rank %v", i, got)
		}
	}
	if mean := meanOf(own); math.Abs(mean-.5) > 1e-12 {
		t.Errorf("mean of the baseline's own mid-ranks %v, want 1/2", mean)
	}
	if adjusted := s.Sample(); len(adjusted) != len(x) || math.Abs(meanOf(adjusted)-meanOf(x)) > 1e-12 {
		t.Errorf("adjusted values have the mean %v, want %v", meanOf(adjusted), meanOf(x))
	}
}

func atHour(hour int64) int64 { return (hour - firstMonday + hoursOfWeek) * int64(time.Hour) }

func daysOf(times []int64) (out []int64) {
	for _, ts := range times {
		out = append(out, ts/int64(24*time.Hour))
	}
	return out
}

func TestNoSeason(t *testing.T) {
	for _, c := range []struct {
		name   string
		perDay int
		weeks  float64
		size   float64
	}{{"less than two weeks", 50, 1.9, 2}, {"too few values for two strata", 10, 2.5, 2}, {"no season", 24, 4, 0}} {
		x, times := saturdays(rand.New(rand.NewPCG(73, 0)), c.perDay, c.weeks, c.size)
		if s := seasonOf(x, times); s != nil {
			t.Errorf("%s: strata %v", c.name, s.Strata)
		}
	}
}

func TestHoursOfTheWeek(t *testing.T) {
	const hour = int64(time.Hour)
	for _, c := range []struct{ ts, want int64 }{
		{1, 72}, {hour - 1, 72}, {hour, 73}, {-1, 71}, {4 * 24 * hour, hoursOfWeek}, {-4 * 24 * hour, -24},
	} {
		if got := hourOf(c.ts, nil); got != c.want {
			t.Errorf("%d is hour %d, want %d", c.ts, got, c.want)
		}
	}
}

// smoothDays returns perHour values per hour that follow a smooth daily course, with noise of a tenth of its range.
func smoothDays(rng *rand.Rand, days, perHour int) (x []float64, times []int64) {
	for h := range days * 24 {
		level := math.Sin(2 * math.Pi * float64(h) / 24)
		for i := range perHour {
			x = append(x, level+.2*rng.NormFloat64())
			times = append(times, int64(h+24)*int64(time.Hour)+int64(i)*int64(time.Hour)/int64(perHour))
		}
	}
	return x, times
}

// Without a course, strata of several hours leave differences between hours within them: .6 standard deviations.
func TestNothingOfASmoothDayIsLeft(t *testing.T) {
	const perHour, days = 20, 40
	rng := rand.New(rand.NewPCG(79, 0))
	x, times := smoothDays(rng, 3, perHour)
	ranks, z := detectors.NewRanks(x), make([]float64, len(x))
	for i, v := range x {
		z[i] = detectors.NormalScore(ranks.OwnRank(v))
	}
	s := New(x, z, ranks, times, true, nil)
	later, at := smoothDays(rng, days, perHour)
	var left [24]float64
	for i, v := range later {
		left[at[i]/int64(time.Hour)%24] += detectors.NormalScore(s.Rank(v, at[i])) / perHour / days
	}
	squares := 0.0
	for _, mean := range left {
		squares += mean * mean / 24
	}
	// The coefficients of the course and the levels of the strata have errors, as they come from three days of 20
	// values per hour.
	fitted := float64(len(s.Course) + len(s.Level))
	if most := 2 * math.Sqrt(fitted/float64(len(x))); math.Sqrt(squares) > most {
		t.Errorf("%.3f standard deviations left, want at most %.3f: %.2f", math.Sqrt(squares), most, left)
	}
	if f := s.Factor(x, times); f > 2 {
		t.Errorf("factor %.2f", f)
	}
}

// No course is fitted to a day of two levels, to a day with hours without values, or to values with ties.
func TestCoursesAreForSmoothDays(t *testing.T) {
	rng := rand.New(rand.NewPCG(79, 1))
	x, times := smoothDays(rng, 3, 20)
	for i := range x {
		x[i] = rng.NormFloat64()
		if h := times[i] / int64(time.Hour) % 24; h >= 8 && h < 20 {
			x[i] += 4
		}
	}
	if s := seasonOf(x, times); s == nil || s.Course != nil {
		t.Errorf("two levels: %+v", s)
	}
	x, times = smoothDays(rng, 4, 20)
	var office []float64
	var hours []int64
	for i, ts := range times {
		if h := ts / int64(time.Hour) % 24; h >= 8 && h < 18 {
			office, hours = append(office, x[i]), append(hours, ts)
		}
	}
	if s := seasonOf(office, hours); s == nil || s.Course != nil {
		t.Errorf("office hours, which say nothing of the night: %+v", s)
	}
	x, times = smoothDays(rng, 3, 20)
	for i := range x {
		x[i] = math.Round(2 * x[i])
	}
	if s := seasonOf(x, times); s == nil || s.Course != nil || s.Rest != nil {
		t.Errorf("ties: %+v", s)
	}
}

// In a season that rises and falls steeply, hours within a stratum differ in level or in spread.
func TestHoursThatStrataLeave(t *testing.T) {
	const perHour, days, runs = 40, 2, 20
	for _, c := range []struct {
		name        string
		value       func(hour float64, noise float64) float64
		least, most float64
	}{
		{"two levels", func(hour, noise float64) float64 { return math.Floor(hour/12) + noise }, 1, 1.1},
		{"a steep slope of ties", func(hour, noise float64) float64 {
			return math.Round(.8*math.Sin(2*math.Pi*hour/24) + .3*noise)
		}, 1.3, 1.5},
		{"a spread of its own", func(hour, noise float64) float64 {
			wave := math.Sin(2 * math.Pi * hour / 24)
			return wave + noise*(1+.6*math.Cos(2*math.Pi*hour/24))
		}, 1.3, 1.5},
	} {
		sum := 0.0
		for run := range uint64(runs) {
			rng := rand.New(rand.NewPCG(7300, run))
			var x []float64
			var times []int64
			for i := range int64((days*24 + 1) * perHour) {
				ts := 1_800_000_000e9 + i*int64(time.Hour)/perHour
				x, times = append(x, c.value(float64(ts%int64(24*time.Hour))/float64(time.Hour), rng.NormFloat64())), append(times, ts)
			}
			s := seasonOf(x, times)
			if s == nil {
				t.Fatalf("%s: no season", c.name)
			}
			z := s.Own(x, times)
			for i, u := range z {
				z[i] = detectors.NormalScore(u)
			}
			sum += s.hours(z, times, mostOfRanks) / runs
		}
		if sum < c.least || sum > c.most {
			t.Errorf("%s: mean factor of the hours %.2f, want %g to %g", c.name, sum, c.least, c.most)
		}
	}
}

// Identical days of one cycle have a factor of 1, regardless of the number of strata of the day.
func TestEqualDaysWithinStrataOfTheDay(t *testing.T) {
	const days, perHour, runs = 8, 5, 200
	sum, strata := 0.0, 0.0
	for run := range uint64(runs) {
		x, times := smoothDays(rand.New(rand.NewPCG(7400, run)), days, perHour)
		s := seasonOf(x, times)
		if s == nil || s.Cycle() != "day" {
			t.Fatalf("run %d: %+v, want a season of the day", run, s)
		}
		z := s.Own(x, times)
		for i, u := range z {
			z[i] = detectors.NormalScore(u)
		}
		sum, strata = sum+s.days(z, times)/runs, strata+float64(len(s.Level))/runs
	}
	t.Logf("%.2f strata", strata)
	if strata < 3 || math.Abs(sum-1) > 4*math.Sqrt(2./(days-1)/runs)+.01 {
		t.Errorf("mean factor %.3f of %.1f strata, want 1", sum, strata)
	}
}
