package bank

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/budget"
	"github.com/rewardwatch/rewardwatch/detectors/capacity"
	"github.com/rewardwatch/rewardwatch/detectors/fault"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// agent makes the units of an artificial policy; tests change its fields.
type agent struct {
	rng      *rand.Rand
	policy   string
	mean, sd float64
	shares   []float64 // of the actions a, b, c
	versions ingest.Versions
	edit     func(*ingest.Unit)
	made     int64
}

func newAgent(seed uint64) *agent {
	return &agent{
		rng: rand.New(rand.NewPCG(seed, 1)), policy: "ranker", mean: -2, sd: 1, shares: []float64{.5, .3, .2},
		versions: ingest.Versions{Policy: "p1", Env: "e1", Reward: "r1"},
	}
}

// unit returns the next episode: about 20 steps, one per second.
func (a *agent) unit() *ingest.Unit {
	length := 15 + a.rng.IntN(11)
	at := ingest.Position{Offset: a.made}
	u := &ingest.Unit{
		Group: ingest.NewGroup(a.policy, ingest.Label{Name: "env", Value: "prod"}), Agent: "a-1", Episode: fmt.Sprint(a.made),
		End: ingest.EndTerminated, Versions: a.versions, Length: int64(length), HasReturn: true,
		StartTS: (1_800_000_000 + 20*a.made) * 1e9, EndTS: (1_800_000_019 + 20*a.made) * 1e9, First: at, Last: at, Pos: at,
	}
	counts := map[string]int64{}
	rewards := make([]float64, length)
	for i := range rewards {
		rewards[i] = a.mean + a.sd*a.rng.NormFloat64()
		u.Reward.Add(rewards[i])
		u.Return += rewards[i]
		counts[a.action()]++
	}
	slices.Sort(rewards)
	u.RewardQ10, u.RewardQ90 = rewards[length/10], rewards[length-1-length/10]
	u.ActionKind = ingest.ActionCategory
	for _, name := range slices.Sorted(keysOf(counts)) {
		u.Actions = append(u.Actions, ingest.Count{Name: name, N: counts[name]})
	}
	if a.edit != nil {
		a.edit(u)
	}
	a.made++
	return u
}

func keysOf(m map[string]int64) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func (a *agent) action() string {
	x := a.rng.Float64()
	for i, share := range a.shares {
		if x -= share; x < 0 {
			return string(rune('a' + i))
		}
	}
	return "a"
}

// feed passes n units to a bank and returns its findings.
func (a *agent) feed(p *Policy, n int) []finding.Finding {
	var found []finding.Finding
	for range n {
		found = append(found, p.Observe(a.unit(), time.Time{})...)
	}
	return found
}

func newBank(cfg watch.Config) *Policy {
	return NewPolicy("ranker", cfg, capacity.NewStreamLimit(2000))
}

func episodes(n float64) watch.Config {
	cfg := watch.DefaultConfig()
	cfg.FalseAlarms.Per = watch.Per{Amount: n, Unit: watch.PerEpisodes}
	return cfg
}

func alarmsIn(found []finding.Finding) (signals []string) {
	for _, f := range found {
		if f.Kind == finding.StreamChanged && f.To == finding.Drift && f.From != finding.TelemetryFault {
			signals = append(signals, f.Signal)
		}
	}
	return signals
}

func stateOf(t *testing.T, p *Policy, signal string) finding.StreamSummary {
	t.Helper()
	p.Publish()
	for _, s := range p.Summary().Groups[0].Streams {
		if s.Signal == signal {
			return s
		}
	}
	t.Fatalf("no stream of %s", signal)
	return finding.StreamSummary{}
}

func TestWarmUpSaysWhatIsMissing(t *testing.T) {
	p := newBank(watch.DefaultConfig())
	a := newAgent(1)
	a.feed(p, 99)
	s := stateOf(t, p, "return")
	if s.State != finding.WarmingUp || s.Missing != "99 of 100 episodes for a first baseline" {
		t.Errorf("after 99 units: %s, missing %q", s.State, s.Missing)
	}
	a.feed(p, 1)
	if s := stateOf(t, p, "return"); s.State != finding.OK || len(s.Armed) == 0 {
		t.Errorf("after 100 units: %s, armed %v", s.State, s.Armed)
	}
	var baselines []finding.BaselineRef
	for range 400 {
		a.feed(p, 1)
		p.Publish()
		if b := p.Summary().Groups[0].Baseline; len(baselines) == 0 || baselines[len(baselines)-1].ID != b.ID {
			baselines = append(baselines, b)
		}
	}
	want := []int{100, 250, 500}
	if len(baselines) != len(want) {
		t.Fatalf("baselines %v, want sizes %v", baselines, want)
	}
	for i, b := range baselines {
		if b.Units != want[i] || b.Provisional != (i < 2) {
			t.Errorf("baseline %d: %d units, provisional %v", i, b.Units, b.Provisional)
		}
	}
}

