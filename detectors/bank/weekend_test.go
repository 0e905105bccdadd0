package bank

import (
	"slices"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/baseline"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
)

// Three weeks of unchanged traffic that differs at weekends, six times: the budget allows 3.8 pages. The baselines have no
// weekend, so that a weekend is on trial.
func TestSimWeekendsOutsideOfTheBaselineDoNotPage(t *testing.T) {
	for _, c := range cycles()[5:9] {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			pages, trials := 0, 0
			for seed := range uint64(6) {
				r := newTraffic(c, 900, seed).watch(21 * 24 * time.Hour)
				pages, trials = pages+r.pages, trials+r.trials
			}
			if pages > 4 || trials == 0 {
				t.Errorf("%d pages, %d trials", pages, trials)
			}
		})
	}
}

// onWorkingDays returns a bank with a baseline of working days, of traffic without a cycle, at the given hour of a week.
func onWorkingDays(t *testing.T, seed uint64, hour float64) (*traffic, *Policy) {
	t.Helper()
	s, p := newTraffic(cycles()[0], 930, seed), newBank(watch.DefaultConfig())
	for len(p.groups) == 0 || !p.groups[0].Warmup.Done || p.groups[0].Incident {
		p.Observe(s.unit(), time.Time{})
	}
	if !slices.Contains(p.groups[0].Promise.Caveats, baseline.CaveatWeekend) {
		t.Fatalf("baseline %+v, caveats %q", p.groups[0].Baseline, p.groups[0].Promise.Caveats)
	}
	for before := hour; before >= hour || hourOfWeek(s.now) < hour; {
		before = hourOfWeek(s.now)
		p.Observe(s.unit(), time.Time{})
	}
	if p.groups[0].Incident {
		t.Fatal("an incident before the change")
	}
	return s, p
}

// What changes on a Saturday and stays changed has an incident at once, and a page as soon as Monday shows it. What changes
// on a working day pages as ever.
func TestSimAChangeOnAWeekendPagesOnMonday(t *testing.T) {
	for seed := range uint64(3) {
		for _, hour := range []float64{5*24 + 12, 2*24 + 12} {
			s, p := onWorkingDays(t, seed, hour)
			s.shift = -1
			n, monday := 0, 0
			var st story
			for open := false; len(st.paged) == 0 && n < 3000; n++ {
				u := s.unit()
				st.tell(p.Observe(u, time.Time{}), &open)
				if begin, _ := baseline.WeekendBounds(u.EndTS, nil); begin == 0 {
					monday++
				}
			}
			switch weekend := hour > 5*24; {
			case len(st.paged) == 0:
				t.Errorf("seed %d: a change at hour %g does not page", seed, hour)
			case !weekend && len(st.opened) > 0:
				t.Errorf("seed %d: a change at hour %g is on trial", seed, hour)
			case weekend && (len(st.opened) == 0 || monday < 20 || monday > 100):
				t.Errorf("seed %d: a change on Saturday has incidents at units %v, and a page %d units after the weekend", seed, st.opened, monday)
			case weekend:
				t.Logf("seed %d: a page %d units after the change, %d after the weekend", seed, n, monday)
			}
		}
	}
}

// A bank that is restored at any unit of a trial of a weekend finds the same.
func TestSimTrialOfAWeekendSurvivesARestart(t *testing.T) {
	s, p := onWorkingDays(t, 0, 5*24+12)
	s.shift = -1
	restarts := 0
	for i := range 1500 {
		u := s.unit()
		if !p.groups[0].Probation.Weekend || i%97 != 0 {
			p.Observe(u, time.Time{})
			continue
		}
		again := restored(t, p)
		want, got := p.Observe(u, time.Time{}), again.Observe(u, time.Time{})
		if !sameFindings(want, got) {
			t.Fatalf("unit %d: findings %+v of the restored bank, want %+v", i, got, want)
		}
		p, restarts = again, restarts+1
	}
	if restarts < 5 || !p.groups[0].Incident || p.groups[0].Probation.On {
		t.Errorf("%d restarts within a trial, incident %+v", restarts, p.groups[0].Probation)
	}
}
