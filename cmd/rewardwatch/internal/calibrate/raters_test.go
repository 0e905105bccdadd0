package calibrate

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/detectors/capacity"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

// TestRatingsAreHeldOutAsTheyAreJudged lets only one of two raters, who differ by 20 standard deviations, rate after
// the baseline is complete.
func TestRatingsAreHeldOutAsTheyAreJudged(t *testing.T) {
	cfg := watch.DefaultConfig()
	cfg.Baseline.Units = 200
	cfg.Raters = watch.Raters{"rating": "labels.rater"}
	p := newCalibratedPolicy("ranker", cfg, capacity.NewStreamLimit(100))
	rng := rand.New(rand.NewPCG(5, 5))
	for i := range int64(700) {
		u, who := ingesttest.Unit("ranker", 0, i, rng), rng.IntN(2)
		if i >= 300 {
			who = 1
		}
		m := ingest.NamedMoments{Signal: "outcome.rating"}
		m.Add(10*float64(who) + .5*rng.NormFloat64())
		u.Numeric, u.Labels = append(u.Numeric, m), []ingest.Label{{Name: "labels.rater", Value: []string{"a", "b"}[who]}}
		p.observe(u)
	}
	g := p.order[0]
	if len(g.heldOut) < 300 || g.incidents > 0 {
		t.Fatalf("%d units held out, %d incidents", len(g.heldOut), g.incidents)
	}
	var before, after ingest.Moments
	for sum, units := range map[*ingest.Moments][]*ingest.Unit{&before: g.baseline, &after: g.heldOut} {
		for _, u := range units {
			if x := bank.Value(u, "outcome.rating"); !math.IsNaN(x) {
				sum.Add(x)
			}
		}
	}
	if math.Abs(before.Mean-after.Mean) > 4*.5/math.Sqrt(100) || after.SD() > .7 {
		t.Errorf("ratings of the baseline are %.2f on average, of units held out %.2f ± %.2f", before.Mean, after.Mean, after.SD())
	}
}

// TestRatingsOfANewVersionAreHeldOutAtItsLevel rates a version higher than the preceding one by two standard
// deviations, and lets other people rate it after its baseline is complete.
func TestRatingsOfANewVersionAreHeldOutAtItsLevel(t *testing.T) {
	cfg := watch.DefaultConfig()
	cfg.Baseline.Units, cfg.OnNewVersion = 200, watch.OnNewVersionRebaseline
	cfg.Raters = watch.Raters{"rating": "labels.rater"}
	p := newCalibratedPolicy("ranker", cfg, capacity.NewStreamLimit(100))
	rng := rand.New(rand.NewPCG(5, 6))
	for i := range int64(1400) {
		u, who, better := ingesttest.Unit("ranker", 0, i, rng), rng.IntN(3), 0.
		u.Versions.Policy = "1"
		if i >= 400 {
			u.Versions.Policy, better = "2", 1
		}
		if i >= 800 {
			who += 3
		}
		m := ingest.NamedMoments{Signal: "outcome.rating"}
		m.Add(float64(who) + better + .5*rng.NormFloat64())
		u.Numeric, u.Labels = append(u.Numeric, m), []ingest.Label{{Name: "labels.rater", Value: string(rune('a' + who))}}
		p.observe(u)
	}
	g := p.order[0]
	var before, after ingest.Moments
	for _, u := range g.baseline[max(0, len(g.baseline)-200):] {
		before.Add(bank.Value(u, "outcome.rating"))
	}
	for _, u := range g.heldOut {
		if u.Labels == nil && u.Pos.Offset >= 810 {
			after.Add(bank.Value(u, "outcome.rating"))
		}
	}
	if after.N < 300 || g.incidents > 0 {
		t.Fatalf("%d units held out, %d incidents", after.N, g.incidents)
	}
	if math.Abs(before.Mean-after.Mean) > 4*.5*math.Sqrt(1./200+3./100) {
		t.Errorf("ratings of the version are %.2f on average when its baseline was collected, and %.2f of other raters", before.Mean, after.Mean)
	}
}
