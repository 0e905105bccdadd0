package bank

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/battery"
	"github.com/rewardwatch/rewardwatch/detectors/blocks"
	"github.com/rewardwatch/rewardwatch/detectors/fault"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// blockAgents are agents that act without episodes, in turns. The rewards of each are an AR(1) process, with variance 1
// if its innovations are scaled accordingly.
type blockAgents struct {
	rng   *rand.Rand
	law   law
	phi   float64
	shift float64
	last  []float64 // by agent
	made  int64
}

func newBlockAgents(seed uint64, agents int, phi float64) *blockAgents {
	b := &blockAgents{rng: rand.New(rand.NewPCG(seed, 9)), law: laws()[0], phi: phi, last: make([]float64, agents)}
	for i := range b.last {
		b.last[i] = b.rng.NormFloat64()
	}
	return b
}

// block returns the next 20 steps of the next agent.
func (b *blockAgents) block() *ingest.Unit {
	at := ingest.Position{Offset: b.made}
	agent := int(b.made) % len(b.last)
	u := &ingest.Unit{
		Group: ingest.NewGroup("ranker", ingest.Label{Name: "env", Value: "prod"}), Agent: strconv.Itoa(agent),
		End: ingest.EndBlock, First: at, Last: at, Pos: at, Length: 20,
	}
	b.made++
	rewards := make([]float64, u.Length)
	for i := range rewards {
		b.last[agent] = b.phi*b.last[agent] + math.Sqrt(1-b.phi*b.phi)*b.law.reward(b.rng)
		rewards[i] = b.last[agent] + b.shift
		u.Reward.Add(rewards[i])
	}
	slices.Sort(rewards)
	u.RewardQ10, u.RewardQ90 = rewards[len(rewards)/10], rewards[len(rewards)-1-len(rewards)/10]
	return u
}

// frozen returns a bank with an accepted baseline, warmed up with live telemetry, and the number of steps of its units.
func (b *blockAgents) frozen(n float64) (p *Policy, steps int) {
	p = newBank(episodes(n))
	for b.feed(p, 1); !p.groups[0].Warmup.Done; {
		b.feed(p, 1)
	}
	return p, 20 * p.groups[0].Blocks.Size
}

// sample returns units of the group's size, in the order in which the agents take turns.
func (b *blockAgents) sample(g *group, n int) *battery.Sample {
	joining := blocks.Joiner{Size: g.Blocks.Size}
	var units []*ingest.Unit
	for len(units) < n {
		if u := joining.Add(b.block()); u != nil {
			units = append(units, u)
		}
	}
	return battery.NewSample(&g.Battery, units, n)
}

// blockProcess is a law of steps without episodes.
type blockProcess struct {
	name   string
	law    law
	phi    float64
	sd     float64 // of the steps
	agents int
}

func normalSteps(phi float64, agents int) blockProcess {
	return blockProcess{fmt.Sprintf("normal, AR(1) %g", phi), laws()[0], phi, 1, agents}
}

// blockBaselines holds the measurements of many baselines of one process.
type blockBaselines struct {
	ratios []float64   // ARL0 in multiples of the budget, sorted
	steps  []float64   // number of steps of a block, by baseline
	delays [][]float64 // mean number of blocks until the alarm, by shift and baseline
}

// measure freezes many baselines with a budget of one false alarm in n blocks, and judges units with each that are
// drawn from a pool of the given size. Shifts apply to all steps, in their standard deviations.
func (c blockProcess) measure(seed uint64, baselines int, n float64, pool int, shifts ...float64) blockBaselines {
	const runs, longest = 20, 20_000
	b := newBlockAgents(seed, c.agents, c.phi)
	b.law = c.law
	out, made := blockBaselines{delays: make([][]float64, len(shifts))}, map[int][]*battery.Sample{}
	for range baselines {
		p, steps := b.frozen(n)
		g := p.groups[0]
		if made[steps] == nil {
			made[steps] = []*battery.Sample{b.sample(g, pool)}
			for _, shift := range shifts {
				b.shift = shift * c.sd
				made[steps] = append(made[steps], b.sample(g, pool/20))
			}
			b.shift = 0
		}
		samples := made[steps]
		j := battery.NewJudge(&g.Battery, samples[0].Columns)
		out.ratios = append(out.ratios, runLength(j, samples[0], b.rng, n)/n)
		out.steps = append(out.steps, float64(steps))
		for i := range shifts {
			took, _ := delayOf(j, samples[0], samples[i+1], b.rng, runs, longest)
			out.delays[i] = append(out.delays[i], took)
		}
	}
	slices.Sort(out.ratios)
	return out
}

