//go:build benchdetection

package bank

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/battery"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
)

// formulaPool is the number of new units from which the formula takes the law.
const formulaPool = 200_000

// truth is the law of a quantity: many of its values, ascending, or the distinct counts of a frequency with their
// weights.
type truth struct{ values, hits, steps, weight []float64 }

// truthsOf returns the law of each column.
func truthsOf(s *battery.Sample) []truth {
	out := make([]truth, len(s.Columns))
	for c := range out {
		t, counts := &out[c], map[[2]float64]float64{}
		for _, row := range s.Units {
			if r := row[c]; !math.IsNaN(r.X) {
				hits, steps := r.Counts()
				counts[[2]float64{hits, steps}]++
				t.values = append(t.values, r.X)
			}
		}
		slices.Sort(t.values)
		for pair, n := range counts {
			t.hits, t.steps, t.weight = append(t.hits, pair[0]), append(t.steps, pair[1]), append(t.weight, n/float64(len(t.values)))
		}
	}
	return out
}

// falseAlarmRate returns the sum of the false alarm rates of all tests, per unit, if units are independent and follow
// these laws. Since tests that see the same units alarm together, the sum is too large.
func falseAlarmRate(j *battery.Judge, of []truth) float64 {
	rate := 0.0
	for i, q := range j.Tests {
		rate += falseAlarmRateOf(q, &of[j.Columns[i]])
	}
	return rate
}

// falseAlarmRateOf returns the false alarm rate of the tests of a quantity. For the sliding Kolmogorov-Smirnov test, it
// is the rate for which its threshold was set, which 99 of 100 baselines keep.
func falseAlarmRateOf(q *stream.Quantity, of *truth) (rate float64) {
	switch {
	case q.Rank() != nil:
		rate = q.Rank().FalseAlarmRate(of.values)
	case q.Frequency() != nil:
		rate = q.Frequency().FalseAlarmRate(of.hits, of.steps, of.weight)
	case noveltyOf(q) != nil:
		known := *noveltyOf(q)
		known.Rate = 1 - shareOf(of.values, noveltyOf(q).Mode)
		rate = known.FalseAlarmRate()
	}
	if rarityOf(q) != nil {
		rate += rarityOf(q).FalseAlarmRate(1 - shareOf(of.values, rarityOf(q).Mode))
	}
	if shapeOf(q) != nil {
		rate += shapeOf(q).Rate
	}
	return rate
}

func shareOf(values []float64, value float64) float64 {
	n := 0
	for _, x := range values {
		if x == value {
			n++
		}
	}
	return float64(n) / float64(len(values))
}

// bothWays holds ARL0 of a baseline in multiples of its budget, by the formula and simulated; NaN if it was not
// simulated.
type bothWays struct{ formula, simulated float64 }

// bothWays measures baselines of m units with a budget of one false alarm in n, and simulates some of them. The choice
// of baselines does not depend on the number of simulated ones.
func (s *simulation) bothWays(m int, n float64, baselines, simulated int) []bothWays {
	pool, rng := s.sample(formulaPool), rand.New(rand.NewPCG(306, uint64(m)))
	law := truthsOf(pool)
	out := make([]bothWays, baselines)
	for i := range out {
		j := battery.NewJudge(&s.frozen(m, n).groups[0].Battery, pool.Columns)
		out[i] = bothWays{1 / falseAlarmRate(j, law) / n, math.NaN()}
		if i < simulated {
			out[i].simulated = runLength(j, pool, rng, n) / n
		}
	}
	return out
}

func formulaRow(name string, m int, of []bothWays) {
	var formula, simulated, ratios []float64
	for _, b := range of {
		formula = append(formula, b.formula)
		if !math.IsNaN(b.simulated) {
			simulated, ratios = append(simulated, b.simulated), append(ratios, b.formula/b.simulated)
		}
	}
	slices.Sort(formula)
	cells := "0 | - | - | - | -"
	if len(simulated) > 0 {
		slices.Sort(simulated)
		ratio, se := mean(ratios)
		cells = fmt.Sprintf("%s | %.2f ± %.2f", promiseCells(simulated), ratio, se)
	}
	fmt.Printf("| %s | %d | %s | %s |\n", name, m, promiseCells(formula), cells)
}

// The result of the formula for a baseline, compared with a simulation of the same baseline. If false alarms are rare,
// simulation is expensive, so most baselines are only measured by the formula.
func TestBenchFormula(*testing.T) {
	few, fewer := max(2, *baselinesFlag/4), *baselinesFlag/20
	for _, table := range []struct {
		n                    float64
		sizes                []int
		baselines, simulated int
	}{
		{2_000, []int{500, 2000}, few, few},
		{20_000, []int{500, 2000}, few, few},
		{1_000_000, []int{100, 250, 1000}, *baselinesFlag, 0},
		{1_000_000, []int{500, 2000}, *baselinesFlag, fewer},
	} {
		fmt.Printf("\n### The formula, N = %.0f\n\n| law of the reward | m | by the formula: baselines | share with ARL0 >= N | "+
			"10th percentile of ARL0/N | median of ARL0/N | simulated: baselines | share | 10th percentile | median | "+
			"formula / simulated |\n%s|\n", table.n, strings.Repeat("| --- ", 11))
		for _, m := range table.sizes {
			byLaw := everyLaw(305, func(s *simulation) []bothWays { return s.bothWays(m, table.n, table.baselines, table.simulated) })
			for i, l := range laws() {
				formulaRow(l.name, m, byLaw[i])
			}
			formulaRow("all", m, slices.Concat(byLaw...))
		}
	}
}
