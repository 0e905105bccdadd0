package fault

import (
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Units off the scale come in short runs all the time where a unit is one decision. A run is one allocation, whichever
// side it is on.
func TestShortRunIsOneAllocation(t *testing.T) {
	moments := func(x float64) *ingest.Moments {
		m := &ingest.Moments{}
		m.Add(x)
		return m
	}
	usual, small, large := moments(1), moments(1e-3), moments(1e3)
	r := scale{Need: usualRun + 1}
	short := func(off *ingest.Moments) {
		for range usualRun {
			r.holds(off, off.Mean, off.Mean, "")
		}
	}
	if n := testing.AllocsPerRun(100, func() {
		short(small)
		short(large)
		r.holds(usual, usual.Mean, usual.Mean, "")
	}); n != 2 {
		t.Errorf("%v allocations for two runs of %d units", n, usualRun)
	}
	if len(r.Factors) > 0 || r.Parts[0].Run != nil {
		t.Error("a unit at the scale does not end the run")
	}
}
