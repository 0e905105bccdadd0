//go:build benchdetection

package expectation

import (
	"flag"
	"fmt"
	"math"
	"testing"
)

var runsFlag = flag.Int("runs", 2000, "runs of each cell of the tables")

// TestBenchExpectation prints how often the check of an expectation is wrong, and how often it finds a real
// difference, if it is read after every unit.
func TestBenchExpectation(*testing.T) {
	fmt.Printf("\n%d runs a cell, standard error %.4f at .025\n\n", *runsFlag, math.Sqrt(alpha/2*(1-alpha/2)/float64(*runsFlag)))
	fmt.Println("| statistic | values | over | falsely met | falsely missed | met at +.25 sd | after units | met at +.5 sd | after units |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	for _, statistic := range []string{"mean", "median", "q10", "sd"} {
		for _, l := range laws() {
			if _, has := l.truth(statistic); !has {
				continue
			}
			for _, over := range []int{50, 200, 1000} {
				null, small, large := l.simulate(statistic, over, *runsFlag, 0), l.simulate(statistic, over, *runsFlag, .25), l.simulate(statistic, over, *runsFlag, .5)
				fmt.Printf("| %s | %s | %d | %.4f | %.4f | %.3f | %s | %.3f | %s |\n",
					statistic, l.name, over, null.met, null.missed, small.met, small.after(), large.met, large.after())
			}
		}
	}
}

func (r result) after() string {
	if math.IsNaN(r.units) {
		return "-"
	}
	return fmt.Sprintf("%.0f", r.units)
}
