package bank

import (
	"slices"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/baseline"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
)

// Three weeks of unchanged traffic that differs on weekends, eight times, beginning on any day of the week: the budget
// allows 4.4 pages. Baselines of a few days do not include a weekend, so a weekend is on trial.
func TestSimWeekendsOutsideOfTheBaselineDoNotPage(t *testing.T) {
	for _, c := range cycles()[5:9] {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			pages, trials := 0, 0
			for i := range uint64(8) { // every 21 hours
				r := newTraffic(c, 912, 3*i).watch(21 * 24 * time.Hour)
				pages, trials = pages+r.pages, trials+r.trials
			}
			if t.Logf("%d pages, %d trials", pages, trials); pages > 5 || trials == 0 {
				t.Errorf("%d pages, %d trials", pages, trials)
			}
		})
	}
}

// onWorkingDays returns a bank with a baseline of working days, of traffic without a cycle, at the given hour of a
// week.
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

// A change that begins on a Saturday and lasts opens an incident immediately, and pages as soon as Monday shows it. A
// change on a working day pages as usual.
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

// A bank that is restored at any unit of a weekend's trial has the same findings.
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

// On a weekend that the baseline lacks, a shift waits for Monday, even if rewards have a level of many standard
// deviations and are judged among similar hours. A jump by ten standard deviations pages immediately.
func TestSimAJumpOnAWeekendPagesAtOnce(t *testing.T) {
	trials := 0
	for seed := range uint64(3) {
		s, p, open := newTraffic(cycles()[7], 930, seed), newBank(watch.DefaultConfig()), false
		s.shift = 50
		var st story
		for len(p.groups) == 0 || !p.groups[0].Warmup.Done || hourOfWeek(s.now) < 5*24+12 {
			st.tell(p.Observe(s.unit(), time.Time{}), &open)
		}
		if q := rewardMean(p); q.Season == nil || len(st.paged) > 0 {
			t.Fatalf("seed %d: season %v, pages %v", seed, q.Season != nil, st.paged)
		}
		s.shift = 48
		for range 150 {
			st.tell(p.Observe(s.unit(), time.Time{}), &open)
		}
		if trials += len(st.opened); len(st.paged) > 0 {
			t.Errorf("seed %d: two standard deviations page before Monday", seed)
		}
		s.shift = 60
		n := 0
		for ; len(st.paged) == 0 && n < 100; n++ {
			st.tell(p.Observe(s.unit(), time.Time{}), &open)
		}
		if t.Logf("a page %d units after the jump", n); n > 60 {
			t.Errorf("seed %d: the jump does not page within 60 units", seed)
		}
	}
	if trials < 3 {
		t.Errorf("%d trials", trials)
	}
}

// friday returns traffic that begins on a Friday at midnight.
func friday(c cycle, seed, stream uint64) *traffic {
	s := newTraffic(c, seed, stream)
	s.now = time.Date(2027, 1, 15, 0, 0, 0, 0, time.UTC).UnixNano()
	return s
}

// accepted feeds a bank until its baseline is accepted, and returns it with the time that this took.
func (t *traffic) accepted() (*Policy, time.Duration) {
	p, start := newBank(watch.DefaultConfig()), t.now
	for len(p.groups) == 0 || !p.groups[0].Warmup.Done {
		p.Observe(t.unit(), time.Time{})
	}
	return p, time.Duration(t.now - start)
}

// A warm-up that begins on a Friday, at any hour, keeps its weekend if days are alike. It ends once it includes each
// hour of a working day, which takes up to three days. One in 20 may find days different by chance; 3 of 16 do so with
// a probability of 1 in 25.
func TestSimAWarmUpOfEqualDaysKeepsItsWeekend(t *testing.T) {
	for _, c := range []cycle{cycles()[0], cycles()[1]} {
		left := 0
		for seed := range uint64(16) {
			s := friday(c, 940, seed)
			s.now += int64(seed) * int64(90*time.Minute)
			_, took := s.accepted()
			if took > 76*time.Hour {
				left++
			}
			t.Logf("%s, seed %d: accepted after %.0f h", c.name, seed, took.Hours())
		}
		if left > 3 {
			t.Errorf("%s: %d of 16 warm-ups took more than three days", c.name, left)
		}
	}
}

