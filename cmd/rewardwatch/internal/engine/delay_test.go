package engine

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/names"
)

// A service that judges within a second, as most do, reports how fast: with one bucket for that second, Grafana would
// always show a median of half a second.
func TestDelaysBelowASecondAreTold(t *testing.T) {
	reg := prometheus.NewRegistry()
	newPipelineMetrics(reg).delay.Observe(.1)
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
