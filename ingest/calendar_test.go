package ingest

import "testing"

func TestIsCalendar(t *testing.T) {
	for name, want := range map[string]bool{
		"observation.hour": true, "hour": true, "observation.time.day_of_week": true, "observation.hour_sin": true, "observation.cosMonth": true, "observation.isWeekend": true,
		"observation.hourly_demand": false, "observation.temperature": false, "observation.0": false, "observation.daylight": false, "observation.": false,
	} {
		if got := IsCalendar(name); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
