package season

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/rewardwatch/rewardwatch/detectors"
)

// weekendSample has values in an hour each from a Friday at midnight on, with a course of the day; on weekends they lie higher.
func weekendSample(rng *rand.Rand, days, inHour int, dependence, higher float64, turns bool) (scores []float64, times []int64) {
	friday := time.Date(2027, 1, 15, 0, 0, 0, 0, time.UTC)
	last := rng.NormFloat64()
	for hour := range days * 24 {
		for k := range inHour {
			last = dependence*last + math.Sqrt(1-dependence*dependence)*rng.NormFloat64()
			at := friday.Add(time.Duration(hour)*time.Hour + time.Duration(k)*time.Hour/time.Duration(inHour))
			x := last + math.Sin(2*math.Pi*float64(hour%24)/24)
			switch kind, of := kindOf(at.UnixNano(), nil); {
			case kind == 1 && turns && of >= 12:
				x -= higher
			case kind == 1:
				x += higher
			}
			scores, times = append(scores, x), append(times, at.UnixNano())
		}
	}
	return scores, times
}

// Of samples with equal days, a share of .05 has a p-value below that, give or take three standard errors, with dependent values
// too. Weekends that differ by little are found in nine of ten samples, in their level or in their course alone.
func TestWeekendAlike(t *testing.T) {
	const runs, level = 400, .05
	most := level + 3*math.Sqrt(level*(1-level)/runs)
	for _, c := range []struct {
		name               string
		days, inHour       int
		dependence, higher float64
		turns              bool
		least, most        float64
	}{
		{"equal", 3, 20, 0, 0, false, 0, most},
		{"equal, few", 3, 6, 0, 0, false, 0, most},
		{"equal, dependent", 4, 20, .3, 0, false, 0, most},
		{"a fifth of a standard deviation", 3, 20, 0, .2, false, .9, 1},
		{"half of one, few", 3, 6, 0, .5, false, .9, 1},
		{"a course that turns", 3, 20, 0, .4, true, .9, 1},
	} {
		rng, found := rand.New(rand.NewPCG(17, 3)), 0.0
		for range runs {
			scores, times := weekendSample(rng, c.days, c.inHour, c.dependence, c.higher, c.turns)
			if WeekendAlike(scores, times, nil, detectors.AllowedFactor) < level {
				found += 1. / runs
			}
		}
		if t.Logf("%s: %.3f", c.name, found); found < c.least || found > c.most {
			t.Errorf("%s: found in %.3f of the samples, want %.3f to %.3f", c.name, found, c.least, c.most)
		}
	}
}

// Without hours of both kinds of days there is nothing to compare; nor without times.
func TestWeekendAlikeNeedsHoursOfBothKinds(t *testing.T) {
	scores, times := weekendSample(rand.New(rand.NewPCG(17, 4)), 3, 20, 0, 5, false)
	friday, saturday := 24*20, 48*20
	if p := WeekendAlike(scores[:friday], times[:friday], nil, detectors.AllowedFactor); p != 1 {
		t.Errorf("p-value %g of a Friday", p)
	}
	if p := WeekendAlike(scores[friday:saturday], times[friday:saturday], nil, detectors.AllowedFactor); p != 1 {
		t.Errorf("p-value %g of a Saturday", p)
	}
	if p := WeekendAlike(scores, make([]int64, len(scores)), nil, detectors.AllowedFactor); p != 1 {
		t.Errorf("p-value %g without times", p)
	}
	if p := WeekendAlike(scores, times, nil, detectors.AllowedFactor); p > 1e-6 {
		t.Errorf("p-value %g of weekends that lie higher by 5", p)
	}
}

// Days with a level of their own each are no weekend: the spread between days of one kind counts. That of two days and of four
// is known with four degrees of freedom, so the level's z follows Student's t. As the course of the hours tells nothing more, the
// p-value is below .05 if that of the level is below .0256, so if |t| > 2.23: of .09 of samples, give or take three standard
// errors. Without the spread of days, weekends would differ in most of them.
func TestWeekendAlikeAgainstTheSpreadOfDays(t *testing.T) {
	const runs, level = 400, .05
	share := 2 * distuv.StudentsT{Sigma: 1, Nu: 4}.Survival(2.23)
	rng, found := rand.New(rand.NewPCG(17, 5)), 0.0
	for range runs {
		scores, times := weekendSample(rng, 6, 20, 0, 0, false)
		ofDay := 0.0
		for i := range scores {
			if i%(24*20) == 0 {
				ofDay = rng.NormFloat64()
			}
			scores[i] += ofDay
		}
		if WeekendAlike(scores, times, nil, detectors.AllowedFactor) < level {
			found += 1. / runs
		}
	}
	if most := share + 3*math.Sqrt(share*(1-share)/runs); found > most {
		t.Errorf("%.3f of weekends differ from days that differ as much, want at most %.3f", found, most)
	}
	t.Logf("%.3f, expected %.3f", found, share)
}
