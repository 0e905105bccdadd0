//go:build benchdetection

package bank

import (
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/battery"
	"github.com/rewardwatch/rewardwatch/detectors/budget"
	"github.com/rewardwatch/rewardwatch/detectors/capacity"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/ingest"
)

var baselinesFlag = flag.Int("baselines", 20, "baselines of each row")

// benchN is the budget of the tables of dependence and of precautions: one false alarm in benchN units.
const benchN = 2000

// poolUnits is the number of units that the judged units are drawn from.
const poolUnits = 100_000

// promiseCells returns table cells: the number of baselines, the share of them that keep the budget with its standard
// error, and quantiles of ARL0 / N. ratios must be sorted. The standard error of the median is half the width of the
// range between the order statistics one standard deviation to either side.
func promiseCells(ratios []float64) string {
	n := float64(len(ratios))
	share := keeping(ratios)
	spread := math.Sqrt(n) / 2
	low, high := ratios[max(0, int(n/2-spread))], ratios[min(len(ratios)-1, int(n/2+spread))]
	q := detectors.Quantiles(slices.Clone(ratios), .1, .5)
	return fmt.Sprintf("%d | %.2f ± %.2f | %.2f | %.2f ± %.2f",
		len(ratios), share, math.Sqrt(share*(1-share)/n), q[0], q[1], (high-low)/2)
}

func promiseRow(name string, m int, ratios []float64) {
	fmt.Printf("| %s | %d | %s |\n", name, m, promiseCells(ratios))
}

func promiseHead(title, first string) {
	fmt.Printf("\n### %s\n\n| %s | m | baselines | share with ARL0 >= N | 10th percentile of ARL0/N | median of ARL0/N |\n"+
		"| --- | --- | --- | --- | --- | --- |\n", title, first)
}

// everyLaw measures all laws concurrently.
func everyLaw[T any](seed uint64, measure func(s *simulation) []T) [][]T {
	byLaw := make([][]T, len(laws()))
	var wg sync.WaitGroup
	for i, l := range laws() {
		wg.Go(func() { byLaw[i] = measure(newSimulation(l, seed, uint64(i))) })
	}
	wg.Wait()
	return byLaw
}

// Every law with every size of a baseline. TestBenchFormula measures larger budgets.
func TestBenchPromise(*testing.T) {
	for _, n := range []float64{2_000, 20_000} {
		promiseHead(fmt.Sprintf("Promise, N = %.0f", n), "law of the reward")
		for _, m := range []int{100, 250, 500, 1000, 2000} {
			byLaw := everyLaw(300, func(s *simulation) []float64 {
				return s.kept(s.sample(poolUnits), *baselinesFlag, m, n, nil)
			})
			for i, l := range laws() {
				promiseRow(l.name, m, byLaw[i])
			}
			pooled := slices.Concat(byLaw...)
			slices.Sort(pooled)
			promiseRow("all", m, pooled)
		}
	}
}

// Half of the level that the steps of an episode share carries over to the next episode; its variance determines the
// correlation between the means of successive episodes. The same baselines are also judged without the factor that
// allows for the dependence.
func TestBenchDependence(*testing.T) {
	promiseHead(fmt.Sprintf("Dependence, N = %d, normal rewards", benchN), "lag-1 correlation of the episode mean")
	for i, correlation := range []float64{0, .1, .2, .25} {
		for _, e := range edits()[:2] {
			if correlation == 0 && e.edit != nil {
				continue // the factor is 1
			}
			s := newSimulation(laws()[0], 310, uint64(i))
			own := sdOf(s.sample(20_000), "reward", "mean")
			const keeps = .5
			if share := correlation / keeps; share > 0 {
				s.keeps, s.wander = keeps, own*math.Sqrt(share/(1-share))
			}
			pool := s.sample(2 * poolUnits)
			promiseRow(fmt.Sprintf("%g, %s", correlation, e.name), 500, s.kept(pool, *baselinesFlag, 500, benchN, e.edit))
		}
	}
}

