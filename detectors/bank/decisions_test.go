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

	"github.com/rewardwatch/rewardwatch/detectors/battery"
	"github.com/rewardwatch/rewardwatch/detectors/fault"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// decider makes the decisions of a policy, at random times. Each has an action, a reward, and possibly a click.
type decider struct {
	rng        *rand.Rand
	rate       float64 // decisions per second; 0 without a clock
	partitions int
	law        func(*rand.Rand) float64 // of the reward
	shift      float64                  // added to the reward
	click      float64                  // share of decisions
	sale       float64                  // share of decisions; 0 without such an outcome
	shares     []float64                // of the actions a, b, c
	versions   ingest.Versions

	made int64
	at   float64 // in seconds
	next []int64 // offsets by partition
}

func normalReward(r *rand.Rand) float64 { return r.NormFloat64() }

func newDecider(seed, stream uint64, rate float64) *decider {
	return &decider{
		rng: rand.New(rand.NewPCG(seed, stream)), rate: rate, partitions: 1, law: normalReward, click: .2, shares: []float64{.5, .3, .2},
		versions: ingest.Versions{Policy: "p1"},
	}
}

func (d *decider) unit() *ingest.Unit {
	partition := d.rng.IntN(d.partitions)
	for len(d.next) < d.partitions {
		d.next = append(d.next, 0)
	}
	at := ingest.Position{Partition: ingest.Partition(partition), Offset: d.next[partition]}
	d.next[partition]++
	u := &ingest.Unit{
		Group: ingest.NewGroup("ranker", ingest.Label{Name: "env", Value: "prod"}), Agent: fmt.Sprint("user-", d.rng.IntN(1e6)), Episode: fmt.Sprint(d.made),
		End: ingest.EndTerminated, Versions: d.versions, First: at, Last: at, Pos: at, Length: 1, Events: 1, Unfinished: -1, HasReturn: true,
		LongestConstant: 1, ActionKind: ingest.ActionCategory, Numeric: []ingest.NamedMoments{{Signal: "outcome.click"}},
	}
	d.made++
	if d.rate > 0 {
		d.at += d.rng.ExpFloat64() / d.rate
		u.StartTS = 1_800_000_000e9 + int64(d.at*1e9)
		u.EndTS = u.StartTS
	}
	u.Return = d.law(d.rng) + d.shift
	u.Reward.Add(u.Return)
	u.RewardQ10, u.RewardQ90, u.ConstantReward = u.Return, u.Return, u.Return
	click := 0.
	if d.rng.Float64() < d.click {
		click = 1
	}
	u.Numeric[0].Add(click)
	if d.sale > 0 {
		sale := ingest.NamedMoments{Signal: "outcome.sale"}
		sale.Add(math.Floor(d.rng.Float64() + d.sale))
		u.Numeric = append(u.Numeric, sale)
	}
	x, action := d.rng.Float64(), 0
	for ; action < len(d.shares)-1 && x >= d.shares[action]; action++ {
		x -= d.shares[action]
	}
	u.Actions = []ingest.Count{{Name: string(rune('a' + action)), N: 1, Reward: u.Return}}
	return u
}

func (d *decider) feed(p *Policy, n int) (found []finding.Finding) {
	for range n {
		found = append(found, p.Observe(d.unit(), time.Time{})...)
	}
	return found
}

// accepted feeds a bank until its baseline is accepted, and returns the number of decisions until then.
func (d *decider) accepted(t testing.TB, p *Policy) int {
	t.Helper()
	for n := 1; n <= 200_000; n++ {
		p.Observe(d.unit(), time.Time{})
		if p.Accepted(prod) != "" {
			return n
		}
	}
	t.Fatal("no baseline was accepted")
	return 0
}

func decisionsConfig() watch.Config {
	cfg := watch.DefaultConfig()
	cfg.Baseline.Blocks = true
	cfg.FalseAlarms.Per = watch.Per{Amount: 5_000_000, Unit: watch.PerEpisodes}
	return cfg
}

// If blocks are not configured, no unit is stored to be joined.
func TestNoDecisionIsKeptWithoutBlocks(t *testing.T) {
	cfg := decisionsConfig()
	cfg.Baseline.Blocks = false
	p, d := newBank(cfg), newDecider(91, 1, 1000)
	for range 50 {
		p.Observe(d.unit(), time.Time{})
	}
	if kept := len(p.groups[0].Blocks.Kept); kept != 0 {
		t.Errorf("%d units are kept", kept)
	}
}

