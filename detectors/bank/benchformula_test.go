//go:build benchdetection

package bank

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// formulaPool is how many fresh units the formula takes for the law.
const formulaPool = 200_000

// falseAlarmRate is the sum of the rates at which all tests alarm falsely, a unit, while independent units follow the law of
// the sample. Tests that see the same units alarm together, which a sum does not know: it is too large.
func (j *judge) falseAlarmRate(s *sample) float64 {
	rate := 0.0
	for i, q := range j.tests {
		rate += q.falseAlarmRate(s, j.columns[i])
	}
	return rate
}

// falseAlarmRate is that of the tests of the quantity that stands in a column. Of the sliding Kolmogorov-Smirnov test it is
// the one that its threshold was set for, which all baselines but one in a hundred keep.
func (q *quantity) falseAlarmRate(s *sample, column int) (rate float64) {
	var values, hits, steps []float64
	for _, row := range s.units {
		if r := row[column]; !math.IsNaN(r.x) {
			h, n := r.counts()
			values, hits, steps = append(values, r.x), append(hits, h), append(steps, n)
		}
	}
	switch {
	case q.Rank != nil:
		rate = q.Rank.FalseAlarmRate(values)
	case q.Frequency != nil:
		rate = q.Frequency.FalseAlarmRate(hits, steps)
	case q.Novel != nil:
		known := *q.Novel
		known.Rate = 1 - shareOf(values, q.Novel.Mode)
		rate = known.FalseAlarmRate()
	}
	if q.Shape != nil {
		rate += q.Shape.rate
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

// bothWays is ARL0 of a baseline in multiples of its budget, by the formula and simulated; NaN where it was not.
type bothWays struct{ formula, simulated float64 }

// bothWays measures baselines of m units with a budget of one false alarm in n, so many of them by simulation too. Which
// baselines these are does not depend on how many are simulated.
func (s *simulation) bothWays(m int, n float64, baselines, simulated int) []bothWays {
	pool, rng := s.sample(formulaPool), rand.New(rand.NewPCG(306, uint64(m)))
	out := make([]bothWays, baselines)
	for i := range out {
		j := newJudge(s.frozen(m, n).groups[0], pool.columns)
		out[i] = bothWays{1 / j.falseAlarmRate(pool) / n, math.NaN()}
		if i < simulated {
			out[i].simulated = j.arl0(pool, rng, n) / n
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

// What the formula says of a baseline, beside what is simulated with the same one. Where false alarms are seldom simulation is
// dear, and the formula speaks for most baselines.
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
