package bank

import (
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/watch"
)

// Agents of one kind work by day, and others at night, by the clocks of Berlin. When clocks go back after three weeks,
// the shifts change an hour later in UTC. That is not a drift for a policy with the time zone of Berlin, also after a
// restart.
func TestSimClocksThatGoBackDoNotPage(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	back := time.Date(2026, 10, 25, 1, 0, 0, 0, time.UTC)
	pages := func(zone string) int {
		shifts := cycle{"shifts", onShifts, steady, 1, 0, true}
		s, cfg := newTraffic(shifts, 903, 0), watch.DefaultConfig()
		cfg.Zone = zone
		p, open := newBank(cfg), false
		// The traffic follows the wall clock.
		s.now = time.Date(2026, 10, 4, 0, 0, 0, 0, time.UTC).UnixNano()
		restart := back.AddDate(0, 0, -1).UnixNano()
		var told story
		for s.now < back.AddDate(0, 0, 7).UnixNano() {
			u := s.unit()
			u.EndTS = onClock(u.EndTS, berlin)
			u.StartTS = u.EndTS
			if u.EndTS > restart {
				p, restart = restored(t, p), int64(1)<<62
			}
			told.tell(p.Observe(u, time.Time{}), &open)
		}
		if !p.groups[0].Warmup.Done {
			t.Fatal("there is no baseline")
		}
		return len(told.paged)
	}
	if n := pages("Europe/Berlin"); n > 1 {
		t.Errorf("%d pages, where the budget allows .9", n)
	}
	if n := pages(""); n < 5 {
		t.Errorf("%d pages by UTC: the test shows nothing without them", n)
	}
}

// onClock returns the time at which the clocks of a zone show what UTC shows at ts.
func onClock(ts int64, zone *time.Location) int64 {
	at := time.Unix(0, ts).UTC()
	return time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), zone).UnixNano()
}
