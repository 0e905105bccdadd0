package baseline

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Units are compared with those of the same time on the day before. Hours that were left out of that day because of an
// incident are not compared with the hours around them.
func TestSidesOfARoundLackWhatWasLeftOut(t *testing.T) {
	const hour = int64(time.Hour)
	from := time.Date(2027, 1, 11, 8, 0, 0, 0, time.UTC).UnixNano() // a Monday
	var w Warmup
	var values []stream.Observed
	for i := range int64(36) {
		if i == 3 || i == 4 {
			continue
		}
		values = append(values, stream.Observed{Unit: int32(len(w.Each)), X: float64(i)})
		w.Collect(&ingest.Unit{EndTS: from + i*hour}, 0, i)
	}
	of := w.Sides(values, 20, 25, Round{Cycle: 24 * time.Hour, Begun: from + 25*hour, Last: from + 35*hour})
	if want := []float64{1, 2, 5, 6, 7, 8, 9, 10, 11}; !slices.Equal(of.Before, want) {
		t.Errorf("before the onset %v, want %v", of.Before, want)
	}
	if want := []float64{25, 26, 29, 30, 31, 32, 33, 34, 35}; !slices.Equal(of.After, want) {
		t.Errorf("after the cycle %v, want %v", of.After, want)
	}
	if of = w.Sides(values, 4, 30, Round{}); len(of.Before) != 3 || len(of.After) != 6 {
		t.Errorf("without a cycle %v and %v", of.Before, of.After)
	}
}

// A Monday is not compared with the preceding Sunday, whose hours may differ.
func TestSidesOfARoundAreOfOneKindOfDays(t *testing.T) {
	const hour = int64(time.Hour)
	sunday := time.Date(2027, 1, 17, 0, 0, 0, 0, time.UTC).UnixNano()
	var w Warmup
	var values []stream.Observed
	for i := int64(-24); i < 60; i++ { // from Saturday to noon on Tuesday
		values = append(values, stream.Observed{Unit: int32(len(w.Each)), X: float64(i)})
		w.Collect(&ingest.Unit{EndTS: sunday + i*hour}, 0, i+24)
	}
	for _, c := range []struct {
		name           string
		last           int64 // hours since Sunday
		weekend, known bool
		zone           *time.Location
	}{
		{"on Sunday", 22, true, true, nil},
		{"on Monday", 44, false, false, nil},
		{"on Tuesday", 58, false, true, nil},
		{"on a Monday where it is still Sunday", 26, true, true, time.FixedZone("", -5*3600)},
	} {
		onset := 24 + c.last - 19 // in ordinals, which count from Saturday on
		round := Round{Cycle: 24 * time.Hour, Begun: sunday + (c.last-19)*hour, Last: sunday + c.last*hour, Zone: c.zone}
		of := w.Sides(values[:c.last+25], onset, onset, round)
		if known := len(of.Before) >= 10 && len(of.After) >= 10; known != c.known {
			t.Errorf("%s: %v before and %v after", c.name, of.Before, of.After)
		}
		for _, x := range slices.Concat(of.Before, of.After) {
			if begin, _ := WeekendBounds(sunday+int64(x)*hour, c.zone); (begin != 0) != c.weekend {
				t.Errorf("%s: the hour %v since Sunday is compared", c.name, x)
			}
		}
	}
}

// Values of rush hours depend on each other more than those of the other hours that a provisional baseline covers. A
// course over the hours, or days with different levels, do not count as dependence. A factor of 1.2^2 is 2.8 standard
// errors of .16 above 1: the probability that more than 6 of 200 runs have such a factor by chance, for the values or
// for their squares, is below 1 in 1,000.
func TestShiftOfARoundAllowsForDependence(t *testing.T) {
	const inHour, hours, runs = 40, 4, 200
	const hour = int64(time.Hour)
	monday := time.Date(2027, 1, 11, 8, 0, 0, 0, time.UTC).UnixNano()
	for _, dependence := range []float64{0, .7} {
		rng, wider := rand.New(rand.NewPCG(73, uint64(10*dependence))), 0.
		for range runs {
			var w Warmup
			q, last := &stream.Quantity{Name: "mean"}, 0.
			for day := range int64(3) {
				for i := range int64(inHour * hours) {
					last = dependence*last + math.Sqrt(1-dependence*dependence)*rng.NormFloat64()
					level := 2*float64(day) + float64(i/inHour)
					q.Warm = append(q.Warm, stream.Observed{Unit: int32(len(w.Each)), X: last + level})
					w.Collect(&ingest.Unit{EndTS: monday + day*24*hour + i*hour/inHour}, 0, int64(len(w.Each)))
				}
			}
			first := int64(2 * inHour * hours)
			round := Round{Cycle: 24 * time.Hour, Begun: w.Each[first].EndTS, Last: w.Each[len(w.Each)-1].EndTS}
			sides := w.Sides(q.Warm, first, first, round)
			s, told := sides.Shift(q)
			if !told || s.Units != inHour*hours {
				t.Fatalf("a shift of %d units, told %t", s.Units, told)
			}
			if s.StandardError > 1.2*math.Sqrt(1./(inHour*hours)+1./(2*inHour*hours)) {
				wider += 1. / runs
			}
		}
		t.Logf("dependence %g: %.2f of the errors are wider", dependence, wider)
		switch {
		case dependence == 0 && wider > 6./runs:
			t.Errorf("%.2f of the errors of independent values are wider", wider)
		case dependence > 0 && wider < .9:
			t.Errorf("only %.2f of the errors of dependent values are wider", wider)
		}
	}
}
