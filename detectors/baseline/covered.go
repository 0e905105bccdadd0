package baseline

import "time"

// Covered returns a function that reports whether a time lies in an hour of the day that the units up to the time until
// cover, on days of the same kind: working days or weekends. If units of less than a week include both kinds, no hour
// counts as covered.
func (w *Warmup) Covered(until int64, zone *time.Location) func(ts int64) bool {
	var hours [2][roundParts]bool
	var days [2]bool
	first := until
	for i := range w.Each {
		if ts := w.Each[i].EndTS; ts != 0 && ts <= until {
			day, hour := dayAndHour(ts, zone)
			hours[day][hour], days[day], first = true, true, min(first, ts)
		}
	}
	mixed := days[0] && days[1] && until-first < int64(week)
	return func(ts int64) bool {
		day, hour := dayAndHour(ts, zone)
		return hours[day][hour] && !mixed
	}
}

// dayAndHour returns 1 for a time on a weekend and 0 otherwise, and the hour of the day in UTC.
func dayAndHour(ts int64, zone *time.Location) (day, hour int) {
	if begin, _ := WeekendBounds(ts, zone); begin != 0 {
		day = 1
	}
	return day, int(ts / int64(time.Hour) % roundParts)
}
