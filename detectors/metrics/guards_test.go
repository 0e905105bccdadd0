package metrics

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/guard"
)

// TestSeriesOfGuards exports guards beyond the limit of series: guards that are ok lose their series, and the
// others reduce those of the streams.
func TestSeriesOfGuards(t *testing.T) {
	all := []*guard.Summary{{Policy: "p", Guards: []guard.Verdict{
		{Name: "kept", Evidence: 1, Alpha: .01},
		{Name: "tripped", State: guard.Hold, Evidence: 100, Alpha: .01, Mean: .5, Invalid: 3},
	}}}
	const tripped = `
# HELP rewardwatch_guard_evidence_ratio Logarithm of the evidence that the limit is exceeded, divided by the value that trips the guard.
# TYPE rewardwatch_guard_evidence_ratio gauge
rewardwatch_guard_evidence_ratio{guard="tripped",policy="p"} 1
# HELP rewardwatch_guard_invalid_total Number of values ignored by the guard, such as outcomes outside the range 0 to 1.
# TYPE rewardwatch_guard_invalid_total counter
rewardwatch_guard_invalid_total{guard="tripped",policy="p"} 3
# HELP rewardwatch_guard_mean Mean of the values counted by the guard since it last started, tripped or was released.
# TYPE rewardwatch_guard_mean gauge
rewardwatch_guard_mean{guard="tripped",policy="p"} 0.5
# HELP rewardwatch_guard_state State of the guard: 0 ok, 1 warn, 2 hold, 3 fallback.
# TYPE rewardwatch_guard_state gauge
rewardwatch_guard_state{guard="tripped",policy="p"} 2
`
	streams := func() []*finding.Summary { return oneGroup(finding.OK) }
	for _, limit := range []int{0, seriesOfGuard, 2*seriesOfGuard - 1} {
		c := NewCollector(streams, []string{"env", "label_region"}, limit, time.Now)
		reg := prometheus.NewPedanticRegistry()
		reg.MustRegister(c.Guards(func() []*guard.Summary { return all }))
		if err := testutil.GatherAndCompare(reg, strings.NewReader(tripped)); err != nil {
			t.Errorf("limit %d: %v", limit, err)
		}
		if n := c.limitHits.Load(); n == 0 {
			t.Errorf("limit %d: what it leaves out is not counted", limit)
		}
		if n := testutil.CollectAndCount(c); n > 1 {
			t.Errorf("limit %d: %d series beside those of guards, want only the count of those left out", limit, n)
		}
	}
	c := NewCollector(streams, []string{"env", "label_region"}, 1000, time.Now)
	if n := testutil.CollectAndCount(c.Guards(func() []*guard.Summary { return all })); n != 2*seriesOfGuard {
		t.Errorf("%d series of two guards within the limit", n)
	}
}
