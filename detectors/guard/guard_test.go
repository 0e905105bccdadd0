package guard

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// unsafeLimit allows a share of steps with the action "bad".
func unsafeLimit(share, alpha float64) watch.GuardLimit {
	return watch.GuardLimit{Name: "unsafe", Actions: []string{"bad"}, Share: share, Alpha: alpha, Then: watch.GuardHold}
}

// decision returns a unit of one step.
func decision(bad bool) *ingest.Unit {
	name := "good"
	if bad {
		name = "bad"
	}
	return &ingest.Unit{Group: ingest.NewGroup("p"), Length: 1, Actions: []ingest.Count{{Name: name, N: 1}}}
}

// lives returns how many lives trip the guard, each with the given number of units. chance is the probability of a
// cost, given whether the previous value was one, and the evidence so far.
func lives(l watch.GuardLimit, count, units int, seed uint64, chance func(last bool, evidence float64) float64) int {
	rng := rand.New(rand.NewPCG(seed, 1))
	tripped := 0
	good, bad := decision(false), decision(true)
	for range count {
		g := newGuard(l)
		last, evidence := false, 1.
		for range units {
			last = rng.Float64() < chance(last, evidence)
			u := good
			if last {
				u = bad
			}
			if did, _ := g.observe(u, finding.UnitRef{}); did {
				tripped++
				break
			}
			evidence = g.evidence()
		}
	}
	return tripped
}

// TestAHealthyLifeIsStoppedWithAChanceOfAlpha simulates ten thousand policies that keep the limit exactly, with
// costs that are independent, that depend on the previous cost, and that are chosen by an adversary who sees the
// evidence.
func TestAHealthyLifeIsStoppedWithAChanceOfAlpha(t *testing.T) {
	const count, units, share, alpha = 10_000, 1000, .05, .05
	for name, chance := range map[string]func(bool, float64) float64{
		"independent": func(bool, float64) float64 { return share },
		"dependent": func(last bool, _ float64) float64 {
			if last {
				return share
			}
			return share / 4
		},
		"adversary": func(_ bool, evidence float64) float64 {
			if evidence > 2 {
				return share // otherwise, no cost would lower the evidence
			}
			return share * .9
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := lives(unsafeLimit(share, alpha), count, units, 7, chance)
			most := count*alpha + 3*math.Sqrt(count*alpha*(1-alpha))
			if float64(got) > most {
				t.Errorf("%d of %d lives stopped, at most %.0f are allowed", got, count, most)
			}
			t.Logf("%d of %d lives of %d steps stopped, at most %.0f allowed", got, count, units, most)
		})
	}
}

// TestNoHealthyLifeIsStopped simulates policies that cause half of the costs that their limit allows.
func TestNoHealthyLifeIsStopped(t *testing.T) {
	const count, units, share, alpha = 200, 20_000, .01, .01
	got := lives(unsafeLimit(share, alpha), count, units, 8, func(bool, float64) float64 { return share / 2 })
	if got > 0 {
		t.Errorf("%d of %d lives stopped", got, count)
	}
	if broken := lives(unsafeLimit(share, alpha), 10, units, 8, func(bool, float64) float64 { return 3 * share }); broken < 10 {
		t.Errorf("%d of 10 lives above the limit stopped", broken)
	}
}

