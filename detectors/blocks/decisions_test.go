package blocks

import (
	"math"
	"math/rand/v2"
	"reflect"
	"strconv"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// decisions generates the decisions of a policy.
type decisions struct {
	rng  *rand.Rand
	made int64
}

func (d *decisions) next() *ingest.Unit {
	at := ingest.Position{Offset: d.made}
	u := &ingest.Unit{
		Agent: strconv.FormatInt(d.made, 10), Episode: "e", End: ingest.EndTerminated, First: at, Last: at, Pos: at, StartTS: 1 + d.made, EndTS: 1 + d.made,
		Length: 1, Events: 1, Unfinished: -1, HasReturn: d.made%3 > 0, Actions: []ingest.Count{{Name: string(rune('a' + d.rng.IntN(3))), N: 1}},
		Propensity: &ingest.Propensity{Steps: 1, Log: -1, Actions: []ingest.InverseProbs{{Sum: 2, Reward: 1}}},
	}
	if u.HasReturn {
		u.Return = d.rng.NormFloat64()
		u.Reward.Add(u.Return)
	}
	for _, signal := range []string{"outcome.click", "observation.x"} {
		if d.rng.IntN(2) == 0 {
			u.Numeric = append(u.Numeric, numbers(signal, float64(d.rng.IntN(2))))
		}
	}
	d.made++
	return u
}

// A block of decisions is their sum, whether they were added one by one or a warm-up was doubled.
func TestBlockOfDecisions(t *testing.T) {
	one, two := decisions{rng: rand.New(rand.NewPCG(1, 2))}, decisions{rng: rand.New(rand.NewPCG(1, 2))}
	added := Joiner{Size: 8, Decisions: true}
	var first *ingest.Unit
	var all, returns ingest.Moments
	for first == nil {
		u := one.next()
		kept := *u
		all.Merge(u.Reward)
		if u.HasReturn {
			returns.Add(u.Return)
		}
		if first = added.Add(u); !reflect.DeepEqual(*u, kept) {
			t.Fatal("a decision was changed")
		}
	}
	doubled := Joiner{Decisions: true}
	for range 8 {
		doubled.Kept = append(doubled.Kept, two.next())
	}
	for doubled.Size < 8 {
		doubled.Double(nil)
	}
	second := doubled.Kept[0]
	for _, u := range []*ingest.Unit{first, second} {
		if u.Decisions.N != 8 || u.Length != 8 || u.Events != 8 || u.Reward.N != all.N || u.Decisions.Returns.N != returns.N || u.Unfinished != -1 {
			t.Errorf("%+v of %+v", u, u.Decisions)
		}
		if math.Abs(u.Return-returns.Mean) > 1e-12 || math.Abs(u.Reward.M2-all.M2) > 1e-12 || u.RewardQ10 != u.Reward.Mean || u.RewardQ90 != u.Reward.Mean {
			t.Errorf("return %v, want %v; %+v", u.Return, returns.Mean, u.Reward)
		}
		if u.First.Offset != 0 || u.Last.Offset != 7 || u.Pos.Offset != 7 || u.StartTS != 1 || u.EndTS != 8 || u.Agent != "" || u.Episode != "" {
			t.Errorf("%+v", u)
		}
		if u.Propensity.Steps != 8 || u.Propensity.Log != -8 || len(u.Propensity.Actions) != len(u.Actions) {
			t.Errorf("%+v", u.Propensity)
		}
	}
	if len(doubled.Open) > 0 || len(added.Open) > 0 || len(doubled.Kept) != 1 {
		t.Errorf("%d and %d blocks are open", len(doubled.Open), len(added.Open))
	}
	for i, a := range first.Actions {
		if second.Actions[i] != a || first.Propensity.Actions[i].Sum != 2*float64(a.N) {
			t.Errorf("actions %+v and %+v, %+v", first.Actions, second.Actions, first.Propensity)
		}
	}
	for i, n := range first.Numeric {
		m := second.Numeric[i]
		if n.Signal != m.Signal || n.N != m.N || math.Abs(n.Mean-m.Mean) > 1e-12 || n.Signal == "outcome.click" && n.Q90 != 0 || n.Signal == "observation.x" && n.Q90 != n.Mean {
			t.Errorf("%+v and %+v", n, m)
		}
	}
}

// Decisions that are left over when the blocks of a warm-up are doubled begin the next block.
func TestDoublingKeepsDecisionsLeftOver(t *testing.T) {
	d, b := decisions{rng: rand.New(rand.NewPCG(1, 3))}, Joiner{Decisions: true}
	for range 3 {
		b.Kept = append(b.Kept, d.next())
	}
	b.Double(nil)
	u := b.Add(d.next())
	if u == nil || u.Decisions.N != 2 || u.First.Offset != 2 || u.Last.Offset != 3 {
		t.Errorf("%+v", u)
	}
}

// Decisions of different partitions and versions are in separate blocks. Unfinished blocks of versions that no
// longer act are dropped, and their number is bounded.
func TestBlocksOfDecisionsAreApart(t *testing.T) {
	d, b := decisions{rng: rand.New(rand.NewPCG(1, 4))}, Joiner{Size: 4, Decisions: true}
	next := func(partition ingest.Partition, version string) *ingest.Unit {
		u := d.next()
		u.Pos.Partition, u.Versions.Policy = partition, version
		return b.Add(u)
	}
	for i := range 12 {
		if u := next(ingest.Partition(i%3), "a"); (u != nil) != (i >= 9) {
			t.Fatalf("decision %d ended %+v", i, u)
		}
	}
	next(0, "old")
	for range 2 * RoundLength {
		next(0, "a")
	}
	if len(b.Open) > 1 || b.Mixed {
		t.Errorf("%d blocks are open, mixed: %t", len(b.Open), b.Mixed)
	}
	for i := range 2 * maxOpenDecisions {
		next(0, strconv.Itoa(i))
	}
	if len(b.Open) > 1 || !b.Mixed {
		t.Errorf("%d blocks are open, mixed: %t", len(b.Open), b.Mixed)
	}
}

// Blocks in reused memory equal blocks in new memory, and need no memory once each partition has had one.
// Meanwhile, versions change, blocks are dropped at the end of a round, and finally all blocks are dropped.
func TestRecycledBlocks(t *testing.T) {
	one, two := decisions{rng: rand.New(rand.NewPCG(1, 5))}, decisions{rng: rand.New(rand.NewPCG(1, 5))}
	recycled, own := Joiner{Size: 4, Decisions: true}, Joiner{Size: 4, Decisions: true}
	blocks := 0
	for i := range 3 * RoundLength {
		add := func(d *decisions, b *Joiner) *ingest.Unit {
			u := d.next()
			u.Pos.Partition = ingest.Partition(i % 3)
			if i%7 == 0 {
				u.Versions.Policy = strconv.Itoa(i / RoundLength)
			}
			return b.Add(u)
		}
		got, want := add(&one, &recycled), add(&two, &own)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("decision %d ended %+v, want %+v", i, got, want)
		}
		if got != nil {
			recycled.Recycle(got)
			blocks++
		}
		if i == RoundLength/2 {
			recycled.Restart()
			own.Restart()
		}
	}
	if !reflect.DeepEqual(recycled.Wire(), own.Wire()) || blocks < RoundLength/2 {
		t.Errorf("after %d blocks, %d and %d are open", blocks, len(recycled.Open), len(own.Open))
	}
	u := one.next()
	u.Propensity = nil
	if n := testing.AllocsPerRun(1000, func() {
		if u.Pos.Partition = (u.Pos.Partition + 1) % 3; u.Pos.Partition == 0 {
			u.Versions.Policy = ""
		}
		if block := recycled.Add(u); block != nil {
			recycled.Recycle(block)
		}
	}); n != 0 {
		t.Errorf("%v allocations for a decision", n)
	}
}