// 10,000 episodes of 20 steps are 200,000 events.
func TestStationaryUnitsRaiseNoAlarm(t *testing.T) {
	p := newBank(watch.DefaultConfig())
	if found := alarmsIn(newAgent(2).feed(p, 10_000)); len(found) > 0 {
		t.Errorf("alarms of %v", found)
	}
}

func TestSimShiftOfTheRewardAlarms(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	for seed := range uint64(5) {
		p := newBank(watch.DefaultConfig())
		a := newAgent(10 + seed)
		a.feed(p, 1000)
		a.mean += a.sd / math.Sqrt(20) // one standard deviation of the mean reward of an episode
		found := a.feed(p, 100)
		if !slices.Contains(alarmsIn(found), "reward") {
			t.Errorf("seed %d: alarms of %v within 100 episodes, want reward", seed, alarmsIn(found))
		}
	}
}

func TestAlarmTellsOnsetEffectAndVersions(t *testing.T) {
	p := newBank(episodes(20_000))
	a := newAgent(20)
	a.feed(p, 700)
	a.mean -= 1
	a.versions.Reward = "r2"
	found := a.feed(p, 50)
	i := slices.IndexFunc(found, func(f finding.Finding) bool { return f.To == finding.Drift && f.Signal == "reward" })
	if i < 0 {
		t.Fatal("no alarm of the reward")
	}
	f := found[i]
	if f.Onset.Ordinal < 695 || f.Onset.Ordinal > 702 {
		t.Errorf("onset at unit %d, want about 700", f.Onset.Ordinal)
	}
	first := slices.IndexFunc(found, func(f finding.Finding) bool { return f.To == finding.Drift })
	for what, p := range map[string]*Policy{"the bank": p, "the bank that is restored": restored(t, p)} {
		if kept := p.groups[0].History.Kept(); kept != found[first].Onset.Ordinal {
			t.Errorf("the history of %s keeps unit %d apart, the first onset is unit %d", what, kept, found[first].Onset.Ordinal)
		}
	}
	if math.Abs(f.Effect.MeanShift+1) > .3 || math.Abs(f.Effect.BaselineMean+2) > .1 {
		t.Errorf("effect %+v, want a shift of -1 from -2", f.Effect)
	}
	if !slices.Equal(f.Changed, []string{"reward_function"}) || f.Before.Reward != "r1" || f.After.Reward != "r2" {
		t.Errorf("changed %v from %v to %v, want the reward function alone", f.Changed, f.Before, f.After)
	}
	want := []ingest.Range{{First: f.Onset.First.Offset, Last: f.At.Pos.Offset}}
	if !slices.Equal(f.Offsets, want) {
		t.Errorf("offsets %v, want %v", f.Offsets, want)
	}
	if f.Score < 1 || len(f.Detectors) == 0 || f.Baseline.Units != 500 {
		t.Errorf("score %v by %v against %d units", f.Score, f.Detectors, f.Baseline.Units)
	}
}

func TestSimActionCollapseAndNewAction(t *testing.T) {
	for name, shares := range map[string][]float64{"collapse": {.96, .02, .02}, "new action": {.5, .3, .1, .1}} {
		p := newBank(episodes(20_000))
		a := newAgent(30)
		a.feed(p, 600)
		a.shares = shares
		if found := alarmsIn(a.feed(p, 30)); !slices.Contains(found, "action") {
			t.Errorf("%s: alarms of %v within 30 episodes, want action", name, found)
		}
	}
}

// An incident closes only after its alarms have resolved and 20 more units have passed. All detectors then start from
// zero, and the next drift is a new alarm.
func TestDriftResolvesAndComesAgain(t *testing.T) {
	p := newBank(episodes(20_000))
	a := newAgent(40)
	a.feed(p, 600)
	a.mean -= 1.5
	first := a.feed(p, 100)
	if len(alarmsIn(first)) == 0 {
		t.Fatal("no alarm")
	}
	a.mean += 1.5
	after := a.feed(p, 600)
	quiet := slices.IndexFunc(after, func(f finding.Finding) bool { return f.Kind == finding.GroupQuiet })
	if quiet < 0 {
		t.Fatal("the group did not go quiet")
	}
	resolved := map[string]bool{}
	last := int64(0)
	for _, f := range after[:quiet] {
		if f.From == finding.Drift && f.To == finding.OK {
			resolved[f.Signal] = true
			last = f.At.Ordinal
		}
	}
	for _, signal := range alarmsIn(first) {
		if !resolved[signal] {
			t.Errorf("the alarm of %s had not resolved when the group went quiet", signal)
		}
	}
	if got := after[quiet].At.Ordinal; got != last+20 {
		t.Errorf("quiet at unit %d, want 20 units after %d", got, last)
	}
	if again := alarmsIn(after[quiet+1:]); len(again) > 0 {
		t.Errorf("alarms of %v after the incident closed", again)
	}
	a.mean -= 1.5
	if len(alarmsIn(a.feed(p, 100))) == 0 {
		t.Error("the second drift raised no alarm")
	}
}