// TestSimALimitIsProvenWithinTheBound measures how soon a guard trips for a policy that exceeds its limit, from the
// start and after a long healthy life, compared with log(evidence needed)/KL, the time of the best bet in
// hindsight.
func TestSimALimitIsProvenWithinTheBound(t *testing.T) {
	for _, of := range []struct {
		share, rate float64
		healthy     int
	}{{.01, .03, 0}, {.01, .03, 20_000}, {.05, .1, 0}, {.001, .02, 20_000}} {
		rng := rand.New(rand.NewPCG(3, 3))
		var took []float64
		for range 101 {
			g := newGuard(unsafeLimit(of.share, .01))
			n := 0
			for i := 0; !g.tripped; i++ {
				rate := of.share / 2
				if i >= of.healthy {
					rate, n = of.rate, n+1
				}
				g.observe(decision(rng.Float64() < rate), finding.UnitRef{})
				if n > 1_000_000 {
					t.Fatal("it never trips")
				}
			}
			took = append(took, float64(n))
		}
		slices.Sort(took)
		kl := of.rate*math.Log(of.rate/of.share) + (1-of.rate)*math.Log((1-of.rate)/(1-of.share))
		bound := math.Log(100*bets*float64(of.healthy+2)*float64(of.healthy+1)) / kl
		if of.healthy == 0 {
			bound = math.Log(100*bets*2) / kl
		}
		if median := took[50]; median > 1.5*bound {
			t.Errorf("limit %g, rate %g after %d steps: proven within %.0f steps, at most %.0f expected", of.share, of.rate, of.healthy, median, 1.5*bound)
		} else {
			t.Logf("limit %g, rate %g after %d steps: median %.0f steps, 9 of 10 within %.0f; the best bet takes %.0f", of.share, of.rate, of.healthy, median, took[90], bound)
		}
	}
}

func TestAUnitOfManyStepsCountsLikeItsSteps(t *testing.T) {
	one, many := newGuard(unsafeLimit(.1, .001)), newGuard(unsafeLimit(.1, .001))
	many.observe(&ingest.Unit{Actions: []ingest.Count{{Name: "good", N: 7}, {Name: "bad", N: 3}}}, finding.UnitRef{})
	one.wealth.begin()
	for range 7 {
		one.wealth.bet(&one.odds, 1, 0)
	}
	for range 3 {
		one.wealth.bet(&one.odds, 1, 1)
	}
	if a, b := many.evidence(), one.evidence(); math.Abs(a-b) > 1e-12*b {
		t.Errorf("evidence %v of a unit of ten steps, %v of the steps", a, b)
	}
}

func TestNeverTripsAtTheFirst(t *testing.T) {
	g := newGuard(watch.GuardLimit{Name: "never", Actions: []string{"bad"}, Alpha: .01, Then: watch.GuardFallback})
	for range 1000 {
		if did, _ := g.observe(decision(false), finding.UnitRef{}); did {
			t.Fatal("tripped without the action")
		}
	}
	if did, _ := g.observe(decision(true), finding.UnitRef{}); !did || g.state != Fallback {
		t.Errorf("tripped %v, state %s, want true and fallback", did, g.state)
	}
}

func TestRangesAreDescribed(t *testing.T) {
	for want, r := range map[string]watch.ActionRange{
		"steps with action outside -1 to 1": {Min: -1, Max: 1}, "steps with action.0 above 5": {Signal: "action.0", Min: math.Inf(-1), Max: 5},
		"steps with action below 0": {Max: math.Inf(1)},
	} {
		if got := many(&watch.GuardLimit{Range: r}); got != want {
			t.Errorf("%+v: %q, want %q", r, got, want)
		}
	}
}

