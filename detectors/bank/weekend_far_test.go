package bank

import (
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// quietWeekends returns a group with a signal that a share of the units have, at noon on a Saturday after two quiet
// weekends, and a function that observes a unit of traffic, with value computing the signal's values.
func quietWeekends(share float64, value func(noise float64) float64) (s *traffic, p *Policy, st *story, observe func()) {
	s, p, st = newTraffic(cycles()[7], 943, 1), newBank(watch.DefaultConfig()), &story{}
	open := false
	observe = func() {
		u := s.unit()
		if s.rng.Float64() < share {
			x := value(s.rng.NormFloat64())
			m := ingest.NamedMoments{Signal: "outcome.rating"}
			m.Add(x)
			m.Q10, m.Q90 = x, x
			u.Numeric = append(u.Numeric, m)
		}
		st.tell(p.Observe(u, time.Time{}), &open)
	}
	for start := s.now; s.now-start < int64(24*24*time.Hour) || hourOfWeek(s.now) < 5*24+12 || open; {
		observe()
	}
	p.groups[0].Weekends = usualWeekends
	return s, p, st, observe
}

// A large change of a signal that few units have also pages if it begins on a weekend.
func TestSimLargeChangesOfRareSignalsPage(t *testing.T) {
	for _, share := range []float64{.7, .5, .3} {
		jump := 0.0
		s, _, st, observe := quietWeekends(share, func(noise float64) float64 { return 50 + noise + jump })
		jump = 12
		pages, start := len(st.paged), s.now
		for s.now-start < int64(12*time.Hour) && len(st.paged) == pages {
			observe()
		}
		if len(st.paged) == pages {
			t.Errorf("of %.0f%% of the units, a jump by 12 SD does not page within 12 hours", 100*share)
		}
	}
}

// If a signal was constant in the baseline, such as a violated constraint, any change is far from it.
func TestSimConstantsThatChangeOnAWeekendAreToldOf(t *testing.T) {
	x := 0.0
	s, _, st, observe := quietWeekends(1, func(float64) float64 { return x })
	x = 1
	opened := len(st.opened)
	for hourOfWeek(s.now) > 5*24 {
		observe()
	}
	if len(st.opened) == opened {
		t.Error("a constant changed for the rest of the weekend without an incident")
	}
}
