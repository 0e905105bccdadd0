package app

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api/apitest"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine/enginetest"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/detectors/capacity"
	"github.com/rewardwatch/rewardwatch/detectors/metrics"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

// scrape returns the duration of a /metrics response and its size in bytes.
func scrape(b *testing.B, h http.Handler) (time.Duration, int) {
	b.Helper()
	answer, begun := httptest.NewRecorder(), time.Now()
	h.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if answer.Code != http.StatusOK {
		b.Fatal(answer.Code, answer.Body.String())
	}
	return time.Since(begun), answer.Body.Len()
}

// exporting returns a pipeline and the handler of its metrics.
func exporting(b *testing.B) (*enginetest.Alone, http.Handler) {
	b.Helper()
	cfg, m, reg := engine.DefaultSettings(), enginetest.NewMemory(), prometheus.NewRegistry()
	p := enginetest.NewAlone(context.Background(), &cfg, m, m, reg)
	s, err := api.New(api.Config{Listen: "127.0.0.1:0"}, &apitest.FixedView{}, &apitest.FixedOrders{}, reg, nil, zerolog.Nop())
	if err != nil {
		b.Fatal(err)
	}
	s.Export(metrics.NewCollector(p.Summaries, cfg.GroupLabels(), cfg.Limits.Series, time.Now))
	return p, s.Metrics()
}

