package battery

import (
	"math"
	"testing"
)

// The limits are those of Garwood's tables: for 10 events the 90% interval is 5.425 to 16.962, for none up to
// 2.996.
func TestIntervalOfAFewAlarms(t *testing.T) {
	near := func(got, want float64) bool { return got == want || math.Abs(got/want-1) < 1e-3 }
	for _, tt := range []struct {
		c               Count
		arl0, low, high float64
	}{
		{Count{Units: 1000, Alarms: 10}, 100, 1000 / 16.962, 1000 / 5.425},
		{Count{Units: 1000, Alarms: 0}, 1000, 1000 / 2.996, math.Inf(1)},
	} {
		if arl0, low, high := tt.c.Interval(); !near(arl0, tt.arl0) || !near(low, tt.low) || !near(high, tt.high) {
			t.Errorf("%+v: %v (%v to %v), want %v (%v to %v)", tt.c, arl0, low, high, tt.arl0, tt.low, tt.high)
		}
	}
}
