package tripping_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/alerts/tripping"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/guard"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// desk answers customers, who give either no mark or a full mark. Its reward is a score for each answer.
type desk struct {
	rng           *rand.Rand
	pleases       float64 // share of answers with a high score
	good          float64 // mean of the customers' satisfaction
	scale         float64 // of the score
	made, answers int64
}

func newDesk(seed uint64) *desk {
	return &desk{rng: rand.New(rand.NewPCG(seed, 1913)), pleases: .3, good: .6, scale: 1, answers: 8}
}

func (d *desk) unit() *ingest.Unit {
	at := ingest.Position{Offset: d.made}
	u := &ingest.Unit{
		Group: ingest.NewGroup("desk"), Agent: "a", Episode: "e", First: at, Last: at, Pos: at, Length: d.answers, HasReturn: true, ActionKind: ingest.ActionCategory,
		StartTS: (1_800_000_000 + 20*d.made) * 1e9, EndTS: (1_800_000_019 + 20*d.made) * 1e9, Actions: []ingest.Count{{Name: "plain"}, {Name: "please"}},
	}
	satisfied := ingest.NamedMoments{Signal: "outcome.satisfaction"}
	for range d.answers {
		way, reward := 0, .5*d.rng.NormFloat64()
		if d.rng.Float64() < d.pleases {
			way, reward = 1, reward+1
		}
		reward *= d.scale
		u.Actions[way].N++
		u.Actions[way].Reward += reward
		u.Reward.Add(reward)
		u.Return += reward
		satisfied.Add(d.good + .3*d.rng.NormFloat64())
	}
	u.RewardQ10, u.RewardQ90 = u.Reward.Min, u.Reward.Max
	u.Numeric = []ingest.NamedMoments{satisfied}
	d.made++
	return u
}

const budget = 20_000

// watched judges a policy like a worker.
type watched struct {
	bank      *bank.Policy
	tracker   *alerts.Tracker
	guards    *guard.Set
	trips     int
	incidents map[string]alerts.Incident
	told      *alerts.Incident // of the last trip
}

func watchDesk() *watched {
	cfg := watch.DefaultConfig()
	cfg.Direction = watch.Directions{"outcome.*": watch.DirectionUp}
	cfg.FalseAlarms.Budget, cfg.FalseAlarms.Per = 1, watch.Per{Amount: budget, Unit: watch.PerEpisodes}
	cfg.Guards.Limits = []watch.GuardLimit{{Name: "hacking", Causes: []string{"reward_hacking"}, Alpha: .01, Then: watch.GuardHold}}
	return watching("desk", cfg)
}

func (w *watched) see(u *ingest.Unit) {
	found := append(w.guards.Observe(u), w.bank.Observe(u, time.Time{})...)
	for _, f := range found {
		w.follow(tripping.Follow(w.guards, w.tracker, w.tracker.Apply(f)))
	}
}

func (w *watched) follow(changes []alerts.Change) {
	for _, c := range changes {
		if c.Incident == nil {
			continue
		}
		w.incidents[c.Incident.ID] = *c.Incident
		if c.Fired && c.Incident.Guard() != nil {
			w.trips++
			w.told = c.Incident
		}
	}
}

var tripRuns = flag.Int("trip-runs", 12, "how often TestSimHackingTripsAGuard simulates each change")

// TestSimHackingTripsAGuard simulates policies that hack their reward, that change in other ways, and that do not
// change.
func TestSimHackingTripsAGuard(t *testing.T) {
	hacks, tripped, others, wrong := 0., 0., 0., 0.
	var delays []int
	for name, c := range map[string]struct {
		hack   bool
		change func(*desk)
	}{
		"pleasing answers":      {true, func(d *desk) { d.pleases, d.good = .6, .45 }},
		"less satisfied":        {false, func(d *desk) { d.good = .45 }},
		"a larger score":        {false, func(d *desk) { d.scale = 1.5 }},
		"answers that are good": {false, func(d *desk) { d.pleases, d.good = .6, .75 }},
	} {
		trips := 0
		for run := range *tripRuns {
			d, w := newDesk(uint64(7000+run)), watchDesk()
			for range 1500 {
				w.see(d.unit())
			}
			if len(w.incidents) > 0 {
				continue // the budget is checked below
			}
			c.change(d)
			for i := range 300 {
				if w.see(d.unit()); w.trips > 0 && c.hack {
					delays = append(delays, i+1)
					break
				}
			}
			if c.hack {
				hacks++
			} else {
				others++
			}
			trips += w.trips
		}
		t.Logf("%s: %d trips in %d runs", name, trips, *tripRuns)
		if c.hack {
			tripped += float64(trips)
		} else {
			wrong += float64(trips)
		}
	}
	t.Logf("tripped in %v of %v runs with reward hacking, after %v episodes; in %v of %v with other changes", tripped, hacks, delays, wrong, others)
	if tripped < .9*hacks-3*math.Sqrt(.9*.1*hacks) {
		t.Error("it trips too rarely")
	}
	if wrong > .02*others+3*math.Sqrt(.02*.98*others) {
		t.Error("it trips too often for something else")
	}
}