// BenchmarkScrapeDuringCalibration scrapes once per second while the first baselines of POLICIES policies with four
// groups each are collected and calibrated. It reports the median and maximum duration of a scrape, the size of its
// response, and the number of scrapes before all groups were armed.
func BenchmarkScrapeDuringCalibration(b *testing.B) {
	policies := testkit.Size("POLICIES", 400)
	p, handler := exporting(b)
	fed := make(chan error, 1)
	go func() { fed <- warmUp(b.Context(), p.Feed(0), policies) }()
	var took []time.Duration
	size, before := 0, 0
	for armed, feeding := 0, true; feeding || armed < 4*policies*99/100; time.Sleep(time.Second) {
		if armed = armedGroups(p); armed < 4*policies {
			before++
		}
		one, bytes := scrape(b, handler)
		took, size = append(took, one), max(size, bytes)
		select {
		case err := <-fed:
			if feeding = false; err != nil {
				b.Fatal(err)
			}
		default:
		}
	}
	slices.Sort(took)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1e3, "median-ms")
	b.ReportMetric(float64(took[len(took)-1].Microseconds())/1e3, "most-ms")
	b.ReportMetric(float64(size)/1e6, "MB")
	b.ReportMetric(float64(len(took)), "scrapes")
	b.ReportMetric(float64(before), "before-armed")
	if err := p.Stop(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkScrape scrapes the metrics of POLICIES policies with four groups each, as text and compressed. It reports
// the CPU time of a scrape, and the maximum and the 99.9th percentile of the time that the worker of a policy takes for
// a unit, without scrapes and during continuous scrapes.
func BenchmarkScrape(b *testing.B) {
	policies := testkit.Size("POLICIES", 62)
	p, handler := exporting(b)
	feed := p.Feed(0)
	if err := warmUp(b.Context(), feed, policies); err != nil {
		b.Fatal(err)
	}
	for armedGroups(p) < 4*policies*99/100 {
		time.Sleep(100 * time.Millisecond)
	}
	for _, coding := range []string{"identity", "gzip"} {
		b.Run(coding, func(b *testing.B) {
			used, bytes, series := cpuTime(b), 0, 0
			for b.Loop() {
				answer, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/metrics", nil)
				r.Header.Set("Accept-Encoding", coding)
				handler.ServeHTTP(answer, r)
				if bytes = answer.Body.Len(); coding == "identity" {
					series = strings.Count(answer.Body.String(), "\n") - strings.Count(answer.Body.String(), "# ")
				}
			}
			b.ReportMetric((cpuTime(b)-used).Seconds()*1e3/float64(b.N), "cpu-ms/op")
			b.ReportMetric(float64(bytes)/1e6, "MB")
			b.ReportMetric(float64(series), "series")
		})
	}
	for _, scraping := range []bool{false, true} {
		b.Run(fmt.Sprintf("units while scraping=%t", scraping), func(b *testing.B) {
			ctx, stop := context.WithCancel(b.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				for scraping && ctx.Err() == nil {
					scrape(b, handler)
				}
			}()
			took := unitTimes(b)
			stop()
			<-done
			b.ReportMetric(float64(took[len(took)*999/1000].Microseconds())/1e3, "p999-ms")
			b.ReportMetric(float64(took[len(took)-1].Microseconds())/1e3, "most-ms")
		})
	}
	if err := p.Stop(); err != nil {
		b.Fatal(err)
	}
}

// unitTimes returns the time that a worker took for each unit, in ascending order.
func unitTimes(b *testing.B) []time.Duration {
	d := engine.NewWorker("policy", watch.DefaultConfig(), capacity.NewStreamLimit(20_000), enginetest.NewMemory())
	rng, took := rand.New(rand.NewPCG(1, 1)), []time.Duration{}
	for n, more := int64(0), true; more || n < 700; n++ {
		more = more && b.Loop() // it fails if called again after its end
		start := time.Now()
		if err := d.Observe(b.Context(), ingesttest.Unit("policy", 0, n, rng), time.Time{}); err != nil {
			b.Fatal(err)
		}
		if n%100 == 0 {
			d.Publish()
		}
		if n >= 600 { // after the calibration
			took = append(took, time.Since(start))
		}
	}
	slices.Sort(took)
	return took
}

// cpuTime returns the CPU time of the process on all cores.
func cpuTime(b *testing.B) time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		b.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// warmUp feeds 300 units to each of four groups of each policy.
func warmUp(ctx context.Context, f *engine.PartitionFeed, policies int) error {
	rng, offset, start := rand.New(rand.NewPCG(1, 1)), int64(0), time.Now().Add(-20*24*time.Hour)
	for range 300 {
		for policy := range policies {
			var batch []ingest.Event
			for group := range 4 {
				e := ingesttest.Episode(0, offset, fmt.Sprint("policy-", policy), start.Add(time.Duration(offset)*time.Second))
				e.Env, e.Return, e.Length = fmt.Sprint("env-", group), rng.NormFloat64(), 50+rng.Int64N(20)
				batch = append(batch, e)
				offset++
			}
			if err := f.Process(ctx, batch); err != nil {
				return err
			}
		}
	}
	return nil
}

func armedGroups(p *enginetest.Alone) (armed int) {
	for _, summary := range p.Summaries() {
		for _, g := range summary.Groups {
			if len(g.Streams) > 0 && len(g.Streams[0].Armed) > 0 {
				armed++
			}
		}
	}
	return armed
}

// BenchmarkHealthyWhileRestoring restores POLICIES policies of one group each from memory, and requests /-/healthy
// until all are restored. It reports the time of the first response, the slowest response, and the time of the
// restoration.
func BenchmarkHealthyWhileRestoring(b *testing.B) {
	policies := testkit.Size("POLICIES", 3000)
	d := engine.NewWorker("policy", watch.DefaultConfig(), capacity.NewStreamLimit(20_000), enginetest.NewMemory())
	rng := rand.New(rand.NewPCG(1, 1))
	for n := range int64(600) {
		if err := d.Observe(context.Background(), ingesttest.Unit("policy", 0, n, rng), time.Time{}); err != nil {
			b.Fatal(err)
		}
	}
	parts, _, err := d.Changes()
	if err != nil {
		b.Fatal(err)
	}
	m := enginetest.NewMemory()
	var names []string
	for i := range policies {
		names = append(names, fmt.Sprint(engine.BankPrefix, "policy-", i))
		if err := m.Save(names[i], parts, nil); err != nil {
			b.Fatal(err)
		}
	}
	cfg, reg := engine.DefaultSettings(), prometheus.NewRegistry()
	p := enginetest.NewAlone(context.Background(), &cfg, m, m, reg)
	begun := time.Now()
	s, err := api.New(api.Config{Listen: "127.0.0.1:0"}, &apitest.FixedView{}, &apitest.FixedOrders{}, reg, nil, zerolog.Nop())
	if err != nil {
		b.Fatal(err)
	}
	if err := s.Start(); err != nil {
		b.Fatal(err)
	}
	restored := make(chan error, 1)
	go func() { restored <- p.Workers.Restore(context.Background(), names) }()
	var first, most time.Duration
	for done := false; !done; {
		asked := time.Now()
		answer, err := http.Get("http://" + s.Addr() + "/-/healthy")
		if err != nil || answer.StatusCode != http.StatusOK {
			b.Fatal(answer, err)
		}
		_ = answer.Body.Close()
		if most = max(most, time.Since(asked)); first == 0 {
			first = time.Since(begun)
		}
		select {
		case err := <-restored:
			if done = true; err != nil {
				b.Fatal(err)
			}
		case <-time.After(10 * time.Millisecond):
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(first.Microseconds())/1e3, "first-healthy-ms")
	b.ReportMetric(float64(most.Microseconds())/1e3, "slowest-healthy-ms")
	b.ReportMetric(time.Since(begun).Seconds(), "restored-s")
	if err := errors.Join(s.Stop(context.Background()), p.Stop()); err != nil {
		b.Fatal(err)
	}
}
