package bank

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// blockAgents are agents that act without episodes: their rewards are an AR(1) process of unit variance.
type blockAgents struct {
	rng   *rand.Rand
	phi   float64
	shift float64
	last  []float64
	made  int64
}

func newBlockAgents(seed uint64, agents int, phi float64) *blockAgents {
	return &blockAgents{rng: rand.New(rand.NewPCG(seed, 9)), phi: phi, last: make([]float64, agents)}
}

// block makes the next 20 steps of the next agent.
func (b *blockAgents) block() *ingest.Unit {
	at := ingest.Position{Offset: b.made}
	agent := int(b.made) % len(b.last)
	u := &ingest.Unit{
		Group: ingest.NewGroup("ranker", ingest.Label{Name: "env", Value: "prod"}), Agent: string(rune('a' + agent)),
		End: ingest.EndBlock, First: at, Last: at, Pos: at, Length: 20,
	}
	b.made++
	low, high := math.Inf(1), math.Inf(-1)
	for range u.Length {
		b.last[agent] = b.phi*b.last[agent] + math.Sqrt(1-b.phi*b.phi)*b.rng.NormFloat64()
		x := b.last[agent] + b.shift
		u.Reward.Add(x)
		low, high = min(low, x), max(high, x)
	}
	u.RewardQ10, u.RewardQ90 = low, high
	return u
}

func (b *blockAgents) feed(p *Policy, n int) []Finding {
	var found []Finding
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
			p := newBank(episodes(2000))
			g := func() *group { return p.groups[0] }
			for b.feed(p, 1); !g().Warmup.Done; b.feed(p, 1) {
				if b.made > 100_000 {
					t.Fatal("no baseline after 100,000 blocks")
				}
			}
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

// A block of twice the size is the block that its steps would have made.
func TestJoinedBlocksSumUp(t *testing.T) {
	b := newBlockAgents(161, 1, 0)
	first, second := b.block(), b.block()
	first.Actions = []ingest.Count{{Name: "a", N: 15, Reward: 3}, {Name: "b", N: 5, Reward: 1}}
	second.Actions = []ingest.Count{{Name: "c", N: 8}, {Name: "a", N: 12, Reward: 2}}
	first.Numeric = []ingest.NamedMoments{{Signal: "outcome.x"}}
	first.Numeric[0].Add(2)
	second.Numeric = []ingest.NamedMoments{{Signal: "outcome.x"}}
	second.Numeric[0].Add(4)
	u := joined(first, second)
	if u.Length != 40 || u.Reward.N != 40 || u.First != first.First || u.Pos != second.Pos {
		t.Errorf("joined: %+v", u)
	}
	d := first.Reward.Mean - second.Reward.Mean
	want := first.Reward.M2 + second.Reward.M2 + 10*d*d
	if math.Abs(u.Reward.M2-want) > 1e-9 || math.Abs(u.Reward.Mean-(first.Reward.Mean+second.Reward.Mean)/2) > 1e-12 {
		t.Errorf("mean %v and M2 %v", u.Reward.Mean, u.Reward.M2)
	}
	if a := u.Actions[0]; a.Name != "a" || a.N != 27 || a.Reward != 5 || len(u.Actions) != 3 {
		t.Errorf("actions %+v", u.Actions)
	}
	if n := u.Numeric[0]; n.N != 2 || n.Mean != 3 || n.M2 != 2 || n.Min != 2 || n.Max != 4 {
		t.Errorf("outcome %+v", n)
	}
	if len(first.Actions) != 2 || first.Actions[0].N != 15 || first.Numeric[0].N != 1 {
		t.Error("the joined block was made in the memory of the first")
	}
}

func TestEpisodesInPlaceOfBlocks(t *testing.T) {
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
	if s := stateOf(t, late, "reward"); s.State != TelemetryFault || s.Fault != FaultEnding {
		t.Errorf("reward is %s (%s), want the fault %s", s.State, s.Fault, FaultEnding)
	}
}

// Of a warm-up that is refused as it moves on, blocks are let go of with what they gave.
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

// Blocks that are doubled lose nothing of what agents have done since their last whole block.
func TestDoublingKeepsUnfinishedBlocks(t *testing.T) {
	b := newBlockAgents(165, 2, 0)
	all := blocks{Size: 2}
	for range 11 { // of a six, of b five: whole ones of a three and of b two
		if u := all.add(b.block()); u != nil {
			all.Kept = append(all.Kept, u)
		}
	}
	all.double()
	got := map[string]int64{}
	for _, u := range all.Kept {
		got[u.Agent] += u.Length
	}
	for agent, open := range all.Open {
		got[agent] += open.Unit.Length
		if want := int(open.Unit.Length / 20); open.Parts != want {
			t.Errorf("the open block of %s counts %d parts of %d", agent, open.Parts, want)
		}
	}
	if got["a"] != 120 || got["b"] != 100 {
		t.Errorf("steps by agent %v, want 120 and 100", got)
	}
}

// Blocks of as many agents as are followed are all finished.
func TestManyAgentsFinishTheirBlocks(t *testing.T) {
	all, whole := blocks{Size: 2}, 0
	for i := range 2 * maxBlockAgents {
		if all.add(&ingest.Unit{Agent: fmt.Sprint(i % maxBlockAgents), End: ingest.EndBlock}) != nil {
			whole++
		}
	}
	if whole != maxBlockAgents {
		t.Errorf("%d of %d blocks were finished", whole, maxBlockAgents)
	}
}
