package season

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// nights has values of some days, in an hour each; those from 22 to 6 o'clock depend on the ones before.
func nights(rng *rand.Rand, days, inHour int, dependence float64) (z []float64, times []int64) {
	last := rng.NormFloat64()
	for hour := range days * hoursOfDay {
		carried := 0.0
		if of := hour % hoursOfDay; of >= 22 || of < 6 {
			carried = dependence
		}
		for k := range inHour {
			last = carried*last + math.Sqrt(1-carried*carried)*rng.NormFloat64()
			z = append(z, last)
			times = append(times, int64(time.Hour)*int64(hour+48)+int64(time.Hour)*int64(k)/int64(inHour))
		}
	}
	return z, times
}

// A night whose values depend on each other is slower by the factor of its values, and one standard error of that; a day of
// independent ones by that error alone.
func TestPaceOfNights(t *testing.T) {
	const days, inHour, runs, dependence = 4, 20, 200, .5
	bartlett := 1.0
	for lag := 1; lag <= paceLags; lag++ {
		bartlett += 2 * (1 - float64(lag)/(paceLags+1)) * math.Pow(dependence, float64(lag))
	}
	for _, c := range []struct {
		hour int
		want float64
	}{{2, bartlett}, {13, 1}} {
		at, sum, square := int64(c.hour)*int64(time.Hour), 0.0, 0.0
		const n = 3 * days * inHour // of the hour and its neighbours, as one hour has less than 100 values
		reserve := 1 - math.Sqrt(4*(paceLags+1)/(3.*n))
		for run := range uint64(runs) {
			z, times := nights(rand.New(rand.NewPCG(81, run)), days, inHour, dependence)
			of := reserve * longRun(z, times, c.hour)
			sum, square = sum+of/runs, square+of*of/runs
			want := min(1+255./paceSteps, max(1, of/reserve))
			if p := NewPace([][]float64{z}, times, 1, 1, nil); p == nil || math.Abs(p.At(at)-want) > .51/paceSteps {
				t.Fatalf("run %d: %v at %d o'clock, want %.2f", run, p, c.hour, want)
			}
		}
		if se := math.Sqrt((square - sum*sum) / runs); math.Abs(sum-c.want) > 4*se {
			t.Errorf("%d o'clock: factor %.3f ± %.3f, want %.3f", c.hour, sum, se, c.want)
		}
	}
}

// Independent values are found to depend on each other at the level of the test, and have no pace otherwise. Dependence at
// night alone is found.
func TestPaceNeedsDependence(t *testing.T) {
	const runs = 1000
	found := [2]float64{}
	for run := range uint64(runs) {
		for k, dependence := range []float64{0, .5} {
			z, times := nights(rand.New(rand.NewPCG(83, run)), 2, 30, dependence)
			if p := NewPace([][]float64{z}, times, 1, 1, nil); p != nil {
				found[k] += 1. / runs
			}
		}
	}
	t.Logf("%.3f of independent values, %.3f of dependent ones", found[0], found[1])
	if most := dependentLevel + 4*math.Sqrt(dependentLevel*(1-dependentLevel)/runs); found[0] > most || found[1] < .99 {
		t.Errorf("found in %.3f of independent values and %.3f of dependent ones, want at most %.3f and at least .99", found[0], found[1], most)
	}
}

// What the factor of all hours says already slows no hour, and a value without a time is of no hour.
func TestPaceBesideAFactor(t *testing.T) {
	z, times := nights(rand.New(rand.NewPCG(82, 0)), 4, 20, .5)
	if p := NewPace([][]float64{z}, times, 20, 1, nil); p != nil {
		t.Errorf("hours that are slower than a factor of 20: %v", p.Slower)
	}
	p := NewPace([][]float64{z}, times, 2, 1, nil)
	if p == nil || p.At(int64(2*time.Hour)) < 1.2 || p.At(0) != 1 {
		t.Fatalf("a night: %+v", p)
	}
	tokyo, err := time.LoadLocation("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	there := NewPace([][]float64{z}, times, 2, 1, tokyo)
	again := &Pace{Slower: there.Slower, Zone: there.Zone}
	again.Attach()
	for hour := range int64(hoursOfDay) {
		ts := hour*int64(time.Hour) + 1
		if a, b, c := p.At(ts), there.At(ts), again.At(ts); a != b || a != c {
			t.Errorf("%d h: %v, but %v by the hours of Tokyo, and %v restored", hour, a, b, c)
		}
	}
	if few := NewPace([][]float64{z[:90]}, times[:90], 1, 1, nil); few != nil {
		t.Errorf("a pace of 90 values: %v", few.Slower)
	}
}
