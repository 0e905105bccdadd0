package baseline

import (
	"slices"
	"time"
)

// CaveatWeekend says that the baseline cannot tell a weekend from a change. It covers days of the week only.
// Baselines of earlier builds have the sentence in their state, so it must not change.
const CaveatWeekend = "the baseline covers less than a day of weekends"

// CaveatWeekends says that weekends differ from such a baseline, so that it is no news if another one does. It is in states,
// so it must not change.
const CaveatWeekends = "weekends differ from the baseline: a change that ends before Monday is only reported if it is large"

// CaveatWorkingDays says that a baseline with part of a weekend cannot tell some hours of working days from a change. It is in
// states, so it must not change.
const CaveatWorkingDays = "the baseline lacks hours of working days"

// WeekendBounds returns when the weekend of a time begins and ends in a time zone, nil for UTC, in Unix nanoseconds; zero
// on working days, and without a time.
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

// Weekend returns the bounds of the weekend of the first of some times that lies on one; zeros if none does.
func Weekend(zone *time.Location, times ...int64) (begin, end int64) {
	for _, ts := range times {
		if begin, end = WeekendBounds(ts, zone); end != 0 {
			break
		}
	}
	return begin, end
}

// OnWeekend reports whether the unit at a place ended on a weekend in a time zone, nil for UTC.
func (w *Warmup) OnWeekend(place int, zone *time.Location) bool {
	begin, _ := WeekendBounds(w.Each[place].EndTS, zone)
	return begin != 0
}

// MixesDays reports whether some units ended on a weekend, and the units cover two days, but no week. How many of them did
// then depends on the day of their first one, and what differs on weekends looks as if hours of the day did.
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

// LacksWorkingHours reports whether the units mix days, but have not covered each hour of a working day.
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

// lacksWeekend reports whether units ended in less than 24 hours of weekends. They cover two days or more.
func (w *Warmup) lacksWeekend(zone *time.Location) bool {
	hours := map[int64]bool{}
	for i := range w.Each {
		if begin, _ := WeekendBounds(w.Each[i].EndTS, zone); begin != 0 {
			hours[(w.Each[i].EndTS-begin)/int64(time.Hour)] = true
		}
	}
	return len(hours) < 24
}

// Without returns a copy of caveats without one of them.
func Without(caveats []string, one string) []string {
	return slices.DeleteFunc(slices.Clone(caveats), func(c string) bool { return c == one })
}
