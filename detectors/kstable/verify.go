package main

import (
	"fmt"
	"io"
	"math"

	"github.com/rewardwatch/rewardwatch/detectors"
)

// verifyAll prints, for each window and size, how the committed threshold of an ARL0 performs by first passages alone.
func verifyAll(opts options, out io.Writer) error {
	for _, window := range opts.windows {
		for _, m := range opts.sizes {
			d, ok := detectors.KSThreshold(m, window, math.Log(opts.verify))
			if !ok {
				return fmt.Errorf("m=%d, window %d: no threshold for an ARL0 of %v", m, window, opts.verify)
			}
			v := opts.plan.verify(m, window, d, opts.verify)
			fmt.Fprintf(out, "window %d, m %d, ARL0 %g: d = %.4f; %d of %d baselines fall short; at the 99 %% point %.4g units a passage (%d passages)\n",
				window, m, opts.verify, d, v.short, opts.plan.baselines, v.arl0, v.passages)
		}
	}
	return nil
}

// verified is the result for one threshold.
type verified struct {
	short    int     // baselines with less than the promised ARL0, among the worst: all others have more
	arl0     float64 // units per passage of the baselines around the 99% point, half its rank to either side
	passages int     // passages behind arl0: its standard error is arl0 divided by their square root
}

// verify runs a stream against each of the worst baselines.
func (p plan) verify(m, window int, d, promised float64) verified {
	worst := p.worst(m, window, newLadder(m, window))
	streams := make([]*passages, len(worst))
	parallel(len(worst), func(i int) {
		only := ladder{step: d, rungs: 2} // rung 1 is d
		streams[i] = watch(worst[i], only, window, p.length, p.random(m, window, i, forStreams))
	})
	var v verified
	units := 0
	for i, s := range streams {
		if float64(s.units[1]) < promised*float64(s.count[1]) {
			v.short++
		}
		if rank := i + 1; 2*rank >= p.unlucky() && 2*rank <= 3*p.unlucky() {
			units += s.units[1]
			v.passages += s.count[1]
		}
	}
	v.arl0 = float64(units) / float64(v.passages)
	return v
}
