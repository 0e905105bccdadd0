package detectors

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// chainByElimination is the textbook form of meanTimeToHeight: the system of equations of all cells.
func chainByElimination(increments []float64) float64 {
	q := mat.NewDense(chainCells, chainCells, nil)
	for i := range chainCells {
		q.Set(i, i, 1)
		for k, p := range shiftProbabilities(increments, evenly(len(increments))) {
			if j := max(0, i+k-chainCells); j < chainCells {
				q.Set(i, j, q.At(i, j)-p)
			}
		}
	}
	return firstPassage(q)
}

// firstPassage solves (I - Q) t = 1 for the mean times t to absorption and returns the one from state 0; q is I - Q and
// is overwritten. The result is infinite if absorption cannot be reached.
func firstPassage(q *mat.Dense) float64 {
	n, _ := q.Dims()
	ones := make([]float64, n)
	for i := range ones {
		ones[i] = 1
	}
	var lu mat.LU
	lu.Factorize(q)
	times := mat.NewVecDense(n, nil)
	err := lu.SolveVecTo(times, false, mat.NewVecDense(n, ones))
	var condition mat.Condition
	if errors.As(err, &condition) && math.IsInf(float64(condition), 1) {
		return math.Inf(1)
	}
	return times.AtVec(0)
}

// noveltyByElimination is the textbook form of Novelty.meanTime.
func noveltyByElimination(t *Novelty, h int) float64 {
	q := mat.NewDense(h, h, nil)
	for i := range h {
		q.Set(i, i, 1)
		down := max(0, i-1)
		q.Set(i, down, q.At(i, down)-(1-t.Rate))
		if up := i + t.Up; up < h {
			q.Set(i, up, q.At(i, up)-t.Rate)
		}
	}
	return firstPassage(q)
}

func TestNoveltyAgreesWithElimination(t *testing.T) {
	for _, rate := range []float64{1e-4, .0077, .05, .2, .49} {
		for _, up := range []int{1, 2, 5, 9, 40} {
			test := &Novelty{Rate: rate, Up: up}
			for _, h := range []int{1, 2, up, up + 1, 2*up + 1, 60} {
				got, want := test.meanTime(h), noveltyByElimination(test, h)
				if got < 1e9 && !(math.Abs(got/want-1) < 1e-6) { // beyond, elimination is inexact
					t.Errorf("rate %v, %d up, height %d: mean time %v, want %v", rate, up, h, got, want)
				}
			}
		}
	}
}

// samplesOfLaws returns samples of m values of different laws, by name.
func samplesOfLaws(rng *rand.Rand, m int) map[string][]float64 {
	skewed, binary, coarse := make([]float64, m), make([]float64, m), make([]float64, m)
	for i := range m {
		skewed[i] = rng.ExpFloat64()
		binary[i] = float64(min(1, rng.IntN(12)) ^ 1)
		coarse[i] = math.Round(2 * rng.NormFloat64())
	}
	return map[string][]float64{
		"normal": normal(rng, m), "tied": tied(rng, m), "skewed": skewed, "binary": binary, "coarse": coarse,
	}
}

func TestChainAgreesWithElimination(t *testing.T) {
	rng := rand.New(rand.NewPCG(120, 0))
	for _, m := range []int{30, 100, 500} {
		for law, sample := range samplesOfLaws(rng, m) {
			own := NewRanks(sample).ownAll(sample)
			for _, b := range allBranches() {
				g := make([]float64, m)
				for i, r := range own {
					g[i] = b.increment(r)
				}
				c := calibrate(g, evenly(len(g))).C
				for i := range g {
					g[i] -= c
				}
				got, want := math.Log(meanTimeToHeight(g, evenly(len(g)))), math.Log(chainByElimination(g))
				if !(math.Abs(got-want) < 1e-9) {
					t.Errorf("%d %s values, %s: log mean time %v, want %v", m, law, b, got, want)
				}
			}
		}
	}
}

func TestChainThatCannotClimb(t *testing.T) {
	for _, g := range [][]float64{{0}, {-1, -.1}, {0, -3}} {
		if got := meanTimeToHeight(g, evenly(len(g))); !math.IsInf(got, 1) {
			t.Errorf("increments %v: mean time %v, want infinite", g, got)
		}
	}
	if got := meanTimeToHeight([]float64{chainHeight, chainHeight}, evenly(2)); got != 1 {
		t.Errorf("a climb in one step takes %v", got)
	}
}

func BenchmarkChain(b *testing.B) {
	sample := continuous(500)
	g := make([]float64, len(sample))
	for i, r := range NewRanks(sample).ownAll(sample) {
		g[i] = Branch{Location, .8}.increment(r) - .31
	}
	for b.Loop() {
		meanTimeToHeight(g, evenly(len(g)))
	}
}