// TestCosts counts what units add to each kind of limit.
func TestCosts(t *testing.T) {
	u := &ingest.Unit{
		HasReturn: true, Return: -3, Length: 4,
		Actions: []ingest.Count{{Name: "a", N: 3}, {Name: "b", N: 1}},
		Numeric: []ingest.NamedMoments{
			{Signal: "action.0", Moments: ingest.Moments{N: 4, Min: -2, Max: 3, NonFinite: 1}},
			{Signal: "outcome.cost", Moments: ingest.Moments{N: 4, Mean: .25, Max: 1}},
			{Signal: "outcome.wild", Moments: ingest.Moments{N: 4, Mean: .25, Max: 2}},
		},
	}
	for _, of := range []struct {
		limit watch.GuardLimit
		want  cost
	}{
		{watch.GuardLimit{Actions: []string{"b", "x"}}, cost{n: 4, c: 1}},
		{watch.GuardLimit{Range: watch.ActionRange{Signal: "action.0", Min: -1, Max: 1}}, cost{n: 5, c: 3}},
		{watch.GuardLimit{Range: watch.ActionRange{Signal: "action.0", Min: -2, Max: 3}}, cost{n: 5, c: 1}},
		{watch.GuardLimit{Range: watch.ActionRange{Signal: "action.0", Min: math.Inf(-1), Max: 1}}, cost{n: 5, c: 2}},
		{watch.GuardLimit{Range: watch.ActionRange{Signal: "action.0", Min: -1, Max: math.Inf(1)}}, cost{n: 5, c: 2}},
		{watch.GuardLimit{Range: watch.ActionRange{Signal: "action.1", Min: -1, Max: 1}}, cost{}},
		{watch.GuardLimit{Outcome: "cost"}, cost{n: 4, c: 1}},
		{watch.GuardLimit{Outcome: "wild"}, cost{invalid: 4}},
		{watch.GuardLimit{Outcome: "absent"}, cost{}},
		{watch.GuardLimit{ReturnBelow: "-1"}, cost{n: 1, c: 1}},
	} {
		if got := costOf(&of.limit, u); got != of.want {
			t.Errorf("%+v: got %+v, want %+v", of.limit, got, of.want)
		}
	}
}

// TestEntropyAndLargestShare tests a policy whose actions collapse, and one that keeps the limits.
func TestEntropyAndLargestShare(t *testing.T) {
	limits := []watch.GuardLimit{
		{Name: "entropy", Entropy: 1, Alpha: .01, Then: watch.GuardHold},
		{Name: "largest", LargestShare: true, Share: .5, Alpha: .01, Then: watch.GuardHold},
	}
	names := []string{"a", "b", "c", "d", "e", "f"}
	for _, l := range limits {
		rng := rand.New(rand.NewPCG(5, 5))
		g := newGuard(l)
		act := func(collapsed bool) bool {
			name := names[rng.IntN(len(names))]
			if collapsed && rng.Float64() < .9 {
				name = "a"
			}
			did, _ := g.observe(&ingest.Unit{Actions: []ingest.Count{{Name: name, N: 1}}}, finding.UnitRef{})
			return did
		}
		for range 20_000 {
			if act(false) {
				t.Fatalf("%s: tripped for a policy with six even actions", l.Name)
			}
		}
		n := 1
		for ; !act(true); n++ {
			if n > 2000 {
				t.Fatalf("%s: a collapse is not found within 2,000 steps", l.Name)
			}
		}
		t.Logf("%s: a collapse is found after %d steps", l.Name, n)
	}
}

// TestSimHealthyEntropyLives simulates policies with exactly the least entropy: two equally likely actions, log 2
// nats.
func TestSimHealthyEntropyLives(t *testing.T) {
	const count, alpha = 2000, .05
	rng := rand.New(rand.NewPCG(11, 1))
	tripped := 0
	for range count {
		g := newGuard(watch.GuardLimit{Name: "entropy", Entropy: math.Ln2, Alpha: alpha, Then: watch.GuardHold})
		for range 1000 {
			if did, _ := g.observe(decision(rng.IntN(2) == 0), finding.UnitRef{}); did {
				tripped++
				break
			}
		}
	}
	if most := count*alpha + 3*math.Sqrt(count*alpha*(1-alpha)); float64(tripped) > most {
		t.Errorf("%d of %d lives stopped, at most %.0f are allowed", tripped, count, most)
	}
}

