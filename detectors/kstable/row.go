package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
)

// plan is the accuracy of the simulation of a row.
type plan struct {
	baselines int
	length    int // units of a stream
	seed      uint64
}

// check returns an error for fewer baselines than a 99% point needs, and for a plan without streams.
func (p plan) check() error {
	if p.baselines < 199 || p.length < 1 {
		return fmt.Errorf("%d baselines and streams of %d units: at least 199 baselines and 1 unit are needed", p.baselines, p.length)
	}
	return nil
}

// unlucky returns the rank of the 99% point, from the worst baseline: another baseline is as bad with a probability
// below 1 %.
func (p plan) unlucky() int {
	return (p.baselines + 1) / 100
}

// row returns the thresholds of a baseline size and a window at each level.
func (p plan) row(m, window int, levels []float64) ([]float64, error) {
	l := newLadder(m, window)
	worst := p.worst(m, window, l)
	streams := p.watchWorst(worst, m, window, l)

	highest := math.Log(levels[len(levels)-1])
	var rungs []rung
	for i := l.reached(worst[p.unlucky()-1], window, .9); i < l.rungs; i++ {
		r := p.rung(worst, streams, window, l, i)
		rungs = append(rungs, r)
		if r.tail > highest {
			break
		}
	}
	line, err := fitClump(rungs)
	if err != nil {
		return nil, err
	}
	return readOff(rungs, line, levels)
}

// reached returns the lowest rung that a window reaches with at most the given probability.
func (l ladder) reached(baseline []float64, window int, chance float64) int {
	i := 1
	for i < l.rungs-1 && exceedance(baseline, window, l.threshold(i)) > chance {
		i++
	}
	return i
}

// worst draws the baselines and returns those that windows reach most often, worst first: four times as many as the 99
// % point needs, since the order changes a little with the threshold.
func (p plan) worst(m, window int, l ladder) [][]float64 {
	reference := l.threshold(l.reached(p.baseline(m, window, 0), window, .001))
	chances := make([]float64, p.baselines)
	parallel(p.baselines, func(b int) {
		chances[b] = exceedance(p.baseline(m, window, b), window, reference)
	})
	order := make([]int, p.baselines)
	for b := range order {
		order[b] = b
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(chances[b], chances[a]) })
	worst := make([][]float64, 4*p.unlucky())
	for i := range worst {
		worst[i] = p.baseline(m, window, order[i])
	}
	return worst
}

// watchWorst runs a stream against each baseline down to twice the rank of the 99% point.
func (p plan) watchWorst(worst [][]float64, m, window int, l ladder) []*passages {
	streams := make([]*passages, 2*p.unlucky())
	parallel(len(streams), func(i int) {
		streams[i] = watch(worst[i], l, window, p.length, p.random(m, window, i, forStreams))
	})
	return streams
}

// rung holds the results for one threshold.
type rung struct {
	d        float64
	tail     float64 // -log of the probability that a window reaches d, at the 99% point over baselines
	passages float64 // in all streams
	clump    float64 // log of the units at or beyond d per passage
}

// rung computes the probabilities of the worst baselines, and compares those of the watched ones with their passages:
// by their definitions, ARL0 is the clump's size divided by the probability.
func (p plan) rung(worst [][]float64, streams []*passages, window int, l ladder, i int) rung {
	r := rung{d: l.threshold(i)}
	chances := make([]float64, len(worst))
	parallel(len(worst), func(b int) {
		chances[b] = exceedance(worst[b], window, r.d)
	})
	expected := 0.0
	for b, s := range streams {
		expected += float64(s.units[i]) * chances[b]
		r.passages += float64(s.count[i])
	}
	r.clump = math.Log(expected / r.passages)
	slices.Sort(chances)
	r.tail = -math.Log(chances[len(chances)-p.unlucky()])
	return r
}

// line is y = at + slope (x - mean).
type line struct {
	mean, at, slope float64
}

// A rung with this many passages has its clump's size to 3 %, and needs no line.
const plenty = 1000

// fitClump fits the log of the clump's size to the log of the threshold, over the rungs with at least thirty passages
// that windows reach rarely enough to form clumps. Each rung has the weight of its passages up to plenty, or the low
// rungs alone would decide. After a passage the process falls off with a drift proportional to d, so that clumps shrink
// like a power of d (Aldous 1989, Probability Approximations via the Poisson Clumping Heuristic). The line therefore
// also holds beyond the thresholds that the streams reached.
func fitClump(rungs []rung) (line, error) {
	var n, x, y, xx, xy float64
	fitted := 0
	for _, r := range rungs {
		if r.passages < 30 || r.tail < 4 {
			continue
		}
		fitted++
		weight, logD := min(r.passages, plenty), math.Log(r.d)
		n += weight
		x += weight * logD
		y += weight * r.clump
		xx += weight * logD * logD
		xy += weight * logD * r.clump
	}
	if fitted < 2 {
		return line{}, errors.New("the streams are too short: fewer than two thresholds were passed often enough")
	}
	return line{mean: x / n, at: y / n, slope: (xy - x*y/n) / (xx - x*x/n)}, nil
}

// arl0 returns the log ARL0 at the 99% point.
func (r rung) arl0(clump line) float64 {
	if r.passages >= plenty {
		return r.tail + r.clump
	}
	return r.tail + clump.at + clump.slope*(math.Log(r.d)-clump.mean)
}

// readOff returns the threshold of each level, d^2 being linear in the log ARL0 between two rungs.
func readOff(rungs []rung, clump line, levels []float64) ([]float64, error) {
	row := make([]float64, len(levels))
	for i, level := range levels {
		wanted := math.Log(level)
		j := slices.IndexFunc(rungs, func(r rung) bool { return r.arl0(clump) >= wanted })
		if j < 1 {
			return nil, fmt.Errorf("an ARL0 of %v lies outside the thresholds from %v to %v", level, rungs[0].d, rungs[len(rungs)-1].d)
		}
		a, b := rungs[j-1], rungs[j]
		share := (wanted - a.arl0(clump)) / (b.arl0(clump) - a.arl0(clump))
		d := math.Sqrt(a.d*a.d + share*(b.d*b.d-a.d*a.d))
		row[i] = math.Ceil(1e4*d) / 1e4
	}
	return row, nil
}

// The purposes of random numbers: each baseline has a separate source, and so has each stream.
const (
	forBaselines = iota
	forStreams
	purposes
)

func (p plan) random(m, window, i, purpose int) *rand.Rand {
	return rand.New(rand.NewPCG(p.seed<<40|uint64(m)<<20|uint64(window), uint64(i*purposes+purpose)))
}

// baseline returns baseline b, in ascending order.
func (p plan) baseline(m, window, b int) []float64 {
	r := p.random(m, window, b, forBaselines)
	values := make([]float64, m)
	for i := range values {
		values[i] = r.Float64()
	}
	slices.Sort(values)
	return values
}

// parallel calls do for each index below n, on all cores.
func parallel(n int, do func(i int)) {
	var wg sync.WaitGroup
	cores := runtime.GOMAXPROCS(0)
	for core := range cores {
		wg.Go(func() {
			for i := core; i < n; i += cores {
				do(i)
			}
		})
	}
	wg.Wait()
}