// The size of blocks depends on the rate and the number of partitions, within what the budget allows.
func TestSimSizeOfBlocksOfDecisions(t *testing.T) {
	for name, c := range map[string]struct {
		edit     func(*decider, *watch.Config)
		rate     float64
		smallest int
		largest  int
	}{
		"rare":             {nil, 1, 1, 1},
		"not asked for":    {func(_ *decider, cfg *watch.Config) { cfg.Baseline.Blocks = false }, 1000, 1, 1},
		"without a clock":  {nil, 0, 1, 1},
		"a few":            {nil, 10, 1, 2},
		"more":             {nil, 16, 4, 8},
		"many":             {nil, 1000, 64, 64},
		"of 12 partitions": {func(d *decider, _ *watch.Config) { d.partitions = 12 }, 40, 8, 16},
		"small budget":     {func(_ *decider, cfg *watch.Config) { cfg.FalseAlarms.Per.Amount = 20_000 }, 1000, 8, 8},
		"small baseline":   {func(_ *decider, cfg *watch.Config) { cfg.Baseline.Units = 60 }, 1000, 64, 64},
	} {
		t.Run(name, func(t *testing.T) {
			d, cfg := newDecider(81, 1, c.rate), decisionsConfig()
			if c.edit != nil {
				c.edit(d, &cfg)
			}
			p := newBank(cfg)
			n := d.accepted(t, p)
			g := p.groups[0]
			size := max(1, g.Blocks.Size)
			if size < c.smallest || size > c.largest || g.Blocks.Decisions != (size > 1) || len(g.Blocks.Kept) > 0 {
				t.Errorf("blocks of %d decisions (%t), want %d to %d; %d kept", size, g.Blocks.Decisions, c.smallest, c.largest, len(g.Blocks.Kept))
			}
			if want := size * cfg.Baseline.Units; n < want || n > want+size*d.partitions {
				t.Errorf("the baseline took %d decisions, want %d", n, want)
			}
			if want := cfg.FalseAlarms.Per.Amount / float64(size); g.Promise.N != want {
				t.Errorf("one false alarm in %v units, want %v", g.Promise.N, want)
			}
			name := g.Promise.UnitName().Sized()
			if want := fmt.Sprintf("blocks of %d decisions", size); size > 1 && name != want || size == 1 && name != "episodes" {
				t.Errorf("units are called %q", name)
			}
		})
	}
}

// Every decision is in one block, together only with decisions of its partition and its versions. The onset and offsets
// refer to decisions.
func TestBlocksOfDecisions(t *testing.T) {
	d, p := newDecider(82, 1, 1000), newBank(decisionsConfig())
	d.partitions = 3
	var judged []*ingest.Unit
	p.Witness(func(u *ingest.Unit) { // the next block reuses its memory
		kept := *u
		if kept.Numeric = slices.Clone(u.Numeric); u.Decisions != nil {
			of := *u.Decisions
			kept.Decisions = &of
		}
		judged = append(judged, &kept)
	})
	d.accepted(t, p)
	judged = judged[:0]
	from := slices.Clone(d.next)
	size := int64(p.groups[0].Blocks.Size)
	for i := range 100 * size {
		d.versions.Policy = []string{"p1", "p2"}[i%2]
		d.feed(p, 1)
	}
	counted := map[ingest.Partition]int64{}
	for _, u := range judged {
		counted[u.Pos.Partition] += u.Decisions.N
		if u.Decisions.N != size || u.Length != size || u.Reward.N != size || u.Numeric[0].N != size || u.First.Partition != u.Pos.Partition {
			t.Fatalf("a block of %d decisions: %+v", size, u)
		}
		if span := u.Last.Offset - u.First.Offset; span < size-1 || span > 4*size {
			t.Errorf("a block reaches from offset %d to %d", u.First.Offset, u.Last.Offset)
		}
	}
	for i, n := range counted {
		if all := d.next[i] - from[i]; all-n > 3*size || n-all > 3*size {
			t.Errorf("%d of the %d decisions of partition %s are in blocks", n, all, i)
		}
	}
	d.shift, d.versions.Policy = 1, "p1"
	changed := slices.Clone(d.next)
	for range 20 {
		for _, f := range d.feed(p, int(size)) {
			if f.Signal != "reward" || f.To != finding.Drift {
				continue
			}
			at := changed[f.Onset.Pos.Partition]
			if f.Onset.First.Offset > at+2*size || f.Onset.Pos.Offset < at-2*size {
				t.Errorf("onset at offsets %d to %d, the change came at %d", f.Onset.First.Offset, f.Onset.Pos.Offset, at)
			}
			if len(f.Offsets) != 3 || f.Offsets[0].First > changed[0]+2*size {
				t.Errorf("offsets %v, the change came at %v", f.Offsets, changed)
			}
			return
		}
	}
	t.Error("the change was not found within 20 blocks")
}

