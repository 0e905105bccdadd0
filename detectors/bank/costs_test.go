package bank

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sort"
	"syscall"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// typical is the policy used to measure costs: episodes of 50 steps with a reward, one of several actions, an outcome
// of 0 or 1 and two observations, without any change.
type typical struct {
	rng     *rand.Rand
	actions []string
	length  int
	every   int64 // interval between units in seconds
	made    int64
}

func newTypical(actions int) *typical {
	t := &typical{rng: rand.New(rand.NewPCG(1, 3)), length: 50, every: 20}
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
		StartTS: (1_800_000_000 + t.every*t.made) * 1e9, EndTS: (1_800_000_000 + t.every*t.made + t.every - 1) * 1e9,
	}
	t.made++
	outcome := ingest.NamedMoments{Signal: "outcome.sale"}
	basket, price := ingest.NamedMoments{Signal: "observation.basket"}, ingest.NamedMoments{Signal: "observation.price"}
	var rewards []float64
	counts := make([]ingest.Count, len(t.actions))
	for range max(1, t.length-5+t.rng.IntN(min(t.length, 11))) {
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

// action returns a random action; the first ones are the most common.
func (t *typical) action() int {
	return min(t.rng.IntN(len(t.actions)), t.rng.IntN(len(t.actions)))
}

// frozen returns a bank with an accepted baseline of the given number of units.
func (t *typical) frozen(units int) *Policy {
	cfg := episodes(20_000)
	cfg.Baseline.Units = units
	p := newBank(cfg)
	for range units {
		p.Observe(t.unit(), time.Time{})
	}
	return p
}

// inSearches reports the time of an operation in multiples of binary searches over 1,024 floats, from the fastest of
// several rounds.
func inSearches(b *testing.B) {
	rng := rand.New(rand.NewPCG(2, 3))
	points, values := make([]float64, 1024), make([]float64, 1024)
	for i := range points {
		points[i], values[i] = rng.NormFloat64(), rng.NormFloat64()
	}
	slices.Sort(points)
	found, search := 0, math.Inf(1)
	for range 64 {
		start := time.Now()
		for _, x := range values {
			found += sort.SearchFloat64s(points, x)
		}
		search = min(search, float64(time.Since(start))/float64(len(values)))
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/search, "searches/op")
}

// cpu returns the CPU time of the process on all cores.
func cpu(b testing.TB) time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		b.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// BenchmarkCalibration measures the cost of a group from its first unit to its accepted baseline, including the
// provisional ones. If the machine is busy with other work, the CPU time is more meaningful than the elapsed time.
func BenchmarkCalibration(b *testing.B) {
	for _, c := range []struct {
		steps, actions, units int
	}{{1, 4, 500}, {1, 4, 2000}, {50, 4, 500}, {50, 4, 2000}, {50, 17, 2000}} {
		b.Run(fmt.Sprintf("%d steps, %d actions, %d units", c.steps, c.actions, c.units), func(b *testing.B) {
			used, branches := time.Duration(0), 0
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				cfg := episodes(20_000)
				cfg.Baseline.Units = c.units
				p, units := newBank(cfg), make([]*ingest.Unit, c.units)
				t := newTypical(c.actions)
				t.length, t.every = c.steps, 10_000/int64(c.units) // a longer warm-up would continue until it covers two days
				for i := range units {
					units[i] = t.unit()
				}
				b.StartTimer()
				before := cpu(b)
				for _, u := range units {
					p.Observe(u, time.Time{})
				}
				used += cpu(b) - before
				g := p.groups[0]
				if branches = g.branchCount(); !g.Warmup.Done || g.Promise.ARL0 == 0 {
					b.Fatal("not armed")
				}
			}
			b.ReportMetric(used.Seconds()/float64(b.N), "cpu-s/op")
			b.ReportMetric(float64(branches), "branches")
			inSearches(b)
		})
	}
}

// BenchmarkTypicalUnit measures the cost of a unit of the typical policy.
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
			inSearches(b)
		})
	}
}

// heap returns the number of live bytes on the heap.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// written counts the bytes written to it.
type written int

func (w *written) Write(p []byte) (int, error) {
	*w += written(len(p))
	return len(p), nil
}

// The memory of a group is limited per stream, including its sliding window and its part of what the group stores, and
// does not grow with further units.
func TestSimMemoryOfAGroup(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	for _, c := range []struct {
		actions, units int
		most           int64 // bytes per stream
	}{{4, 500, 32 << 10}, {17, 500, 49 << 10}, {4, 2000, 55 << 10}, {17, 2000, 77 << 10}} {
		// With one episode every 20 seconds, a warm-up of 2,000 would continue until it covers two days.
		first := newTypical(c.actions)
		first.every = 5
		tables := first.frozen(c.units) // shared by all groups
		before := heap()
		const groups = 4 // several groups with the same telemetry, since the sizes of maps vary randomly
		var agents [groups]*typical
		var policies [groups]*Policy
		for i := range groups {
			agents[i] = newTypical(c.actions)
			agents[i].every = 5
			policies[i] = agents[i].frozen(c.units)
		}
		p := policies[0]
		feed := func(units int) int64 {
			for i := range groups {
				for range units {
					policies[i].Observe(agents[i].unit(), time.Time{})
				}
			}
			return (heap() - before) / groups / int64(len(p.groups[0].Streams))
		}
		soon, later := feed(1000), feed(5000)
		var state written
		if err := p.Snapshot(&state); err != nil {
			t.Fatal(err)
		}
		whole := heap()
		for _, s := range p.groups[0].Streams {
			for _, q := range s.Quantities {
				drop[*stream.ShapeTest](q)
			}
		}
		windows := (whole - heap()) / int64(len(p.groups[0].Streams))
		t.Logf("%d actions, %d units in the baseline: %d bytes a stream, %d after 5,000 more units, %d of them sliding windows; "+
			"snapshot of %d bytes", c.actions, c.units, soon, later, windows, state)
		if max(soon, later) > c.most || later > soon+soon/50 {
			t.Errorf("%d actions, %d units in the baseline: %d bytes a stream, %d after 5,000 more units; want at most %d and no more",
				c.actions, c.units, soon, later, c.most)
		}
		runtime.KeepAlive(tables)
		runtime.KeepAlive(policies)
	}
}

// The memory of a version that is compared with production, and its part of the snapshot, are limited.
func TestSimMemoryOfAComparedVersion(t *testing.T) {
	const versions, units, most = 4, 600, 40 << 10
	sim := newSimulation(laws()[0], 1, 71)
	p, g := gated(episodes(20_000), sim.unit)
	for range 300 {
		p.Observe(versioned(sim.unit(), "p1"), time.Time{})
	}
	size := func() (bytes int64) {
		var state written
		if err := p.Snapshot(&state); err != nil {
			t.Fatal(err)
		}
		return int64(state)
	}
	alone := size() // measured first, as its buffers do not belong to the versions
	before := heap()
	for v := range versions {
		for range units {
			p.Observe(beside(sim.unit(), fmt.Sprint("v", v)), time.Time{})
		}
	}
	memory, state := (heap()-before)/versions, (size()-alone)/versions
	t.Logf("%d streams, %d units in the baseline: %d bytes a version, %d of the snapshot", len(g.Streams), g.cfg.Baseline.Units, memory, state)
	if memory > most || state > most || memory < most/4 || state < most/4 {
		t.Errorf("a version takes %d bytes and %d of the snapshot, want at most %d and not nothing", memory, state, most)
	}
}
