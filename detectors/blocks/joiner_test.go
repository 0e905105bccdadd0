package blocks

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// agents act without episodes, in turns, and receive normally distributed rewards.
type agents struct {
	rng  *rand.Rand
	of   int
	made int64
}

func newAgents(seed uint64, of int) *agents {
	return &agents{rng: rand.New(rand.NewPCG(seed, 9)), of: of}
}

// block returns the next 20 steps of the next agent.
func (a *agents) block() *ingest.Unit {
	at := ingest.Position{Offset: a.made}
	u := &ingest.Unit{
		Agent: strconv.Itoa(int(a.made) % a.of), End: ingest.EndBlock, First: at, Last: at, Pos: at, Length: 20,
	}
	a.made++
	rewards := make([]float64, u.Length)
	for i := range rewards {
		rewards[i] = a.rng.NormFloat64()
		u.Reward.Add(rewards[i])
	}
	slices.Sort(rewards)
	u.RewardQ10, u.RewardQ90 = rewards[len(rewards)/10], rewards[len(rewards)-1-len(rewards)/10]
	return u
}

// A block of twice the size equals the block that its steps would have formed.
func TestJoinedBlocksSumUp(t *testing.T) {
	b := newAgents(161, 1)
	first, second := b.block(), b.block()
	first.Actions = []ingest.Count{{Name: "a", N: 15, Reward: 3}, {Name: "b", N: 5, Reward: 1}}
	second.Actions = []ingest.Count{{Name: "c", N: 8}, {Name: "a", N: 12, Reward: 2}}
	first.Numeric = []ingest.NamedMoments{{Signal: "outcome.x"}}
	first.Numeric[0].Add(2)
	second.Numeric = []ingest.NamedMoments{{Signal: "outcome.x"}}
	second.Numeric[0].Add(4)
	second.Propensity = &ingest.Propensity{Steps: 20, Log: -3, Targets: 1, LogTarget: -1, Weight: 2, WeightedReward: 4, Actions: []ingest.InverseProbs{{Sum: 16, Reward: 2}, {Sum: 24, Reward: 4}}}
	u := Joined(first, second)
	if got, want := u.Propensity, (&ingest.Propensity{Steps: 20, Log: -3, Targets: 1, LogTarget: -1, Weight: 2, WeightedReward: 4, Actions: []ingest.InverseProbs{{Sum: 24, Reward: 4}, {}, {Sum: 16, Reward: 2}}}); !reflect.DeepEqual(got, want) {
		t.Errorf("propensity %+v, want %+v", got, want)
	}
	if got := Joined(u, second).Propensity; got.Steps != 40 || got.Log != -6 || got.Actions[2] != (ingest.InverseProbs{Sum: 32, Reward: 4}) {
		t.Errorf("propensity %+v", got)
	}
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

// numbers returns a numeric signal with the given values and their outer deciles, by the nearest ranks.
func numbers(signal string, x ...float64) ingest.NamedMoments {
	n := ingest.NamedMoments{Signal: signal}
	for _, v := range x {
		n.Add(v)
	}
	sorted := slices.Sorted(slices.Values(x))
	n.Q10, n.Q90 = sorted[len(sorted)/10], sorted[len(sorted)-1-len(sorted)/10]
	return n
}

// If all values of two blocks are equal, the deciles of the joined block are its mean.
func TestJoinedDeciles(t *testing.T) {
	unit := func(x ...float64) *ingest.Unit {
		return &ingest.Unit{Numeric: []ingest.NamedMoments{numbers("observation.x", x...)}}
	}
	u := Joined(unit(.1, .1, .1), unit(.1))
	if n := u.Numeric[0]; n.Q10 != n.Mean || n.Q90 != n.Mean {
		t.Errorf("%+v", n)
	}
	u = Joined(unit(0, 10, 20, 30), unit(4, 8))
	if n := u.Numeric[0]; math.Abs(n.Q10-4./3) > 1e-12 || math.Abs(n.Q90-68./3) > 1e-12 || n.N != 6 {
		t.Errorf("%+v", n)
	}
	empty := &ingest.Unit{Numeric: []ingest.NamedMoments{{Signal: "observation.x", Moments: ingest.Moments{NonFinite: 3}}}}
	if n := Joined(empty, unit(.3)).Numeric[0]; n.Q10 != .3 || n.Q90 != .3 {
		t.Errorf("%+v", n)
	}
}

// Doubling keeps everything that agents have done since their last whole block.
func TestDoublingKeepsUnfinishedBlocks(t *testing.T) {
	b := newAgents(165, 2)
	all := Joiner{Size: 2}
	for range 11 { // six of a and five of b: three whole blocks of a and two of b
		if u := all.Add(b.block()); u != nil {
			all.Kept = append(all.Kept, u)
		}
	}
	all.Double(nil)
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
	if got["0"] != 120 || got["1"] != 100 {
		t.Errorf("steps by agent %v, want 120 and 100", got)
	}
}

// If there are as many agents as can be followed, all of their blocks are finished.
func TestManyAgentsFinishTheirBlocks(t *testing.T) {
	all, whole := Joiner{Size: 2}, 0
	for i := range 2 * RoundLength {
		if all.Add(&ingest.Unit{Agent: fmt.Sprint(i % RoundLength), End: ingest.EndBlock}) != nil {
			whole++
		}
	}
	if whole != RoundLength {
		t.Errorf("%d of %d blocks were finished", whole, RoundLength)
	}
}
