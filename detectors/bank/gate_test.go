package bank

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/rewardwatch/rewardwatch/detectors/capacity"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/gate"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// gated returns a bank with an accepted baseline of 500 units of version p1, made by next, and its only group.
func gated(cfg watch.Config, next func() *ingest.Unit) (*Policy, *group) {
	cfg.Baseline.From = watch.FromFile
	p := newBank(cfg)
	for range cfg.Baseline.Units {
		p.Learn(versioned(next(), "p1"))
	}
	p.Accept(time.Time{})
	return p, p.groups[0]
}

func versioned(u *ingest.Unit, version string) *ingest.Unit {
	u.Versions.Policy = version
	return u
}

// beside makes a unit a shadow unit in a separate partition.
func beside(u *ingest.Unit, version string) *ingest.Unit {
	u.Shadow, u.Pos.Partition, u.First.Partition, u.Last.Partition = true, 1, 1, 1
	return versioned(u, version)
}

func gateOf(t *testing.T, p *Policy, version string) finding.Gate {
	t.Helper()
	for _, g := range shownGroup(p).Gates {
		if g.Version == version {
			return g
		}
	}
	t.Fatalf("no gate of %s", version)
	return finding.Gate{}
}

// polled holds the results for versions of one kind that are polled after each unit.
type polled struct {
	runs, better, worse, same int
	units                     ingest.Moments // until the verdict better or worse
}

func (p *polled) add(o polled) {
	p.runs, p.better, p.worse, p.same = p.runs+o.runs, p.better+o.better, p.worse+o.worse, p.same+o.same
	p.units.Merge(o.units)
}

// poll compares several versions with a baseline, each until it is found better or worse, or for longest units. shift
// is that of the mean return, in its standard deviations. If production is true, production moves as well, with four
// units to one of the version.
func poll(l law, baseline, versions, longest int, shift float64, production bool) (out polled) {
	sim := newSimulation(l, uint64(baseline), 71)
	p, g := gated(episodes(20_000), sim.unit)
	i, _ := g.Find("return")
	sim.shift = shift * g.Streams[i].Find("return").SD / 20
	for v := range versions {
		out.runs++
		name, verdict := fmt.Sprint("v", v), finding.NotEnoughData
		for n := 1; n <= longest && verdict != finding.Better && verdict != finding.Worse; n++ {
			for i := 0; production && i < 4; i++ {
				p.Observe(versioned(sim.unit(), "p1"), time.Time{})
			}
			p.Observe(beside(sim.unit(), name), time.Time{})
			shown := g.gates.Shown(g.cfg)
			verdict = shown[len(shown)-1].Verdict
			if verdict == finding.Better || verdict == finding.Worse {
				out.units.Add(float64(n))
			}
		}
		switch verdict {
		case finding.Better:
			out.better++
		case finding.Worse:
			out.worse++
		case finding.Same:
			out.same++
		}
	}
	return out
}

// pollAll polls versions of several baselines.
func pollAll(l law, baselines, versions, longest int, shift float64) (out polled) {
	for b := range baselines {
		out.add(poll(l, b, versions, longest, shift, false))
	}
	return out
}

func (p polled) String() string {
	return fmt.Sprintf("%d better, %d worse, %d the same of %d; %.1f ± %.1f units to better or worse", p.better, p.worse, p.same, p.runs,
		p.units.Mean, p.units.SD()/math.Sqrt(float64(max(1, p.units.N))))
}

// A version that equals production is rarely found better or worse, although it is polled after each unit: by its mean,
// with a probability below gate.MeansError, and by the tests, no more often than they alarm, once in N units.
func TestSimGateOfTheSameVersion(t *testing.T) {
	const baselines, versions, longest = 8, 5, 600
	for _, l := range laws()[:2] {
		found := pollAll(l, baselines, versions, longest, 0)
		t.Logf("%s: %v", l.name, found)
		runs := float64(found.runs)
		within := func(alarms int, p float64) bool {
			return float64(alarms)/runs <= p+3*math.Sqrt(p*(1-p)/runs)
		}
		if !within(found.better, gate.MeansError/2) || !within(found.worse, gate.MeansError/2+longest/20_000.) || found.same < found.runs/4 {
			t.Errorf("%s: %v", l.name, found)
		}
	}
}