// A warm-up whose weekends differ leaves out the weekend and has two working days.
func TestSimAWarmUpOfDifferentDaysLeavesItsWeekendOut(t *testing.T) {
	for _, c := range []cycle{cycles()[5], cycles()[7]} {
		for seed := range uint64(8) {
			p, took := friday(c, 941, seed).accepted()
			if caveats := p.groups[0].Promise.Caveats; took < 95*time.Hour || !slices.Contains(caveats, baseline.CaveatWeekend) {
				t.Errorf("%s, seed %d: accepted after %.0f h, with the caveats %q", c.name, seed, took.Hours(), caveats)
			}
		}
	}
}

// Weekends that differ open a provisional incident twice, and none after that, regardless of the day on which the four
// and a half weeks begin. A page, of which the budget allows 3.7, restarts the count, since weekends may have changed.
func TestSimEachSaturdayOpensNoIncident(t *testing.T) {
	for _, c := range []cycle{cycles()[5], cycles()[7]} {
		pages, trials := 0, 0
		for seed := range uint64(4) {
			s, p, open := newTraffic(c, 942, 6*seed), newBank(watch.DefaultConfig()), false
			since, paged := 0, false // number of incidents since the last page
			for start := s.now; s.now-start < int64(32*24*time.Hour); {
				var st story
				u := s.unit()
				if st.tell(p.Observe(u, time.Time{}), &open); !p.groups[0].Warmup.Done {
					continue
				}
				if since += len(st.opened); len(st.paged) > 0 {
					since, paged = 0, true
				}
				if pages, trials = pages+len(st.paged), trials+len(st.opened); len(st.opened) > 0 && since > 2 {
					t.Errorf("%s, seed %d: incident %d at hour %.0f of the week", c.name, seed, since, hourOfWeek(u.EndTS))
				}
			}
			if !paged && !slices.Contains(p.groups[0].Promise.Caveats, baseline.CaveatWeekends) {
				t.Errorf("%s, seed %d: caveats %q", c.name, seed, p.groups[0].Promise.Caveats)
			}
		}
		if t.Logf("%s: %d pages, %d incidents", c.name, pages, trials); pages > 5 || trials < 4 {
			t.Errorf("%s: %d pages, %d incidents", c.name, pages, trials)
		}
	}
}

// After such weekends, a change on a Saturday pages on Monday, and a jump on a Saturday immediately.
func TestSimChangesPageAfterQuietWeekends(t *testing.T) {
	for seed := range uint64(3) {
		s, p, open := newTraffic(cycles()[7], 943, seed), newBank(watch.DefaultConfig()), false
		s.shift = 50 // a larger jump would be a fault of the scale
		var st story
		for start := s.now; s.now-start < int64(24*24*time.Hour) || hourOfWeek(s.now) < 5*24+12 || open; {
			st.tell(p.Observe(s.unit(), time.Time{}), &open)
		}
		again, pages := restored(t, p), len(st.paged)
		s.shift = 49
		monday := 0
		for len(st.paged) == pages && monday < 500 {
			u := s.unit()
			st.tell(p.Observe(u, time.Time{}), &open)
			if begin, _ := baseline.WeekendBounds(u.EndTS, nil); begin == 0 {
				monday++
			}
		}
		if t.Logf("seed %d: a page %d units after the weekend", seed, monday); monday == 0 || monday > 200 {
			t.Errorf("seed %d: a page %d units after the weekend", seed, monday)
		}
		for hourOfWeek(s.now) < 5*24+12 { // the restored bank continues there
			s.unit()
		}
		s.shift = 60
		n := 0
		for before := len(st.paged); len(st.paged) == before && n < 200; n++ {
			st.tell(again.Observe(s.unit(), time.Time{}), &open)
		}
		if t.Logf("seed %d: a page %d units after the jump", seed, n); n > 80 {
			t.Errorf("seed %d: a page %d units after the jump", seed, n)
		}
	}
}

// A warm-up that begins on a Saturday leaves the weekend out of its baseline, which covers two working days, and a
// change after them pages.
func TestSimABaselineOfAFewDaysIsOfWorkingDays(t *testing.T) {
	for seed := range uint64(3) {
		s, p := newTraffic(cycles()[5], 912+24*seed, 5), newBank(watch.DefaultConfig()) // from 19 h on Saturday on
		for len(p.groups) == 0 || !p.groups[0].Warmup.Done {
			p.Observe(s.unit(), time.Time{})
		}
		at := time.Unix(0, s.now).UTC()
		if g := p.groups[0]; at.Weekday() != time.Wednesday || !slices.Contains(g.Promise.Caveats, baseline.CaveatWeekend) {
			t.Errorf("seed %d: a baseline on %s, with the caveats %q", seed, at.Weekday(), g.Promise.Caveats)
		}
	}
}