func TestProvisionalAlarmHoldsTheWarmUp(t *testing.T) {
	p := newBank(episodes(20_000))
	a := newAgent(50)
	a.feed(p, 150)
	a.mean -= 3
	found := a.feed(p, 300)
	i := slices.IndexFunc(found, func(f finding.Finding) bool { return f.To == finding.Drift })
	if i < 0 || !found[i].Baseline.Provisional {
		t.Fatal("no provisional alarm")
	}
	p.Publish()
	if b := p.Summary().Groups[0].Baseline; b.Units != 100 {
		t.Errorf("the baseline grew to %d units while an incident was open", b.Units)
	}
}

func TestSimTelemetryFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	reset := newAgent(60)
	for _, c := range []struct {
		name, signal, rule string
		edit               func(*ingest.Unit)
	}{
		{"NaN rewards", "reward", fault.NonFinite, func(u *ingest.Unit) { u.Reward.Add(math.NaN()); u.Return = math.NaN() }},
		{"NaN rewards make the return a fault too", "return", fault.NonFinite, func(u *ingest.Unit) { u.Return = math.Inf(1) }},
		{"constant reward", "reward", fault.Constant, func(u *ingest.Unit) {
			u.Reward = ingest.Moments{}
			u.Reward.Add(0)
			u.Reward.Add(0)
		}},
		{"numbers for categories", "action", fault.ActionKind, func(u *ingest.Unit) { u.ActionKind, u.Actions = ingest.ActionNumeric, nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newBank(episodes(1e6))
			a := *reset
			a.rng = rand.New(rand.NewPCG(60, 1))
			a.feed(p, 600)
			a.edit = c.edit
			a.feed(p, 30)
			if s := stateOf(t, p, c.signal); s.State != finding.TelemetryFault || s.Fault != c.rule {
				t.Fatalf("%s is %s (%s), want a fault (%s)", c.signal, s.State, s.Fault, c.rule)
			}
			a.edit = nil
			a.feed(p, 19)
			if s := stateOf(t, p, c.signal); s.State != finding.TelemetryFault {
				t.Errorf("the fault ended before 20 units without it")
			}
			a.feed(p, 1)
			if s := stateOf(t, p, c.signal); s.State == finding.TelemetryFault {
				t.Errorf("the fault did not end after 20 units without it")
			}
		})
	}
}

// A policy that always reaches the best return of its baseline is not a telemetry fault.
func TestSimConstantBestReturnIsNoFault(t *testing.T) {
	p := newBank(episodes(1e6))
	a := newAgent(70)
	a.feed(p, 600)
	a.edit = func(u *ingest.Unit) { u.Return, u.Reward = 1000, ingest.Moments{} }
	a.feed(p, 100)
	if s := stateOf(t, p, "return"); s.State != finding.Drift {
		t.Errorf("return is %s (%s), want drift", s.State, s.Fault)
	}
}

// A sparse reward that is no longer earned is a drift, since the baseline includes episodes with a constant reward.
func TestSparseRewardThatStopsIsNoFault(t *testing.T) {
	p := newBank(episodes(1e6))
	a := newAgent(75)
	success := .4
	a.edit = func(u *ingest.Unit) {
		u.Reward, u.Return = ingest.Moments{}, 0
		for range u.Length - 1 {
			u.Reward.Add(0)
		}
		if a.rng.Float64() < success {
			u.Return = 1
		}
		u.Reward.Add(u.Return)
		u.RewardQ10, u.RewardQ90 = 0, 0
	}
	a.feed(p, 600)
	success = 0
	a.feed(p, 200)
	for _, signal := range []string{"reward", "return"} {
		if s := stateOf(t, p, signal); s.State != finding.Drift {
			t.Errorf("%s is %s (%s), want drift", signal, s.State, s.Fault)
		}
	}
}

func TestSimSilence(t *testing.T) {
	start := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	p := newBank(watch.DefaultConfig())
	a := newAgent(80)
	for range 500 {
		p.Observe(a.unit(), start)
	}
	if found := p.Tick(start.Add(4 * time.Minute)); len(found) > 0 {
		t.Errorf("silence after four minutes: %v", found)
	}
	found := p.Tick(start.Add(6 * time.Minute))
	if len(found) != 4 || found[0].Reason != fault.Silent || found[0].To != finding.TelemetryFault {
		t.Errorf("after six minutes: %+v, want all four streams silent", found)
	}
	if again := p.Tick(start.Add(7 * time.Minute)); len(again) > 0 {
		t.Errorf("silence was reported twice")
	}
	back := p.Observe(a.unit(), start.Add(8*time.Minute))
	if len(back) != 4 || back[0].To != finding.OK {
		t.Errorf("after the next unit: %+v, want all four streams ok", back)
	}
	if found := p.Tick(start.Add(20 * time.Minute)); len(found) > 0 {
		t.Errorf("a gap of 12 minutes is silence after one of 8 was none: %+v", found)
	}
}