func TestSimGateFindsWorseAndBetter(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	for _, shift := range []float64{-.5, .5, -1} {
		found := pollAll(laws()[0], 5, 5, 1000, shift)
		t.Logf("%+g sd: %v", shift, found)
		right := found.better
		if shift < 0 {
			right = found.worse
		}
		if right != found.runs || found.units.Mean > 90 {
			t.Errorf("%+g sd: %v", shift, found)
		}
	}
}

// Shadow units do not affect the state of production, bit for bit, nor its findings.
func TestSimShadowDoesNotTouchProduction(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	for _, mode := range []string{watch.OnNewVersionCompare, watch.OnNewVersionRebaseline} {
		run := func(withShadow bool) (ingest.Parts, []finding.Finding) {
			cfg := episodes(20_000)
			cfg.OnNewVersion = mode
			production, shadow := newAgent(21), newAgent(22)
			shadow.mean = -3
			p := newBank(cfg)
			var found []finding.Finding
			for i := range 700 {
				if withShadow {
					found = append(found, p.Observe(beside(shadow.unit(), "p2"), time.Time{})...)
				}
				if i == 620 {
					production.mean = -4
				}
				found = append(found, p.Observe(production.unit(), time.Time{})...)
			}
			if withShadow {
				if g := gateOf(t, p, "p2"); g.Verdict != finding.Worse || !g.Shadow {
					t.Errorf("%s: the shadow is %s: %s", mode, g.Verdict, g.Why)
				}
			}
			parts, _, err := p.Changes()
			if err != nil {
				t.Fatal(err)
			}
			return parts, found
		}
		alone, foundAlone := run(false)
		beside, foundBeside := run(true)
		for _, part := range []string{"group/1/running", "group/1/frozen"} {
			if readable(t, alone[part]) != readable(t, beside[part]) {
				t.Errorf("%s: %s differs by the shadow", mode, part)
			}
		}
		if len(alarmsIn(foundAlone)) == 0 || !reflect.DeepEqual(foundAlone, foundBeside) {
			t.Errorf("%s: %d findings alone, %d beside the shadow", mode, len(foundAlone), len(foundBeside))
		}
	}
}

// readable returns a part of a checkpoint as text, with maps in the order of their keys.
func readable(t *testing.T, part []byte) string {
	t.Helper()
	var state any
	if err := cbor.Unmarshal(part[1:], &state); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(state)
}

// A gate that is saved and restored, or evicted, continues bit for bit.
func TestSimGatesAreRestored(t *testing.T) {
	run := func(between func(*Policy) *Policy) (finding.Gate, string) {
		a := newAgent(31)
		p, _ := gated(episodes(20_000), a.unit)
		a.mean = -2.05
		for i := range 120 {
			p.Observe(beside(a.unit(), "p2"), time.Time{})
			if i%13 == 0 {
				p = between(p)
			}
		}
		parts, _, err := p.Changes()
		if err != nil {
			t.Fatal(err)
		}
		return gateOf(t, p, "p2"), readable(t, parts["group/1/gates"])
	}
	want, state := run(func(p *Policy) *Policy { return p })
	if want.Units != 120 || want.Signals[0].After.Units == 0 {
		t.Fatalf("%+v", want)
	}
	got, gotState := run(func(p *Policy) *Policy { return restored(t, p) })
	if fmt.Sprint(got) != fmt.Sprint(want) || gotState != state {
		t.Errorf("restored:\n%+v\nwant\n%+v", got, want)
	}
}

