package reach_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/season"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
)

// Where values of the night depend on each other more than those of the day, a change of the size that is claimed is found as
// often as claimed at night too. The one that would be claimed without knowing that is not, within as few units as walks rarely
// begin again at 0.
func TestSimReachHoldsAtTheSlowestHour(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	q, readings := normal(baselineUnits, 1, 1./budget/sharing)
	unaware := reachOf(q, readings)
	q.Hours = &season.HourFactors{}
	for hour := range 6 {
		q.Hours.Above[hour] = 32 // a factor of 2
	}
	night := time.Date(2027, 1, 12, 3, 0, 0, 0, time.UTC).UnixNano()
	rng := rand.New(rand.NewPCG(7, 17))
	found := func(size float64, units int) float64 {
		const carried = 1. / 3 // for a factor of 2
		n := 0
		for range runs {
			again, x := q.Again(), rng.NormFloat64()
			for i := 0; i < units && !again.Reached(); i++ {
				x = carried*x + math.Sqrt(1-carried*carried)*rng.NormFloat64()
				again.Test(stream.Reading{X: x + size, Ts: night + int64(i)}, int64(i), false)
			}
			if again.Reached() {
				n++
			}
		}
		return float64(n) / runs
	}
	allowed := 3 * math.Sqrt(finding.ReachProbability*(1-finding.ReachProbability)/runs)
	for i, r := range reachOf(q, readings) {
		if math.IsNaN(r.Size) || math.IsNaN(unaware[i].Size) {
			t.Fatalf("nothing is found within %d units", r.Units)
		}
		claimed, other := found(r.Size, r.Units), found(unaware[i].Size, r.Units)
		t.Logf("%.2f within %d units: found %.3f; %.2f: %.3f", r.Size, r.Units, claimed, unaware[i].Size, other)
		if claimed < finding.ReachProbability-allowed {
			t.Errorf("a change of %.2f is found within %d units in %.3f of the runs", r.Size, r.Units, claimed)
		}
		if r.Units <= 500 && other > finding.ReachProbability-allowed {
			t.Errorf("a change of %.2f is found within %d units in %.3f of the runs: the claim is too modest", unaware[i].Size, r.Units, other)
		}
	}
}