// Units that are not judged end a silence as other units do, and are reported as such.
func TestSimSilenceEndsWithUnitsThatAreNotJudged(t *testing.T) {
	start := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	p, a := newBank(watch.DefaultConfig()), newAgent(80)
	for range 500 {
		p.Observe(a.unit(), start)
	}
	p.Tick(start.Add(6 * time.Minute))
	a.edit = func(u *ingest.Unit) { u.End = ingest.EndBlock }
	found := p.Observe(a.unit(), start.Add(8*time.Minute))
	if len(found) != 4 || found[0].Reason != fault.NoEpisodeEnds || found[0].To != finding.TelemetryFault {
		t.Errorf("after the next unit: %+v, want all four streams without an end of episodes", found)
	}
	if found := append(p.Tick(start.Add(time.Hour)), p.Observe(a.unit(), start.Add(time.Hour))...); len(found) > 0 {
		t.Errorf("a silence of such units: %+v", found)
	}
	if s := stateOf(t, p, "return"); s.Fault != fault.NoEpisodeEnds {
		t.Errorf("return is %s (%s)", s.State, s.Fault)
	}
}

// The findings do not depend on when units arrive.
func TestSimSilenceDoesNotChangeWhatIsFound(t *testing.T) {
	run := func(pause bool) (kept []finding.Finding, id string) {
		p, a := newBank(episodes(20_000)), newAgent(85)
		now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
		for i := range 900 {
			if i == 800 {
				a.mean -= 1
			}
			if pause && (i == 300 || i == 806) {
				now = now.Add(time.Hour)
				p.Tick(now)
			}
			for _, f := range p.Observe(a.unit(), now) {
				if f.To == finding.Drift && f.From != finding.TelemetryFault {
					f.From = finding.OK
					kept = append(kept, f)
				}
			}
		}
		p.Publish()
		return kept, p.Summary().Groups[0].Baseline.ID
	}
	want, wantID := run(false)
	got, gotID := run(true)
	if len(want) == 0 || !reflect.DeepEqual(got, want) || gotID != wantID {
		t.Errorf("with pauses %d alarms and baseline %s, without %d and %s", len(got), gotID, len(want), wantID)
	}
}

func TestEpisodesThatStopEndingAreAFault(t *testing.T) {
	p, a := newBank(watch.DefaultConfig()), newAgent(86)
	a.feed(p, 600)
	a.edit = func(u *ingest.Unit) { u.End = ingest.EndBlock }
	a.feed(p, 5)
	if s := stateOf(t, p, "return"); s.State != finding.TelemetryFault || s.Fault != fault.NoEpisodeEnds {
		t.Errorf("return is %s (%s)", s.State, s.Fault)
	}
	for range 5000 {
		a.feed(p, 1)
	}
	if b, err := p.groups[0].Trail.MarshalBinary(); err != nil || len(b) > 100<<10 {
		t.Errorf("the trail takes %d bytes (%v)", len(b), err)
	}
	a.edit = nil
	a.feed(p, 1)
	if s := stateOf(t, p, "return"); s.State != finding.OK {
		t.Errorf("return is %s (%s) after an episode has ended", s.State, s.Fault)
	}
}

func TestVanishedSignalIsAFault(t *testing.T) {
	p, a := newBank(watch.DefaultConfig()), newAgent(87)
	a.feed(p, 600)
	a.edit = func(u *ingest.Unit) { u.Reward, u.HasReturn = ingest.Moments{}, false }
	a.feed(p, 20)
	if s := stateOf(t, p, "reward"); s.State != finding.TelemetryFault || s.Fault != fault.Missing {
		t.Errorf("reward is %s (%s)", s.State, s.Fault)
	}
}

// If a task is always lost, its reward is constant at a level that the baseline includes.
func TestSimConstantRewardAtAKnownLevelIsNoFault(t *testing.T) {
	p, a := newBank(episodes(1e6)), newAgent(88)
	solved := true
	a.edit = func(u *ingest.Unit) {
		u.Reward = ingest.Moments{}
		for range u.Length - 1 {
			u.Reward.Add(-1)
		}
		u.Return = -float64(u.Length) + 1
		if solved {
			u.Reward.Add(0)
		} else {
			u.Reward.Add(-1)
			u.Length, u.Return = 500, -500
		}
		u.RewardQ10, u.RewardQ90 = -1, -1
	}
	a.feed(p, 600)
	solved = false
	a.feed(p, 60)
	for _, signal := range []string{"reward", "return", "episode_length"} {
		if s := stateOf(t, p, signal); s.State != finding.Drift {
			t.Errorf("%s is %s (%s), want drift", signal, s.State, s.Fault)
		}
	}
}

