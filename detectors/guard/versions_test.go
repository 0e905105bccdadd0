package guard

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// tripAt lets a policy act safely up to a unit and then unsafely in every third unit, each with the version that
// acts, until its guard trips. It restarts at the units in restarts.
func tripAt(t *testing.T, from int, acts func(i int) string, restarts ...int) finding.Finding {
	t.Helper()
	cfg := watch.Guards{Limits: []watch.GuardLimit{unsafeLimit(.05, .01)}}
	s := New("p", cfg)
	for i := range from + 1000 {
		if slices.Contains(restarts, i) {
			parts := ingest.Parts{}
			if err := s.Changes(parts); err != nil {
				t.Fatal(err)
			}
			if s = New("p", cfg); s.Resume(parts) != nil {
				t.Fatal("the guards cannot be read")
			}
		}
		u := decision(i >= from && i%3 == 0)
		u.EndTS, u.Versions.Policy = int64(i), acts(i)
		if found := s.Observe(u); len(found) > 0 {
			return found[0]
		}
	}
	t.Fatal("the guard does not trip")
	return finding.Finding{}
}

// A version that changes every few units is weak evidence for a trip, one that hardly ever changes is strong
// evidence, and versions side by side are none.
func TestTripsKnowHowOftenVersionsCome(t *testing.T) {
	for _, c := range []struct {
		name     string
		acts     func(i int) string
		from     int
		restarts []int
		changed  bool
		every    float64
		rare     bool
	}{
		{name: "one", acts: func(int) string { return "1" }, from: 1000},
		{name: "one release", acts: func(i int) string { return fmt.Sprint(i / 1000) }, from: 1000, changed: true, rare: true},
		{name: "every 100 units", acts: func(i int) string { return fmt.Sprint(i / 100) }, from: 1000, changed: true, every: 100},
		{name: "the same over restarts", acts: func(i int) string { return fmt.Sprint(i / 100) }, from: 1000, changed: true, every: 100, restarts: []int{150, 720}},
		{name: "one an agent", acts: func(i int) string { return fmt.Sprint(i % 7) }, from: 1000},
	} {
		f := tripAt(t, c.from, c.acts, c.restarts...)
		pace := f.Paces.Policy
		if got := len(f.Changed) > 0; got != c.changed || got && pace.Rare() != c.rare || got && math.Abs(pace.Every-c.every) > .2*c.every {
			t.Errorf("%s: from %q to %q changed %v, %+v", c.name, f.Before.Policy, f.After.Policy, f.Changed, pace)
		}
	}
}

// Guards that an earlier build saved do not know which version acted. The first version that they see is not a
// change.
func TestTheFirstVersionAfterAnUpgradeIsNoChange(t *testing.T) {
	s := New("p", watch.Guards{Limits: []watch.GuardLimit{unsafeLimit(.05, .01)}})
	s.units = 500
	for i := range 300 {
		u := decision(false)
		u.EndTS, u.Versions.Policy = int64(i), "1"
		s.Observe(u)
	}
	if n := len(s.versions.Policy.Changes); n != 0 {
		t.Errorf("%d changes, want none", n)
	}
}
