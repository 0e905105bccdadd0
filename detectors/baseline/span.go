package baseline

import (
	"iter"
	"math"
	"time"
)

// longestGap is the time between two units from which on it does not count as covered, if units between them were left
// out.
const longestGap = time.Hour

// stretches yields the covered times between successive units, in Unix nanoseconds. It skips what was left out, such as
// the units of an incident. No two stretches overlap: a late unit covers nothing, and neither does one whose clock runs
// ahead of the next unit's. A long stretch therefore counts only after another unit has confirmed its end.
func (w *Warmup) stretches() iter.Seq2[int64, int64] {
	return func(yield func(from, to int64) bool) {
		last, gap := int64(0), false
		for i := range w.Each {
			at := w.Each[i].EndTS
			gap = gap || i > 0 && w.Each[i].Ordinal != w.Each[i-1].Ordinal+1
			if at <= last || w.isAhead(i, last) {
				continue
			}
			if last != 0 && (!gap || at-last <= int64(longestGap)) && !yield(last, at) {
				return
			}
			last, gap = at, false
		}
	}
}

// isAhead reports whether the clock of a unit runs ahead of the next one's. There is no next one for the newest unit,
// whose time counts if it is close to last.
func (w *Warmup) isAhead(i int, last int64) bool {
	at := w.Each[i].EndTS
	for _, next := range w.Each[i+1:] {
		if next.EndTS != 0 {
			return at > next.EndTS+clockTolerance
		}
	}
	return last != 0 && at > last+int64(longestGap)
}

// Span returns the time that the units cover, from the first to the last without what was left out; 0 if the clock is
// not usable.
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

// Fits reports whether the units cover less than a span that the given number of units may cover. The rate so far may
// by chance be higher than that of whole days, so the answer can change; it should only be asked again after true.
func (w *Warmup) Fits(span time.Duration, units int) bool {
	so, n := w.Span(), float64(w.Units)
	return so < span && so.Hours()/n*(1+3/math.Sqrt(n))*float64(units) >= span.Hours()
}

// LacksHours reports whether the units cover two days, but not each hour of the day twice. Incidents remove the hours
// that differ most, and recur each day as long as the cycle is unknown. Hours that have not occurred within a week are
// not awaited.
func (w *Warmup) LacksHours() bool {
	if w.Span() < TwoDays {
		return false
	}
	var days [24]int
	const hour = int64(time.Hour)
	first, next := int64(0), int64(0) // the first hour of all, and the first hour not counted yet
	for from, to := range w.stretches() {
		if first == 0 {
			first = from
		}
		if to-from >= int64(TwoDays) || to-first >= int64(week) {
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

// week is how long to wait for each hour of the day.
const week = 7 * 24 * time.Hour
