package season

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/rewardwatch/rewardwatch/detectors"
)

// weekendSample returns inHour values per hour with a daily course, from midnight on a Friday on. Those of weekends are
// higher.
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

// Of samples in which all days are alike, a share of .05 has a p-value below .05, within three standard errors, even if
// values are dependent. Weekends that differ slightly, in their level or only in their course, are found in nine of ten
// samples.
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

// Without an hour on days of both kinds, or without times, there is nothing to compare.
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

// Days that each have their own random level do not count as a difference of weekends, because the spread between days
// of one kind is allowed for. The spread of two days and four days has four degrees of freedom, so the z of the level
// follows Student's t. Since the course of the hours adds no evidence, the p-value is below .05 if that of the level is
// below .0256, i.e. if |t| > 2.23, which is the case in .09 of the samples, within three standard errors. Without the
// allowance, weekends would differ in most samples.
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
