package main

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The ladder's count in one stream is compared with the definition: first passages that each start from a new
// window.
func TestSimPassagesAgainstFirstPassage(t *testing.T) {
	const m, window, runs = 250, 50, 1500
	baseline := plan{seed: 5}.baseline(m, window, 0)
	r := rand.New(rand.NewPCG(1, 2))
	l := newLadder(m, window)
	seen := watch(baseline, l, window, 300_000, r)
	compared := 0
	for i := range l.rungs {
		arl0 := float64(seen.units[i]) / float64(seen.count[i])
		if seen.count[i] == 0 || arl0 < 100 || arl0 > 1500 {
			continue
		}
		compared++
		var sum, squares float64
		for range runs {
			n := firstPassage(t, baseline, window, l.threshold(i)-1e-9, r) // the rung is a value of D except for rounding
			sum += n
			squares += n * n
		}
		mean := sum / runs
		deviation := math.Hypot(arl0/math.Sqrt(float64(seen.count[i])), math.Sqrt((squares/runs-mean*mean)/runs))
		if math.Abs(mean-arl0) > 3*deviation {
			t.Errorf("d = %.4f: %.1f units a passage on the ladder, %.1f to the first, standard error %.1f", l.threshold(i), arl0, mean, deviation)
		}
	}
	if compared < 3 {
		t.Errorf("only %d rungs compared", compared)
	}
}

func firstPassage(t *testing.T, baseline []float64, window int, d float64, r *rand.Rand) float64 {
	t.Helper()
	k := fullWindow(t, baseline, window, r)
	for n := 1.0; ; n++ {
		if at, _ := k.Statistic(); at >= d {
			return n
		}
		k.Add(r.Float64())
	}
}

func TestPassagesByHand(t *testing.T) {
	p := newPassages(ladder{step: .1, rungs: 11}, 5)
	for unit, d := range []float64{.1, .3, .3, .1, .1, .1, .3, .1} {
		p.observe(unit, d)
	}
	p.stop(12)
	for i, want := range map[int][2]int{
		1: {2, 1 + 1 + 2}, // at unit 0, at 5, and watched again at 10 and 11
		3: {2, 2 + 1 + 1}, // at unit 1, at 6, and watched again at 11
		4: {0, 12},
	} {
		if p.count[i] != want[0] || p.units[i] != want[1] {
			t.Errorf("rung %d: %d passages in %d units, expected %v", i, p.count[i], p.units[i], want)
		}
	}
}

func TestPassagesStopAtEnough(t *testing.T) {
	p := newPassages(ladder{step: .5, rungs: 3}, 1)
	for unit := range enough + 50 {
		p.observe(unit, .7)
	}
	p.stop(enough + 50)
	if p.count[1] != enough || p.units[1] != enough {
		t.Errorf("%d passages in %d units, expected %d in as many", p.count[1], p.units[1], enough)
	}
}

func TestLadderStandsOnValuesOfD(t *testing.T) {
	for _, c := range [][2]int{{100, 50}, {100, 400}, {250, 200}, {500, 200}, {467, 200}, {4000, 50}} {
		l := newLadder(c[0], c[1])
		lattice := float64(gcd(c[0], c[1])) / float64(c[0]*c[1])
		steps := l.step / lattice
		if math.Abs(steps-math.Round(steps)) > 1e-9 || l.step < .1/math.Sqrt(float64(c[1]))-1e-12 {
			t.Errorf("m=%d, window %d: rungs %v apart, D takes multiples of %v", c[0], c[1], l.step, lattice)
		}
		for i := range l.rungs {
			if l.below(l.threshold(i)) != i {
				t.Errorf("m=%d, window %d: rung %d is not at its own threshold", c[0], c[1], i)
			}
		}
	}
}
