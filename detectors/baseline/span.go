package baseline

import (
	"iter"
	"math"
	"time"
)

// longestGap is the time between units that others lie between from which on the units do not cover it.
const longestGap = time.Hour

// stretches yields the times between successive units, in Unix nanoseconds, but for what was left out, as the units of
// an incident are.
func (w *Warmup) stretches() iter.Seq2[int64, int64] {
	return func(yield func(from, to int64) bool) {
		last := int64(0)
		for i := range w.Each {
			at := w.Each[i].EndTS
			if at == 0 {
				continue
			}
			follows := i > 0 && w.Each[i].Ordinal == w.Each[i-1].Ordinal+1
			if last != 0 && at > last && (follows || at-last <= int64(longestGap)) && !yield(last, at) {
				return
			}
			last = at
		}
	}
}

// Span returns the time that the units cover, 0 if the clock is not usable: from the first to the last, but for what was
// left out.
func (w *Warmup) Span() time.Duration {
	if _, usable := w.Clock(); !usable {
		return 0
	}
	seconds := 0.0
	for from, to := range w.stretches() {
		seconds += time.Duration(to - from).Seconds()
	}
	return time.Duration(min(maxSilence.Seconds(), seconds) * float64(time.Second))
}

// Fits reports whether the units cover less than a span, which so many units may cover. The rate so far may be higher than
// that of whole days by chance, and whether a span fits is asked again only if it does.
func (w *Warmup) Fits(span time.Duration, units int) bool {
	so, n := w.Span(), float64(w.Units)
	return so < span && so.Hours()/n*(1+3/math.Sqrt(n))*float64(units) >= span.Hours()
}

// LacksHours reports whether the units cover two days, but not each hour of the day twice. Incidents take the hours that
// differ most, and a cycle that is not known makes them recur each day.
func (w *Warmup) LacksHours() bool {
	if w.Span() < TwoDays {
		return false
	}
	var days [24]int
	const hour = int64(time.Hour)
	next := int64(0) // the first hour that is not counted yet
	for from, to := range w.stretches() {
		if to-from >= int64(TwoDays) {
			return false
		}
		for h := max(next, from/hour); h <= to/hour; h++ {
			days[h%24]++
			next = h + 1
		}
	}
	for _, n := range days {
		if n < 2 {
			return true
		}
	}
	return false
}
