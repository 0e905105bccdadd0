package engine

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/detectors/metrics"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// resident returns the memory of the process according to the kernel, in MiB.
func resident(b *testing.B) float64 {
	b.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Skip(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, "VmRSS:"); found {
			kb, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")))
			must(b, err)
			return float64(kb) / 1024
		}
	}
	b.Fatal("no VmRSS")
	return 0
}

// heap returns the size of the heap, including garbage, in MiB.
func heap() float64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

// measured is a life whose memory is measured.
type measured struct {
	*life
	b              *testing.B
	peak, peakHeap float64 // in MiB
	stop           func()
}

// measure begins a life, measures the memory of the process ten times per second, and scrapes every three seconds.
func measure(b *testing.B, dir string, policies, limit int) *measured {
	m := &measured{b: b}
	ctx, end := context.WithCancel(context.Background())
	looking := make(chan struct{})
	m.stop = func() { end(); <-looking }
	begun := make(chan *life, 1)
	go func() {
		defer close(looking)
		var scrape http.Handler
		for n := 1; ctx.Err() == nil; n++ {
			m.peak, m.peakHeap = max(m.peak, resident(b)), max(m.peakHeap, heap())
			select {
			case l := <-begun:
				scrape = promhttp.HandlerFor(l.reg, promhttp.HandlerOpts{})
			default:
			}
			if scrape != nil && n%30 == 0 {
				scrape.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/metrics", nil))
			}
			time.Sleep(100 * time.Millisecond)
		}
	}()
	every := time.Duration(DefaultSettings().Checkpoint.Every)
	m.life = live(b, dir, policies, ingest.ByteSize(limit)<<20, every)
	m.reg.MustRegister(metrics.NewCollector(m.Summaries, m.Cfg.GroupLabels(), m.Cfg.Limits.Series, time.Now))
	begun <- m.life
	return m
}

// tell reports what is in use, and the heap without garbage.
func (m *measured) tell(what string) {
	runtime.GC()
	kept, _ := m.kept.bytes()
	fmt.Printf("%s: RSS %.0f MiB, heap %.0f MiB, kept units %.1f MiB, %d groups evicted; in this life at most RSS %.0f MiB, heap %.0f MiB\n",
		what, resident(m.b), heap(), float64(kept)/(1<<20), m.Memory.residents.Evicted(), m.peak, m.peakHeap)
}

// kill ends the life and its measurement. Nothing of it remains for the next life, as if that were another process.
func (m *measured) kill() {
	m.stop()
	m.life.kill()
	m.life = nil
	debug.FreeOSMemory()
}

// BenchmarkMemoryOfManyPolicies judges one-step episodes of POLICIES policies for SECONDS, at most EVENTS, with a limit
// of LIMIT MiB, while /metrics is scraped; it then rests for two save intervals and is killed; all this LIVES times. It
// reports the peak memory, the memory at rest, and the same for a start after which nothing arrives.
func BenchmarkMemoryOfManyPolicies(b *testing.B) {
	policies, limit, events := testkit.Size("POLICIES", 400), testkit.Size("LIMIT", 2048), testkit.Size("EVENTS", math.MaxInt)
	seconds, lives := testkit.Size("SECONDS", 20), testkit.Size("LIVES", 1)
	dir := b.TempDir()
	for n := range lives {
		m := measure(b, dir, policies, limit)
		begun, before := time.Now(), m.offset
		for saved := begun; m.offset < int64(events) && time.Since(begun) < time.Duration(seconds)*time.Second; {
			m.judge(256)
			if time.Since(saved) >= time.Duration(m.Cfg.Checkpoint.Every) {
				m.save()
				saved = time.Now()
			}
		}
		m.save()
		m.tell(fmt.Sprintf("life %d: %d policies, limit %d MiB, %d units in %.0f s", n+1, len(m.All()), limit, m.offset-before, time.Since(begun).Seconds()))
		m.rest(2)
		m.tell("two intervals later")
		m.kill()
	}
	m := measure(b, dir, policies, limit)
	m.rest(2)
	m.tell("two intervals after a restart")
	m.kill()
}
