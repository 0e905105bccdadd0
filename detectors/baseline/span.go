package baseline

import (
	"iter"
	"math"
	"time"
)

// longestGap is the time between units that others lie between from which on the units do not cover it.
const longestGap = time.Hour

// stretches yields the times between successive units, in Unix nanoseconds, but for what was left out, as the units of
// an incident are. No two of them overlap: a late unit covers nothing, nor does one whose clock runs ahead of the next
// unit's. A long stretch thus counts once another unit has confirmed its end.
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

// isAhead reports whether the clock of a unit runs ahead of the next one's. Of the newest unit that is not known, and its
// time counts if it is near the last one.
func (w *Warmup) isAhead(i int, last int64) bool {
	at := w.Each[i].EndTS
	for _, next := range w.Each[i+1:] {
		if next.EndTS != 0 {
			return at > next.EndTS+clockTolerance
		}
	}
	return last != 0 && at > last+int64(longestGap)
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
// differ most, and a cycle that is not known makes them recur each day. Hours that a week has not brought are not awaited.
func (w *Warmup) LacksHours() bool {
	if w.Span() < TwoDays {
		return false
	}
	var days [24]int
	const hour = int64(time.Hour)
	first, next := int64(0), int64(0) // the first hour of all, and the first that is not counted yet
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

// week is how long units may be awaited for each hour of the day.
const week = 7 * 24 * time.Hour
