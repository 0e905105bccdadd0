package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/detectors/capacity"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/assemble"
	"github.com/rewardwatch/rewardwatch/ingest/checkpoint"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

// The fleet of the benchmarks: 9,900 streams with frozen baselines of 500 units.
const (
	benchPolicies = 60
	benchGroups   = 15
	benchUnits    = 1100 // per group, so that windows and traces are full
)

// benchStore saves the fleet in a directory. All groups of a policy see the same values, so that one calibration
// suffices for all, and all policies have the same state.
func benchStore(b *testing.B) *checkpoint.Store {
	b.Helper()
	d := NewWorker("policy", watch.DefaultConfig(), capacity.NewStreamLimit(20_000), newMemory())
	rngs := make([]*rand.Rand, benchGroups)
	for i := range rngs {
		rngs[i] = rand.New(rand.NewPCG(1, 1))
	}
	for n := range int64(benchUnits) {
		for g, rng := range rngs {
			if err := d.Observe(context.Background(), ingesttest.Unit("policy", g, n, rng), time.Time{}); err != nil {
				b.Fatal(err)
			}
		}
	}
	directory, err := checkpoint.NewDirectory(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = directory.Close() })
	store := checkpoint.NewStore(directory, zerolog.Nop(), prometheus.NewRegistry())
	parts, _, err := d.Changes()
	if err != nil {
		b.Fatal(err)
	}
	for i := range benchPolicies {
		if err := store.Save(fmt.Sprint(BankPrefix, "policy-", i), parts, nil); err != nil {
			b.Fatal(err)
		}
	}
	return store
}

// cpu returns the CPU time of the process.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// report reports the CPU time of an operation, which other processes on the machine do not affect.
func report(b *testing.B, begun time.Duration) {
	b.ReportMetric(float64((cpu()-begun).Microseconds())/1e3/float64(b.N), "cpu-ms/op")
}

func benchPipeline(b *testing.B, store ingest.CheckpointStore) *alone {
	b.Helper()
	cfg := DefaultSettings()
	cfg.Checkpoint.Every = 1 << 60
	p := newAlone(context.Background(), &cfg, store, newMemory(), prometheus.NewRegistry())
	b.Cleanup(p.Memory.Hold())
	var names []string
	for i := range benchPolicies {
		names = append(names, fmt.Sprint(BankPrefix, "policy-", i))
	}
	if err := p.workers.Restore(context.Background(), names); err != nil {
		b.Fatal(err)
	}
	return p
}

// BenchmarkRestore restores the fleet from the disk.
func BenchmarkRestore(b *testing.B) {
	store := benchStore(b)
	b.ResetTimer()
	begun := cpu()
	for b.Loop() {
		p := benchPipeline(b, store)
		b.StopTimer()
		before := cpu()
		if streams := len(p.Summaries()[0].Groups[0].Streams) * benchGroups * benchPolicies; streams < 9_900 {
			b.Fatalf("%d streams", streams)
		}
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		b.ReportMetric(float64(m.HeapAlloc)/benchPolicies/benchGroups/11/1024, "KiB/stream")
		_ = p.Stop()
		begun += cpu() - before
		b.StartTimer()
	}
	report(b, begun)
}

