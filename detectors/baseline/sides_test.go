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
	const hour, from = int64(time.Hour), int64(1_800_000_000e9)
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
