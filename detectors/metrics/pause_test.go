package metrics

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/detectors/capacity"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

// hotPath judges units on a separate thread, and keeps the longest time of a unit in each window. It excludes the
// time that the thread waited for a core. Other work on the machine still slows units through its effect on caches
// and clocks, and Go through its own pauses, so windows with a scrape are only meaningful in comparison with those
// without one.
type hotPath struct {
	policy  *bank.Policy
	units   []*ingest.Unit // created before, so that their memory is not part of the measurement
	next    int64
	window  atomic.Int64
	longest []time.Duration // by window
}

func (h *hotPath) run(b *testing.B, end <-chan struct{}) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	stats, err := os.Open(fmt.Sprintf("/proc/self/task/%d/schedstat", syscall.Gettid()))
	if err != nil {
		b.Error(err)
		return
	}
	defer stats.Close()
	for buf, before := make([]byte, 100), waited(b, stats, make([]byte, 100)); ; h.next++ {
		select {
		case <-end:
			return
		default:
		}
		unit, window := h.units[h.next%int64(len(h.units))], h.window.Load()
		unit.Pos.Offset = h.next
		unit.First, unit.Last = unit.Pos, unit.Pos
		begun := time.Now()
		h.policy.Observe(unit, time.Time{})
		took := time.Since(begun)
		now := waited(b, stats, buf)
		h.longest[window] = max(h.longest[window], took-(now-before))
		before = now
	}
}

// waited returns how long a thread has been ready to run without a core so far.
func waited(b *testing.B, stats *os.File, buf []byte) time.Duration {
	n, err := stats.ReadAt(buf, 0)
	fields := bytes.Fields(buf[:n])
	if len(fields) < 2 {
		b.Errorf("schedstat has %q: %v", buf[:n], err)
		return 0
	}
	wait, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		b.Error(err)
	}
	return time.Duration(wait)
}

// BenchmarkPauseOfAScrape judges units while the series that the default limit leaves of a large fleet are scraped.
// It alternates with equally long periods without a scrape.
func BenchmarkPauseOfAScrape(b *testing.B) {
	const baseline, limit = 700, 20_000 // units until the baseline is accepted, series
	h, rng := &hotPath{policy: bank.NewPolicy("policy", watch.DefaultConfig(), capacity.NewStreamLimit(100))}, rand.New(rand.NewPCG(1, 1))
	for ; h.next < baseline; h.next++ {
		h.policy.Observe(ingesttest.Unit("policy", 0, h.next, rng), time.Time{})
	}
	h.policy.Publish()
	if g := h.policy.Summary().Groups[0]; g.Baseline.ID == "" || g.Baseline.Provisional {
		b.Fatal("it has no baseline")
	}
	for i := range int64(1000) {
		h.units = append(h.units, ingesttest.Unit("policy", 0, i, rng))
	}
	c := collectorOf(largeFleet(), limit)
	if n := seriesCount(textOf(b, c, false)); n < limit*9/10 || n > limit*11/10 {
		b.Fatalf("%d series", n)
	}
	h.longest = make([]time.Duration, 2*b.N+1)
	h.window.Store(int64(2 * b.N))
	end := make(chan struct{})
	var wg sync.WaitGroup
	from := h.next
	wg.Go(func() { h.run(b, end) })

	b.ResetTimer()
	for i := range b.N {
		h.window.Store(int64(2 * i))
		begun := time.Now()
		if err := c.WriteText(io.Discard, false); err != nil {
			b.Error(err)
		}
		took := time.Since(begun)
		h.window.Store(int64(2*i + 1))
		time.Sleep(took)
	}
	close(end)
	wg.Wait()
	h.report(b, from)
}

// report reports the windows with a scrape, which are the even ones, and the others.
func (h *hotPath) report(b *testing.B, from int64) {
	var scraped, quiet []time.Duration
	for i := range b.N {
		scraped, quiet = append(scraped, h.longest[2*i]), append(quiet, h.longest[2*i+1])
	}
	slices.Sort(scraped)
	slices.Sort(quiet)
	ms := func(d time.Duration) float64 { return d.Seconds() * 1e3 }
	b.ReportMetric(ms(scraped[b.N/2]), "median-ms")
	b.ReportMetric(ms(scraped[b.N-1]), "longest-ms")
	b.ReportMetric(ms(quiet[b.N/2]), "median-ms-without")
	b.ReportMetric(ms(quiet[b.N-1]), "longest-ms-without")
	b.ReportMetric(float64(h.next-from)/float64(b.N), "units/op")
}
