package baseline

import (
	"slices"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

func TestWeekendBounds(t *testing.T) {
	at := func(s string) int64 {
		ts, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return ts.UnixNano()
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		ts, begin, end string
		zone           *time.Location
	}{
		{"2027-01-15T23:59:59Z", "", "", nil},
		{"2027-01-16T00:00:00Z", "2027-01-16T00:00:00Z", "2027-01-18T00:00:00Z", nil},
		{"2027-01-17T23:59:59Z", "2027-01-16T00:00:00Z", "2027-01-18T00:00:00Z", nil},
		{"2027-01-18T00:00:00Z", "", "", nil},
		{"1969-12-28T12:00:00Z", "1969-12-27T00:00:00Z", "1969-12-29T00:00:00Z", nil},
		{"2027-01-15T23:00:00Z", "2027-01-15T23:00:00Z", "2027-01-17T23:00:00Z", berlin},
		{"2027-01-17T23:00:00Z", "", "", berlin},
		{"2026-10-25T22:59:59Z", "2026-10-23T22:00:00Z", "2026-10-25T23:00:00Z", berlin}, // clocks go back on Sunday
	} {
		begin, end := WeekendBounds(at(c.ts), c.zone)
		switch {
		case c.begin == "" && (begin != 0 || end != 0):
			t.Errorf("%s lies on a weekend", c.ts)
		case c.begin != "" && (begin != at(c.begin) || end != at(c.end)):
			t.Errorf("%s: the weekend goes from %d to %d", c.ts, begin, end)
		}
	}
	if _, end := WeekendBounds(0, nil); end != 0 {
		t.Error("a unit without a time lies on a weekend")
	}
}

// A baseline of two days or more has the caveat that it has no weekend; a shorter one has other caveats.
func TestCaveatWeekend(t *testing.T) {
	const hour = int64(time.Hour)
	monday := time.Date(2027, 1, 11, 0, 0, 0, 0, time.UTC).UnixNano()
	for _, c := range []struct {
		name        string
		first, last int64 // hours since Monday
		want        bool
	}{
		{"Monday to Wednesday", 1, 50, true},
		{"less than two days", 1, 48, false},
		{"to Saturday noon", 1, 132, true},
		{"to Sunday noon", 1, 156, false},
		{"a weekend alone", 120, 169, false},
		{"thirteen days from Monday on", 1, 312, false},
	} {
		w := &Warmup{}
		for h := c.first; h <= c.last; h++ {
			w.Each, w.Units = append(w.Each, Collected{EndTS: monday + h*hour - 1, Length: 1}), w.Units+1
		}
		if got := slices.Contains(w.Caveats(nil), CaveatWeekend); got != c.want {
			t.Errorf("%s: caveats %q", c.name, w.Caveats(nil))
		}
	}
}

// A baseline that includes a weekend but not all hours of working days has the caveat. A whole week, and a weekend
// alone in less than two days, do not.
func TestCaveatWorkingDays(t *testing.T) {
	for _, c := range []struct {
		name        string
		first, last int64 // hours since Monday
		want        bool
	}{
		{"Saturday to Monday morning", 5*24 + 5, 7*24 + 9, true},
		{"Saturday to Monday night", 5*24 + 5, 8*24 + 1, false},
		{"Friday noon to Sunday", 4*24 + 12, 7*24 - 1, true},
		{"working days", 0, 50, false},
		{"a weekend", 5 * 24, 7*24 - 1, false},
		{"a week", 0, 7*24 + 1, false},
	} {
		if caveats := hourly(c.first, c.last).Caveats(nil); slices.Contains(caveats, CaveatWorkingDays) != c.want {
			t.Errorf("%s: caveats %q", c.name, caveats)
		}
	}
}

// hourly returns a warm-up with one unit per hour, between two numbers of hours since a Monday.
func hourly(first, last int64) *Warmup {
	monday := time.Date(2027, 1, 11, 0, 0, 0, 0, time.UTC).UnixNano()
	w := &Warmup{}
	for h := first; h <= last; h++ {
		w.Collect(&ingest.Unit{EndTS: monday + h*int64(time.Hour)}, 0, h)
	}
	return w
}

// Two days that include part of a weekend are a mixture that depends on the day of the first unit; a week includes all
// days.
func TestMixesDays(t *testing.T) {
	for _, c := range []struct {
		name        string
		first, last int64 // hours since Monday
		zone        *time.Location
		want        bool
	}{
		{"Monday to Friday", 0, 119, nil, false},
		{"Monday to Saturday", 10, 121, nil, true},
		{"the same hours where it is still Friday", 10, 121, time.FixedZone("", -5*3600), false},
		{"Friday and part of Saturday", 96, 125, nil, false},
		{"a weekend alone", 120, 168, nil, true},
		{"a week", 0, 168, nil, false},
		{"Saturday to Saturday", 120, 288, nil, false},
	} {
		w := hourly(c.first, c.last)
		if got := w.MixesDays(c.zone); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}

// A mixture of days must have covered each hour of a working day; days of one kind lack nothing.
func TestLacksWorkingHours(t *testing.T) {
	for _, c := range []struct {
		name        string
		first, last int64 // hours since Monday
		zone        *time.Location
		want        bool
	}{
		{"Monday to Wednesday", 0, 60, nil, false},
		{"Friday to Sunday", 96, 145, nil, false},
		{"the same hours where Friday began before", 96, 145, time.FixedZone("", 3600), true},
		{"Friday noon to Sunday noon", 108, 157, nil, true},
		{"to Monday noon", 108, 180, nil, false},
		{"a weekend alone", 120, 168, nil, true},
		{"a weekend and Monday", 120, 191, nil, false},
	} {
		w := hourly(c.first, c.last)
		if got := w.LacksWorkingHours(c.zone); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}
