package season

import (
	"sync"
	"time"
	_ "time/tzdata" // a saved season needs its zone on any machine
)

// zones caches time zones by name. The groups of a fleet use few zones, and loading one reads a file.
var zones sync.Map

// Zone returns the time zone with a name such as Europe/Berlin. It returns nil, which stands for UTC, for an empty name
// and for a zone that the machine does not know.
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

// Clock returns the time that clocks in a zone show at ts, as if it were UTC, in nanoseconds; 0 without a time. Days on
// the clock begin at midnight in the zone, so daily cycles of people stay in place when clocks change.
func Clock(ts int64, zone *time.Location) int64 {
	if zone == nil || ts == 0 {
		return ts
	}
	_, offset := time.Unix(0, ts).In(zone).Zone()
	return ts + int64(offset)*int64(time.Second)
}

// Clocks returns the result of Clock for each time.
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

// DaysOf returns the number of the day of each time, counted from the Unix epoch; 0 without a time.
func DaysOf(times []int64, zone *time.Location) []int64 {
	out := make([]int64, len(times))
	for i, ts := range times {
		out[i] = Clock(ts, zone) / int64(24*time.Hour)
	}
	return out
}