// Short-lived versions do not prevent decisions from being judged.
func TestSimShortLivedVersionsShareBlocks(t *testing.T) {
	d, p := newDecider(83, 1, 1000), newBank(decisionsConfig())
	d.accepted(t, p)
	seen := p.groups[0].Seen
	const decisions = 40_000
	for i := range decisions {
		d.versions.Policy = fmt.Sprint("v", i/10)
		d.feed(p, 1)
	}
	g := p.groups[0]
	if blocks := g.Seen - seen; !g.Blocks.Mixed || blocks < decisions/2/int64(g.Blocks.Size) || len(g.Blocks.Open) > 1 {
		t.Errorf("%d blocks of %d decisions of %d, %d are open; mixed: %t", blocks, g.Blocks.Size, decisions, len(g.Blocks.Open), g.Blocks.Mixed)
	}
}

// A bank that is restored between two decisions continues like one that was not, both while it determines the size of
// blocks and while it judges them.
func TestSimRestartAmongDecisions(t *testing.T) {
	cfg := decisionsConfig()
	cfg.Baseline.Units = 120
	for _, cut := range []int{1, 99, 150, 431, 4000, 8001, 9001, 9777} {
		play := func(restart bool) (found []finding.Finding, saved []byte) {
			d, p := newDecider(84, 1, 1000), newBank(cfg)
			d.partitions = 2
			for i := range 12_000 {
				if i == 9000 {
					d.shift = 1
				}
				found = append(found, d.feed(p, 1)...)
				if restart && i == cut {
					var b bytes.Buffer
					if err := p.Snapshot(&b); err != nil {
						t.Fatal(err)
					}
					p = newBank(cfg)
					if err := p.Restore(&b, time.Time{}); err != nil {
						t.Fatal(err)
					}
				}
			}
			return found, bits(t, p.groups[0].wire())
		}
		want, wanted := play(false)
		got, saved := play(true)
		if len(alarmsIn(want)) == 0 || !reflect.DeepEqual(got, want) || !bytes.Equal(saved, wanted) {
			t.Errorf("restored after %d decisions: %d findings, want %d; the state is the same: %t", cut, len(got), len(want), bytes.Equal(saved, wanted))
		}
	}
}

// A baseline of single decisions continues to judge them one by one, until the next baseline.
func TestBaselineOfDecisionsThatCameSlower(t *testing.T) {
	cfg := decisionsConfig()
	cfg.Baseline.Units = 120
	d, p := newDecider(85, 1, 1), newBank(cfg)
	if n := d.accepted(t, p); n != 120 {
		t.Fatalf("the baseline took %d decisions", n)
	}
	d.rate = 1000
	seen := p.groups[0].Seen
	if d.feed(p, 1000); p.groups[0].Seen != seen+1000 {
		t.Errorf("%d of 1000 decisions were judged one by one", p.groups[0].Seen-seen)
	}
	if _, err := p.Restart(prod, "why", time.Time{}); err != nil {
		t.Fatal(err)
	}
	if n := d.accepted(t, p); n != 120*maxDecisions {
		t.Errorf("the next baseline took %d decisions", n)
	}
}

// Another version is compared with the baseline in separate blocks.
func TestGateOfDecisions(t *testing.T) {
	d, p := newDecider(86, 1, 1000), newBank(decisionsConfig())
	d.accepted(t, p)
	for i := range 40_000 {
		d.shift, d.versions.Policy = 0, "p1"
		if i%2 == 0 {
			d.shift, d.versions.Policy = -1, "p2"
		}
		u := d.unit()
		u.Shadow = i%2 == 0
		p.Observe(u, time.Time{})
	}
	gates := shownGroup(p).Gates
	if len(gates) != 1 || gates[0].Verdict != finding.Worse || gates[0].Units != 20_000/maxDecisions || !strings.Contains(gates[0].Why, "block") {
		t.Errorf("%+v", gates)
	}
}

