package words

import (
	"testing"
	"time"
)

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                                      "0 ms",
		1234 * time.Microsecond:                "1 ms",
		time.Second:                            "1 second",
		59*time.Second + 400*time.Millisecond:  "59 seconds",
		59*time.Second + 600*time.Millisecond:  "1 minute",
		20 * time.Minute:                       "20 minutes",
		61 * time.Second:                       "1 minute 1 second",
		time.Hour - 100*time.Millisecond:       "1 hour",
		2*time.Hour + 5*time.Minute:            "2 hours 5 minutes",
		2*time.Hour + 5*time.Second:            "2 hours",
		24*time.Hour - time.Second:             "1 day",
		49 * time.Hour:                         "2 days 1 hour",
		7 * 24 * time.Hour:                     "7 days",
		14*time.Hour + 36*time.Minute + 29*1e9: "14 hours 36 minutes",
	} {
		if got := Duration(d); got != want {
			t.Errorf("%s is %q, want %q", d, got, want)
		}
	}
}
