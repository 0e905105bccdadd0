package fault

import (
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// If a unit is one decision, units off the scale often come in short runs. A run reuses the memory of the previous
// one, whichever side it is on.
func TestShortRunTakesNoMemory(t *testing.T) {
	moments := func(x float64) *ingest.Moments {
		m := &ingest.Moments{}
		m.Add(x)
		return m
	}
	usual, small, large := moments(1), moments(1e-3), moments(1e3)
	r, spare, u := scale{Need: usualRun + 1}, Memory{}, &ingest.Unit{}
	short := func(off *ingest.Moments) {
		for range usualRun {
			r.holds(u, "reward", off, off.Mean, off.Mean, &spare)
		}
	}
	if n := testing.AllocsPerRun(100, func() {
		short(small)
		short(large)
		r.holds(u, "reward", usual, usual.Mean, usual.Mean, &spare)
	}); n != 0 {
		t.Errorf("%v allocations for two runs of %d units", n, usualRun)
	}
	if len(r.Factors) > 0 || r.Parts[0].Run != nil {
		t.Error("a unit at the scale does not end the run")
	}
}