// daytime returns a daily season with the given amplitude.
func daytime(amplitude float64) func(int64) float64 {
	return func(ts int64) float64 { return amplitude * math.Sin(2*math.Pi*float64(ts%day)/float64(day)) }
}

// sameWeekday renames the days so that all of them are Thursdays: they differ as before, but their weekly season cannot
// be seen.
func sameWeekday(day int64) int64 { return 7 * day }

// Units of a policy whose days or weekends differ. They are judged within strata of the week or, with days of the
// baseline that are renamed so that weekdays cannot be distinguished, only with the factor of days.
func TestBenchSeason(*testing.T) {
	const runs, most = 10, 5000
	fmt.Printf("\n### Season, N = %d, normal rewards\n\n| season, in sd of an episode's mean | m | weeks | judged | baselines | strata | "+
		"factor | share with ARL0 >= N | 10th percentile of ARL0/N | median of ARL0/N | units to the alarm, mean +1 sd |\n"+
		"| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n", benchN)
	none := func(int64) float64 { return 0 }
	both := func(ts int64) float64 { return weekend(ts) + daytime(1)(ts) }
	for i, c := range []struct {
		name   string
		m      int
		weeks  float64
		season func(int64) float64
	}{
		{"none", 500, 6, none},
		{"weekends +1", 500, 6, weekend},
		{"weekends +1", 500, 2.4, weekend},
		{"days ±0.5", 500, 2.4, daytime(.5)},
		{"days ±1", 500, 2.4, daytime(1)},
		{"weekends +1", 2000, 6, weekend},
		{"days ±0.5", 2000, 2.4, daytime(.5)},
		{"days ±1", 2000, 2.4, daytime(1)},
		{"weekends +1, days ±1", 2000, 2.4, both},
		{"weekends +1", 2000, 2.4, weekend},
	} {
		seed := uint64(340 + i)
		before := weekly(c.m, c.weeks, c.season, seed, 0).sample(poolUnits)
		changed := weekly(c.m, c.weeks, c.season, seed, 1)
		changed.shift = meanSD
		after := changed.sample(20_000)
		for _, told := range []func(int64) int64{nil, sameWeekday} {
			s := weekly(c.m, c.weeks, c.season, seed, 2)
			s.told = told
			var ratios, delays, strata, factors []float64
			for range *baselinesFlag {
				p := s.frozen(c.m, benchN)
				q := rewardMean(p)
				k := 1
				if q.Season != nil {
					k = len(q.Season.Like)
				}
				strata, factors = append(strata, float64(k)), append(factors, q.Rank().Factor)
				j := battery.NewJudge(&p.groups[0].Battery, before.Columns)
				ratios = append(ratios, runLength(j, before, s.rng, benchN)/benchN)
				took, _ := delayOf(j, before, after, s.rng, runs, most)
				delays = append(delays, took)
			}
			seasonRow(c.name, c.m, c.weeks, map[bool]string{true: "within strata", false: "by the factor"}[told == nil],
				strata, factors, ratios, delays)
		}
	}
}

func seasonRow(name string, m int, weeks float64, judged string, strata, factors, ratios, delays []float64) {
	n := float64(len(ratios))
	slices.Sort(ratios)
	share := keeping(ratios)
	q := detectors.Quantiles(slices.Clone(ratios), .1, .5)
	k, _ := mean(strata)
	f, _ := mean(factors)
	took, se := mean(delays)
	fmt.Printf("| %s | %d | %g | %s | %.0f | %.1f | %.2f | %.2f ± %.2f | %.2f | %.2f | %.1f ± %.1f |\n",
		name, m, weeks, judged, n, k, f, share, math.Sqrt(share*(1-share)/n), q[0], q[1], took, se)
}

