package season

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors"
)

// dayAndNight returns times of units with daily cycles: three times as many units per hour by day as at night.
func dayAndNight(rng *rand.Rand, units int) (times []int64, night []bool) {
	now := time.Date(2027, 1, 11, 0, 0, 0, 0, time.UTC).UnixNano()
	for range units {
		hour := hourOfDay(now)
		atNight := hour < 8 || hour >= 20
		every := float64(time.Hour) / 60
		if atNight {
			every *= 3
		}
		now += int64(every * rng.ExpFloat64())
		times, night = append(times, now), append(night, hourOfDay(now) < 8 || hourOfDay(now) >= 20)
	}
	return times, night
}

// dependent returns autocorrelated series, with one coefficient by day and another one at night. Half of their noise is
// common to all series.
func dependent(rng *rand.Rand, night []bool, series int, byDay, byNight float64) [][]float64 {
	out := make([][]float64, series)
	for i := range out {
		out[i] = make([]float64, len(night))
	}
	for t := range night {
		carried, common := byDay, rng.NormFloat64()
		if night[t] {
			carried = byNight
		}
		for _, z := range out {
			noise := math.Sqrt((1-carried*carried)/2) * (common + rng.NormFloat64())
			if z[t] = noise; t > 0 {
				z[t] += carried * z[t-1]
			}
		}
	}
	return out
}

// If values depend on each other equally at all hours, hours seldom count as different, no matter how strongly the
// series are correlated and how many units an hour has. If nights differ, four series reveal it.
func TestSumsDiffer(t *testing.T) {
	const runs, units, level = 150, 1800, .01
	for _, c := range []struct {
		name           string
		byDay, byNight float64
		least, most    float64 // share of the runs
	}{
		{"independent", 0, 0, 0, level + 3*math.Sqrt(level/runs)},
		{"equally dependent", .4, .4, 0, level + 3*math.Sqrt(level/runs)},
		{"nights are dependent", 0, .6, .9, 1},
		{"days are more dependent", .7, 0, .9, 1},
	} {
		rng, found := rand.New(rand.NewPCG(61, uint64(100*c.byNight))), 0
		for range runs {
			times, night := dayAndNight(rng, units)
			series := dependent(rng, night, 4, c.byDay, c.byNight)
			for i := range 600 {
				series[3][i] = math.NaN() // a quantity that began later
			}
			if SumsDiffer(series, times, nil, level) {
				found++
			}
		}
		share := float64(found) / runs
		if t.Logf("%s: different in %.3f", c.name, share); share < c.least || share > c.most {
			t.Errorf("%s: different in %.3f of the runs, want %.3f to %.3f", c.name, share, c.least, c.most)
		}
	}
}

// Few blocks, a series without values, and a series without spread are not evidence of a difference.
func TestSumsOfLittleDoNotDiffer(t *testing.T) {
	times, night := dayAndNight(rand.New(rand.NewPCG(62, 1)), 1800)
	series := dependent(rand.New(rand.NewPCG(62, 2)), night, 1, 0, .9)
	if !SumsDiffer(series, times, nil, .01) {
		t.Error("1,800 values do not differ")
	}
	if SumsDiffer([][]float64{series[0][:100]}, times[:100], nil, .01) {
		t.Error("100 values differ")
	}
	empty := make([]float64, len(times))
	if SumsDiffer([][]float64{empty}, times, nil, .01) || SumsDiffer(nil, times, nil, .01) {
		t.Error("nothing differs")
	}
	for i := range empty {
		empty[i] = math.NaN()
	}
	if SumsDiffer([][]float64{empty}, times, nil, .01) {
		t.Error("nothing differs")
	}
	if SumsDiffer(series, make([]int64, len(times)), nil, .01) {
		t.Error("values without times differ")
	}
}

// The factor of an hour, estimated from 120 values, is at least the true factor in about two of three cases, since one
// standard error is added. By day, values are independent, and the factor of all hours is nearly large enough.
func TestHourFactors(t *testing.T) {
	const runs, units, byNight = 200, 1800, .5
	truth, enough, above := (1+byNight)/(1-byNight), 0, 0.0
	rng := rand.New(rand.NewPCG(63, 1))
	for range runs {
		times, night := dayAndNight(rng, units)
		z := dependent(rng, night, 1, 0, byNight)
		all := detectors.AllowedFactor(z[0])
		f := NewHourFactors(z, times, all, 1, nil)
		if f.At(at(2)) > f.Largest() || f.At(0) != 1 {
			t.Fatalf("%g at night, %g without a time, %g at most", f.At(at(2)), f.At(0), f.Largest())
		}
		if all*f.At(at(2)) >= .9*truth { // over 20 lags, the factor is .93 of the true one
			enough++
		}
		above += f.At(at(14)) / runs
	}
	share := float64(enough) / runs
	t.Logf("enough by night in %.2f, %.2f above by day", share, above)
	if least := 2./3 - 3*math.Sqrt(2./9/runs); share < least {
		t.Errorf("enough in %.2f of the runs, want %.2f", share, least)
	}
	if above > 1.3 {
		t.Errorf("by day, evidence is divided by %.2f", above)
	}
	var none *HourFactors
	if none.At(at(2)) != 1 || none.Largest() != 1 {
		t.Error("without factors of hours, evidence is divided")
	}
}

// at returns a time in an hour of the day.
func at(hour int) int64 { return time.Date(2027, 1, 12, hour, 30, 0, 0, time.UTC).UnixNano() }
