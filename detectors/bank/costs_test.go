package bank

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// The typical policy of the costs: episodes of 50 steps with a reward, one of several actions, an outcome of 0 or 1 and two
// observations, in which nothing changes.
type typical struct {
	rng     *rand.Rand
	actions []string
	length  int
	made    int64
}

func newTypical(actions int) *typical {
	t := &typical{rng: rand.New(rand.NewPCG(1, 3)), length: 50}
	for i := range actions {
		t.actions = append(t.actions, fmt.Sprintf("offer_%d", i))
	}
	return t
}

func (t *typical) unit() *ingest.Unit {
	at := ingest.Position{Offset: t.made}
	u := &ingest.Unit{
		Group: ingest.NewGroup("ranker", ingest.Label{Name: "env", Value: "prod"}), Agent: "a-1", Episode: "a-1/" + fmt.Sprint(t.made),
		End: ingest.EndTerminated, HasReturn: true, First: at, Last: at, Pos: at, ActionKind: ingest.ActionCategory,
		Versions: ingest.Versions{Policy: "p1", Env: "e1", Reward: "r1"}, ProfileSteps: 2,
		StartTS: (1_800_000_000 + 20*t.made) * 1e9, EndTS: (1_800_000_019 + 20*t.made) * 1e9,
	}
	t.made++
	outcome := ingest.NamedMoments{Signal: "outcome.sale"}
	basket, price := ingest.NamedMoments{Signal: "observation.basket"}, ingest.NamedMoments{Signal: "observation.price"}
	var rewards []float64
	counts := make([]ingest.Count, len(t.actions))
	for range t.length - 5 + t.rng.IntN(11) {
		action, reward := t.action(), t.rng.NormFloat64()
		rewards = append(rewards, reward)
		u.Reward.Add(reward)
		u.Return += reward
		counts[action].N++
		counts[action].Reward += reward
		outcome.Add(float64(min(1, t.rng.IntN(4)) ^ 1))
		basket.Add(t.rng.NormFloat64())
		price.Add(t.rng.ExpFloat64())
	}
	for i, c := range counts {
		if c.Name = t.actions[i]; c.N > 0 {
			u.Actions = append(u.Actions, c)
		}
	}
	for i := 0; i+1 < len(rewards) && len(u.Profile) < 20; i += 2 {
		u.Profile = append(u.Profile, float32((rewards[i]+rewards[i+1])/2))
	}
	u.Length = int64(len(rewards))
	u.Numeric = []ingest.NamedMoments{basket, price, outcome}
	slices.Sort(rewards)
	u.RewardQ10, u.RewardQ90 = rewards[len(rewards)/10], rewards[len(rewards)-1-len(rewards)/10]
	return u
}

// action draws one of the actions, the first ones the commonest.
func (t *typical) action() int {
	return min(t.rng.IntN(len(t.actions)), t.rng.IntN(len(t.actions)))
}

// frozen gives a bank with an accepted baseline of so many units.
func (t *typical) frozen(units int) *Policy {
	cfg := episodes(20_000)
	cfg.Baseline.Units = units
	p := newBank(cfg)
	for range units {
		p.Observe(t.unit(), time.Time{})
	}
	return p
}

// BenchmarkCalibration is the time from the last unit of a baseline of 2,000 episodes to armed detectors, on all cores.
func BenchmarkCalibration(b *testing.B) {
	for _, actions := range []int{4, 17} {
		b.Run(fmt.Sprintf("%d actions", actions), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				cfg := episodes(20_000)
				cfg.Baseline.Units = 2000
				p, t := newBank(cfg), newTypical(actions)
				for range 1999 {
					p.Observe(t.unit(), time.Time{})
				}
				b.StartTimer()
				p.Observe(t.unit(), time.Time{})
				if g := p.groups[0]; !g.Warmup.Done || g.Promise.ARL0 == 0 {
					b.Fatal("not armed")
				}
			}
		})
	}
}

// BenchmarkTypicalUnit is what a unit of the typical policy costs a bank.
func BenchmarkTypicalUnit(b *testing.B) {
	for _, actions := range []int{4, 17} {
		b.Run(fmt.Sprintf("%d actions", actions), func(b *testing.B) {
			t := newTypical(actions)
			p := t.frozen(500)
			units := make([]*ingest.Unit, 4096)
			for i := range units {
				units[i] = t.unit()
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				u := units[i%len(units)]
				u.Pos.Offset = t.made + int64(i)
				p.Observe(u, time.Time{})
			}
			b.ReportMetric(float64(p.groups[0].branchCount()), "branches")
		})
	}
}

// heap is how many bytes live on the heap.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestMemoryOfAGroup(t *testing.T) {
	for _, c := range []struct{ actions, units int }{{4, 500}, {17, 500}, {4, 2000}, {17, 2000}} {
		a := newTypical(c.actions)
		before := heap()
		p := a.frozen(c.units)
		for range 1000 {
			p.Observe(a.unit(), time.Time{})
		}
		bytes0 := heap() - before
		for range 5_000 {
			p.Observe(a.unit(), time.Time{})
		}
		bytes1 := heap() - before
		var state bytes.Buffer
		if err := p.Snapshot(&state); err != nil {
			t.Fatal(err)
		}
		n := len(p.groups[0].Streams)
		q := 0
		for _, s := range p.groups[0].Streams {
			q += len(s.Quantities)
		}
		t.Logf("%d actions, m=%d: %d streams, %d quantities, %d branches: %d bytes, %d a stream; later %d; snapshot %d",
			c.actions, c.units, n, q, p.groups[0].branchCount(), bytes0, bytes0/int64(n), bytes1, state.Len())
		runtime.KeepAlive(p)
	}
}