// A warm-up that began on the preceding weekend finds a change on a Tuesday, since it differs from Monday.
func TestSimAChangeInAWarmUpWithAWeekendPages(t *testing.T) {
	for seed := range uint64(3) {
		s, p, open := newTraffic(cycles()[5], 912+24*seed, 5), newBank(watch.DefaultConfig()), false
		var st story
		for len(p.groups) == 0 || hourOfWeek(s.now) < 24+12 || hourOfWeek(s.now) > 4*24 {
			st.tell(p.Observe(s.unit(), time.Time{}), &open)
		}
		if p.groups[0].Warmup.Done || len(st.paged) > 0 {
			t.Fatalf("seed %d: accepted %t, pages %v", seed, p.groups[0].Warmup.Done, st.paged)
		}
		s.shift = -2
		n := 0
		for ; len(st.paged) == 0 && n < 1500; n++ {
			st.tell(p.Observe(s.unit(), time.Time{}), &open)
		}
		if t.Logf("seed %d: a page %d units after the change", seed, n); n > 200 {
			t.Errorf("seed %d: no page within 200 units", seed)
		}
	}
}

// On the Monday of a warm-up that began on a Saturday, there is no earlier unit at the same hour of a working day. A
// jump pages nevertheless, and a shift pages once Tuesday shows it.
func TestSimAJumpInHoursThatAWarmUpLacksPages(t *testing.T) {
	for seed := range uint64(3) {
		for _, shift := range []float64{-12, -1} {
			s, p, open := newTraffic(cycles()[5], 944, seed), newBank(watch.DefaultConfig()), false
			s.now = time.Date(2027, 1, 16, 5, 0, 0, 0, time.UTC).UnixNano()
			var st story
			for hourOfWeek(s.now) > 24 || hourOfWeek(s.now) < 12 {
				st.tell(p.Observe(s.unit(), time.Time{}), &open)
			}
			if p.groups[0].Warmup.Done || len(st.paged) > 0 {
				t.Fatalf("seed %d: accepted %t, pages %v", seed, p.groups[0].Warmup.Done, st.paged)
			}
			s.shift = shift
			from, n := s.now, 0
			for ; len(st.paged) == 0 && n < 2000; n++ {
				st.tell(p.Observe(s.unit(), time.Time{}), &open)
			}
			took := time.Duration(s.now - from).Hours()
			if t.Logf("seed %d: %g pages after %d units, %.0f h", seed, shift, n, took); shift == -12 && n > 150 || took > 36 {
				t.Errorf("seed %d: a shift by %g pages after %d units, %.0f h", seed, shift, n, took)
			}
		}
	}
}

// A task without episodes that begins on a Friday leaves out the blocks of a weekend that differs, and no others.
func TestTheBlocksOfAWeekendAreLeftOut(t *testing.T) {
	t.Parallel()
	b, p := newBlockAgents(31, 4, 0), newBank(watch.DefaultConfig())
	friday := time.Date(2026, 6, 5, 0, 0, 0, 0, time.UTC)
	left := false
	for units := 0; !left; {
		at := friday.Add(time.Duration(b.made) * 4 * time.Minute)
		if b.shift = 0; at.Weekday() == time.Saturday || at.Weekday() == time.Sunday {
			b.shift = .1
		}
		u := b.block()
		u.EndTS = at.UnixNano()
		p.Observe(u, time.Time{})
		g := p.groups[0]
		left, units = g.Warmup.Units < units-100, g.Warmup.Units
		if g.Warmup.Done || b.made > 3000 {
			t.Fatalf("no weekend was left out of a warm-up of %d", units)
		}
	}
	g := p.groups[0]
	if len(g.Blocks.Kept) != g.Warmup.Units {
		t.Fatalf("%d blocks kept of a warm-up of %d", len(g.Blocks.Kept), g.Warmup.Units)
	}
	for i, u := range g.Blocks.Kept {
		if u.EndTS != g.Warmup.Each[i].EndTS || g.Warmup.OnWeekend(i, nil) {
			t.Fatalf("block %d of %s is left of a unit of %s", i, time.Unix(0, u.EndTS).UTC(), time.Unix(0, g.Warmup.Each[i].EndTS).UTC())
		}
	}
}
