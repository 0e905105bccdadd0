//go:build benchdetection

package bank

import (
	"fmt"
	"math"
	"testing"
)

// Versions that are equal to production, better or worse, polled after each unit. Versions of a baseline share its
// sampling error, so standard errors are computed over the baselines.
func TestBenchGates(*testing.T) {
	const versions, longest = 10, 1000
	fmt.Printf("\n### Gates, N = 20000, m = 500, %d versions a baseline, polled after each of up to %d units\n\n"+
		"| law of the reward | mean return | versions | better | worse | same after %d units | units to better or worse |\n"+
		"| --- | --- | --- | --- | --- | --- | --- |\n", versions, longest, longest)
	for _, shift := range []float64{0, -.25, -.5, .5, -1} {
		for i, l := range laws() {
			if shift != 0 && i > 1 {
				continue
			}
			found := make([]polled, *baselinesFlag)
			for b := range found {
				found[b] = poll(l, b, versions, longest, shift, false)
			}
			gateRow(l.name, shift, found)
		}
	}
}

// Production moves with the version, beginning at the same unit, as if the environment changes.
func TestBenchGatesWhereProductionMoves(*testing.T) {
	const versions, longest = 5, 500
	fmt.Printf("\n### Gates where production moves as well, with four units to one of the version, up to %d of these\n\n"+
		"| law of the reward | mean return of both | versions | better | worse | same after %d units | units to better or worse |\n"+
		"| --- | --- | --- | --- | --- | --- | --- |\n", longest, longest)
	for _, shift := range []float64{-.25, -.5, -1} {
		found := make([]polled, *baselinesFlag)
		for b := range found {
			found[b] = poll(laws()[0], b, versions, longest, shift, true)
		}
		gateRow(laws()[0].name, shift, found)
	}
}

func gateRow(law string, shift float64, found []polled) {
	var all polled
	for _, f := range found {
		all.add(f)
	}
	share := func(of func(polled) int) string {
		mean, squares := 0.0, 0.0
		for _, f := range found {
			x := float64(of(f)) / float64(f.runs)
			mean, squares = mean+x/float64(len(found)), squares+x*x/float64(len(found))
		}
		return fmt.Sprintf("%.3f ± %.3f", mean, math.Sqrt(max(0, squares-mean*mean)/float64(max(1, len(found)-1))))
	}
	units := "-"
	if shift != 0 {
		units = fmt.Sprintf("%.1f ± %.1f", all.units.Mean, all.units.SD()/math.Sqrt(float64(max(1, all.units.N))))
	}
	fmt.Printf("| %s | %+g sd | %d | %s | %s | %s | %s |\n", law, shift, all.runs, share(func(p polled) int { return p.better }),
		share(func(p polled) int { return p.worse }), share(func(p polled) int { return p.same }), units)
}