// Nine of ten baselines also keep the budget if steps depend on each other, and if several agents with dependent steps
// take turns. The bound is three standard errors below.
func TestSimNineBaselinesInTenOfBlocksKeepTheBudget(t *testing.T) {
	var ratios []float64
	for i, c := range []blockProcess{normalSteps(.8, 1), normalSteps(.95, 1), normalSteps(.95, 10)} {
		ratios = append(ratios, c.measure(170+uint64(i), 5, 500, 20_000).ratios...)
	}
	slices.Sort(ratios)
	if got, least := keeping(ratios), .9-3*math.Sqrt(.9*.1/float64(len(ratios))); got < least {
		t.Errorf("%.2f of the baselines keep the budget, want at least %.2f; ratios %.2f", got, least, ratios)
	}
}

func (b *blockAgents) feed(p *Policy, n int) []finding.Finding {
	var found []finding.Finding
	for range n {
		found = append(found, p.Observe(b.block(), time.Time{})...)
	}
	return found
}

func TestStepsWithoutEpisodesAreJudgedInBlocks(t *testing.T) {
	for _, c := range []struct {
		name        string
		phi         float64
		least, most int // size in smallest blocks
	}{{"independent", 0, 1, 2}, {"dependent", .95, 4, 32}} {
		t.Run(c.name, func(t *testing.T) {
			b := newBlockAgents(160, 3, c.phi)
			p, _ := b.frozen(20_000)
			g := func() *group { return p.groups[0] }
			if size := g().Blocks.Size; size < c.least || size > c.most {
				t.Errorf("units of %d blocks, want %d to %d", size, c.least, c.most)
			}
			if found := alarmsIn(b.feed(p, 500*g().Blocks.Size)); len(found) > 0 {
				t.Errorf("false alarms of %v", found)
			}
			restored := restored(t, p)
			b.shift = 1
			at := b.made
			for len(alarmsIn(restored.Observe(b.block(), time.Time{}))) == 0 {
				if b.made > at+int64(40*g().Blocks.Size) {
					t.Fatalf("a shift by a standard deviation of the steps was not found in 40 units of %d blocks", g().Blocks.Size)
				}
			}
		})
	}
}

func TestSimEpisodesInPlaceOfBlocks(t *testing.T) {
	b := newBlockAgents(162, 1, 0)
	a := newAgent(162)
	early := newBank(episodes(2000))
	b.feed(early, 50)
	a.made = b.made
	a.feed(early, 500)
	if g := early.groups[0]; g.Baseline.Units != 500 || g.Blocks.Size != 0 {
		t.Errorf("a warm-up of blocks was not let go of: %+v", g.Baseline)
	}
	late := newBank(episodes(2000))
	b = newBlockAgents(163, 1, 0)
	for !func() bool { b.feed(late, 1); return late.groups[0].Warmup.Done }() {
		if b.made > 10_000 {
			t.Fatal("no baseline")
		}
	}
	a.made = b.made
	a.feed(late, 1)
	late.Publish()
	if s := stateOf(t, late, "reward"); s.State != finding.TelemetryFault || s.Fault != fault.EpisodesBegan {
		t.Errorf("reward is %s (%s), want the fault %s", s.State, s.Fault, fault.EpisodesBegan)
	}
}

