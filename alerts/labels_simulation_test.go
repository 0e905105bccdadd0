package alerts

import (
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/detectors/capacity"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// labeledShop warms up a bank with a shop whose visitors have a segment, which is a label, and an irrelevant age. come
// lets more visitors arrive, and returns the number of incidents that opened and the last cause.
func labeledShop(s *shop) (come func(visitors int) (opened int, last Cause)) {
	cfg := watch.DefaultConfig()
	cfg.Baseline.Units, cfg.Causes.SplitBy = 1000, []string{"labels.segment"}
	cfg.FalseAlarms.Budget, cfg.FalseAlarms.Per = 1, watch.Per{Amount: 20_000, Unit: watch.PerEpisodes}
	p, tracker := bank.NewPolicy("ranker", cfg, capacity.NewStreamLimit(1000)), NewTracker()
	visit := func() *ingest.Unit {
		u, age := s.unit(), s.rng.NormFloat64()
		s.tell(u, "observation.age", age)
		u.Steps = &ingest.Steps{Names: []string{"age"}, At: []int32{0}, Actions: []int32{0}, Rows: []float32{float32(age), float32(u.Return)}}
		return u
	}
	for range cfg.Baseline.Units {
		p.Learn(visit())
	}
	p.Accept(time.Time{})
	return func(visitors int) (opened int, last Cause) {
		known := map[string]bool{}
		for range visitors {
			for _, f := range p.Observe(visit(), time.Time{}) {
				for _, c := range tracker.Apply(f) {
					if c.Incident != nil {
						known[c.Incident.ID], last = true, c.Incident.Cause
					}
				}
			}
		}
		return len(known), last
	}
}

// Laws can only distinguish a policy that treats a segment differently from a segment that has become more frequent if
// the label is part of the observations of steps.
func TestSimLabelsAreContext(t *testing.T) {
	const runs = 8
	for _, c := range []struct {
		name   string
		change func(*shop)
		want   Cause
	}{
		{"new visitors from 12 to 47%", func(s *shop) { s.shares = [3]float64{.3, .23, .47} }, CauseEnvironment},
		{"regular visitors from 50 to 10%", func(s *shop) { s.shares = [3]float64{.1, .78, .12} }, CauseEnvironment},
		{"another policy", func(s *shop) { s.offers = [3]float64{.3, .1, .6} }, CausePolicy},
		{"rewards fall by 0.6", func(s *shop) {
			for i := range s.worth {
				s.worth[i] -= .6
			}
		}, CauseRewardFunction},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			incidents, right, wrong := 0, 0, 0
			for seed := range uint64(runs) {
				s := newShop(9000 + seed)
				come := labeledShop(s)
				c.change(s)
				opened, cause := come(1200)
				incidents += min(1, opened)
				switch {
				case opened > 0 && cause == c.want:
					right++
				case opened > 0 && cause != CauseUnknown:
					wrong++
					t.Logf("seed %d: %s", seed, cause)
				}
			}
			if t.Logf("%d right, %d wrong of %d incidents in %d runs", right, wrong, incidents, runs); incidents < runs/2 || right < incidents-1 || wrong > 1 {
				t.Errorf("%d right, %d wrong of %d incidents in %d runs", right, wrong, incidents, runs)
			}
		})
	}
}

// Laws with the label stay within the budget, which allows 1.5 incidents in 6 runs of 5,000 visitors, and 5 in one of
// 50 cases.
func TestSimLabelsKeepTheBudget(t *testing.T) {
	incidents := 0
	for seed := range uint64(6) {
		opened, _ := labeledShop(newShop(9100 + seed))(5000)
		incidents += opened
	}
	if t.Logf("%d incidents", incidents); incidents > 4 {
		t.Errorf("%d incidents", incidents)
	}
}