// BenchmarkReturn restores an evicted group from the disk.
func BenchmarkReturn(b *testing.B) {
	p := benchPipeline(b, benchStore(b))
	r := p.All()[0]
	group, spent := r.Policy.Summary().Groups[0].Group, time.Duration(0)
	err := r.Ask(context.Background(), func(context.Context) error {
		if err := r.save(); err != nil { // then both saves contain what was restored
			return err
		}
		b.ResetTimer()
		for range b.N {
			b.StopTimer()
			if evicted, _ := r.Policy.Evict([]ingest.Group{group}); evicted != 1 {
				b.Fatal("it stayed")
			}
			before := cpu()
			b.StartTimer()
			if err := r.comeBack(group); err != nil {
				return err
			}
			spent += cpu() - before
		}
		b.StopTimer()
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(spent.Microseconds())/1e3/float64(b.N), "cpu-ms/op")
	_ = p.Stop()
}

// BenchmarkSave saves the fleet after a share of its groups has seen a unit.
func BenchmarkSave(b *testing.B) {
	for name, every := range map[string]int{"no group": 0, "1% of the groups": 100, "all groups": 1} {
		b.Run(name, func(b *testing.B) {
			store := benchStore(b)
			workers := benchPipeline(b, store).All()
			rng := rand.New(rand.NewPCG(2, 2))
			n, spent := int64(benchUnits), time.Duration(0)
			save := func(r *RunningWorker) {
				before := cpu()
				b.StartTimer()
				if err := r.save(); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				spent += cpu() - before
			}
			ask := func(do func(context.Context, *RunningWorker) error) {
				for _, r := range workers {
					if err := r.Ask(context.Background(), func(ctx context.Context) error { return do(ctx, r) }); err != nil {
						b.Fatal(err)
					}
				}
			}
			ask(func(_ context.Context, r *RunningWorker) error { return r.save() }) // it verifies what was restored
			b.ResetTimer()
			b.StopTimer()
			for range b.N {
				group := 0
				ask(func(ctx context.Context, r *RunningWorker) error {
					for g := range benchGroups {
						if group++; every > 0 && group%every == 0 {
							if err := r.Observe(ctx, ingesttest.Unit("policy", g, n, rng), time.Time{}); err != nil {
								return err
							}
						}
					}
					save(r)
					return nil
				})
				n++
			}
			b.ReportMetric(float64(spent.Microseconds())/1e3/float64(b.N), "cpu-ms/op")
			_ = workers[0].workers.Pipeline.Stop()
		})
	}
}

// benchEvents plays the agents of a tenth of the fleet's groups, one step each in turn.
type benchEvents struct {
	rng    *rand.Rand
	offset int64
	left   []int64 // number of steps of the open episode, by agent
}

// benchAgents is the number of agents per group.
const benchAgents = 20

func (e *benchEvents) next() (event *ingest.Event, policy, group int) {
	agent := int(e.offset) % len(e.left)
	member := agent / benchAgents * 10
	policy, group = member/benchGroups, member%benchGroups
	if e.left[agent] == 0 {
		e.left[agent] = 15 + e.rng.Int64N(11)
	}
	e.left[agent]--
	e.offset++
	event = &ingest.Event{
		Pos: ingest.Position{Partition: benchGroups, Offset: e.offset}, Policy: fmt.Sprint("policy-", policy),
		Env: fmt.Sprint("env-", group), AgentID: fmt.Sprint("agent-", agent%benchAgents), Step: -1, Reward: e.rng.NormFloat64(), HasReward: true,
		Action: ingest.Action{Kind: ingest.ActionCategory, Category: []string{"left", "right"}[e.rng.IntN(2)]}, Terminated: e.left[agent] == 0,
	}
	for i := range 7 {
		event.Observation = append(event.Observation, ingest.Value{Name: fmt.Sprint(i), X: e.rng.NormFloat64()})
	}
	return event, policy, group
}

// BenchmarkThroughput folds and judges the events of a tenth of the fleet's groups on one core, and saves all workers
// and the partition after each round. From the CPU time of both, it reports how much of the throughput of a fully used
// core a checkpoint every 10 seconds takes.
func BenchmarkThroughput(b *testing.B) {
	const round, every = 200_000, 10 * time.Second
	store := benchStore(b)
	p := benchPipeline(b, store)
	workers := map[string]*RunningWorker{}
	for _, r := range p.All() {
		workers[r.Name] = r
	}
	ask := func(r *RunningWorker, do func(context.Context) error) {
		if err := r.Ask(context.Background(), do); err != nil {
			b.Fatal(err)
		}
	}
	units := make([][]*ingest.Unit, benchPolicies)
	episodes := assemble.New(assemble.Config{}, assemble.NewMetrics(prometheus.NewRegistry()))
	play := &benchEvents{rng: rand.New(rand.NewPCG(3, 3)), left: make([]int64, benchPolicies*benchGroups/10*benchAgents)}
	fold := func() {
		for range round {
			event, policy, group := play.next()
			episodes.Fold(event, func(u *ingest.Unit) {
				u.Group = ingesttest.Group("policy", group) // as in the saved fleet
				for i := range u.Numeric {
					u.Numeric[i].Q10, u.Numeric[i].Q90 = 0, 0
				}
				units[policy] = append(units[policy], u)
			})
		}
		for policy := range units {
			r := workers[fmt.Sprint("policy-", policy)]
			ask(r, func(ctx context.Context) error {
				for _, u := range units[policy] {
					if err := r.Observe(ctx, u, time.Time{}); err != nil {
						return err
					}
				}
				return nil
			})
			units[policy] = units[policy][:0]
		}
	}
	save := func() {
		for _, r := range workers {
			ask(r, func(context.Context) error { return r.save() })
		}
		var state bytes.Buffer
		if err := errors.Join(episodes.Snapshot(&state), store.Save("partition-0", ingest.Parts{"state": state.Bytes()}, nil)); err != nil {
			b.Fatal(err)
		}
	}
	fold()
	save()
	var folding, saving time.Duration
	b.ResetTimer()
	for range b.N {
		begun := cpu()
		fold()
		folded := cpu()
		save()
		folding, saving = folding+folded-begun, saving+cpu()-folded
	}
	lost := (saving / time.Duration(b.N)).Seconds() / every.Seconds()
	perSecond := float64(b.N) * round / folding.Seconds()
	b.ReportMetric(perSecond, "events/s")
	b.ReportMetric(perSecond*(1-lost), "events/s-with-checkpoints")
	b.ReportMetric(100*lost, "%-lost")
	b.ReportMetric(float64((saving/time.Duration(b.N)).Microseconds())/1e3, "cpu-ms/checkpoint")
	_ = p.Stop()
}