// Baselines of agents that begin at the same time, or whose telemetry begins while they are running: the effect of the
// order in which units end on their lengths.
func TestBenchOrder(*testing.T) {
	fmt.Print("\n### Order\n\n| agents | m | start | bias of the mean length, in sd, if all stay | as it is | left out |\n" +
		"| --- | --- | --- | --- | --- | --- |\n")
	seed := uint64(3500)
	for _, c := range []struct{ agents, m int }{{100, 500}, {100, 2000}, {100, 10_000}, {10, 500}, {10, 1000}} {
		for _, start := range []string{"together", "cut", "whole"} {
			var all, kept []float64
			left := 0
			for range *baselinesFlag * max(1, 5000/c.m) {
				seed++
				units := newCrowd(c.agents, seed)
				if start != "together" {
					units.pass(20_000, start == "cut")
				}
				a, k, early := units.baseline(c.m)
				all, kept, left = append(all, (a-crowdMean)/crowdSD), append(kept, (k-crowdMean)/crowdSD), left+early
			}
			x, ex := mean(all)
			y, ey := mean(kept)
			fmt.Printf("| %d | %d | %s | %+.3f ± %.3f | %+.3f ± %.3f | %.0f |\n",
				c.agents, c.m, start, x, ex, y, ey, float64(left)/float64(len(all)))
		}
	}
}

// pass skips the given number of steps of each agent. If cut is true, it cuts off the part of open episodes that has
// passed.
func (c *crowd) pass(steps int64, cut bool) {
	for a := range c.until {
		for c.until[a] <= steps {
			c.begin(a)
		}
		if cut {
			c.long[a] = c.until[a] - steps
		}
	}
}

// baseline collects a warm-up of m units. It returns their mean length, the mean length of those that the bank keeps,
// and the number that the bank leaves out.
func (c *crowd) baseline(m int) (all, kept float64, early int) {
	cfg := episodes(benchN)
	cfg.Baseline.Units = m
	g := newGroup(c.s.group(), &cfg, capacity.NewStreamLimit(10), budget.NewCalibrations())
	fill := func() float64 {
		for g.Warmup.Units < m {
			agent := c.next()
			u := &ingest.Unit{Agent: fmt.Sprint(agent), Length: c.long[agent]}
			g.Newcomers.Early(u)
			g.Warmup.Collect(u, g.Newcomers.Age(u.Agent), g.Seen-1)
			c.begin(agent)
		}
		lengths := make([]float64, m)
		for i := range lengths {
			lengths[i] = g.Warmup.Each[i].Length
		}
		return stream.MeanOf(lengths)
	}
	all = fill()
	for kept = all; g.leaveEarly(); {
		kept = fill()
	}
	return all, kept, g.Warmup.Early
}

