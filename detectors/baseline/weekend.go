package baseline

import (
	"slices"
	"time"
)

// CaveatWeekend says that the baseline hardly covers weekends, so a weekend can look like a change. Saved baselines
// include the sentence, so it must not change.
const CaveatWeekend = "the baseline covers less than a day of weekends"

// CaveatWeekends says that a weekend has differed from a baseline without weekends, so the same difference on another
// weekend is not reported again. Saved baselines include the sentence, so it must not change.
const CaveatWeekends = "weekends differ from the baseline: a change that ends before Monday is only reported if it is large"

// CaveatWorkingDays says that a baseline with part of a weekend lacks some hours of working days, so these can look
// like a change. Saved baselines include the sentence, so it must not change.
const CaveatWorkingDays = "the baseline lacks hours of working days"

// WeekendBounds returns when the weekend of a time begins and ends, in Unix nanoseconds; zeros on working days and
// without a time. zone is nil for UTC.
func WeekendBounds(ts int64, zone *time.Location) (begin, end int64) {
	if zone == nil {
		zone = time.UTC
	}
	at := time.Unix(0, ts).In(zone)
	since := (int(at.Weekday()) + 1) % 7 // days since Saturday
	if ts == 0 || since > 1 {
		return 0, 0
	}
	saturday := time.Date(at.Year(), at.Month(), at.Day()-since, 0, 0, 0, 0, zone)
	return saturday.UnixNano(), saturday.AddDate(0, 0, 2).UnixNano()
}

// Weekend returns the bounds of the first weekend that one of times is on; zeros if there is none.
func Weekend(zone *time.Location, times ...int64) (begin, end int64) {
	for _, ts := range times {
		if begin, end = WeekendBounds(ts, zone); end != 0 {
			break
		}
	}
	return begin, end
}

// OnWeekend reports whether the unit at a place ended on a weekend. zone is nil for UTC.
func (w *Warmup) OnWeekend(place int, zone *time.Location) bool {
	begin, _ := WeekendBounds(w.Each[place].EndTS, zone)
	return begin != 0
}

// MixesDays reports whether some units ended on a weekend, and the units cover at least two days but less than a week.
// The share of weekend units then depends on the day of the first unit, and differences of weekends look like
// differences between hours of the day.
func (w *Warmup) MixesDays(zone *time.Location) bool {
	if span := w.Span(); span < TwoDays || span >= week {
		return false
	}
	for i := range w.Each {
		if w.OnWeekend(i, zone) {
			return true
		}
	}
	return false
}

// LacksWorkingHours reports whether the units mix kinds of days, but do not cover each hour of a working day.
func (w *Warmup) LacksWorkingHours(zone *time.Location) bool {
	if !w.MixesDays(zone) {
		return false
	}
	var covered [24]bool
	const hour = int64(time.Hour)
	for from, to := range w.stretches() {
		for h := from / hour; h <= to/hour; h++ {
			if begin, _ := WeekendBounds(h*hour, zone); begin == 0 {
				covered[h%24] = true
			}
		}
	}
	return slices.Contains(covered[:], false)
}

// lacksWeekend reports whether the units that ended on weekends cover fewer than 24 hours of them.
func (w *Warmup) lacksWeekend(zone *time.Location) bool {
	hours := map[int64]bool{}
	for i := range w.Each {
		if begin, _ := WeekendBounds(w.Each[i].EndTS, zone); begin != 0 {
			hours[(w.Each[i].EndTS-begin)/int64(time.Hour)] = true
		}
	}
	return len(hours) < 24
}

// Without returns a copy of caveats without the caveat one.
func Without(caveats []string, one string) []string {
	return slices.DeleteFunc(slices.Clone(caveats), func(c string) bool { return c == one })
}