func TestManyActionsAreBounded(t *testing.T) {
	var h habits
	for i := range 10_000 {
		h.learn([]ingest.Count{{Name: string(rune(i)), N: 1}, {Name: "often", N: 1}})
	}
	leader, _ := h.leader()
	if len(h.names) > mostNames || leader != "often" {
		t.Errorf("%d names, the leader is %q, want at most %d and often", len(h.names), leader, mostNames)
	}
	sum := 0.
	for _, name := range h.names {
		sum += math.Exp(-h.surprise(name))
	}
	if sum += math.Exp(-h.surprise("never seen")); math.Abs(sum-1) > 1e-9 {
		t.Errorf("the predicted probabilities sum to %v", sum)
	}
}

func TestSetReportsTripAndRelease(t *testing.T) {
	limit := unsafeLimit(.05, .01)
	limit.ReleaseAfter = 200
	s := New("p", watch.Guards{Limits: []watch.GuardLimit{limit}})
	var found []finding.Finding
	for i := 0; len(found) == 0 && i < 1000; i++ {
		u := decision(i == 50 || i >= 100 && i%3 == 0)
		u.EndTS, u.Versions.Policy = int64(i), "v1"
		if i >= 100 {
			u.Versions.Policy = "v2"
		}
		found = s.Observe(u)
	}
	if len(found) != 1 || found[0].To != finding.Drift || found[0].Guard == nil || found[0].Group.String() != `p{guard="unsafe"}` {
		t.Fatalf("found %+v", found)
	}
	f := found[0]
	if f.OnsetFrom.Ordinal != 51 || f.Onset.Ordinal < 95 || f.Onset.Ordinal > 105 || !slices.Equal(f.Changed, []string{"policy"}) {
		t.Errorf("onset %d from %d, changed %v, want about 100 from 51, and the policy", f.Onset.Ordinal, f.OnsetFrom.Ordinal, f.Changed)
	}
	if sum := s.Summary(); sum.State != Hold || sum.Guards[0].Why == "" || sum.Seq == 0 {
		t.Errorf("summary %+v", sum)
	}
	n := 0
	for found = nil; len(found) == 0 && n < 1000; n++ {
		found = s.Observe(decision(false))
	}
	if n != 200 || len(found) != 2 || found[1].Kind != finding.GroupQuiet || s.Summary().State != OK {
		t.Errorf("after %d episodes within the limit: %+v", n, found)
	}
}

func TestReleaseByAPerson(t *testing.T) {
	s := New("p", watch.Guards{Limits: []watch.GuardLimit{{Name: "never", Actions: []string{"bad"}, Alpha: .01, Then: watch.GuardFallback}}})
	if s.Release("never", Decision{}) != nil {
		t.Error("a guard that has not tripped was released")
	}
	s.Observe(decision(true))
	for range 10_000 {
		s.Observe(decision(false))
	}
	if s.Summary().State != Fallback {
		t.Error("the guard did not stay tripped")
	}
	if found := s.Release("never", Decision{By: "ann", Why: "a test", At: time.Unix(5, 0)}); len(found) != 2 || s.Summary().State != OK {
		t.Errorf("release: %+v", found)
	}
	if found := s.Observe(decision(true)); len(found) != 1 {
		t.Errorf("it does not trip again: %+v", found)
	}
}

