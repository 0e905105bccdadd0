package main

import (
	"math"
	"math/rand/v2"

	"github.com/rewardwatch/rewardwatch/detectors"
)

// ladder is a sequence of thresholds; rung i is i times the step.
type ladder struct {
	step  float64
	rungs int // 0 to rungs-1, up to 1
}

// newLadder places the rungs on values that D can take, at least .1/sqrt(window) apart. Between two such values the
// threshold has no effect, and rungs elsewhere would show the steps.
func newLadder(m, window int) ladder {
	lattice := float64(gcd(m, window)) / float64(m*window)
	step := lattice * math.Ceil(.1/math.Sqrt(float64(window))/lattice)
	return ladder{step: step, rungs: int(1/step) + 1}
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func (l ladder) threshold(rung int) float64 {
	return float64(rung) * l.step
}

// below returns the highest rung at or below d.
func (l ladder) below(d float64) int {
	return int(d/l.step + 1e-6)
}

// enough is the number of passages after which a rung is no longer watched in a stream.
const enough = 400

// passages counts first passages over all rungs of a ladder in one stream. After a passage a rung waits until the
// window holds only later values, and restarts: each passage therefore starts from a full window of fresh values. The
// ARL0 is the number of units watched, including those after the last passage, divided by the number of passages.
type passages struct {
	ladder ladder
	window int
	lowest int // the rungs below it have enough passages
	count  []int
	units  []int
	since  []int // the first unit at which the rung is watched again
}

func newPassages(l ladder, window int) *passages {
	return &passages{
		ladder: l,
		window: window,
		lowest: 1,
		count:  make([]int, l.rungs),
		units:  make([]int, l.rungs),
		since:  make([]int, l.rungs),
	}
}

// observe adds the statistic of unit t; units are numbered from 0, the first full window.
func (p *passages) observe(t int, d float64) {
	top := min(p.ladder.below(d), p.ladder.rungs-1)
	for i := p.lowest; i <= top; i++ {
		if t < p.since[i] {
			continue
		}
		p.count[i]++
		p.units[i] += t - p.since[i] + 1
		p.since[i] = t + p.window
	}
	for p.lowest < p.ladder.rungs && p.count[p.lowest] >= enough {
		p.lowest++
	}
}

// stop adds the units that the rungs have waited without a passage when the stream ends.
func (p *passages) stop(units int) {
	for i := p.lowest; i < p.ladder.rungs; i++ {
		p.units[i] += max(0, units-p.since[i])
	}
}

// watch runs a stream of uniform values against a baseline.
func watch(baseline []float64, l ladder, window, units int, r *rand.Rand) *passages {
	k, err := detectors.NewSlidingKS(baseline, window)
	if err != nil {
		panic(err) // parseSize bounds sizes, and uniform values are never NaN
	}
	for range window - 1 {
		k.Add(r.Float64())
	}
	seen := newPassages(l, window)
	for t := range units {
		k.Add(r.Float64())
		d, _ := k.Statistic()
		seen.observe(t, d)
	}
	seen.stop(units)
	return seen
}
