package baseline

import (
	"slices"
	"time"
)

// cycles are the cycles that a change may belong to, longest first.
var cycles = []time.Duration{7 * 24 * time.Hour, 24 * time.Hour}

// Cycle returns the longest cycle that a warm-up of units units would cover at the rate so far, and when one cycle will
// have passed; 0 if there is none, or no usable clock. Outlying times do not count in the rate.
func (w *Warmup) Cycle(units int) (cycle time.Duration, round int64) {
	times := w.Times()
	if len(times) == 0 {
		return 0, 0
	}
	slices.Sort(times)
	cut := len(times) / 100
	first, last := times[cut], times[len(times)-1-cut]
	span := float64(last-first) / float64(len(times)-2*cut) * float64(units)
	for _, c := range cycles {
		if span >= float64(c) {
			return c, first + int64(c)
		}
	}
	return 0, 0
}
