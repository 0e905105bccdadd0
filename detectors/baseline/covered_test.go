package baseline

import (
	"testing"
	"time"
)

// An hour is covered if units of the same kind of day, up to a time, lie in it. If units of less than a week include
// both kinds of days, no hour is covered.
func TestCoveredHours(t *testing.T) {
	const hour = int64(time.Hour)
	monday := time.Date(2027, 1, 11, 0, 0, 0, 0, time.UTC).UnixNano()
	for _, c := range []struct {
		name               string
		first, last, until int64 // hours since Monday
		at                 int64
		want               bool
		zone               *time.Location
	}{
		{"the same hour of the next day", 8, 30, 20, 24 + 15, true, nil},
		{"an hour before the first", 8, 30, 20, 24 + 6, false, nil},
		{"an hour after the time", 8, 30, 20, 24 + 21, false, nil},
		{"a Saturday after working days", 0, 60, 60, 5*24 + 12, false, nil},
		{"a Sunday after a Saturday", 5*24 + 6, 6 * 24, 6 * 24, 6*24 + 12, true, nil},
		{"a Monday after a weekend", 5*24 + 6, 7*24 - 1, 7*24 - 1, 7*24 + 12, false, nil},
		{"a Monday where it is still Sunday", 5*24 + 12, 7*24 - 1, 7*24 - 1, 7*24 + 1, true, time.FixedZone("", -5*3600)},
		{"a Tuesday after a weekend and Monday", 5*24 + 6, 8 * 24, 8 * 24, 8*24 + 12, false, nil},
		{"a Sunday after a weekend and Monday", 5*24 + 6, 8 * 24, 8 * 24, 13*24 + 12, false, nil},
		{"a Sunday after a week", 0, 8 * 24, 8 * 24, 13*24 + 12, true, nil},
	} {
		covered := hourly(c.first, c.last).Covered(monday+c.until*hour, c.zone)
		if got := covered(monday + c.at*hour + hour/2); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}
