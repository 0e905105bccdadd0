package bank

import (
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/baseline"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// A baseline of less than a day cannot keep its promise, since it lacks the differences between hours; a caveat says
// so.
func TestABaselineOfLessThanADayIsSaid(t *testing.T) {
	for _, c := range []struct {
		name  string
		every time.Duration
		want  string
		said  string
	}{
		{"no clock", 0, finding.ConfidenceKept, ""},
		{"15 hours", 105 * time.Second, finding.ConfidenceReduced, baseline.CaveatDay},
		{"two days", 350 * time.Second, finding.ConfidenceKept, baseline.CaveatWeek},
		{"three weeks", 3600 * time.Second, finding.ConfidenceKept, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSimulation(laws()[0], 236, 0)
			s.every, s.now, s.season = c.every, 1_800_000_000e9, func(int64) float64 { return 0 }
			promise := s.frozen(500, 2000).groups[0].Promise
			said := ""
			if len(promise.Caveats) > 0 {
				said = promise.Caveats[0]
			}
			if promise.Confidence != c.want || said != c.said {
				t.Errorf("%s, %q; want %s, %q", promise.Confidence, promise.Caveats, c.want, c.said)
			}
		})
	}
}
