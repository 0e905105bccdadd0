package bank

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// story holds the ordinals of the units at which incidents opened, and of those that page.
type story struct {
	opened, paged []int64
	closed        int
}

func (s *story) tell(found []finding.Finding, open *bool) {
	for _, f := range found {
		switch {
		case f.Kind == finding.GroupQuiet:
			*open = false
			s.closed++
		case f.Kind == finding.StreamChanged && f.To == finding.Drift && !*open:
			*open = true
			if onTrial(f) {
				s.opened = append(s.opened, f.At.Ordinal)
			} else {
				s.paged = append(s.paged, f.At.Ordinal)
			}
		}
	}
}

func onTrial(f finding.Finding) bool { return f.Provisional }

// warmUpStory feeds n units to a new bank, and calls before with the number of each unit.
func warmUpStory(a *agent, n int, before func(a *agent, i int)) (*Policy, story) {
	p := newBank(episodes(20_000))
	var s story
	open := false
	for i := range n {
		before(a, i)
		s.tell(p.Observe(a.unit(), time.Time{}), &open)
	}
	return p, s
}

// changesOfAgents are possible changes during a warm-up, in standard deviations of an episode's mean reward.
var changesOfAgents = []struct {
	name  string
	apply func(a *agent)
}{
	{"reward -1 sd", func(a *agent) { a.mean -= a.sd / math.Sqrt(20) }},
	{"reward +1 sd", func(a *agent) { a.mean += a.sd / math.Sqrt(20) }},
	{"reward -2 sd", func(a *agent) { a.mean -= 2 * a.sd / math.Sqrt(20) }},
	{"spread x1.5", func(a *agent) { a.sd *= 1.5 }},
	{"actions", func(a *agent) { a.shares = []float64{.3, .5, .2} }},
}

// Of 50 changes between units 120 and 450 of a warm-up of 500, at least 45 page, and none of these before the change.
func TestSimChangeWithinTheWarmUpPages(t *testing.T) {
	paged := 0
	var delays []int64
	for i := range 50 {
		at := 120 + i*330/49
		change := changesOfAgents[i%len(changesOfAgents)]
		_, s := warmUpStory(newAgent(uint64(3000+i)), 1000, func(a *agent, n int) {
			if n == at {
				change.apply(a)
			}
		})
		if len(s.paged) == 0 {
			t.Logf("%s at unit %d: opened at %v, no page", change.name, at, s.opened)
			continue
		}
		paged++
		if delays = append(delays, s.paged[0]-int64(at)); s.paged[0] < int64(at) {
			t.Errorf("%s at unit %d: paged at %d", change.name, at, s.paged[0])
		}
	}
	slices.Sort(delays)
	t.Logf("%d of 50 paged after %v units", paged, delays)
	if paged < 45 {
		t.Errorf("%d of 50 changes page, want at least 45", paged)
	}
}

// halfHourly makes one unit every half hour, beginning the given number of days after a Monday. The reward is higher by
// size on weekends, and by moved from unit 300 on, in standard deviations of an episode's mean.
func halfHourly(size, moved float64, days int) func(a *agent, i int) {
	return func(a *agent, i int) {
		const monday = 4 * day // 5 January 1970
		at := monday + 52*7*day + int64(days)*day + int64(i)*int64(30*time.Minute)
		a.mean = -2 + size*weekend(at)/math.Sqrt(20)
		if i >= 300 {
			a.mean += moved / math.Sqrt(20)
		}
		a.edit = func(u *ingest.Unit) { u.EndTS, u.StartTS = at, at-1 }
	}
}

// Weekends that differ do not page, regardless of the day on which the telemetry begins: not during the warm-up, and
// not afterwards, since the baseline includes them.
func TestSimWeekendsDoNotPage(t *testing.T) {
	for _, size := range []float64{1, 2, 4} {
		for days := range 7 {
			p, s := warmUpStory(newAgent(uint64(3200+days)), 2500, halfHourly(size, 0, days))
			if len(s.paged) > 0 {
				t.Errorf("weekends +%g sd from day %d on: paged at units %v", size, days, s.paged)
			}
			g := p.groups[0]
			first, last := g.Baseline.Offsets[0].First, g.Baseline.Offsets[0].Last
			if g.Baseline.Provisional || last-first+1 != int64(g.Baseline.Units) {
				t.Errorf("weekends +%g sd from day %d on: baseline %+v, want all units from %d to %d", size, days, g.Baseline, first, last)
			}
		}
	}
}

