package engine

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/tenant"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/checkpoint"
	"github.com/rewardwatch/rewardwatch/ingest/telemetry"
)

// The fleet of BenchmarkPath is that of make bench-throughput: actors of a number of policies take turns, and a
// consumer decodes several messages together.
const (
	pathPolicies   = 20
	pathActors     = 400
	pathPartitions = 4
	pathBatch      = 256
	pathRate       = 50_000 // events per second of event time
)

// path is a service on a disk that receives messages from the memory of the process.
type path struct {
	*oneStep
	decoders []ingest.Decoder
	topic    [pathPartitions][]ingest.Message

	rng     *rand.Rand
	steps   int // per episode
	made    int
	now     time.Time
	episode [pathActors]int
	step    [pathActors]int
}

func startPath(b testing.TB, steps int, blocks bool, tenants ...tenant.Config) *path {
	b.Helper()
	cfg, reg := DefaultSettings(), prometheus.NewRegistry()
	policy := PolicyConfig{Match: "*", Config: watch.DefaultConfig()}
	policy.Baseline.Blocks = blocks
	cfg.Policies, cfg.Tenants = []PolicyConfig{policy}, tenants
	dir := b.TempDir()
	directory, err := checkpoint.NewDirectory(dir)
	must(b, err)
	b.Cleanup(func() { _ = directory.Close() })
	p := &path{
		oneStep: &oneStep{t: b, store: checkpoint.NewStore(directory, zerolog.Nop(), reg), dir: dir},
		rng:     rand.New(rand.NewPCG(1, 1)), steps: steps, now: time.Now().Add(-24 * time.Hour),
	}
	p.alone = newAlone(context.Background(), &cfg, p.store, newMemory(), reg)
	p.logTo(dir)
	p.Begin(pathPartitions)
	for i := range int32(pathPartitions) {
		p.feeds = append(p.feeds, p.Feed(i))
		p.decoders = append(p.decoders, telemetry.V1{}.NewDecoder(ingest.DecoderOptions{MaxRecord: ingest.DefaultMaxRecord}))
	}
	return p
}

// record writes the next messages.
func (p *path) record(events int) {
	for i := range p.topic {
		p.topic[i] = p.topic[i][:0]
	}
	for range events {
		actor := p.made % pathActors
		partition := (actor + actor/pathPolicies) % pathPartitions
		p.made++
		p.now = p.now.Add(time.Second / pathRate)
		clicked := 0
		if p.rng.Float64() < .2 {
			clicked = 1
		}
		last := p.step[actor] == p.steps-1
		value := fmt.Appendf(nil, `{"ts":"%s","policy":"policy-%03d","policy_version":"2026-11-01.3","env":"prod-0","env_version":"41",`+
			`"agent_id":"agent-%d","episode_id":"agent-%d/%d","step":%d,"action":"%s","reward":%.4f,"terminated":%t,"truncated":false,"outcomes":{"conversion":%d}}`,
			p.now.UTC().Format("2006-01-02T15:04:05.000Z"), actor%pathPolicies, actor, actor, p.episode[actor], p.step[actor],
			[...]string{"offer_a", "offer_b", "offer_c", "none"}[p.rng.IntN(4)], p.rng.NormFloat64(), last, clicked)
		if p.step[actor]++; last {
			p.episode[actor], p.step[actor] = p.episode[actor]+1, 0
		}
		p.topic[partition] = append(p.topic[partition], ingest.Message{
			Pos: ingest.Position{Partition: ingest.Partition(partition), Offset: int64(p.made)}, Value: value,
		})
	}
}

// judge decodes and judges the recorded messages.
func (p *path) judge() {
	var reading sync.WaitGroup
	for i, f := range p.feeds {
		reading.Go(func() {
			var events []ingest.Event
			refuse := func(e *ingest.RecordError, _ []byte) { p.t.Error(e) }
			for at := range p.topic[i] {
				events = p.decoders[i].Decode(events, &p.topic[i][at], refuse)
				if len(events) >= pathBatch || at == len(p.topic[i])-1 {
					if err := f.Process(p.t.Context(), events); err != nil {
						p.t.Error(err)
						return
					}
					p.decoders[i].Reset()
					events = events[:0]
				}
			}
		})
	}
	reading.Wait()
	for waits := true; waits && !p.t.Failed(); {
		waits = false
		for _, f := range p.feeds {
			must(p.t, f.Idle(p.t.Context(), time.Now()))
			waits = waits || f.Out.(*directPartition).Waiting() > 0
		}
		time.Sleep(time.Millisecond)
	}
}

// warm feeds the service until all groups have a baseline that is not provisional.
func (p *path) warm(events int) {
	for {
		p.record(events)
		p.judge()
		final := 0
		for _, s := range p.Summaries() {
			for _, g := range s.Groups {
				if g.Baseline.ID != "" && !g.Baseline.Provisional {
					final++
				}
			}
		}
		if final == pathPolicies {
			return
		}
	}
}

// BenchmarkPath reports the cost of an event from its message to the bank, with the log of units, as CPU time of the
// process. It does not include a broker and fetching.
func BenchmarkPath(b *testing.B) {
	const events = 600_000
	for _, kind := range []struct {
		name   string
		steps  int
		unit   int
		blocks bool
	}{
		{name: "episodes of 50 steps", steps: 50},
		{name: "one-step decisions", steps: 1},
		{name: "one-step decisions in blocks", steps: 1, unit: 64, blocks: true},
	} {
		b.Run(kind.name, func(b *testing.B) {
			p := startPath(b, kind.steps, kind.blocks)
			p.warm(550 * pathPolicies * cmp.Or(kind.unit, kind.steps))
			spent, mallocs := time.Duration(0), uint64(0)
			for range b.N {
				p.record(events)
				runtime.GC()
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				begun := cpu()
				b.StartTimer()
				p.judge()
				b.StopTimer()
				spent += cpu() - begun
				runtime.ReadMemStats(&after)
				mallocs += after.Mallocs - before.Mallocs
				p.save()
			}
			b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N*events), "cpu-ns/event")
			b.ReportMetric(float64(mallocs)/float64(b.N*events), "allocs/event")
			_ = p.Stop()
		})
	}
}