// An alarm at the unit that would complete a baseline excludes this unit from it.
func TestSimAlarmAtTheFreezingUnit(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	atFreeze := false
	for at := 236; at < 250; at++ {
		p, a := newBank(episodes(20_000)), newAgent(89)
		a.feed(p, at)
		a.mean -= 1
		for _, f := range a.feed(p, 60) {
			atFreeze = atFreeze || f.To == finding.Drift && f.At.Ordinal == secondProvisional-1
		}
		a.mean += 1
		a.feed(p, 700)
		g := p.groups[0]
		if g.Incident || !g.Warmup.Done {
			t.Fatalf("drift at %d: incident open %v, accepted baseline %v", at, g.Incident, g.Warmup.Done)
		}
	}
	if !atFreeze {
		t.Error("no alarm fell on the freezing unit")
	}
}

// Signals that hardly ever occur cost nothing and are not judged.
func TestSimRareSignals(t *testing.T) {
	p, a := newBank(watch.DefaultConfig()), newAgent(90)
	n := 0
	a.edit = func(u *ingest.Unit) {
		n++
		u.Numeric = []ingest.NamedMoments{{Signal: fmt.Sprint("observation.x", n%200)}}
		u.Numeric[0].Add(1)
	}
	start := time.Now()
	a.feed(p, 600)
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("600 units took %s", took)
	}
	if s := stateOf(t, p, "observation.x7"); len(s.Armed) > 0 || s.Missing == "" {
		t.Errorf("a signal of three units is armed by %v, missing %q", s.Armed, s.Missing)
	}
}

// A policy with more and more groups uses at most half of the limit, and another policy half of what is left.
func TestStreamLimit(t *testing.T) {
	limit := capacity.NewStreamLimit(100)
	feed := func(name string, seed uint64, groups int) *Policy {
		p, a, n := NewPolicy(name, watch.DefaultConfig(), limit), newAgent(seed), 0
		a.edit = func(u *ingest.Unit) {
			u.Group = ingest.NewGroup(name, ingest.Label{Name: "env", Value: fmt.Sprint(n % groups)})
			n++
		}
		a.feed(p, 2*groups)
		return p
	}
	count := func(p *Policy) (streams int) {
		for _, g := range p.groups {
			streams += len(g.Streams)
		}
		return streams
	}
	few := feed("few", 90, 1)
	beside := count(few)
	if limit.Refused() > 0 {
		t.Fatalf("%d refused before there are many", limit.Refused())
	}
	many := feed("many", 91, 100)
	half := (100 - beside + 1) / 2
	if n := count(many); n != half || limit.Refused() == 0 || limit.Crowded() != limit.Refused() {
		t.Errorf("%d streams beside %d, %d refused, %d of them crowded", n, beside, limit.Refused(), limit.Crowded())
	}
	late := feed("late", 92, 100)
	if n := count(late); n != (100-beside-half+1)/2 {
		t.Errorf("a policy that came late has %d streams beside %d and %d", n, beside, half)
	}
	refused := limit.Refused()
	if next := feed("next", 93, 1); count(next) != beside || limit.Refused() != refused {
		t.Errorf("a policy of one group has %d streams, and others like it %d", count(next), beside)
	}
	late.Close()
	many.Close()
	if n := limit.Taken(); n != int64(2*beside) {
		t.Errorf("%d streams are left of %d", n, 2*beside)
	}
	q := NewPolicy("many", watch.DefaultConfig(), capacity.NewStreamLimit(count(many)))
	parts, _, err := many.Changes()
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Resume(parts, noon); err != nil || count(q) != half {
		t.Errorf("restored are %d of %d streams, %v", count(q), half, err)
	}
}

