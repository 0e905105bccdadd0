package baseline

import "time"

// CaveatWeekend says that the baseline cannot tell a weekend from a change. It covers days of the week only.
const CaveatWeekend = "the baseline covers less than a day of weekends"

const (
	aDay          = int64(24 * time.Hour)
	aWeek         = 7 * aDay
	firstSaturday = 2 * aDay // from the Unix epoch, a Thursday, to the first Saturday
)

// WeekendBounds returns when the weekend of a time begins and ends, in Unix nanoseconds UTC; zero on working days, and
// without a time.
func WeekendBounds(ts int64) (begin, end int64) {
	in := ((ts-firstSaturday)%aWeek + aWeek) % aWeek
	if ts == 0 || in >= 2*aDay {
		return 0, 0
	}
	return ts - in, ts - in + 2*aDay
}

// lacksWeekend reports whether units ended in less than 24 hours of weekends. They cover two days or more.
func (w *Warmup) lacksWeekend() bool {
	hours := map[int64]bool{}
	for i := range w.Each {
		if begin, _ := WeekendBounds(w.Each[i].EndTS); begin != 0 {
			hours[(w.Each[i].EndTS-begin)/int64(time.Hour)] = true
		}
	}
	return len(hours) < 24
}