// The audit contains each trip and each release, in order, also after a restart; its length is bounded.
func TestAuditOfTripsAndReleases(t *testing.T) {
	never := watch.GuardLimit{Name: "never", Actions: []string{"bad"}, Alpha: .01, Then: watch.GuardFallback}
	again := never
	again.Name, again.ReleaseAfter, again.Then = "again", 3, watch.GuardHold
	s := New("p", watch.Guards{Limits: []watch.GuardLimit{never, again}})
	for i := range 5 {
		s.Observe(decision(i == 1))
	}
	decided := time.Unix(5, 0).UTC()
	s.Release("never", Decision{By: "ann", Why: "a test", At: decided})
	s.Observe(decision(true))
	parts := ingest.Parts{}
	if err := s.Changes(parts); err != nil {
		t.Fatal(err)
	}
	r := New("p", watch.Guards{Limits: []watch.GuardLimit{again}}) // never is removed
	if err := r.Resume(parts); err != nil {
		t.Fatal(err)
	}
	r.Observe(decision(false))
	var got []string
	for _, e := range r.Summary().Events {
		got = append(got, fmt.Sprint(e.Seq, " ", e.Guard, " ", e.From, " ", e.To, " ", e.At.Ordinal, " ", e.By, " ", e.Why, " ", e.Decided.Equal(decided)))
	}
	want := []string{
		"1 never ok fallback 1  the first step with action bad after 2 steps false", "2 again ok hold 1  the first step with action bad after 2 steps false",
		"3 again hold ok 4  3 episodes within the limit false", "4 never fallback ok 4 ann a test true",
		"5 never ok fallback 5  the first step with action bad after 1 steps false", "6 again ok hold 5  the first step with action bad after 1 steps false",
		"7 never fallback ok 6  the guard is no longer in the configuration false",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for range 2 * keptEvents {
		r.Release("again", Decision{})
		r.Observe(decision(true))
	}
	if events := r.Summary().Events; len(events) != keptEvents || events[keptEvents-1].Seq != r.seq || events[0].Seq != r.seq-keptEvents+1 {
		t.Errorf("%d events up to %d, want the newest %d", len(events), events[len(events)-1].Seq, keptEvents)
	}
}

// TestSimSetResumes resumes from a checkpoint at every unit and expects the same findings.
func TestSimSetResumes(t *testing.T) {
	cfg := watch.Guards{Limits: []watch.GuardLimit{
		unsafeLimit(.05, .01),
		{Name: "entropy", Entropy: .5, Alpha: .01, Then: watch.GuardWarn},
		{Name: "largest", LargestShare: true, Share: .5, Alpha: .1, Then: watch.GuardWarn},
	}}
	whole, broken := New("p", cfg), New("p", cfg)
	rng := rand.New(rand.NewPCG(1, 1))
	tripped := 0
	for i := range 3000 {
		u := decision(rng.Float64() < .04+float64(i)/3000)
		want, got := whole.Observe(u), broken.Observe(u)
		if len(want) != len(got) || len(want) > 0 && want[0].Onset != got[0].Onset {
			t.Fatalf("unit %d: %+v, want %+v", i, got, want)
		}
		tripped += len(want)
		parts := ingest.Parts{}
		if err := broken.Changes(parts); err != nil {
			t.Fatal(err)
		}
		broken = New("p", cfg)
		if err := broken.Resume(parts); err != nil {
			t.Fatal(err)
		}
	}
	if tripped < 2 {
		t.Errorf("%d guards tripped, want at least 2", tripped)
	}
}

func TestResumeWithAnotherConfiguration(t *testing.T) {
	never := watch.GuardLimit{Name: "never", Actions: []string{"bad"}, Alpha: .01, Then: watch.GuardHold}
	s := New("p", watch.Guards{Limits: []watch.GuardLimit{never}})
	s.Observe(decision(true))
	parts := ingest.Parts{}
	if err := s.Changes(parts); err != nil {
		t.Fatal(err)
	}
	never.Actions = []string{"worse"}
	s = New("p", watch.Guards{Limits: []watch.GuardLimit{never}})
	if err := s.Resume(parts); err != nil || s.Summary().State != Hold {
		t.Errorf("a guard with another limit is %s (%v), want hold: a person has not released it", s.Summary().State, err)
	}
	s = New("p", watch.Guards{})
	if err := s.Resume(parts); err != nil {
		t.Fatal(err)
	}
	if found := s.Observe(decision(false)); len(found) != 2 || found[0].Group.String() != `p{guard="never"}` {
		t.Errorf("the incident of a removed guard stays open: %+v", found)
	}
}

func TestShadowsAndHorizonsDoNotCount(t *testing.T) {
	s := New("p", watch.Guards{Limits: []watch.GuardLimit{{Name: "never", Actions: []string{"bad"}, Alpha: .01, Then: watch.GuardHold}}})
	shadow, early := decision(true), decision(true)
	shadow.Shadow = true
	early.Group = ingest.NewGroup("p", ingest.Label{Name: ingest.HorizonLabel, Value: "1h"})
	if found := append(s.Observe(shadow), s.Observe(early)...); len(found) > 0 {
		t.Errorf("found %+v", found)
	}
}

// TestATripNamesWhatBrokeTheLimit exceeds a limit after a long life within it, and from the first unit on.
func TestATripNamesWhatBrokeTheLimit(t *testing.T) {
	for _, healthy := range []int{0, 20_000} {
		g := newGuard(unsafeLimit(.01, .01))
		for i := 0; !g.tripped; i++ {
			u := decision(i >= healthy && (i-healthy)%10 == 0) // none before, and then 10 %
			g.observe(u, finding.UnitRef{Ordinal: int64(i)})
		}
		if share := g.trip.C / g.trip.N; share < .05 || share > .2 || !strings.Contains(g.trip.Why, "limit 1%") {
			t.Errorf("after %d steps within the limit: share %v, %q, want about 10%%", healthy, share, g.trip.Why)
		}
		if o := g.trip.Onset.Ordinal; o < int64(healthy)-1 || o > int64(healthy) {
			t.Errorf("onset %d, want %d", o, healthy)
		}
	}
}

// TestReleaseCountsAgainAfterAnotherCost exceeds a limit that allows nothing once more after the trip.
func TestReleaseCountsAgainAfterAnotherCost(t *testing.T) {
	for _, share := range []float64{0, .05} {
		limit := unsafeLimit(share, .01)
		limit.ReleaseAfter = 100
		g := newGuard(limit)
		for range 500 { // long after the trip
			g.observe(decision(true), finding.UnitRef{})
		}
		n := 0
		for released := false; !released && n < 1000; n++ {
			_, released = g.observe(decision(false), finding.UnitRef{})
		}
		if n > 201 {
			t.Errorf("share %v: released after %d units within the limit, want at most 201", share, n)
		}
	}
}

func TestResumeFollowsTheConfigurationAndKeepsWhatIsRemoved(t *testing.T) {
	never := watch.GuardLimit{Name: "never", Actions: []string{"bad"}, Alpha: .01, Then: watch.GuardHold}
	low := watch.GuardLimit{Name: "low", Range: watch.ActionRange{Min: math.Inf(-1), Max: 1}, Share: .1, Alpha: .01, Then: watch.GuardHold}
	changesOf := func(s *Set) ingest.Parts {
		parts := ingest.Parts{}
		s.Lost()
		if err := s.Changes(parts); err != nil {
			t.Fatal(err)
		}
		return parts
	}
	s := New("p", watch.Guards{Limits: []watch.GuardLimit{never, low}})
	u := decision(true)
	u.Numeric = []ingest.NamedMoments{{Signal: "action", Moments: ingest.Moments{N: 1, Min: 1, Max: 1}}}
	s.Observe(u)
	parts := changesOf(s)
	never.Then, low.Range.Max = watch.GuardFallback, 2
	s = New("p", watch.Guards{Limits: []watch.GuardLimit{never, low}})
	if err := s.Resume(parts); err != nil || s.Summary().State != Fallback || s.guards[1].wealth.units != 0 {
		t.Errorf("state %s, %d units (%v), want fallback, and none under the other range", s.Summary().State, s.guards[1].wealth.units, err)
	}
	for range 2 { // it is saved again before the next unit
		s = New("p", watch.Guards{})
		if err := s.Resume(parts); err != nil {
			t.Fatal(err)
		}
		parts = changesOf(s)
	}
	if found := s.Observe(decision(false)); len(found) != 2 {
		t.Errorf("the incident of a removed guard stays open: %+v", found)
	}
}
