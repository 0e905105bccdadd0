package engine

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/names"
)

// A service that judges within a second, as most do, reports how fast: with one bucket for that second, Grafana would
// always show a median of half a second.
func TestDelaysBelowASecondAreTold(t *testing.T) {
	reg := prometheus.NewRegistry()
	m, now := newPipelineMetrics(reg), time.Now()
	var counted delays
	counted.add(now.Add(-100*time.Millisecond).UnixNano(), now)
	m.delay.take(&counted)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != names.MetricUnitDelay {
			continue
		}
		buckets := f.GetMetric()[0].GetHistogram().GetBucket()
		at := 0
		for at < len(buckets) && buckets[at].GetCumulativeCount() == 0 {
			at++
		}
		if at < 1 || at == len(buckets) || buckets[at].GetUpperBound() > .2 || buckets[at-1].GetUpperBound() < .05 {
			t.Errorf("a delay of 0.1 s is in bucket %d of %v", at, buckets)
		}
		return
	}
	t.Fatalf("no %s", names.MetricUnitDelay)
}

// What workers count is added up, once. Units without a clock have no delay, and those from the future have none yet.
func TestDelaysAddUp(t *testing.T) {
	m := &delayMetric{desc: prometheus.NewDesc(names.MetricUnitDelay, "help", nil, nil)}
	now := time.Now()
	var counted delays
	for range 2 {
		for _, ago := range []time.Duration{-time.Second, 50 * time.Millisecond, 10 * time.Second, 3 * time.Hour} {
			counted.add(now.Add(-ago).UnixNano(), now)
		}
		counted.add(0, now)
		m.take(&counted)
		m.take(&counted)
	}
	got := collected(t, m).GetHistogram()
	if got.GetSampleCount() != 8 || math.Abs(got.GetSampleSum()-2*10810.05) > 1e-6 {
		t.Errorf("%d units, %g s", got.GetSampleCount(), got.GetSampleSum())
	}
	var cumulative []uint64
	for _, b := range got.GetBucket() {
		cumulative = append(cumulative, b.GetCumulativeCount())
	}
	if want := []uint64{4, 4, 4, 4, 6, 6, 6, 6, 6}; !slices.Equal(cumulative, want) {
		t.Errorf("buckets %v, want %v", cumulative, want)
	}
}

// collected returns the only metric of a collector.
func collected(t *testing.T, c prometheus.Collector) *dto.Metric {
	t.Helper()
	out := make(chan prometheus.Metric, 1)
	c.Collect(out)
	var m dto.Metric
	if err := (<-out).Write(&m); err != nil {
		t.Fatal(err)
	}
	return &m
}
