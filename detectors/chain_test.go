package detectors

import (
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