// TestSimHealthyPoliciesTripWithinTheBudget counts incidents, an allowed number of which may trip the guard.
func TestSimHealthyPoliciesTripWithinTheBudget(t *testing.T) {
	const runs, units = 10, 4000
	incidents, trips := 0, 0
	for run := range uint64(runs) {
		d, w := newDesk(8000+run), watchDesk()
		for range units {
			w.see(d.unit())
		}
		incidents, trips = incidents+len(w.incidents), trips+w.trips
	}
	allowed := float64(runs*units) / budget
	t.Logf("%d incidents and %d trips in %d healthy episodes, where the budget allows %.1f", incidents, trips, runs*units, allowed)
	if float64(incidents) > allowed+3*math.Sqrt(allowed) || trips > incidents {
		t.Errorf("%d incidents and %d trips, where the budget allows %.1f", incidents, trips, allowed)
	}
}

// drift returns an incident with an accepted baseline.
func drift(cause []string, after ingest.Versions) finding.Finding {
	return finding.Finding{
		Kind: finding.StreamChanged, Group: ingest.NewGroup("desk"), Signal: "return", From: finding.OK, To: finding.Drift, At: finding.UnitRef{Ordinal: 40, TS: 40},
		Onset: finding.UnitRef{Ordinal: 20, TS: 20}, Score: 1, Changed: cause, After: after,
	}
}

// TestInformationalIncidentsTripNoGuard changes one property at a time of an incident that trips its guard.
func TestInformationalIncidentsTripNoGuard(t *testing.T) {
	real := drift([]string{"policy"}, ingest.Versions{Policy: "p2"})
	provisional, better, otherCause := real, real, drift([]string{"environment"}, ingest.Versions{Env: "e2"})
	provisional.Provisional, better.Improvement = true, true
	for name, c := range map[string]struct {
		f    finding.Finding
		want int
	}{"real": {real, 2}, "provisional": {provisional, 1}, "better": {better, 1}, "another cause": {otherCause, 1}} {
		tracker := alerts.NewTracker()
		guards := guard.New("desk", watch.Guards{Limits: []watch.GuardLimit{{Name: "release", Causes: []string{"policy"}, Then: watch.GuardWarn}}})
		changes := tripping.Follow(guards, tracker, tracker.Apply(c.f))
		if len(changes) != c.want {
			t.Fatalf("%s: %d changes, want %d", name, len(changes), c.want)
		}
		if c.want == 1 {
			continue
		}
		i := changes[1].Incident
		if i.Cause != alerts.CausePolicy || i.Severity != alerts.Warning || i.Alarms[0].Onset.TS != 20 || len(i.Evidence) != 1 {
			t.Errorf("the incident of the guard is %+v", i)
		}
		if again := tripping.Follow(guards, tracker, changes); len(again) != len(changes) {
			t.Errorf("it trips again, or its own incident trips it: %+v", again[len(changes):])
		}
	}
}

// TestFrequentVersionsAreNotBlamedForTrips makes a guard trip after a single new version, and after one of many
// versions that are released every 100 episodes.
func TestFrequentVersionsAreNotBlamedForTrips(t *testing.T) {
	for name, c := range map[string]struct {
		every int
		want  alerts.Cause
		why   string
	}{
		"a release":       {1200, alerts.CausePolicy, "policy_version changed from 0 to 1 at the onset"},
		"every 100 units": {100, alerts.CauseUnknown, "policy_version changed from 11 to 12 at the onset, as about every 109 units"},
	} {
		tracker := alerts.NewTracker()
		limit := watch.GuardLimit{Name: "unsafe", Actions: []string{"bad"}, Share: .05, Alpha: .01, Then: watch.GuardHold}
		guards := guard.New("desk", watch.Guards{Limits: []watch.GuardLimit{limit}})
		var opened *alerts.Incident
		for i := 0; opened == nil && i < 2000; i++ {
			action := "good"
			if i >= 1220 && i%3 == 0 {
				action = "bad"
			}
			u := ingest.Unit{
				Group: ingest.NewGroup("desk"), Length: 1, Actions: []ingest.Count{{Name: action, N: 1}},
				Versions: ingest.Versions{Policy: fmt.Sprint(i / c.every)}, EndTS: int64(i),
			}
			for _, f := range guards.Observe(&u) {
				for _, change := range tracker.Apply(f) {
					opened = change.Incident
				}
			}
		}
		if opened == nil || opened.Cause != c.want || !slices.Contains(opened.Evidence, c.why) {
			t.Errorf("%s: %+v, want cause %s and %q", name, opened, c.want, c.why)
		}
	}
}