// If telemetry begins on a Saturday, the first weekend is over before anything alarms. The working days after the
// second weekend do not page: no earlier working day is known to be normal.
func TestSimWeekdaysAreNotHeldAgainstAWeekend(t *testing.T) {
	for _, size := range []float64{1, 2} {
		opened := 0
		for seed := range uint64(10) {
			_, s := warmUpStory(newAgent(3250+seed), 800, halfHourly(size, 0, 5))
			if len(s.paged) > 0 {
				t.Errorf("weekends +%g sd, seed %d: opened at %v, paged at units %v", size, seed, s.opened, s.paged)
			}
			opened += len(s.opened)
		}
		if opened < 10 {
			t.Errorf("weekends +%g sd: %d incidents were on trial in 10 runs", size, opened)
		}
	}
}

// A change that no cycle explains also pages if weekends differ, after a whole week has passed.
func TestSimChangeBesideWeekendsPages(t *testing.T) {
	paged := 0
	for seed := range uint64(7) {
		_, s := warmUpStory(newAgent(3300+seed), 1000, halfHourly(1, -2, int(seed)))
		if len(s.paged) > 0 && s.paged[0] >= 300 {
			paged++
		}
	}
	if paged < 6 {
		t.Errorf("%d of 7 changes page, want at least 6", paged)
	}
}

// A finding that is dropped does not end the warm-up, and a change 19,500 units later pages.
func TestSimFindingThatWasNothingDoesNotStopTheWarmUp(t *testing.T) {
	p, s := warmUpStory(newAgent(3400), 20_200, func(a *agent, i int) {
		switch i {
		case 110, 20_100:
			a.mean -= 3 * a.sd / math.Sqrt(20)
		case 125:
			a.mean = -2
		}
	})
	if len(s.opened) == 0 || s.opened[0] < 110 || s.opened[0] >= 125 || len(s.paged) != 1 || s.paged[0] < 20_100 {
		t.Errorf("opened at %v, paged at %v; want a provisional incident from about 115 on, and a page after 20,100", s.opened, s.paged)
	}
	if b := p.groups[0].Baseline; b.Provisional || b.Units < 500 {
		t.Errorf("baseline %+v", b)
	}
}

// A page during a warm-up compares with the units before the change. Once the change is reverted, the warm-up continues
// without the changed units.
func TestPageOfAWarmUpKeepsTheBaselineBeforeTheChange(t *testing.T) {
	a := newAgent(3500)
	p, s := warmUpStory(a, 400, func(a *agent, i int) {
		if i == 150 {
			a.mean -= 1
		}
	})
	g := p.groups[0]
	if len(s.paged) != 1 || !g.Incident || g.Probation.On || g.Warmup.Units < 145 || g.Warmup.Units > 152 || g.Baseline.Units != 100 {
		t.Fatalf("paged at %v, %d units collected, baseline of %d", s.paged, g.Warmup.Units, g.Baseline.Units)
	}
	if _, open := g.due(); open {
		t.Error("a baseline is due while the page is open")
	}
	a.mean = -2
	a.feed(p, 800)
	if g.Incident || g.Baseline.Provisional || math.Abs(rewardMean(p).Mean+2) > .05 {
		t.Errorf("incident %v, baseline %+v of mean %.3f, want all units but those of the change", g.Incident, g.Baseline, rewardMean(p).Mean)
	}
}

// If a user accepts the provisional baseline while an incident on it is open, the incident becomes a page.
func TestPromotedBaselineConfirmsItsIncident(t *testing.T) {
	a := newAgent(3600)
	p := newBank(episodes(20_000))
	a.feed(p, 120)
	a.mean -= 1
	for !p.groups[0].Incident {
		a.feed(p, 1)
	}
	if err := p.Promote(p.groups[0].Key, "it is enough"); err != nil {
		t.Fatal(err)
	}
	found := a.feed(p, 1)
	if len(alarmsIn(found)) == 0 || slices.ContainsFunc(found, func(f finding.Finding) bool { return f.To == finding.Drift && f.Provisional }) {
		t.Errorf("found %+v, want alarms that are not provisional", found)
	}
}