func TestChangedGroupByStartsNewGroups(t *testing.T) {
	p, a := newBank(watch.DefaultConfig()), newAgent(92)
	a.feed(p, 100)
	var buf bytes.Buffer
	if err := p.Snapshot(&buf); err != nil {
		t.Fatal(err)
	}
	cfg := watch.DefaultConfig()
	cfg.GroupBy = []string{"labels.region"}
	q := newBank(cfg)
	if err := q.Restore(&buf, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if n := len(q.Summary().Groups); n != 0 {
		t.Errorf("%d groups with other labels were restored", n)
	}
}

func TestSimReturnAndRewardAreArmedFirst(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	p, a := newBank(watch.DefaultConfig()), newAgent(93)
	a.edit = func(u *ingest.Unit) {
		for i := range 120 {
			u.Numeric = append(u.Numeric, ingest.NamedMoments{Signal: fmt.Sprint("action.", i)})
			u.Numeric[i].Add(a.rng.NormFloat64())
		}
		u.ActionKind, u.Actions = ingest.ActionNumeric, nil
	}
	a.feed(p, 100)
	armed := 0
	for _, signal := range []string{"return", "reward", "episode_length"} {
		if s := stateOf(t, p, signal); len(s.Armed) == 0 {
			t.Errorf("%s is not armed: %s", signal, s.Missing)
		}
	}
	for _, s := range p.groups[0].Streams {
		s.Branches(func(stream.Branch) { armed++ })
	}
	if armed > stream.MaxBranches {
		t.Errorf("%d branches are armed", armed)
	}
}

func TestBlocksWarmUp(t *testing.T) {
	p := newBank(watch.DefaultConfig())
	a := newAgent(90)
	a.edit = func(u *ingest.Unit) { u.End, u.Length = ingest.EndBlock, 20 }
	a.feed(p, 300)
	s := stateOf(t, p, "reward")
	if s.State != finding.WarmingUp || s.Missing != "no episodes have ended; 300 of 500 blocks of 20 steps for a first baseline" {
		t.Errorf("%s, missing %q", s.State, s.Missing)
	}
	if s.Current.Units != 200 {
		t.Errorf("%d units shown, want 200", s.Current.Units)
	}
}

func TestUnitsReadAgainAreIgnored(t *testing.T) {
	p := newBank(watch.DefaultConfig())
	a := newAgent(100)
	var units []*ingest.Unit
	for range 50 {
		units = append(units, a.unit())
	}
	for _, u := range units {
		p.Observe(u, time.Time{})
	}
	for _, u := range units {
		p.Observe(u, time.Time{})
	}
	p.Publish()
	if got := p.Summary().Groups[0].Units; got != 50 {
		t.Errorf("%d units counted, want 50", got)
	}
	for range 2 {
		anew := *units[0]
		anew.Reading = 1 // the partition is read again
		p.Observe(&anew, time.Time{})
	}
	p.Publish()
	if got := p.Summary().Groups[0].Units; got != 51 {
		t.Errorf("%d units counted after one of another reading, want 51", got)
	}
}

// A bank that is saved and restored at any time has the same findings as an undisturbed one, bit for bit.
func TestSimRestoredBankFindsTheSame(t *testing.T) {
	run := func(cuts map[int]bool) []finding.Finding {
		p := newBank(episodes(20_000))
		a := newAgent(110)
		var found []finding.Finding
		for i := range 1200 {
			switch i {
			case 600:
				a.mean -= 1
				a.shares = []float64{.9, .05, .05}
			case 700:
				a.mean += 1
				a.shares = []float64{.5, .3, .2}
			}
			if cuts[i] {
				p = restored(t, p)
			}
			found = append(found, a.feed(p, 1)...)
		}
		return found
	}
	want := run(nil)
	if len(alarmsIn(want)) < 2 {
		t.Fatalf("alarms of %v, want several", alarmsIn(want))
	}
	cuts := map[int]bool{}
	for i := 7; i < 1200; i += 29 {
		cuts[i] = true
	}
	got := run(cuts)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("with restarts %d findings, without %d, or they differ", len(got), len(want))
	}
}

func restored(t *testing.T, p *Policy) *Policy {
	t.Helper()
	var buf bytes.Buffer
	if err := p.Snapshot(&buf); err != nil {
		t.Fatal(err)
	}
	q := newBank(p.cfg)
	if err := q.Restore(&buf, time.Time{}); err != nil {
		t.Fatal(err)
	}
	return q
}

// The shares of all groups of a policy add up to at most the whole budget, in any order of appearance.
func TestSimGroupsShareOneBudget(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	p := newBank(episodes(1e6))
	agents := make([]*agent, 5)
	at := int64(0)
	for i := range agents {
		agents[i] = newAgent(130 + uint64(i))
		env := fmt.Sprint("env-", i)
		agents[i].edit = func(u *ingest.Unit) {
			u.Group = ingest.NewGroup("ranker", ingest.Label{Name: "env", Value: env})
			u.Pos.Offset = at
			at++
		}
	}
	for round := range 900 {
		for i, a := range agents {
			if round >= 100*i {
				a.feed(p, 1)
			}
		}
	}
	sum, rates := 0.0, 0.0
	for _, g := range p.groups {
		if g.Share <= 0 {
			t.Errorf("%s has no share", g.Key)
		}
		sum += g.Share
		for _, s := range g.Streams {
			for _, q := range s.Quantities {
				if q.Rank() == nil {
					continue
				}
				for _, b := range q.Rank().Branches {
					if b.Height > 0 {
						rates += math.Exp(b.LogA - b.Height)
					}
				}
			}
		}
	}
	if sum > 1+1e-12 {
		t.Errorf("shares sum to %v", sum)
	}
	if rates > 1e-6 {
		t.Errorf("false alarm rates sum to %v a unit, want at most 1e-6", rates)
	}
}