// When a warm-up is refused because of a trend, its blocks are dropped as well.
func TestRefusedBlocksAreLetGo(t *testing.T) {
	b := newBlockAgents(164, 3, 0)
	cfg := episodes(2000)
	cfg.Baseline.Units = 100
	p := newBank(cfg)
	refused := false
	for range 1000 {
		u := b.block()
		for _, name := range []string{"observation.a", "observation.b", "observation.c"} {
			m := ingest.NamedMoments{Signal: name}
			for range 20 {
				m.Add(b.rng.NormFloat64())
			}
			u.Numeric = append(u.Numeric, m)
		}
		u.Numeric[0].Mean += float64(b.made) / 100
		p.Observe(u, time.Time{})
		g := p.groups[0]
		refused = refused || g.Warmup.Trending != ""
		if len(g.Blocks.Kept) != g.Warmup.Units {
			t.Fatalf("%d blocks kept of a warm-up of %d", len(g.Blocks.Kept), g.Warmup.Units)
		}
	}
	if !refused {
		t.Error("the warm-up was not refused")
	}
}

// Agents that live for fewer steps than a unit needs are judged together, and agents that disappear are forgotten.
func TestAgentsThatLiveForLessThanAUnit(t *testing.T) {
	short := func(i, life int) *ingest.Unit {
		return &ingest.Unit{Agent: fmt.Sprint(i / life), End: ingest.EndBlock, Length: 20}
	}
	p := newBank(episodes(2000))
	g := newGroup(ingest.NewGroup("ranker"), &p.cfg, p.limit, p.calibrations)
	g.Blocks.Size = 4
	whole := 0
	for i := range 4 * blocks.RoundLength {
		if u := g.block(short(i, 3)); u != nil {
			whole++
			if g.Blocks.Mixed && (u.Agent != "" || !u.Mixed) {
				t.Fatalf("a unit of all agents is said to be of %q", u.Agent)
			}
		}
		if len(g.Blocks.Open) > blocks.RoundLength {
			t.Fatalf("%d unfinished units are kept", len(g.Blocks.Open))
		}
	}
	if !g.Blocks.Mixed || whole < blocks.RoundLength/4 || len(g.Blocks.Open) > 1 {
		t.Errorf("mixed %v, %d units, %d unfinished", g.Blocks.Mixed, whole, len(g.Blocks.Open))
	}
	g = newGroup(ingest.NewGroup("ranker"), &p.cfg, p.limit, p.calibrations)
	g.Blocks.Size = 4
	for i := range 4 * blocks.RoundLength {
		g.block(short(i, 9)) // two units, and one block remains
	}
	if g.Blocks.Mixed || len(g.Blocks.Open) > 2*blocks.RoundLength/9+1 {
		t.Errorf("mixed %v, %d unfinished units are kept", g.Blocks.Mixed, len(g.Blocks.Open))
	}
}

func TestBlocksOfManyAgentsAgainstABaselineOfSingleOnes(t *testing.T) {
	b := newBlockAgents(166, 3, 0)
	p, _ := b.frozen(2000)
	u := b.block()
	u.Mixed, u.Agent = true, ""
	p.Observe(u, time.Time{})
	if s := stateOf(t, p, "reward"); s.State != finding.TelemetryFault || s.Fault != fault.MixedBlocks {
		t.Errorf("reward is %s (%s), want the fault %s", s.State, s.Fault, fault.MixedBlocks)
	}
	early := newBank(episodes(2000))
	b.feed(early, 300)
	for range 1000 {
		u := b.block()
		u.Mixed, u.Agent = true, ""
		early.Observe(u, time.Time{})
	}
	if g := early.groups[0]; !g.Warmup.Done || !g.Blocks.Mixed || !strings.Contains(g.Promise.Caveats[0], "all agents together") {
		t.Errorf("baseline %+v, caveats %q", g.Baseline, g.Promise.Caveats)
	}
}

// The number of blocks of a recording is limited. If they still depend on each other at the largest size that leaves
// enough of them, nothing is promised, and a caveat says so.
func TestBlocksThatStayDependentAreNoPromise(t *testing.T) {
	cfg := episodes(2000)
	cfg.Baseline.Units = 2000
	p := newBank(cfg)
	b := newBlockAgents(167, 1, .998)
	for range 1600 {
		p.Learn(b.block())
	}
	p.Accept(time.Time{})
	g := p.groups[0]
	if g.Baseline.Units != leastBlocks || g.Blocks.Size != 8 {
		t.Errorf("%d units of %d blocks, want %d of 8", g.Baseline.Units, g.Blocks.Size, leastBlocks)
	}
	if !slices.Contains(g.Promise.Caveats, CaveatBlocks) || g.Promise.Confidence == finding.ConfidenceKept {
		t.Errorf("confidence %s, caveats %q", g.Promise.Confidence, g.Promise.Caveats)
	}
}

