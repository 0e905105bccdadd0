package guard

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// hacked is an incident with the cause reward_hacking at the n-th unit of its group.
func hacked(id string, n int64) *Incident {
	return &Incident{
		ID: id, Cause: "reward_hacking", Why: "return rose by 1.2 SD, which is better", At: finding.UnitRef{Ordinal: n, TS: n},
		Onset: finding.UnitRef{Ordinal: n - 20}, OnsetFrom: finding.UnitRef{Ordinal: n - 30}, After: ingest.Versions{Policy: "p2"},
	}
}

func closed(id string) *Incident { return &Incident{ID: id, Closed: true} }

// hackingLimit releases its guard after the given number of episodes without such an incident.
func hackingLimit(then string, after int64) watch.GuardLimit {
	return watch.GuardLimit{Name: "hacking", Causes: []string{"reward_hacking"}, Alpha: .01, Then: then, ReleaseAfter: after}
}

// resumed returns the set after a restart.
func resumed(t *testing.T, s *Set, cfg watch.Guards) *Set {
	t.Helper()
	s.Lost()
	parts := ingest.Parts{}
	if err := s.Changes(parts); err != nil {
		t.Fatal(err)
	}
	r := New("p", cfg)
	if err := r.Resume(parts); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestAnIncidentTripsOnce tests the life of a guard with a restart after each step.
func TestAnIncidentTripsOnce(t *testing.T) {
	other, unsettled := hacked("i1", 5), hacked("i3", 70)
	other.Cause, unsettled.Cause = "policy", "unknown"
	decided := time.Unix(5, 0).UTC()
	for _, then := range []string{watch.GuardWarn, watch.GuardHold, watch.GuardFallback} {
		cfg := watch.Guards{Limits: []watch.GuardLimit{hackingLimit(then, 0)}}
		s := New("p", cfg)
		step := func(name string, wantTrips int, wantState State, do func() []finding.Finding) []finding.Finding {
			t.Helper()
			found := do()
			s = resumed(t, s, cfg)
			trips := 0
			for _, f := range found {
				if f.To == finding.Drift {
					trips++
				}
			}
			if got := s.Summary().State; trips != wantTrips || got != wantState {
				t.Errorf("%s: %d trips and the state %s, want %d and %s", name, trips, got, wantTrips, wantState)
			}
			return found
		}
		see := func(i *Incident) func() []finding.Finding { return func() []finding.Finding { return s.Incident(i) } }
		state := stateOf(then)
		step("a unit", 0, OK, func() []finding.Finding { return s.Observe(decision(false)) })
		step("another cause", 0, OK, see(other))
		found := step("the cause has become this one", 1, state, see(hacked("i1", 40)))
		if f := found[0]; f.Guard.Cause != "reward_hacking" || f.Guard.State != then || f.At.Ordinal != 40 || f.Onset.Ordinal != 20 || f.After.Policy != "p2" ||
			f.Guard.Limit != "no incident with cause reward_hacking" || f.Guard.Why != "incident i1 has the cause reward_hacking: return rose by 1.2 SD, which is better" {
			t.Errorf("the trip is %+v of %+v", f, f.Guard)
		}
		step("more evidence", 0, state, see(hacked("i1", 60)))
		step("a second incident while it holds", 0, state, see(hacked("i2", 60)))
		for range 50 {
			step("units release nothing", 0, state, func() []finding.Finding { return s.Observe(decision(false)) })
		}
		step("a person releases it", 0, OK, func() []finding.Finding { return s.Release("hacking", Decision{"ann", "known", decided}) })
		step("more evidence of what the person knew", 0, OK, see(hacked("i1", 80)))
		step("and of the second incident", 0, OK, see(hacked("i2", 80)))
		step("it ends", 0, OK, see(closed("i1")))
		step("a third incident, with no cause yet", 0, OK, see(unsettled))
		step("its cause is known", 1, state, see(hacked("i3", 90)))
		var got []string
		for _, e := range s.Summary().Events {
			got = append(got, fmt.Sprint(e.Seq, " ", e.From, " ", e.To, " ", e.By, " ", e.Why))
		}
		want := []string{
			"1 ok " + then + "  incident i1 has the cause reward_hacking: return rose by 1.2 SD, which is better",
			"2 " + then + " ok ann known", "3 ok " + then + "  incident i3 has the cause reward_hacking: return rose by 1.2 SD, which is better",
		}
		if !slices.Equal(got, want) {
			t.Errorf("audit\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// TestEpisodesWithoutSuchAnIncidentRelease counts from the end of the incident, or from when it has another cause.
func TestEpisodesWithoutSuchAnIncidentRelease(t *testing.T) {
	cfg := watch.Guards{Limits: []watch.GuardLimit{hackingLimit(watch.GuardHold, 3)}}
	other := hacked("i1", 60)
	other.Cause = "telemetry"
	step := decision(false)
	step.End = ingest.EndOpen
	for name, end := range map[string]*Incident{"closed": closed("i1"), "another cause": other} {
		s := New("p", cfg)
		s.Incident(hacked("i1", 40))
		for range 10 {
			s.Observe(decision(false))
			s = resumed(t, s, cfg)
		}
		if got := s.Summary(); got.State != Hold || got.Guards[0].Values != 0 || got.Guards[0].Evidence < 100 {
			t.Fatalf("%s: while the incident is open: %+v", name, got)
		}
		s.Incident(end)
		for i := range 3 {
			if s.Summary().State != Hold {
				t.Errorf("%s: released after %d episodes", name, i)
			}
			s.Observe(step) // not the end of an episode
			found := s.Observe(decision(false))
			s = resumed(t, s, cfg)
			if released := len(found) == 2; released != (i == 2) {
				t.Errorf("%s: episode %d: %+v", name, i, found)
			}
		}
		if got := s.Summary(); got.State != OK || got.Events[1].Why != "3 episodes within the limit" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestOtherCausesTripNothingAgain adds a cause to a limit while an incident is open whose trip a person has
// released.
func TestOtherCausesTripNothingAgain(t *testing.T) {
	before, after := hackingLimit(watch.GuardHold, 0), hackingLimit(watch.GuardHold, 0)
	after.Causes = []string{"policy", "reward_hacking"}
	of := func(l watch.GuardLimit) watch.Guards { return watch.Guards{Limits: []watch.GuardLimit{l}} }
	s := New("p", of(before))
	s.Observe(decision(false))
	s.Incident(hacked("i1", 40))
	policy := hacked("i2", 50)
	policy.Cause = "policy"
	s.Incident(policy)
	s.Release("hacking", Decision{"ann", "known", time.Unix(5, 0)})
	s = resumed(t, s, of(before))
	s = resumed(t, s, of(after))
	if found := s.Incident(hacked("i1", 60)); len(found) > 0 || s.Summary().State != OK {
		t.Errorf("the incident that was released trips again: %+v", found)
	}
	if found := s.Incident(policy); len(found) != 1 {
		t.Errorf("an incident with the new cause trips %d times, want once", len(found))
	}
}

// TestOtherCausesLetEpisodesRelease removes the cause of an open incident from a limit while its guard has tripped.
func TestOtherCausesLetEpisodesRelease(t *testing.T) {
	before, after := hackingLimit(watch.GuardHold, 3), hackingLimit(watch.GuardHold, 3)
	after.Causes = []string{"policy"}
	for name, c := range map[string]struct {
		limit watch.GuardLimit
		want  State
	}{"the same causes": {before, Hold}, "others": {after, OK}} {
		s := New("p", watch.Guards{Limits: []watch.GuardLimit{before}})
		s.Incident(hacked("i1", 40))
		s = resumed(t, s, watch.Guards{Limits: []watch.GuardLimit{c.limit}})
		for range 3 {
			s.Observe(decision(false))
		}
		if got := s.Summary().State; got != c.want {
			t.Errorf("%s: %s after 3 episodes, want %s", name, got, c.want)
		}
	}
}

func TestOpenCasesAreBounded(t *testing.T) {
	s := New("p", watch.Guards{Limits: []watch.GuardLimit{hackingLimit(watch.GuardHold, 0)}})
	for i := range 3 * mostCases {
		s.Incident(hacked(fmt.Sprint("i", i), 1))
	}
	if all := s.guards[0].cases; len(all) != mostCases || all[mostCases-1].ID != fmt.Sprint("i", 3*mostCases-1) {
		t.Errorf("%d cases, want the newest %d", len(all), mostCases)
	}
}

// TestEvidenceOfOlderVersionsIsKept tests the identity of a limit as written by versions without limits on causes and
// without ranges that are open at one end.
func TestEvidenceOfOlderVersionsIsKept(t *testing.T) {
	const before = "{Name:unsafe Actions:[bad] Range:{Signal: Min:0 Max:0} Outcome: ReturnBelow: LargestShare:false Entropy:0 Share:0.01 Alpha:0.05 Then: ReleaseAfter:0}"
	var read watch.GuardLimit
	if err := yaml.Unmarshal([]byte("{name: unsafe, actions: [bad], share: 0.01, alpha: 0.05}"), &read); err != nil {
		t.Fatal(err)
	}
	for _, limit := range []watch.GuardLimit{unsafeLimit(.01, .05), read} {
		if got := limitHash(newGuard(limit)); got != before {
			t.Errorf("got  %s\nwant %s", got, before)
		}
	}
	one, two := hackingLimit(watch.GuardHold, 0), hackingLimit(watch.GuardHold, 0)
	two.Causes = []string{"policy"}
	if limitHash(newGuard(one)) == limitHash(newGuard(two)) {
		t.Error("limits on different causes are the same one")
	}
	if fields := reflect.TypeFor[watch.GuardLimit]().NumField(); fields != 12 {
		t.Errorf("a limit has %d fields: keep the identity of those without the new one", fields)
	}
}