func BenchmarkObserve(b *testing.B) {
	p := newBank(watch.DefaultConfig())
	a := newAgent(140)
	a.feed(p, 600)
	units := make([]*ingest.Unit, 4096)
	for i := range units {
		units[i] = a.unit()
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		u := units[i&4095]
		u.Pos.Offset = int64(1e6 + i)
		p.Observe(u, time.Time{})
		i++
	}
}

// A distribution with two modes, but with the mean and the spread of the baseline, is only found by the sliding test.
func TestChangeOfShapeAlarms(t *testing.T) {
	split := false
	a := newAgent(41)
	a.edit = func(u *ingest.Unit) { // the record of an episode with only the return
		u.Reward, u.Actions, u.ActionKind = ingest.Moments{}, nil, ingest.ActionNone
		if u.Return = a.rng.NormFloat64(); split {
			u.Return = math.Copysign(.95+.31*math.Abs(u.Return), u.Return)
		}
	}
	p := newBank(episodes(2000))
	if found := alarmsIn(a.feed(p, 1000)); len(found) > 0 {
		t.Fatalf("false alarms of %v", found)
	}
	split = true
	var by []string
	for _, f := range a.feed(p, 400) {
		if f.To == finding.Drift {
			by = append(by, f.Detectors...)
		}
	}
	if !slices.Contains(by, finding.DetectorKS) {
		t.Errorf("found by %v, want %s among them", by, finding.DetectorKS)
	}
}

// An agent that still learns has no valid baseline: the warm-up is refused, with a message. Once the agent has settled,
// the next warm-up is accepted.
func TestTrendingWarmUpIsRefused(t *testing.T) {
	a := newAgent(150)
	a.edit = func(*ingest.Unit) { a.mean = min(-1, a.mean+.004) }
	cfg := episodes(2000)
	cfg.Baseline.Units = 100
	p := newBank(cfg)
	a.feed(p, 100)
	p.Publish()
	s := p.Summary().Groups[0]
	if !strings.Contains(s.Streams[3].Missing, "was not stationary") || s.Trending == "" || s.Baseline.ID != "" {
		t.Fatalf("a warm-up that moves on was accepted, or not told of: %+v, missing %q", s.Baseline, s.Streams[3].Missing)
	}
	a.feed(p, 400)
	p.Publish()
	if s := p.Summary().Groups[0]; s.Baseline.Units != 100 || s.Baseline.Provisional {
		t.Errorf("an agent that has settled has the baseline %+v", s.Baseline)
	}
}

// Days that differ more than their units explain are allowed for as dependence; above a factor of 4, there is no
// promise.
func TestSimDifferentDaysAreAllowedFor(t *testing.T) {
	for _, c := range []struct {
		name  string
		level float64
		least float64
		armed bool
	}{{"alike", 0, 1, true}, {"different", .07, 1.5, true}, {"very different", 1, 4, false}} {
		t.Run(c.name, func(t *testing.T) {
			a := newAgent(151)
			days := rand.New(rand.NewPCG(151, 2))
			level := 0.0
			a.edit = func(u *ingest.Unit) {
				u.EndTS = a.made * int64(24*time.Hour) / 25 // 25 episodes per day
				if a.made%25 == 0 {
					level = c.level * days.NormFloat64()
				}
				a.mean = -2 + level
			}
			p := newBank(episodes(2000))
			for range 500 {
				p.Learn(a.unit())
			}
			p.Accept(time.Time{})
			g := p.groups[0]
			i, _ := g.Find("reward")
			q := g.Streams[i].Find("mean")
			if q.Rank().Factor < c.least || q.Rank().TooDependent() == c.armed {
				t.Errorf("factor %.2f, too dependent %v; want at least %v, armed %v", q.Rank().Factor, q.Rank().TooDependent(), c.least, c.armed)
			}
		})
	}
}

func TestStricterOfOwnAndFleetBudgetHolds(t *testing.T) {
	for _, c := range []struct{ own, fleet, want float64 }{{2000, 0, 2000}, {2000, 500, 2000}, {2000, 40_000, 40_000}} {
		cfg := episodes(c.own)
		cfg.Baseline.Units = 100
		if c.fleet > 0 {
			cfg.Fleet = watch.Budget{Budget: 1, Per: watch.Per{Amount: c.fleet, Unit: watch.PerEpisodes}}
		}
		p := newBank(cfg)
		newAgent(190).feed(p, 100)
		if got := p.groups[0].Promise.N; got != c.want {
			t.Errorf("own %v, fleet %v: one in %v units, want %v", c.own, c.fleet, got, c.want)
		}
	}
}