// Telemetry faults of decisions are also found in blocks.
func TestSimFaultsOfBlocksOfDecisions(t *testing.T) {
	for rule, edit := range map[string]func(*ingest.Unit, int){
		"non_finite": func(u *ingest.Unit, i int) {
			if i%10 == 0 {
				u.Reward, u.Return = ingest.Moments{NonFinite: 1}, math.NaN()
			}
		},
		"constant": func(u *ingest.Unit, _ int) {
			u.Return, u.Reward = .125, ingest.Moments{}
			u.Reward.Add(.125)
		},
		"duplicates": func(u *ingest.Unit, i int) { u.Duplicates = int64(i % 2) },
		"scale": func(u *ingest.Unit, _ int) {
			x := 1000 * u.Return
			u.Return, u.Reward = x, ingest.Moments{}
			u.Reward.Add(x)
		},
		"missing": func(u *ingest.Unit, _ int) { u.Reward, u.Return, u.HasReturn = ingest.Moments{}, 0, false },
	} {
		t.Run(rule, func(t *testing.T) {
			d, p := newDecider(87, 1, 1000), newBank(decisionsConfig())
			d.accepted(t, p)
			var faults []string
			for i := range 40 * maxDecisions {
				u := d.unit()
				edit(u, i)
				for _, f := range p.Observe(u, time.Time{}) {
					if f.To == finding.TelemetryFault {
						faults = append(faults, f.Signal+" "+f.Reason)
					}
				}
			}
			if len(faults) == 0 || !strings.Contains(strings.Join(faults, "\n"), rule) {
				t.Errorf("faults %q, want %s", faults, rule)
			}
		})
	}
}

// A block that fills slowly is not a silence.
func TestSlowBlockOfDecisionsIsNoSilence(t *testing.T) {
	d, p := newDecider(88, 1, 1000), newBank(decisionsConfig())
	d.accepted(t, p)
	now := time.Unix(1_800_000_000, 0)
	p.Observe(d.unit(), now)
	for range maxDecisions - 2 {
		now = now.Add(4 * time.Minute)
		p.Observe(d.unit(), now)
		if found := p.Tick(now.Add(time.Second)); len(found) > 0 {
			t.Fatalf("%+v", found)
		}
	}
	now = now.Add(6 * time.Minute)
	silent := p.Tick(now)
	if len(silent) == 0 {
		t.Fatal("silence was not found")
	}
	p.groups[0].Blocks.Open = nil // so that the next decision does not complete a block
	heard := p.Observe(d.unit(), now)
	if len(heard) != len(silent) {
		t.Fatalf("%d streams were silent, and %d are heard of with the next decision: %+v", len(silent), len(heard), heard)
	}
	for i, f := range heard {
		if f.Signal != silent[i].Signal || f.From != finding.TelemetryFault || f.To != silent[i].From || f.Reason != "" {
			t.Errorf("after the silence %+v", f)
		}
	}
	if found := p.Tick(now.Add(time.Second)); len(found) > 0 {
		t.Errorf("silent again: %+v", found)
	}
}

// The decisions of a version that warms up are not a silence either, long before they fill a block.
func TestSlowBlockOfANewVersionIsNoSilence(t *testing.T) {
	cfg := decisionsConfig()
	cfg.OnNewVersion = watch.OnNewVersionRebaseline
	d, p := newDecider(88, 1, 1000), newBank(cfg)
	unit := func(version string) *ingest.Unit {
		u := d.unit()
		u.Versions.Policy = version
		return u
	}
	for n := 0; p.Accepted(prod) == ""; n++ {
		if n == 200_000 {
			t.Fatal("no baseline was accepted")
		}
		p.Observe(unit("p1"), time.Time{})
	}
	now := time.Unix(1_800_000_000, 0)
	p.Observe(unit("p1"), now)
	for range 200 {
		now = now.Add(time.Minute)
		p.Observe(unit("p2"), now)
	}
	next := p.groups[0].Line.Versions.Next
	if next == nil || !next.Blocks.Decisions {
		t.Fatal("the next version does not warm up in blocks")
	}
	for range next.Blocks.Size - 2 {
		now = now.Add(4 * time.Minute)
		p.Observe(unit("p2"), now)
		if found := p.Tick(now.Add(time.Second)); len(found) > 0 {
			t.Fatalf("%+v", found)
		}
	}
	if found := p.Tick(now.Add(6 * time.Minute)); len(found) == 0 {
		t.Error("silence was not found")
	}
	p.groups[0].Line.Versions.Retired = []string{"p0"}
	if found := p.Observe(unit("p0"), now.Add(7*time.Minute)); len(found) == 0 || p.groups[0].Unjudged != "" {
		t.Errorf("a unit of a retired version does not end the silence: %+v", found)
	}
}