// A bank that is restored at any unit of a trial has the same findings.
func TestSimTrialSurvivesARestart(t *testing.T) {
	for _, days := range []int{0, 5} {
		a := newAgent(3700)
		feed, p := halfHourly(3, -3, days), newBank(episodes(20_000))
		restarts := 0
		for i := range 700 {
			feed(a, i)
			u := a.unit()
			if on := p.groups; len(on) > 0 && on[0].Probation.On && i%7 == 0 {
				again := restored(t, p)
				want, got := p.Observe(u, time.Time{}), again.Observe(u, time.Time{})
				if !sameFindings(want, got) {
					t.Fatalf("unit %d: findings %+v of the restored bank, want %+v", i, got, want)
				}
				p, restarts = again, restarts+1
				continue
			}
			p.Observe(u, time.Time{})
		}
		if restarts < 5 {
			t.Errorf("from day %d on: %d restarts within a trial", days, restarts)
		}
	}
}

// Healthy runs do not page more often with a warm-up than without: not at all in these runs.
func TestSimHealthyWarmUpsDoNotPage(t *testing.T) {
	refused := 0
	for _, phi := range []float64{0, .5} {
		for seed := range uint64(20) {
			level := 0.
			p, s := warmUpStory(newAgent(4000+seed), 520, func(a *agent, _ int) {
				level = phi*level + math.Sqrt(1-phi*phi)*a.rng.NormFloat64()
				a.mean = -2 + .3*phi*level
			})
			if len(s.paged) > 0 {
				t.Errorf("phi %g, seed %d: paged at %v", phi, seed, s.paged)
			}
			if p.groups[0].Baseline.Provisional {
				refused++
			}
		}
	}
	if refused > 2 { // because of a trend; one in a hundred is refused by chance
		t.Errorf("%d of 40 warm-ups refused", refused)
	}
}

// A trial also ends if one of its streams has a telemetry fault, which the page does not affect. It collects at most
// two baselines.
func TestATrialEndsBesideAFault(t *testing.T) {
	for n := 160; ; n++ {
		p, _ := warmUpStory(newAgent(3100), n, func(a *agent, i int) {
			if i == 150 {
				a.mean -= 2 * a.sd / math.Sqrt(20)
				a.shares = []float64{.1, .1, .8}
			}
		})
		g := p.groups[0]
		var alarmed []*stream.Stream
		for _, s := range g.Streams {
			if s.Alarmed {
				alarmed = append(alarmed, s)
			}
		}
		if !g.Probation.On || len(alarmed) < 2 {
			if n > 250 {
				t.Fatal("no trial of two streams")
			}
			continue
		}
		collected := g.Warmup.Units
		g.Warmup.Units = 2 * g.cfg.Baseline.Units
		if g.collects() {
			t.Error("a trial that does not end collects without end")
		}
		if g.Warmup.Units = collected; !g.collects() {
			t.Error("a trial collects nothing")
		}
		faulty, sound := alarmed[0], alarmed[1]
		faulty.State = finding.TelemetryFault
		found := g.confirm(finding.UnitRef{Ordinal: g.Seen - 1})
		if faulty.State != finding.TelemetryFault || faulty.Alarmed || !sound.Alarmed || sound.State != finding.Drift || !g.Incident || len(found) == 0 {
			t.Errorf("%v %t, %v %t, incident %t", faulty.State, faulty.Alarmed, sound.State, sound.Alarmed, g.Incident)
		}
		return
	}
}

// If hours differ and the provisional baseline includes a season, a change during the warm-up pages as well: its
// quantities are judged among similar hours.
func TestAChangeWithinASeasonalWarmUpPages(t *testing.T) {
	const perDay, change = 72, 380
	for _, drop := range []float64{0, 3, 10} {
		_, s := warmUpStory(newAgent(7000), 900, func(a *agent, i int) {
			at, sd := int64(1_800_000_000e9)+int64(i)*int64(24*time.Hour)/perDay, a.sd/math.Sqrt(20)
			a.mean = -2 + 2*sd*math.Sin(2*math.Pi*float64(at)/float64(24*time.Hour))
			if i >= change {
				a.mean -= drop * sd
			}
			a.edit = func(u *ingest.Unit) { u.EndTS, u.StartTS = at, at-1 }
		})
		switch {
		case drop == 0 && len(s.paged) > 0:
			t.Errorf("nothing changed: pages at %v", s.paged)
		case drop > 0 && (len(s.paged) != 1 || s.paged[0] > change+60):
			t.Errorf("the reward fell by %g standard deviations at %d: pages at %v", drop, change, s.paged)
		}
	}
}
