package engine

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/detectors/capacity"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/checkpoint"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

// BenchmarkReadingDuringCalibration measures how fast the units of policies with a baseline are passed on and judged
// while the baselines of a fleet are calibrated on all cores, relative to the speed without calibrations. Both
// alternate.
func BenchmarkReadingDuringCalibration(b *testing.B) {
	const policies, turn = 20, 500 * time.Millisecond
	directory, err := checkpoint.NewDirectory(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer directory.Close()
	cfg := DefaultSettings()
	cfg.Checkpoint.Every = model.Duration(time.Second)
	cfg.Policies = []PolicyConfig{{Match: "*", Config: watch.DefaultConfig()}}
	cfg.Policies[0].Baseline.Units = 100
	store := checkpoint.NewStore(directory, zerolog.Nop(), prometheus.NewRegistry())
	p := newAlone(context.Background(), &cfg, store, newMemory(), prometheus.NewRegistry())
	feed, handed := p.Feed(0), int64(0)
	out, rng := feed.Out.(*directPartition), rand.New(rand.NewPCG(1, 1))
	hand := func() {
		u := ingesttest.Unit(fmt.Sprint("policy-", handed%policies), 0, handed/policies, rng)
		u.Pos = ingest.Position{Offset: handed}
		u.First, u.Last, u.Agent = u.Pos, u.Pos, "agent"
		if err := out.Hand(b.Context(), u); err != nil {
			b.Fatal(err)
		}
		if handed++; handed%10_000 == 0 {
			if err := feed.Snapshot(new(bytes.Buffer)); err != nil {
				b.Fatal(err)
			}
		}
	}
	speed := func() float64 {
		begun, before := time.Now(), handed
		for time.Since(begun) < turn {
			hand()
		}
		return float64(handed-before) / time.Since(begun).Seconds()
	}
	for range 110 * policies {
		hand()
	}
	for p.judged() < handed {
		time.Sleep(time.Millisecond)
	}
	alone, beside := 0.0, 0.0
	for b.Loop() {
		alone += speed()
		stop := calibrateFleet(p)
		beside += speed()
		stop()
	}
	b.ReportMetric(beside/alone, "of-speed")
	b.ReportMetric(alone/float64(b.N), "units/s-alone")
	_ = p.Stop()
}

// calibrateFleet calibrates baselines of 500 units one after the other, four times as many concurrently as there are
// cores, until it is stopped.
func calibrateFleet(p *alone) (stop func()) {
	ctx, end := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for i := range 4 * runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for n := uint64(0); ctx.Err() == nil; n++ {
				rng := rand.New(rand.NewPCG(uint64(i), n))
				fleet := bank.NewPolicy("fleet", watch.DefaultConfig(), capacity.NewStreamLimit(100))
				fleet.Share(p.calibrations)
				fleet.InBackground()
				for k := range int64(500) {
					fleet.Observe(ingesttest.Unit("fleet", i, k, rng), time.Time{})
				}
				fleet.Settle()
			}
		})
	}
	return func() {
		end()
		all.Wait()
	}
}