// The size of blocks also depends on actions: here, each action is repeated for 40 steps.
func TestBlocksOfActionsThatLast(t *testing.T) {
	b := newBlockAgents(168, 2, 0)
	p := newBank(episodes(2000))
	last := []string{"a", "a"}
	for len(p.groups) == 0 || !p.groups[0].Warmup.Done {
		agent := int(b.made) % 2
		u := b.block()
		u.Reward, u.ActionKind = ingest.Moments{}, ingest.ActionCategory
		counts := map[string]int64{}
		for range 20 {
			if b.rng.IntN(40) == 0 {
				last[agent] = string(rune('a' + b.rng.IntN(3)))
			}
			counts[last[agent]]++
		}
		for _, name := range slices.Sorted(keysOf(counts)) {
			u.Actions = append(u.Actions, ingest.Count{Name: name, N: counts[name]})
		}
		if p.Observe(u, time.Time{}); b.made > 100_000 {
			t.Fatal("no baseline")
		}
	}
	if size := p.groups[0].Blocks.Size; size < 4 {
		t.Errorf("units of %d blocks, want 4 at least", size)
	}
}

// A warm-up in which the rewards change once is refused because of the change, and its blocks do not double forever.
func TestBlocksWithAChangeInTheWarmUp(t *testing.T) {
	b := newBlockAgents(169, 2, 0)
	p := newBank(episodes(2000))
	b.feed(p, 250)
	b.shift = 1
	for !p.groups[0].Warmup.Done {
		if b.feed(p, 1); b.made > 10_000 {
			t.Fatal("no baseline after 10,000 blocks")
		}
	}
	g := p.groups[0]
	if q := g.Streams[0].Find("mean"); g.Blocks.Size > 4 || math.Abs(q.Mean-1) > .1 {
		t.Errorf("units of %d blocks, mean %.2f, want 1", g.Blocks.Size, q.Mean)
	}
}

// Values that were excluded from a warm-up of blocks because of a fault remain excluded when blocks are doubled.
func TestFaultyBlocksStayOut(t *testing.T) {
	b := newBlockAgents(166, 3, .95)
	cfg := episodes(2000)
	cfg.Baseline.Units = 200
	p := newBank(cfg)
	g := func() *group { return p.groups[0] }
	for b.made < 1 || !g().Warmup.Done {
		u := b.block()
		n := ingest.NamedMoments{Signal: "observation.x"}
		for range 20 {
			n.Add(u.Reward.Mean + .1*b.rng.NormFloat64())
		}
		n.Q10, n.Q90 = n.Min, n.Max
		if b.made > 40 && b.made <= 60 {
			for range 10 {
				n.Add(math.NaN())
				u.Reward.Add(math.NaN())
			}
			if b.made > 41 { // the fault is only found after several units
				n.Mean, u.Reward.Mean = n.Mean+1000, u.Reward.Mean+1000
			}
		}
		u.Numeric = append(u.Numeric, n)
		p.Observe(u, time.Time{})
		if b.made > 20_000 {
			t.Fatal("no baseline after 20,000 blocks")
		}
	}
	if g().Blocks.Size < 2 {
		t.Fatal("blocks were not doubled")
	}
	for _, signal := range []string{"reward", "observation.x"} {
		i, _ := g().Find(signal)
		points := g().Streams[i].Find("mean").Ranks.Points
		if most := points[len(points)-1]; most > 100 {
			t.Errorf("the baseline of %s has a unit of mean %v", signal, most)
		}
		if units := len(g().Streams[i].Find("mean").Ranks.Sample()); units == g().Baseline.Units {
			t.Errorf("%s has all %d units of the baseline", signal, units)
		}
	}
}