// The window of the sliding test is completely restored, even if it spans units without a value.
func TestSimRestoredWindowOfARareValue(t *testing.T) {
	p := newBank(episodes(20_000))
	a := newAgent(111)
	a.edit = func(u *ingest.Unit) { u.HasReturn = a.made%3 == 0 }
	a.feed(p, 1500)
	window := func(p *Policy) []float64 { return shapeOf(p.groups[0].Streams[2].Find("return")).KS.Window() }
	want := window(p)
	if got := window(restored(t, p)); len(want) != 200 || !slices.Equal(got, want) {
		t.Errorf("%d values in the restored window, want the same %d", len(got), len(want))
	}
}

// A group without any branch left for it has no promise.
func TestNoPromiseWithoutRoom(t *testing.T) {
	p := newBank(episodes(2000))
	newAgent(172).feed(p, 499)
	g := p.groups[0]
	g.freeze(true, g.Trail.Last(), time.Time{}, budget.Room{})
	if g.Promise.Confidence != finding.ConfidenceNone || g.Promise.ARL0 != 0 {
		t.Errorf("promise %+v", g.Promise)
	}
}

// An outcome of 0 and 1 that takes other values is counted by its value.
func TestSimOutcomeThatIsNoShareAnyMore(t *testing.T) {
	sale := 1.
	a := newAgent(173)
	a.edit = func(u *ingest.Unit) {
		m := ingest.NamedMoments{Signal: "outcome.sale"}
		for range u.Length {
			m.Add(sale * float64(a.rng.IntN(2)))
		}
		u.Numeric = append(u.Numeric, m)
	}
	p := newBank(episodes(2000))
	a.feed(p, 600)
	sale = .5
	if got := alarmsIn(a.feed(p, 30)); !slices.Contains(got, "outcome.sale") {
		t.Errorf("alarms of %v", got)
	}
}

// A stream that is added at the unit at which the trail is pruned does not hide other streams.
func TestSimPruneSeesAllStreams(t *testing.T) {
	p := newBank(episodes(2000))
	a := newAgent(174)
	a.feed(p, 1088) // the next unit is the first of a pack
	g := p.groups[0]
	g.Streams = slices.Grow(g.Streams, 1)
	b := &g.Streams[len(g.Streams)-1].Quantities[0].Rank().Branches[0]
	b.Walk, b.StartedAt = b.Height/2, 520
	a.edit = func(u *ingest.Unit) {
		m := ingest.NamedMoments{Signal: "observation.x"}
		m.Add(1)
		u.Numeric = append(u.Numeric, m)
	}
	a.feed(p, 1)
	if at := g.Trail.Ref(520); at.Ordinal != 520 {
		t.Errorf("the walk is held to have begun at unit %d, want 520", at.Ordinal)
	}
	if at := g.Trail.Ref(521); at.Ordinal < 576 {
		t.Errorf("the trail still has unit %d, at which no walk began", at.Ordinal)
	}
}

// A restart does not change the ID of a baseline, even if it has zeros of both signs.
func TestRestartKeepsTheIDOfZeros(t *testing.T) {
	id := func(cut bool) string {
		p := newBank(episodes(2000))
		a := newAgent(175)
		a.edit = func(u *ingest.Unit) { u.Return = math.Copysign(0, u.Return+40) }
		a.feed(p, 60)
		if cut {
			p = restored(t, p)
		}
		a.feed(p, 60)
		return p.groups[0].Baseline.ID
	}
	if want, got := id(false), id(true); got != want {
		t.Errorf("baseline %s after a restart, %s without", got, want)
	}
}

// The next version of a policy follows all signals of the current one, even if both together exceed the policy's part
// of the limit.
func TestSimSuccessorsLackNoSignals(t *testing.T) {
	cfg := watch.DefaultConfig()
	cfg.OnNewVersion = watch.OnNewVersionRebaseline
	version := "1"
	feed := func(p *Policy, a *agent, n int) *group {
		a.edit = func(u *ingest.Unit) { u.Versions.Policy = version }
		a.feed(p, n)
		return p.groups[0]
	}
	alone, a := NewPolicy("p", cfg, capacity.NewStreamLimit(1000)), newAgent(92)
	streams := len(feed(alone, a, 600).Streams)
	limit := capacity.NewStreamLimit(3 * streams)
	p, a := NewPolicy("p", cfg, limit), newAgent(92)
	feed(p, a, 600)
	version = "2"
	g := feed(p, a, 20)
	next := g.Line.Versions.Next
	if next == nil {
		t.Fatal("no version warms up")
	}
	if len(next.Streams) != streams || limit.Refused() != 0 {
		t.Fatalf("%d of %d streams warm up, refused %d times", len(next.Streams), streams, limit.Refused())
	}
	g = feed(p, a, 700)
	if len(g.Streams) != streams || g.Line.Versions.Next != nil || limit.Refused() != 0 || limit.Taken() != int64(streams) {
		t.Errorf("%d streams after the change, %d counted, refused %d times", len(g.Streams), limit.Taken(), limit.Refused())
	}
	if g.limit != p.limit {
		t.Error("the version that has taken over still has the limit of a successor")
	}
}
