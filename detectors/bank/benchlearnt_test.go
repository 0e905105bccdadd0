//go:build benchdetection

package bank

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/battery"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// coursePool is the number of episodes of courses that the judged episodes are drawn from.
const coursePool = 20_000

func (c *courses) pool(n int) []*ingest.Unit {
	units := make([]*ingest.Unit, n)
	for i := range units {
		units[i] = c.unit()
	}
	return units
}

// judged returns the judge of a baseline of 500 episodes with a budget of one false alarm in n. Its learned quantities
// have been validated, or are removed if plain is true. The samples are the pools as that baseline reads them.
func judged(c *courses, n float64, plain bool, pools ...[]*ingest.Unit) (j *battery.Judge, samples []*battery.Sample, late int) {
	g, late := c.proved(500, n)
	samples = []*battery.Sample{battery.NewSample(&g.Battery, pools[0], 1)}
	for _, pool := range pools[1:] {
		samples = append(samples, battery.NewSample(&g.Battery, pool, 1).In(samples[0].Columns))
	}
	j = battery.NewJudge(&g.Battery, samples[0].Columns)
	if plain {
		onlyPlain(j)
	}
	return j, samples, late
}

// onlyPlain removes the learned quantities; their part of the budget is not used.
func onlyPlain(j *battery.Judge) {
	var tests []*stream.Quantity
	var columns []int
	for i, q := range j.Tests {
		if !stream.IsLearnt(q.Name) {
			tests, columns = append(tests, q), append(columns, j.Columns[i])
		}
	}
	j.Tests, j.Columns = tests, columns
}

func TestBenchLearntPromise(*testing.T) {
	promiseHead(fmt.Sprintf("Promise with learnt quantities, N = %d", benchN), "quantities")
	pool := newCourses(340).pool(coursePool)
	late := 0
	for _, plain := range []bool{false, true} {
		name := "all"
		if plain {
			name = "without the learnt ones"
		}
		var ratios []float64
		late = 0
		for i := range *baselinesFlag {
			c := newCourses(uint64(3400 + i)) // the same baselines with and without
			j, healthy, notYet := judged(c, benchN, plain, pool)
			late += notYet
			ratios = append(ratios, runLength(j, healthy[0], c.rng, benchN)/benchN)
		}
		slices.Sort(ratios)
		promiseRow(name, 500, ratios)
	}
	fmt.Printf("\n%d of %d learnt quantities were not armed after the first %d episodes.\n", late, 2**baselinesFlag, stream.ProvingUnits)
}

func TestBenchLearntDelay(*testing.T) {
	const runs, most, n = 20, 10_000, 20_000
	fmt.Printf("\n### Delay with learnt quantities, m = 500, N = %d, %d baselines with %d runs each\n\n", n, *baselinesFlag, runs)
	fmt.Print("| change | with the learnt ones | without |\n| --- | --- | --- |\n")
	pool := newCourses(350).pool(coursePool)
	var m ingest.Moments
	for _, u := range pool {
		m.Add(u.Reward.Mean)
	}
	for _, change := range []struct {
		name string
		make func(*courses)
	}{
		{"all rewards -0.5 sd of an episode's mean", func(c *courses) { c.shift = -.5 * m.SD() }},
		{"all rewards -0.25 sd", func(c *courses) { c.shift = -.25 * m.SD() }},
		{"the steady last quarter alone -0.5 sd", func(c *courses) { c.lateShift = -.5 * m.SD() }},
		{"outcome no longer follows the reward", func(c *courses) { c.shuffled = true }},
	} {
		changed := newCourses(351)
		change.make(changed)
		after := changed.pool(coursePool / 4)
		fmt.Printf("| %s |", change.name)
		for _, plain := range []bool{false, true} {
			var delays []float64
			for i := range *baselinesFlag {
				c := newCourses(uint64(3500 + i))
				j, samples, _ := judged(c, n, plain, pool, after)
				units, _ := delayOf(j, samples[0], samples[1], c.rng, runs, most)
				delays = append(delays, units)
			}
			slices.Sort(delays)
			got, se := mean(delays)
			fmt.Printf(" %.1f ± %.1f (median %.1f) |", got, se, delays[len(delays)/2])
		}
		fmt.Println()
	}
}
