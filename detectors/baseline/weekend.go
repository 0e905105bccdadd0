package baseline

import "time"

// CaveatWeekend says that the baseline cannot tell a weekend from a change. It covers days of the week only.
// Baselines of earlier builds have the sentence in their state, so it must not change.
const CaveatWeekend = "the baseline covers less than a day of weekends"

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