// The end of a silence does not end an alarm, regardless of delivery faults.
func TestEndOfASilenceLeavesAlarms(t *testing.T) {
	d, p := newDecider(88, 1, 1000), newBank(decisionsConfig())
	d.accepted(t, p)
	now := time.Unix(1_800_000_000, 0)
	p.Observe(d.unit(), now)
	g := p.groups[0]
	for _, s := range g.Streams {
		s.Alarm(g.Seen)
		s.Alert = &stream.Alert{}
	}
	g.Delivery.Late.Held.Rule = fault.Late
	if len(p.Tick(now.Add(6*time.Minute))) == 0 {
		t.Fatal("silence was not found")
	}
	g.Blocks.Open = nil // so that the next decision does not complete a block
	for _, f := range p.Observe(d.unit(), now.Add(7*time.Minute)) {
		if f.To != finding.Drift || f.Reason != "" {
			t.Errorf("after the silence %+v", f)
		}
	}
	for _, s := range g.Streams {
		if s.State != finding.Drift {
			t.Errorf("%s is %v", s.Signal, s.State)
		}
	}
}

// decisionProcess makes decisions of a law at a rate, which determines the size of blocks.
type decisionProcess struct {
	name  string
	law   func(*rand.Rand) float64 // of the reward; the clicks if nil
	click float64
	rate  float64
}

func decisionProcesses(rate float64) []decisionProcess {
	out := []decisionProcess{{"clicks, 3.8%, as reward", nil, .038, rate}}
	for _, l := range laws() {
		out = append(out, decisionProcess{l.name, l.reward, .2, rate})
	}
	return out
}

func (c *decisionProcess) decider(seed uint64) *decider {
	d := newDecider(seed, 0, c.rate)
	d.click, d.law = c.click, c.law
	if c.law == nil {
		d.law = func(r *rand.Rand) float64 { return math.Floor(r.Float64() + c.click) }
	}
	return d
}

// measure freezes baselines with a budget of one false alarm in about n blocks. It returns their ARL0 in multiples of
// the budget, sorted, and the size of the blocks.
func (c *decisionProcess) measure(t testing.TB, seed uint64, baselines int, n float64, pool int) (ratios []float64, size int) {
	d, cfg, samples := c.decider(seed), watch.DefaultConfig(), map[int]*battery.Sample{}
	cfg.Baseline.Blocks = true
	p := newBank(cfg) // with a budget per time, so that the size only depends on the rate
	d.accepted(t, p)
	size = max(1, p.groups[0].Blocks.Size)
	cfg.FalseAlarms.Per = watch.Per{Amount: n * float64(size), Unit: watch.PerEpisodes}
	for range baselines {
		p := newBank(cfg)
		d.accepted(t, p)
		g := p.groups[0]
		at := g.Blocks.Size
		if samples[at] == nil {
			samples[at] = d.sample(g, pool)
		}
		j := battery.NewJudge(&g.Battery, samples[at].Columns)
		ratios = append(ratios, runLength(j, samples[at], d.rng, g.Promise.N)/g.Promise.N)
	}
	slices.Sort(ratios)
	return ratios, size
}

// sample returns units of the group's size.
func (d *decider) sample(g *group, n int) *battery.Sample {
	joining := battery.Battery{Blocks: g.Blocks.Again()}
	var units []*ingest.Unit
	for len(units) < n {
		if u := joining.Join(d.unit()); u != nil {
			units = append(units, u)
		}
	}
	return battery.NewSample(&g.Battery, units, 1)
}

// Nine of ten baselines keep the budget if decisions are judged in blocks. The bound is three standard errors below.
func TestSimNineBaselinesInTenOfDecisionsKeepTheBudget(t *testing.T) {
	for _, rate := range []float64{16, 400} {
		var all []float64
		for i, c := range decisionProcesses(rate) {
			ratios, size := c.measure(t, 180+uint64(i), 4, 2000, 10_000)
			if size < 4 {
				t.Fatalf("blocks of %d decisions", size)
			}
			all = append(all, ratios...)
		}
		slices.Sort(all)
		if got, least := keeping(all), .9-3*math.Sqrt(.9*.1/float64(len(all))); got < least {
			t.Errorf("at %g a second %.2f of the baselines keep the budget, want at least %.2f; ratios %.2f", rate, got, least, all)
		}
	}
}
