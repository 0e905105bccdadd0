package season

import (
	"sync"
	"time"
	_ "time/tzdata" // a saved season needs its zone on any machine
)

// zones holds the time zones by name, since all groups of a fleet have few, and reading one takes a file.
var zones sync.Map

// Zone returns the time zone of a name such as Europe/Berlin; nil, which stands for UTC, for an empty name and one that
// the machine does not know.
func Zone(name string) *time.Location {
	if known, ok := zones.Load(name); ok {
		return known.(*time.Location)
	}
	if name == "" {
		return nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil
	}
	zones.Store(name, zone)
	return zone
}

func zoneName(zone *time.Location) string {
	if zone == nil {
		return ""
	}
	return zone.String()
}

// Clock returns what the clocks of a zone show at a time, as if it were UTC, in nanoseconds; 0 for no time. Days of the
// clock begin at midnight in the zone, and cycles of people follow it when clocks change.
func Clock(ts int64, zone *time.Location) int64 {
	if zone == nil || ts == 0 {
		return ts
	}
	_, offset := time.Unix(0, ts).In(zone).Zone()
	return ts + int64(offset)*int64(time.Second)
}

// Clocks returns Clock of each time.
func Clocks(times []int64, zone *time.Location) []int64 {
	if zone == nil {
		return times
	}
	out := make([]int64, len(times))
	for i, ts := range times {
		out[i] = Clock(ts, zone)
	}
	return out
}

// DaysOf numbers the days of times, 0 for those without a time.
func DaysOf(times []int64, zone *time.Location) []int64 {
	out := make([]int64, len(times))
	for i, ts := range times {
		out[i] = Clock(ts, zone) / int64(24*time.Hour)
	}
	return out
}