func TestEvictedGatesComeBack(t *testing.T) {
	a := newAgent(32)
	p, g := gated(episodes(20_000), a.unit)
	for range 50 {
		p.Observe(beside(a.unit(), "p2"), time.Time{})
	}
	want := gateOf(t, p, "p2")
	saved := ingest.Parts{}
	for range 2 {
		parts, _, err := p.Changes()
		if err != nil {
			t.Fatal(err)
		}
		for name, part := range parts {
			saved[name] = part
		}
		p.Saved()
	}
	if n, _ := p.Evict([]ingest.Group{g.Key}); n != 1 {
		t.Fatal("the group is not evicted")
	}
	if got := gateOf(t, p, "p2"); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("while it is evicted: %+v", got)
	}
	back := ingest.Parts{}
	for _, name := range p.Absent(g.Key) {
		back[name] = saved[name]
	}
	if err := p.Return(g.Key, back); err != nil {
		t.Fatal(err)
	}
	p.Observe(beside(a.unit(), "p2"), time.Time{})
	if got := gateOf(t, p, "p2"); got.Units != 51 {
		t.Errorf("after it came back: %d units", got.Units)
	}
}

// A checkpoint of a build without gates can be read, even if its group is evicted immediately.
func TestCheckpointWithoutGates(t *testing.T) {
	a := newAgent(33)
	p, g := gated(episodes(20_000), a.unit)
	parts, _, err := p.Changes()
	if err != nil {
		t.Fatal(err)
	}
	delete(parts, "group/1/gates")
	q := newBank(p.cfg)
	if err := q.Resume(parts, time.Time{}); err != nil {
		t.Fatal(err)
	}
	q.Observe(beside(a.unit(), "p2"), time.Time{})
	if got := gateOf(t, q, "p2"); got.Units != 1 || got.Production != "p1" {
		t.Errorf("%+v", got)
	}
	small := newBank(p.cfg)
	small.Keep(capacity.NewResidents(0))
	if err := small.Resume(parts, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if names := small.Absent(g.Key); len(names) != 2 {
		t.Errorf("the group comes back from %v", names)
	}
}

// A simultaneous change of production is not attributed to the version.
func TestGateWaitsWhereProductionMoves(t *testing.T) {
	a := newAgent(34)
	p, _ := gated(episodes(20_000), a.unit)
	a.mean = -2.12 // about half a standard deviation of the return
	for range 200 {
		a.versions.Policy = "p1"
		p.Observe(a.unit(), time.Time{})
		p.Observe(a.unit(), time.Time{})
		p.Observe(beside(a.unit(), "p2"), time.Time{})
	}
	if g := gateOf(t, p, "p2"); g.Verdict != finding.NotEnoughData || !strings.Contains(g.Why, "since the version started") {
		t.Errorf("%s: %s", g.Verdict, g.Why)
	}
}

func TestGateInATelemetryFault(t *testing.T) {
	a := newAgent(35)
	p, _ := gated(episodes(20_000), a.unit)
	a.edit = func(u *ingest.Unit) { u.Return = math.NaN() }
	for range 60 {
		p.Observe(beside(a.unit(), "p2"), time.Time{})
	}
	if g := gateOf(t, p, "p2"); g.Verdict != finding.NotEnoughData || g.Why != "return has a telemetry fault (non_finite)" {
		t.Errorf("%s: %s", g.Verdict, g.Why)
	}
}

// Signals without a better side can move without a verdict. An outcome has a verdict if the configuration gives it a
// better side.
func TestSimSidesOfSignals(t *testing.T) {
	rate := .5
	a := newAgent(36)
	a.edit = func(u *ingest.Unit) {
		u.Numeric = append(u.Numeric, ingest.NamedMoments{Signal: "outcome.success"})
		for range 20 {
			x := 0.
			if a.rng.Float64() < rate {
				x = 1
			}
			u.Numeric[0].Add(x)
		}
	}
	for side, want := range map[string]finding.Verdict{"below": finding.Worse, "above": finding.Better, "both": finding.Same, "": finding.Same} {
		cfg := episodes(20_000)
		if side != "" {
			cfg.Guaranteed = []watch.GivenMean{{Signal: "outcome.success", Mean: .5, Side: side}}
		}
		rate = .5
		a.shares = []float64{.5, .3, .2}
		p, g := gated(cfg, a.unit)
		rate = .4
		a.shares = []float64{.1, .3, .6}
		for range 3000 {
			p.Observe(beside(a.unit(), "p2"), time.Time{})
		}
		got := gateOf(t, p, "p2")
		var outcome, action finding.GateSignal
		for _, s := range got.Signals {
			switch s.Signal {
			case "outcome.success":
				outcome = s
			case "action":
				action = s
			}
		}
		if want == finding.Same && outcome.Verdict != "" || want != finding.Same && outcome.Verdict != want || outcome.AlarmAt == 0 {
			t.Errorf("side %q: outcome %+v", side, outcome)
		}
		if action.Verdict != "" || action.AlarmAt == 0 || action.Quantity == "" {
			t.Errorf("side %q: action %+v", side, action)
		}
		if got.Verdict != want && (want != finding.Better || got.Verdict != finding.Better) {
			t.Errorf("side %q: %s: %s; return of %d units %s", side, got.Verdict, got.Why, len(g.Streams), got.Signals[0].Why)
		}
	}
}

// A return that never varied is the same as long as it stays constant, and worse when it falls.
func TestGateOfAConstantReturn(t *testing.T) {
	value := 500.
	a := newAgent(37)
	a.edit = func(u *ingest.Unit) { u.Return, u.Reward = value, ingest.Moments{} }
	p, _ := gated(episodes(20_000), a.unit)
	for range 70 {
		p.Observe(beside(a.unit(), "p2"), time.Time{})
	}
	if g := gateOf(t, p, "p2"); g.Verdict != finding.Same {
		t.Errorf("at its constant: %s: %s", g.Verdict, g.Why)
	}
	value = 480
	for i := range 70 {
		a.edit = func(u *ingest.Unit) { u.Return, u.Reward = value-float64(i%7), ingest.Moments{} }
		p.Observe(beside(a.unit(), "p3"), time.Time{})
	}
	if g := gateOf(t, p, "p3"); g.Verdict != finding.Worse {
		t.Errorf("below it: %s: %s", g.Verdict, g.Why)
	}
}

func TestSimNewestVersionsAreCompared(t *testing.T) {
	a := newAgent(38)
	p, g := gated(episodes(20_000), a.unit)
	for i, version := range []string{"a", "b", "c", "d", "a", "e"} {
		p.Observe(beside(a.unit(), version), time.Time{})
		if len(g.gates.Trials) != min(i+1, gate.KeptTrials) {
			t.Errorf("%d versions after %s", len(g.gates.Trials), version)
		}
	}
	if names := versionsOf(g); names != "a c d e" {
		t.Errorf("compared: %s", names)
	}
	for _, u := range []*ingest.Unit{a.unit(), beside(a.unit(), ""), versioned(a.unit(), ""), versioned(a.unit(), "p1")} {
		p.Observe(u, time.Time{})
	}
	if names := versionsOf(g); names != "a c d e" {
		t.Errorf("units without a version, or of production, are compared: %s", names)
	}
	p.Observe(versioned(a.unit(), "a"), time.Time{}) // it begins to serve
	p.Observe(beside(a.unit(), "a"), time.Time{})
	if got := gateOf(t, p, "a"); got.Shadow || got.Units != 1 {
		t.Errorf("a version that serves: %+v", got)
	}
}

// A version that was found to be worse remains so, regardless of how many versions follow, and even if more units of it
// arrive.
func TestWorseOutlivesItsGate(t *testing.T) {
	a := newAgent(43)
	p, _ := gated(episodes(20_000), a.unit)
	a.mean = -2.6
	for range 200 {
		p.Observe(beside(a.unit(), "bad"), time.Time{})
	}
	found := gateOf(t, p, "bad")
	if found.Verdict != finding.Worse || len(found.Signals) == 0 {
		t.Fatalf("%s: %s", found.Verdict, found.Why)
	}
	a.mean = -2
	others := func(from, n int) {
		for i := range n {
			p.Observe(beside(a.unit(), fmt.Sprint("v", from+i)), time.Time{})
		}
	}
	others(0, gate.KeptTrials)
	if g := gateOf(t, p, "bad"); g.Verdict != finding.Worse || g.Why != found.Why || g.Ended != "newer versions have replaced it" || len(g.Signals) == 0 {
		t.Errorf("pushed out: %+v", g)
	}
	others(gate.KeptTrials, 100)
	p = restored(t, p)
	g := p.groups[0]
	if g := gateOf(t, p, "bad"); g.Verdict != finding.Worse || g.Why != found.Why || g.Units != 200 || len(g.Signals) > 0 {
		t.Errorf("long ago: %+v", g)
	}
	if n := len(g.gates.Ended); n != gate.KeptTrials+1 {
		t.Errorf("%d gates that have ended are kept, want those of the %d versions before and the one that was worse", n, gate.KeptTrials)
	}
	p.Observe(beside(a.unit(), "bad"), time.Time{})
	if g := gateOf(t, p, "bad"); g.Verdict != finding.Worse || g.Why != found.Why || g.Ended != "" || g.Units != 1 {
		t.Errorf("one unit more: %+v", g)
	}
	if n := len(g.gates.Ended); n != gate.KeptTrials {
		t.Errorf("%d gates that have ended are kept", n)
	}
	p.Observe(versioned(a.unit(), "bad"), time.Time{})
	if g := gateOf(t, p, "bad"); g.Verdict == finding.Worse || g.Shadow {
		t.Errorf("it serves, which is compared anew: %+v", g)
	}
}

func versionsOf(g *group) string {
	var names []string
	for _, t := range g.gates.Trials {
		names = append(names, t.Version)
	}
	return strings.Join(names, " ")
}

// When a new version gets its own baseline, its gate ends and is shown unchanged.
func TestGateEndsWithItsBaseline(t *testing.T) {
	cfg := rebaselining()
	cfg.Baseline.Units = 100
	p, r := newBank(cfg), newRelease(39)
	r.means = map[string]float64{"p1": -2, "p2": -2.4}
	r.run(p, 100, "p1")
	r.run(p, 99, "p1", "p2")
	if g := gateOf(t, p, "p2"); g.Verdict != finding.Worse || g.Ended != "" || g.Units != 99 {
		t.Errorf("beside production: %+v", g)
	}
	r.run(p, 1, "p2")
	p = restored(t, p)
	if g := gateOf(t, p, "p2"); g.Verdict != finding.Worse || g.Ended != "policy_version p2 now has its own baseline" || g.Units != 100 {
		t.Errorf("after it took over: %+v", g)
	}
	if g := shownGroup(p); g.Production != "p2" {
		t.Errorf("production is %q", g.Production)
	}
	r.run(p, 1, "p1")
	if g := gateOf(t, p, "p1"); g.Production != "p2" || g.Baseline != shownGroup(p).Baseline.ID {
		t.Errorf("the version before: %+v", g)
	}
}

// A canary that serves beside production, with one unit in five, is compared with production and also judged with it.
func TestSimCanary(t *testing.T) {
	for mean, want := range map[float64]finding.Verdict{-2: finding.Same, -2.3: finding.Worse, -1.7: finding.Better} {
		a := newAgent(41)
		p, _ := gated(episodes(20_000), a.unit)
		for i := range 3000 {
			a.mean, a.versions.Policy = -2, "p1"
			if i%5 == 0 {
				a.mean, a.versions.Policy = mean, "p2"
			}
			p.Observe(a.unit(), time.Time{})
		}
		g := gateOf(t, p, "p2")
		if g.Verdict != want || g.Shadow || g.Units != 600 || g.Production != "p1" {
			t.Errorf("mean %g: %s of %d units: %s", mean, g.Verdict, g.Units, g.Why)
		}
		for _, s := range g.Signals {
			if s.Signal == "return" && s.Meanwhile.Units < 2000 {
				t.Errorf("mean %g: %d units of production meanwhile", mean, s.Meanwhile.Units)
			}
		}
		if units := shownGroup(p).Units; units != 3500 {
			t.Errorf("mean %g: %d units are judged together", mean, units)
		}
	}
}
