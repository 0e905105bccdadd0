package api

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api/apitest"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/locallog"
	"github.com/rewardwatch/rewardwatch/ingest/receive"
	"github.com/rewardwatch/rewardwatch/ingest/telemetry"
)

// postServer is a server that writes telemetry to a local log, and the address to post it to.
func postServer(b *testing.B) string {
	b.Helper()
	log, err := locallog.Open(locallog.Options{
		Name: "telemetry", Directory: b.TempDir(), MaxSize: 1 << 40, SegmentSize: 64 << 20, Log: zerolog.Nop(), Registerer: prometheus.NewRegistry(),
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = log.Close() }) // nothing of it is kept
	s, err := New(Config{}, apitest.SomeView(), nil, prometheus.NewRegistry(), nil, zerolog.Nop())
	if err != nil {
		b.Fatal(err)
	}
	agent := func(e *ingest.Event) string { return e.AgentID }
	s.Telemetry = receive.New(receive.Local{Log: log}, telemetry.V1{}, agent, receive.NewMetrics(prometheus.NewRegistry()))
	s.Open()
	served := httptest.NewServer(s.Handler())
	b.Cleanup(served.Close)
	return served.URL + "/api/v1/telemetry"
}

// BenchmarkPostLocal says how many posted events per second are durable in a local log, and how long a request takes.
func BenchmarkPostLocal(b *testing.B) {
	for _, events := range []int{1, 100} {
		for _, clients := range []int{1, 16} {
			b.Run(fmt.Sprintf("%d clients, %d events", clients, events), func(b *testing.B) {
				url, text := postServer(b), fullEvents(events)
				transport := &http.Transport{MaxIdleConnsPerHost: clients}
				defer transport.CloseIdleConnections()
				todo := make(chan struct{})
				var sending sync.WaitGroup
				var mu sync.Mutex
				var took []time.Duration
				for range clients {
					sending.Go(func() {
						for range todo {
							begun := time.Now()
							if code, err := postOnce(transport, url, text); code != http.StatusOK {
								b.Error(code, err)
							}
							mu.Lock()
							took = append(took, time.Since(begun))
							mu.Unlock()
						}
					})
				}
				for b.Loop() {
					todo <- struct{}{}
				}
				close(todo)
				sending.Wait()
				b.ReportMetric(float64(events)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
				slices.Sort(took)
				for name, q := range map[string]float64{"ms_p50": .5, "ms_p99": .99} {
					b.ReportMetric(took[int(q*float64(len(took)-1))].Seconds()*1e3, name)
				}
			})
		}
	}
}

func postOnce(t http.RoundTripper, url, text string) (code int, err error) {
	r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(text))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := t.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, err
}

// fullEvents is a batch of events as agents send them, of about 280 bytes each.
func fullEvents(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"ts":"2026-11-20T10:00:%02d.123Z","policy":"checkout-ranker","policy_version":"2026-11-01.3","env":"prod-eu","agent_id":"a-%d",`+
			`"episode_id":"a-%[2]d/881","step":%d,"observation":{"basket":3.2},"action":"offer_b","action_prob":0.31,"reward":-0.25,"terminated":false,"labels":{"region":"eu"}}`+"\n",
			i%60, i%17, i)
	}
	return b.String()
}
