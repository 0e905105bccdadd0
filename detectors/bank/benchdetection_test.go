//go:build benchdetection

package bank

import (
	"flag"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors"
)

var baselinesFlag = flag.Int("baselines", 20, "baselines of each row")

// benchN is the budget of the tables of the promise, one false alarm in so many units.
const benchN = 2000

// poolUnits is how many units those to judge are drawn from.
const poolUnits = 100_000

// promiseRow prints a row: the share of baselines that keep the budget with its standard error, and quantiles of
// ARL0 / N. The standard error of the median is half the width of the range of order statistics one standard deviation
// on each side.
func promiseRow(name string, m int, ratios []float64) {
	n := float64(len(ratios))
	share := keeping(ratios)
	spread := math.Sqrt(n) / 2
	low, high := ratios[max(0, int(n/2-spread))], ratios[min(len(ratios)-1, int(n/2+spread))]
	q := detectors.Quantiles(slices.Clone(ratios), .1, .5)
	fmt.Printf("| %s | %d | %d | %.2f ± %.2f | %.2f | %.2f ± %.2f |\n",
		name, m, len(ratios), share, math.Sqrt(share*(1-share)/n), q[0], q[1], (high-low)/2)
}

func promiseHead(title, first string) {
	fmt.Printf("\n### %s\n\n| %s | m | baselines | share with ARL0 >= N | 10th percentile of ARL0/N | median of ARL0/N |\n"+
		"| --- | --- | --- | --- | --- | --- |\n", title, first)
}

func TestBenchPromise(*testing.T) {
	promiseHead(fmt.Sprintf("Promise, N = %d", benchN), "law of the reward")
	pooled := map[int][]float64{}
	sizes := []int{250, 500, 1000}
	for i, l := range laws() {
		s := newSimulation(l, 300, uint64(i))
		pool := s.sample(poolUnits)
		for _, m := range sizes {
			ratios := s.kept(pool, *baselinesFlag, m, benchN, nil)
			promiseRow(l.name, m, ratios)
			pooled[m] = append(pooled[m], ratios...)
		}
	}
	for _, m := range sizes {
		slices.Sort(pooled[m])
		promiseRow("all", m, pooled[m])
	}
}

// The level that the steps of an episode share carries over by one half; how much it varies sets the correlation of the
// means of successive episodes.
func TestBenchDependence(*testing.T) {
	promiseHead(fmt.Sprintf("Dependence, N = %d, normal rewards", benchN), "lag-1 correlation of the episode mean")
	for i, correlation := range []float64{0, .1, .2} {
		s := newSimulation(laws()[0], 310, uint64(i))
		own := s.sample(20_000).sd("reward", "mean")
		const keeps = .5
		if share := correlation / keeps; share > 0 {
			s.keeps, s.wander = keeps, own*math.Sqrt(share/(1-share))
		}
		pool := s.sample(2 * poolUnits)
		promiseRow(fmt.Sprint(correlation), 500, s.kept(pool, *baselinesFlag, 500, benchN, nil))
	}
}

// edits are changes to the tests of a baseline that take one precaution away each.
func edits() []struct {
	name string
	edit func(*judge)
} {
	each := func(f func(*detectors.RankTest, *detectors.RankBranch)) func(*judge) {
		return func(j *judge) {
			for _, q := range j.tests {
				if q.Rank != nil {
					for i := range q.Rank.Branches {
						f(q.Rank, &q.Rank.Branches[i])
					}
				}
			}
		}
	}
	allowance := func(share float64) func(*detectors.RankTest, *detectors.RankBranch) {
		return func(_ *detectors.RankTest, b *detectors.RankBranch) { b.Kappa *= share }
	}
	independent := func(t *detectors.RankTest, b *detectors.RankBranch) { b.Kappa /= math.Sqrt(t.Factor) }
	noFactor := func(j *judge) {
		each(independent)(j)
		for _, q := range j.tests {
			if q.Rank != nil {
				q.Rank.Factor = 1
			}
		}
	}
	spend := func(_ *detectors.RankTest, b *detectors.RankBranch) {
		if b.Height > 0 {
			b.Height = max(1, b.Height+math.Log((1-reserve)*primaryShare))
		}
	}
	return []struct {
		name string
		edit func(*judge)
	}{
		{"as it is", nil},
		{"without what is kept free of the budget", each(spend)},
		{"dependence factor 1", noFactor},
		{"half of the allowance", each(allowance(.5))},
		{"no allowance", each(allowance(0))},
		{"dependence factor 1, half of the allowance", func(j *judge) { noFactor(j); each(allowance(.5))(j) }},
		{"none of the three", func(j *judge) { noFactor(j); each(allowance(0))(j); each(spend)(j) }},
	}
}

