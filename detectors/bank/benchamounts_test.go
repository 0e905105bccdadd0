//go:build benchdetection

package bank

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/battery"
)

// Policies with one decision per unit, few of which earn an amount: all of their tests together.
func TestBenchAmountsPromise(*testing.T) {
	promiseHead(fmt.Sprintf("Amounts, N = %d", benchN), "purchases")
	for i, of := range []struct {
		rate float64
		m    int
	}{{.1, 500}, {.3, 500}, {.04, 2000}, {.1, 2000}, {.3, 2000}, {.6, 2000}} {
		c := newTill(uint64(4000+i), 0, of.rate)
		pool := c.pool(c.frozen(of.m, benchN), poolUnits)
		ratios := make([]float64, *baselinesFlag)
		for b := range ratios {
			ratios[b] = runLength(battery.NewJudge(&c.frozen(of.m, benchN).groups[0].Battery, pool.Columns), pool, c.rng, benchN) / benchN
		}
		slices.Sort(ratios)
		promiseRow(fmt.Sprintf("%g%%", 100*of.rate), of.m, ratios)
	}
}

// The delay until half and twice the amounts are found, if they are rewards, and if they are outcomes of purchases
// only.
func TestBenchAmountsDelay(*testing.T) {
	const most, before = 10_000, 500
	fmt.Printf("\n### Amounts that change, one decision a unit, N = 20,000, %d baselines, change after %d units\n\n"+
		"| purchases | m | amounts | reward: found within %d | median | outcome: found | median | false alarms before |\n"+
		"| --- | --- | --- | --- | --- | --- | --- | --- |\n", *baselinesFlag, before, most)
	for i, of := range []struct {
		rate float64
		m    int
	}{{.1, 5000}, {.06, 5000}, {.04, 5000}, {.1, 1500}, {.1, 500}, {.3, 500}} {
		for k, factor := range []float64{.5, 2, .8} {
			row, discarded := "", 0
			for _, apart := range []bool{false, true} {
				var took []float64
				for b := uint64(0); len(took) < *baselinesFlag; b++ {
					c := newTill(uint64(4100+10*i+k), b, of.rate)
					c.apart = apart
					p := c.frozen(of.m, 20_000)
					if _, alarm := c.until(p, before); alarm {
						discarded++
						continue
					}
					c.factor = factor
					units, alarm := c.until(p, most)
					if !alarm {
						units = most + 1
					}
					took = append(took, float64(units))
				}
				row += fmt.Sprintf(" %s | %.0f |", within(took, most), detectors.Quantiles(took, .5)[0])
			}
			fmt.Printf("| %g%% | %d | x%g |%s %d |\n", 100*of.rate, of.m, factor, row, discarded)
		}
	}
}
