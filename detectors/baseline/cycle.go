package baseline

import (
	"math"
	"slices"
	"time"
)

// cycles are the cycles that a change may belong to, longest first. To cover one, a warm-up may grow to sizes times its
// size.
var cycles = []struct {
	length time.Duration
	sizes  float64
}{{7 * 24 * time.Hour, 1}, {24 * time.Hour, 3}}

// Cycle returns the longest cycle that a warm-up of the given number of units would cover at the rate so far, if it may
// grow as cycles allows, and the time at which one cycle will have passed. It returns 0 if there is no such cycle, or
// no usable clock. Outlying times do not affect the rate.
func (w *Warmup) Cycle(units int) (cycle time.Duration, round int64) {
	times := w.Times()
	if len(times) == 0 {
		return 0, 0
	}
	slices.Sort(times)
	cut := len(times) / 100
	first, last := times[cut], times[len(times)-1-cut]
	n := float64(len(times) - 2*cut)
	span := float64(last-first) / n * float64(units)
	for _, c := range cycles {
		most := span * c.sizes
		if c.sizes > 1 { // as in Fits, the rate so far may by chance be higher than that of whole days
			most *= 1 + 3/math.Sqrt(n)
		}
		if most >= float64(c.length) {
			return c.length, first + int64(c.length)
		}
	}
	return 0, 0
}