// edits returns changes to the tests of a baseline, each of which removes one precaution.
func edits() []struct {
	name string
	edit func(j *battery.Judge, allowance float64)
} {
	each := func(f func(w *detectors.Walks, allowance float64)) func(*battery.Judge, float64) {
		return func(j *battery.Judge, allowance float64) {
			for _, q := range j.Tests {
				if w := q.Walks(); w != nil {
					f(w, allowance)
				}
			}
		}
	}
	return []struct {
		name string
		edit func(j *battery.Judge, allowance float64)
	}{
		{"as it is", nil},
		{"dependence factor 1", each(func(w *detectors.Walks, allowance float64) { w.Factor = 1; w.Allow(allowance) })},
		{"the fixed allowance", each(func(w *detectors.Walks, _ float64) { w.Allow(detectors.DefaultAllowance(w.Units)) })},
		{"no allowance", each(func(w *detectors.Walks, _ float64) { w.Allow(0) })},
		{"dependence factor 1, no allowance", each(func(w *detectors.Walks, _ float64) { w.Factor = 1; w.Allow(0) })},
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
	changed.shift = sdOf(before, "reward", "mean")
	after := changed.sample(20_000)
	fmt.Print("\n### What each precaution costs in delay, m = 500, N = 20000, mean reward +1 sd\n\n" +
		"| variant | mean units to the alarm | runs discarded |\n| --- | --- | --- |\n")
	for _, e := range edits() {
		s := newSimulation(laws()[0], 326, 0)
		units, discarded := make([]float64, *baselinesFlag), 0
		for i := range units {
			g := s.frozen(500, 20_000).groups[0]
			j := battery.NewJudge(&g.Battery, before.Columns)
			if e.edit != nil {
				e.edit(j, g.Promise.Allowance)
			}
			took, redrawn := delayOf(j, before, after, s.rng, runs, most)
			units[i], discarded = took, discarded+redrawn
		}
		got, se := mean(units)
		fmt.Printf("| %s | %.1f ± %.1f | %d of %d |\n", e.name, got, se, discarded, discarded+len(units)*runs)
	}
}

// changes returns the changes whose delay is measured; sd is the standard deviation of an episode's mean reward.
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

// The runs of a baseline share its sampling error, so the standard error is computed over the means of the baselines.
func TestBenchDelay(*testing.T) {
	const runs, most = 20, 20_000
	baselines := *baselinesFlag
	fmt.Printf("\n### Delay, normal rewards, %d baselines with %d runs each\n\n", baselines, runs)
	fmt.Print("| change | m | N | mean units to the alarm | runs discarded |\n| --- | --- | --- | --- | --- |\n")
	before := newSimulation(laws()[0], 330, 0).sample(poolUnits)
	var after []*battery.Sample
	for _, c := range changes() {
		changed := newSimulation(laws()[0], 330, 1)
		c.make(changed, sdOf(before, "reward", "mean"))
		after = append(after, changed.sample(20_000))
	}
	for _, m := range []int{500, 2000} {
		for _, n := range []float64{20_000, 1_000_000} {
			s := newSimulation(laws()[0], 331, uint64(m))
			units, discarded := make([][]float64, len(after)), make([]int, len(after))
			for range baselines {
				j := battery.NewJudge(&s.frozen(m, n).groups[0].Battery, before.Columns)
				for i := range after {
					took, redrawn := delayOf(j, before, after[i], s.rng, runs, most)
					units[i], discarded[i] = append(units[i], took), discarded[i]+redrawn
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

// Steps without episodes, judged in blocks. The delays are those of shifts of all steps by their own standard
// deviation.
func TestBenchBlocks(*testing.T) {
	fmt.Printf("\n### Blocks of steps, m = 500, N = %d blocks, %d baselines a row\n\n", benchN, *baselinesFlag)
	fmt.Println("| rewards of the steps | agents | steps of a block: median, largest | share with ARL0 >= N | 10th percentile of ARL0/N |" +
		" median of ARL0/N | +0.5 sd: blocks | steps | +1 sd: blocks | steps |\n" + strings.Repeat("| --- ", 10) + "|")
	heavy := blockProcess{"Student's t, 3 degrees, AR(1) 0.5", laws()[2], .5, math.Sqrt(3), 1}
	var rows []blockProcess
	for _, agents := range []int{1, 10} {
		for _, phi := range []float64{0, .5, .8, .95} {
			rows = append(rows, normalSteps(phi, agents))
		}
		heavy.agents = agents
		rows = append(rows, heavy)
	}
	for i, c := range append(rows, normalSteps(.95, 30)) {
		blocksRow(c, c.measure(340+uint64(i), *baselinesFlag, benchN, poolUnits, .5, 1))
	}
}

func blocksRow(c blockProcess, b blockBaselines) {
	share, n := keeping(b.ratios), float64(len(b.ratios))
	q := detectors.Quantiles(slices.Clone(b.ratios), .1, .5)
	size := detectors.Quantiles(slices.Clone(b.steps), .5, 1)
	fmt.Printf("| %s | %d | %.0f, %.0f | %.2f ± %.2f | %.2f | %.2f |",
		c.name, c.agents, size[0], size[1], share, math.Sqrt(share*(1-share)/n), q[0], q[1])
	for _, blocks := range b.delays {
		steps := make([]float64, len(blocks))
		for i := range blocks {
			steps[i] = blocks[i] * b.steps[i]
		}
		mb, eb := mean(blocks)
		ms, es := mean(steps)
		fmt.Printf(" %.1f ± %.1f | %.0f ± %.0f |", mb, eb, ms, es)
	}
	fmt.Println()
}
