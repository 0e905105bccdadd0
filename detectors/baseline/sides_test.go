package baseline

import (
	"slices"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Units are compared with those at the same time of the day before. Of hours that an incident has taken from it, nothing is
// known, and they are not compared with the hours around them.
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
	before, after := w.Sides(values, 20, 25, Round{Cycle: 24 * time.Hour, Begun: from + 25*hour, Last: from + 35*hour})
	if want := []float64{1, 2, 5, 6, 7, 8, 9, 10, 11}; !slices.Equal(before, want) {
		t.Errorf("before the onset %v, want %v", before, want)
	}
	if want := []float64{25, 26, 29, 30, 31, 32, 33, 34, 35}; !slices.Equal(after, want) {
		t.Errorf("after the cycle %v, want %v", after, want)
	}
	if before, after = w.Sides(values, 4, 30, Round{}); len(before) != 3 || len(after) != 6 {
		t.Errorf("without a cycle %v and %v", before, after)
	}
}

// A Monday is not compared with the Sunday before it, whose hours may differ.
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
		onset := 24 + c.last - 19 // by the ordinals, which count from Saturday on
		round := Round{Cycle: 24 * time.Hour, Begun: sunday + (c.last-19)*hour, Last: sunday + c.last*hour, Zone: c.zone}
		before, after := w.Sides(values[:c.last+25], onset, onset, round)
		if known := len(before) >= 10 && len(after) >= 10; known != c.known {
			t.Errorf("%s: %v before and %v after", c.name, before, after)
		}
		for _, x := range slices.Concat(before, after) {
			if begin, _ := WeekendBounds(sunday+int64(x)*hour, c.zone); (begin != 0) != c.weekend {
				t.Errorf("%s: the hour %v since Sunday is compared", c.name, x)
			}
		}
	}
}