// Unfinished blocks of a recording are not joined with live steps.
func TestRecordedBlocksAreNotJoinedWithLiveOnes(t *testing.T) {
	cfg := episodes(2000)
	cfg.Baseline.From = watch.FromFile
	p, b := newBank(cfg), newBlockAgents(167, 3, .9)
	for range 2000 {
		p.Learn(b.block())
	}
	p.Accept(time.Time{})
	g := p.groups[0]
	if g.Blocks.Size < 2 {
		t.Fatalf("units are of %d blocks", g.Blocks.Size)
	}
	live := b.made
	for b.made < live+int64(4*g.Blocks.Size) {
		p.Observe(b.block(), time.Time{})
	}
	for o := g.Trail.First(); o < g.Trail.Next(); o++ {
		if u := g.Trail.Ref(o); u.First.Offset < live && u.Pos.Offset >= live {
			t.Errorf("unit %d holds offsets %d to %d, live ones begin at %d", o, u.First.Offset, u.Pos.Offset, live)
		}
	}
}

// The delivery rules learn once from each unit, regardless of how often it is joined.
func TestDoublingLearnsNoDeliveryTwice(t *testing.T) {
	p, b := newBank(episodes(2000)), newBlockAgents(167, 3, .9)
	for range 500 { // the last one doubles the size of units
		u := b.block()
		u.Events = 20
		if b.made == 500 {
			u.Duplicates = 10
		}
		p.Observe(u, time.Time{})
	}
	g := p.groups[0]
	if d := g.Delivery.Duplicates; g.Blocks.Size < 2 || d.Warm != 1 || d.WarmUnits != 500 {
		t.Errorf("units of %d blocks, %d of %d with duplicates, want 1 of 500", g.Blocks.Size, d.Warm, d.WarmUnits)
	}
}

// telling returns a block with single steps: an observation that follows the rewards, and an action that follows the
// observation.
func (b *blockAgents) telling() *ingest.Unit {
	u := b.block()
	u.ActionKind, u.Actions = ingest.ActionCategory, []ingest.Count{{Name: "stay"}, {Name: "go"}}
	u.Steps = &ingest.Steps{Names: []string{"x"}}
	x := ingest.NamedMoments{Signal: "observation.x"}
	for i := range u.Length {
		o := u.Reward.Mean + b.rng.NormFloat64()
		a := int32(0)
		if o+.5*b.rng.NormFloat64() > 0 {
			a = 1
		}
		x.Add(o)
		u.Actions[a].N++
		u.Steps.At, u.Steps.Actions = append(u.Steps.At, int32(i)+1), append(u.Steps.Actions, a)
		u.Steps.Rows = append(u.Steps.Rows, float32(o), float32(u.Reward.Mean))
	}
	u.Numeric = []ingest.NamedMoments{x}
	return u
}

// A bank that is restarted has the same findings as one that was never stopped: while blocks are doubled, while the
// laws of their steps are learned, and while these are judged.
func TestBlocksWithStepsGoOnAfterARestart(t *testing.T) {
	cfg := episodes(2000)
	cfg.Baseline.Units = 150
	agents, again := newBlockAgents(181, 2, .99), newBlockAgents(181, 2, .99)
	whole, stopped := newBank(cfg), newBank(cfg)
	sizes := map[int]bool{}
	for i := range 2_500 {
		want := whole.Observe(agents.telling(), time.Time{})
		got := stopped.Observe(again.telling(), time.Time{})
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("block %d: %+v, want %+v", i, got, want)
		}
		sizes[whole.groups[0].Blocks.Size] = true
		if i%97 != 96 {
			continue
		}
		var state bytes.Buffer
		if err := stopped.Snapshot(&state); err != nil {
			t.Fatal(err)
		}
		stopped = newBank(cfg)
		if err := stopped.Restore(&state, time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	g, h := whole.groups[0], stopped.groups[0]
	if len(sizes) < 3 || g.Laws.Model == nil || !g.Warmup.Done {
		t.Fatalf("sizes %v, laws %v, warm-up done: %t", sizes, g.Laws.Model != nil, g.Warmup.Done)
	}
	if g.Baseline.ID != h.Baseline.ID || fmt.Sprint(g.Laws.Recent) != fmt.Sprint(h.Laws.Recent) {
		t.Errorf("baseline %s, want %s; scores\n%v\nwant\n%v", h.Baseline.ID, g.Baseline.ID, h.Laws.Recent, g.Laws.Recent)
	}
}
