package testkit

import (
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/history"
)

// FallingReturn returns the history of the hour before a time, in which the return falls from 10 to 7 after 40 minutes.
// Without a clock, times are 0.
func FallingReturn(end time.Time, clock bool) history.Record {
	h := &history.History{}
	for i := range int64(240) {
		ts := end.Add(time.Duration(i-240) * 15 * time.Second).UnixNano()
		if !clock {
			ts = 0
		}
		h.Begin(i, ts)
		x := 10.
		if i >= 160 {
			x = 7
		}
		h.Add("return", x+float64(i%2))
	}
	return h.Record()
}
