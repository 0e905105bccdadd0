package bank

import (
	"slices"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/progress"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// learning returns a configuration of a policy that learns, with a budget of one false alarm in n episodes.
func learning(n float64) watch.Config {
	cfg := episodes(n)
	cfg.Learning = watch.LearningContinuous
	cfg.Direction = watch.Directions{"outcome.sale": watch.DirectionUp, "outcome.refund": watch.DirectionDown}
	return cfg
}

// trader makes the units of an agent that learns; learning, or a change, modifies its fields.
type trader struct {
	*agent
	sale, refund float64
	place        float64 // mean of an observation
}

func newTrader(seed uint64) *trader {
	t := &trader{agent: newAgent(seed), sale: .3, refund: .004}
	t.edit = func(u *ingest.Unit) {
		for _, o := range []struct {
			signal string
			value  func() float64
		}{
			{"observation.place", func() float64 { return t.place + t.rng.NormFloat64() }},
			{"outcome.refund", func() float64 { return float64(int(t.rng.Float64() + t.refund)) }},
			{"outcome.sale", func() float64 { return float64(int(t.rng.Float64() + t.sale)) }},
		} {
			m := ingest.NamedMoments{Signal: o.signal}
			for range u.Length {
				m.Add(o.value())
			}
			m.Q10, m.Q90 = m.Min, m.Max
			u.Numeric = append(u.Numeric, m)
		}
	}
	return t
}

// A policy that learns changes its actions, states and returns without an alarm. A return or an outcome that gets worse
// raises one.
func TestSimLearningRaisesNoAlarm(t *testing.T) {
	const units, budget = 2500, 2000.
	for _, tt := range []struct {
		name   string
		change func(*trader)
		signal string // empty for none
	}{
		{"it learns", func(a *trader) {
			a.mean, a.shares, a.place, a.sale, a.refund = a.mean+.3, []float64{.8, .15, .05}, 1, .5, .001
		}, ""},
		{"the return falls", func(a *trader) { a.mean -= .3 }, "return"},
		{"sales fall", func(a *trader) { a.sale = .2 }, "outcome.sale"},
		{"refunds rise", func(a *trader) { a.refund = .02 }, "outcome.refund"},
	} {
		a, p := newTrader(970), newBank(learning(budget))
		if alarms := alarmsIn(a.feed(p, 700)); len(alarms) > 0 {
			t.Errorf("%s: alarms of %q before", tt.name, alarms)
		}
		tt.change(a)
		alarms := alarmsIn(a.feed(p, units))
		if tt.signal == "" && len(alarms) > 0 || tt.signal != "" && !slices.Contains(alarms, tt.signal) {
			t.Errorf("%s: alarms of %q, want %q", tt.name, alarms, tt.signal)
		}
	}
}

// While a policy learns, a fall of its return for a dozen episodes raises no alarm. A longer or larger fall does, as
// does a fall of a frozen policy.
func TestAShortFallWhileLearning(t *testing.T) {
	for _, tt := range []struct {
		name  string
		cfg   watch.Config
		by    float64 // of the mean reward
		units int
		want  bool
	}{
		{"short, learning", learning(2000), .7, 12, false},
		{"long, learning", learning(2000), .45, 60, true},
		{"large, learning", learning(2000), 1.5, 25, true},
		{"short, frozen", episodes(2000), .7, 12, true},
	} {
		a, p := newTrader(975), newBank(tt.cfg)
		a.feed(p, 600)
		a.mean -= tt.by
		found := a.feed(p, tt.units)
		if q := quantityOf(p, "return", "return"); !q.Reached() {
			t.Errorf("%s: the fall does not reach a threshold", tt.name)
		}
		a.mean += tt.by
		found = append(found, a.feed(p, 200)...)
		if got := slices.Contains(alarmsIn(found), "return"); got != tt.want {
			t.Errorf("%s: an alarm of the return: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// In blocks, a fall of the return raises an alarm at once, because 40 blocks can be thousands of decisions.
func TestAShortFallInBlocksWhileLearning(t *testing.T) {
	cfg := decisionsConfig()
	cfg.Learning = watch.LearningContinuous
	d, p := newDecider(976, 1, 1000), newBank(cfg)
	d.accepted(t, p)
	size := p.groups[0].Blocks.Size
	d.shift = -1
	if alarms := alarmsIn(d.feed(p, 30*size)); !slices.Contains(alarms, "return") {
		t.Errorf("alarms of %q within 30 blocks, want one of the return", alarms)
	}
}

// Signals that are only displayed use no branch and no budget, which leaves more to the others.
func TestShownSignalsSpendNothing(t *testing.T) {
	lowest := map[watch.Learning]float64{}
	for _, mode := range []watch.Learning{watch.LearningFrozen, watch.LearningContinuous} {
		cfg := learning(2000)
		cfg.Learning = mode
		a, p := newTrader(971), newBank(cfg)
		a.feed(p, 500)
		p = resumed(t, p, cfg)
		lowest[mode] = quantityOf(p, "return", "return").Walks().Branches[0].Height
		for _, signal := range []string{"action", "episode_length", "observation.place", "reward"} {
			s := stateOf(t, p, signal)
			if learns := mode.Learns(); learns != (s.Missing == stream.ShownOnly) || learns != (s.Branches == 0) || s.State != finding.OK {
				t.Errorf("learning %s: %s is %s with %d branches, missing %q", mode, signal, s.State, s.Branches, s.Missing)
			}
			if signal != "action" && (s.Current.Units == 0 || s.Baseline.Units == 0) {
				t.Errorf("learning %s: %s is not shown", mode, signal)
			}
		}
		if caveats := p.Summary().Groups[0].Promise.Caveats; mode.Learns() != slices.Contains(caveats, CaveatLearning) {
			t.Errorf("learning %s: caveats %q", mode, caveats)
		}
	}
	if !(lowest[watch.LearningContinuous] < lowest[watch.LearningFrozen]-.7) { // at least twice the rate
		t.Errorf("the thresholds of the return are %v: the freed budget does not reach it", lowest)
	}
}

// resumed returns the bank as restored after a restart.
func resumed(t *testing.T, p *Policy, cfg watch.Config) *Policy {
	t.Helper()
	parts, _, err := p.Changes()
	if err != nil {
		t.Fatal(err)
	}
	q := newBank(cfg)
	if err := q.Resume(parts, time.Time{}); err != nil {
		t.Fatal(err)
	}
	return q
}

// A better level becomes the baseline once it has held, and a fall back to the old level then raises an alarm. A level
// that did not hold does not become the baseline.
func TestSimLevelsRatchet(t *testing.T) {
	for _, tt := range []struct {
		name   string
		better int // number of units
		moved  bool
		alarm  string
	}{
		{"it holds", 900, true, "return"},
		{"it does not hold", 300, false, ""},
	} {
		a, p := newTrader(972), newBank(learning(2000))
		a.feed(p, 600)
		g := p.groups[0]
		first := g.Baseline.ID
		a.mean += .2
		alarms := alarmsIn(a.feed(p, tt.better))
		p = resumed(t, p, learning(2000))
		g = p.groups[0]
		if moved := g.Baseline.ID != first; moved != tt.moved || len(alarms) > 0 {
			t.Errorf("%s: baseline moved: %v, alarms %q", tt.name, moved, alarms)
		}
		if past := len(g.Line.Past); tt.moved && past != 1 {
			t.Errorf("%s: %d baselines before it", tt.name, past)
		} else if tt.moved && g.Line.Past[0].Why != "the return has risen" {
			t.Errorf("%s: the baseline before it ended because of %q", tt.name, g.Line.Past[0].Why)
		}
		a.mean -= .2
		alarms = alarmsIn(a.feed(p, 600))
		if tt.alarm == "" && len(alarms) > 0 || tt.alarm != "" && !slices.Contains(alarms, tt.alarm) {
			t.Errorf("%s: alarms of %q after it fell back, want %q", tt.name, alarms, tt.alarm)
		}
		if tt.alarm == "" && (g.ratchets() || g.Baseline.ID != first) {
			t.Errorf("%s: units are still collected, or the baseline has moved", tt.name)
		}
	}
}

// If the return of a learner rises without settling, it still gets a baseline, and another one at the level it has
// reached. When the learner breaks, its return falls to a level that was good at the beginning.
func TestARisingReturnIsHeld(t *testing.T) {
	const units = 2000
	a, p := newTrader(973), newBank(learning(4000))
	for range units {
		a.mean += 1. / units
		if alarms := alarmsIn(a.feed(p, 1)); len(alarms) > 0 {
			t.Fatalf("alarms of %q while it learns", alarms)
		}
	}
	g := p.groups[0]
	if g.Baseline.Provisional || len(g.Line.Past) == 0 {
		t.Errorf("after %d episodes the baseline is %+v, after %d others", units, g.Baseline, len(g.Line.Past))
	}
	a.mean -= 1
	if alarms := alarmsIn(a.feed(p, 300)); !slices.Contains(alarms, "return") {
		t.Errorf("a fall to an earlier level: alarms of %q, want the return", alarms)
	}
}

// While units at a better level are collected, the old level stays in force, and an alarm ends the collection.
func TestOldLevelStaysInForce(t *testing.T) {
	a, p := newTrader(973), newBank(learning(2000))
	a.feed(p, 600)
	a.mean += .2
	a.feed(p, 200)
	g := p.groups[0]
	if !g.ratchets() {
		t.Fatal("no better level is collected")
	}
	if l := shownGroup(p).Lineage; l.Collected == 0 || l.Wanted != 500 {
		t.Errorf("%d of %d collected units are shown", l.Collected, l.Wanted)
	}
	a.mean -= .7
	if alarms := alarmsIn(a.feed(p, 60)); !slices.Contains(alarms, "return") {
		t.Errorf("alarms of %q, want one of the return", alarms)
	}
	if g.ratchets() || len(g.Line.Past) > 0 {
		t.Error("units of the fall may become the baseline")
	}
}

// If versions are frozen, the tests restart from zero with a new version. If the policy learns continuously, they do
// not.
func TestLevelsOfAVersionStartFromZero(t *testing.T) {
	for mode, want := range map[watch.Learning]bool{watch.LearningVersions: true, watch.LearningContinuous: false} {
		cfg := learning(2000)
		cfg.Learning = mode
		a, p := newTrader(974), newBank(cfg)
		a.feed(p, 600)
		a.mean -= .15
		walk := func() (most float64) {
			w := quantityOf(p, "return", "return").Walks()
			for i := range w.Branches {
				most = max(most, w.Branches[i].Score())
			}
			return most
		}
		for walk() < .5 {
			if alarms := alarmsIn(a.feed(p, 1)); len(alarms) > 0 {
				t.Fatalf("alarms of %q", alarms)
			}
		}
		a.versions.Policy, a.mean = "p2", a.mean+.15
		a.feed(p, 1)
		if zero := walk() < .2; zero != want {
			t.Errorf("learning %s: the new version starts at %v", mode, walk())
		}
	}
}

// While the policy visits states that the baseline lacks, a law raises no alarm, and a note says that it is not judged.
func TestLawsOnNewGround(t *testing.T) {
	cfg := episodes(2000)
	cfg.Learning = watch.LearningContinuous
	a, p, w := newAgent(975), newBank(cfg), world{1, 1, 1}
	hidden(a, &w)
	live := a.edit
	away := float32(0)
	a.edit = func(u *ingest.Unit) {
		live(u)
		for i := range u.Steps.At {
			u.Steps.Row(i)[0] += away
			u.Steps.Row(i)[1] += away
		}
	}
	a.feed(p, 700)
	noted := func() bool { return slices.Contains(stateOf(t, p, "law.reward").Notes, newGroundNote) }
	if noted() {
		t.Error("the ground of the baseline is new")
	}
	away = 8
	alarms := alarmsIn(a.feed(p, 300))
	if !noted() {
		t.Error("other states are no new ground")
	}
	if slices.Contains(alarms, "law.reward") || slices.Contains(alarms, "law.dynamics") {
		t.Errorf("alarms of %q on new ground", alarms)
	}
	away = 0
	a.feed(p, 50)
	if noted() {
		t.Error("the ground stays new although the policy is back")
	}
}

// After a restart, a law tolerates the same shift, and reports a change as it would have without the restart.
func TestToleratedShiftsAreRestored(t *testing.T) {
	cfg := episodes(2000)
	cfg.Learning = watch.LearningContinuous
	p, a, w := newBank(cfg), newAgent(962), world{1, 1, 1}
	hidden(a, &w)
	a.feed(p, 600)
	again := resumed(t, p, cfg)
	w.earns = .7
	for range 20 {
		u := a.unit()
		p.Observe(u, time.Time{})
		again.Observe(u, time.Time{})
	}
	want, got := quantityOf(p, "law.reward", signals.LawSquare).Rank(), quantityOf(again, "law.reward", signals.LawSquare).Rank()
	if want.Tolerated == 0 || !slices.ContainsFunc(want.Branches, func(b detectors.CUSUM) bool { return b.Walk > 0 }) {
		t.Fatalf("nothing is tolerated, or nothing has moved: %+v", want.Branches)
	}
	if !slices.Equal(want.Branches, got.Branches) {
		t.Errorf("the walks are %+v, want %+v", got.Branches, want.Branches)
	}
}

// The scores of episodes with many steps vary much less than what is tolerated while the policy learns, so a shift
// beyond the tolerance is found sooner.
func TestAnExactLawIsJudgedWhileLearning(t *testing.T) {
	cfg := episodes(2000)
	cfg.Learning = watch.LearningContinuous
	p, a, w := newBank(cfg), newAgent(963), world{1, 1, 1}
	hidden(a, &w)
	a.feed(p, 600)
	q := quantityOf(p, "law.dynamics", signals.LawMean)
	if tolerated := cfg.Tolerated("law.dynamics"); q.SD > tolerated/2 {
		t.Fatalf("the mean score varies by %v, where %v are tolerated", q.SD, tolerated)
	}
	if alarms := alarmsIn(a.feed(p, 200)); len(alarms) > 0 {
		t.Fatalf("alarms of %q before the change", alarms)
	}
	w.moves = -1
	if alarms := alarmsIn(a.feed(p, 20)); !slices.Contains(alarms, "law.dynamics") {
		t.Errorf("alarms of %q", alarms)
	}
}

// While the policy learns, its own law is not judged but displayed, and does not appear to wait for a baseline.
func TestALawThatIsNotJudgedIsShown(t *testing.T) {
	cfg := episodes(2000)
	cfg.Learning = watch.LearningContinuous
	p, a, w := newBank(cfg), newAgent(961), world{1, 1, 1}
	hidden(a, &w)
	a.feed(p, 600)
	p = resumed(t, p, cfg)
	for signal, judged := range map[string]bool{"law.dynamics": true, "law.policy": false, "law.reward": true, "law.start": true} {
		if s := stateOf(t, p, signal); (s.Branches > 0) != judged || (s.Missing == stream.ShownOnly) == judged || s.State != finding.OK {
			t.Errorf("%s is %s with %d branches, missing %q", signal, s.State, s.Branches, s.Missing)
		}
	}
}

// A better return does not compensate for a signal with a direction that gets worse: the levels of both stay.
func TestABetterReturnDoesNotLowerOtherLevels(t *testing.T) {
	for refund, want := range map[float64]bool{.004: true, .006: false} {
		a, p := newTrader(976), newBank(learning(1e6)) // so that no alarm ends the collection
		a.feed(p, 600)
		first := p.groups[0].Baseline.ID
		a.mean, a.refund = a.mean+.2, refund
		if alarms := alarmsIn(a.feed(p, 700)); len(alarms) > 0 {
			t.Fatalf("alarms of %q", alarms)
		}
		if moved := p.groups[0].Baseline.ID != first; moved != want {
			t.Errorf("refunds in a share of %v: baseline moved: %v", refund, moved)
		}
	}
}

// The progress of a return is shown while the policy learns, also after a restart, but not for other policies and
// signals.
func TestSimProgressOfAReturn(t *testing.T) {
	cfg := learning(100_000)
	frozen := cfg
	frozen.Learning = watch.LearningFrozen
	a, b := newTrader(977), newTrader(977)
	p, other := newBank(cfg), newBank(frozen)
	state := func(of *Policy) progress.State {
		t.Helper()
		of.Publish()
		groups := of.Summary().Groups
		if len(groups) != 1 {
			t.Fatalf("%d groups", len(groups))
		}
		shown := progress.Unknown
		for _, s := range groups[0].Streams {
			switch {
			case s.Progress == nil:
			case s.Signal == "return":
				shown = s.Progress.State
			default:
				t.Errorf("%s has a progress", s.Signal)
			}
		}
		return shown
	}
	a.feed(p, 100)
	if got := state(p); got != progress.Unknown {
		t.Errorf("after 100 episodes: %s", got)
	}
	a.feed(p, 700)
	if got := state(p); got != progress.Plateau {
		t.Errorf("while nothing changes: %s", got)
	}
	for range 40 {
		a.mean += .05
		a.feed(p, 10)
	}
	if got := state(p); got != progress.Improving {
		t.Errorf("while it learns: %s", got)
	}
	p = resumed(t, p, cfg)
	if got := state(p); got != progress.Improving {
		t.Errorf("after a restart: %s", got)
	}
	a.mean -= 20
	a.feed(p, 400)
	if got := state(p); got != progress.Collapsed {
		t.Errorf("after a collapse: %s", got)
	}
	b.feed(other, 800)
	if got := state(other); got != progress.Unknown {
		t.Errorf("of a frozen policy: %s", got)
	}
}

// parted returns the parting reported with the last alarm of an outcome, for a policy whose return rises while the
// outcome falls over 3,000 episodes after the first 800. midway is called in the middle.
func parted(cfg watch.Config, midway func(*trader)) *progress.Parting {
	var told *progress.Parting
	a, p := newTrader(71), newBank(cfg)
	a.feed(p, 800)
	for i := range 3000 {
		a.mean += .0002
		a.sale -= .00005
		if i == 1500 {
			midway(a)
		}
		for _, f := range a.feed(p, 1) {
			if f.Signal == "outcome.sale" && f.To == finding.Drift && f.Shifts != nil {
				told = f.Parting
			}
		}
	}
	return told
}

// The return and an outcome are compared with the time at which the outcome was best. They are not compared across
// versions of the environment or the reward function, if the policy is frozen, or if the outcome has no better side.
func TestPartingIsTold(t *testing.T) {
	if testing.Short() {
		t.Skip("seconds of CPU")
	}
	t.Parallel()
	const changed = 800 + 1500
	told := parted(learning(20_000), func(*trader) {})
	if told == nil || told.Earned != "return" || told.Since > changed {
		t.Errorf("%+v", told)
	}
	for name, midway := range map[string]func(*trader){
		"environment":     func(a *trader) { a.versions.Env = "e2" },
		"reward function": func(a *trader) { a.versions.Reward = "r2" },
	} {
		if told := parted(learning(20_000), midway); told == nil || told.Since < changed {
			t.Errorf("%+v, across versions of the %s", told, name)
		}
	}
	frozen, undirected := learning(20_000), learning(20_000)
	frozen.Learning, undirected.Direction = watch.LearningFrozen, nil
	for _, cfg := range []watch.Config{frozen, undirected} {
		if told := parted(cfg, func(*trader) {}); told != nil {
			t.Errorf("learning %s, directions %v: %+v", cfg.Learning, cfg.Direction, told)
		}
	}
}