func TestBenchPrecautions(*testing.T) {
	promiseHead(fmt.Sprintf("What each precaution costs, N = %d, normal rewards", benchN), "variant")
	pool := newSimulation(laws()[0], 320, 0).sample(poolUnits)
	for _, e := range edits() {
		s := newSimulation(laws()[0], 320, 1) // the same baselines for every variant
		promiseRow(e.name, 500, s.kept(pool, *baselinesFlag, 500, benchN, e.edit))
	}
}

func TestBenchPrecautionsDelay(*testing.T) {
	const runs, most = 20, 20_000
	before := newSimulation(laws()[0], 325, 0).sample(poolUnits)
	changed := newSimulation(laws()[0], 325, 1)
	changed.shift = before.sd("reward", "mean")
	after := changed.sample(20_000)
	fmt.Print("\n### What each precaution costs in delay, m = 500, N = 20000, mean reward +1 sd\n\n" +
		"| variant | mean units to the alarm | runs discarded |\n| --- | --- | --- |\n")
	for _, e := range edits() {
		s := newSimulation(laws()[0], 326, 0)
		units, discarded := make([]float64, *baselinesFlag), 0
		for i := range units {
			j := newJudge(s.frozen(500, 20_000), before.columns)
			if e.edit != nil {
				e.edit(j)
			}
			d := j.delay(before, after, s.rng, runs, most)
			units[i], discarded = d.units, discarded+d.discarded
		}
		got, se := mean(units)
		fmt.Printf("| %s | %.1f ± %.1f | %d of %d |\n", e.name, got, se, discarded, discarded+len(units)*runs)
	}
}

// changes are those of which the delay is measured; sd is the standard deviation of an episode's mean reward.
func changes() []struct {
	name string
	make func(s *simulation, sd float64)
} {
	return []struct {
		name string
		make func(s *simulation, sd float64)
	}{
		{"mean reward +0.25 sd", func(s *simulation, sd float64) { s.shift = .25 * sd }},
		{"mean reward +0.5 sd", func(s *simulation, sd float64) { s.shift = .5 * sd }},
		{"mean reward +1 sd", func(s *simulation, sd float64) { s.shift = sd }},
		{"mean reward +2 sd", func(s *simulation, sd float64) { s.shift = 2 * sd }},
		{"spread of the rewards x2", func(s *simulation, _ float64) { s.spread = 2 }},
		{"spread of the rewards x0.5", func(s *simulation, _ float64) { s.spread = .5 }},
		{"actions .5/.3/.2 -> .96/.02/.02", func(s *simulation, _ float64) { s.shares = []float64{.96, .02, .02} }},
		{"outcome .3 -> .2", func(s *simulation, _ float64) { s.outcome = .2 }},
	}
}

// A baseline's runs share its luck, so the standard error is that over the baselines' means.
func TestBenchDelay(*testing.T) {
	const runs, most = 20, 20_000
	baselines := *baselinesFlag
	fmt.Printf("\n### Delay, normal rewards, %d baselines with %d runs each\n\n", baselines, runs)
	fmt.Print("| change | m | N | mean units to the alarm | runs discarded |\n| --- | --- | --- | --- | --- |\n")
	before := newSimulation(laws()[0], 330, 0).sample(poolUnits)
	var after []*sample
	for _, c := range changes() {
		changed := newSimulation(laws()[0], 330, 1)
		c.make(changed, before.sd("reward", "mean"))
		after = append(after, changed.sample(20_000))
	}
	for _, m := range []int{500, 2000} {
		for _, n := range []float64{20_000, 1_000_000} {
			s := newSimulation(laws()[0], 331, uint64(m))
			units, discarded := make([][]float64, len(after)), make([]int, len(after))
			for range baselines {
				j := newJudge(s.frozen(m, n), before.columns)
				for i := range after {
					d := j.delay(before, after[i], s.rng, runs, most)
					units[i], discarded[i] = append(units[i], d.units), discarded[i]+d.discarded
				}
			}
			for i, c := range changes() {
				got, se := mean(units[i])
				fmt.Printf("| %s | %d | %.0f | %.1f ± %.1f | %d of %d |\n",
					c.name, m, n, got, se, discarded[i], discarded[i]+baselines*runs)
			}
		}
	}
}
