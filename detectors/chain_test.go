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

func TestNoveltyOfFewValues(t *testing.T) {
	two := NewRanks(rareSample(500, 60))
	novelty := NewNoveltyOfValues(two, 1)
	if novelty == nil || !novelty.Arm(1e-7) {
		t.Fatal("not armed")
	}
	if got := 1 / novelty.meanTime(novelty.Height); got > 1e-7 || 1/novelty.meanTime(novelty.Height-1) <= 1e-7 {
		t.Errorf("the height %d, of %v false alarms a unit, is not the least", novelty.Height, got)
	}
	for _, x := range []float64{0, 1} {
		if novelty.novel(x) {
			t.Errorf("%v is novel", x)
		}
	}
	if !novelty.novel(.5) || !novelty.novel(-1) {
		t.Error(".5 or -1 is not novel")
	}
	if NewNoveltyOfValues(two, 3) != nil {
		t.Error("a test of values that depend on one another")
	}
	units := int64(0)
	for novelty.Score() < 1 { // .5 with a share of .1
		x := 0.
		if units%10 == 9 {
			x = -1
		}
		novelty.Observe(x, units, false)
		units++
	}
	if units > 100 {
		t.Errorf("found after %d units", units)
	}
	many := make([]float64, 500)
	for i := range many {
		many[i] = float64(i % (fewValues + 1))
	}
	for name, sample := range map[string][]float64{"too many values": many, "too few units": rareSample(50, 5), "one value": make([]float64, 500)} {
		if NewNoveltyOfValues(NewRanks(sample), 1) != nil {
			t.Errorf("%s: a test", name)
		}
	}
}

// One in 300 units has a third value, which the baseline may not contain, and values depend on one another. Over
// all baselines together, false alarms stay within the requested rate.
func TestSimNoveltyOfFewValuesKeepsItsRate(t *testing.T) {
	const baselines, m, units, rate = 400, 500, 20_000, 1e-4
	rng := rand.New(rand.NewPCG(21, 21))
	independent := func() float64 {
		switch u := rng.Float64(); {
		case u < 1./300:
			return 2
		case u < .2:
			return 1
		}
		return 0
	}
	level := 0.
	follows := func(phi float64) func() float64 {
		return func() float64 {
			level = phi*level + math.Sqrt(1-phi*phi)*rng.NormFloat64()
			return math.Round(level)
		}
	}
	for name, c := range map[string]struct {
		value func() float64
		least int // baselines with the test
	}{"independent": {independent, 200}, "rounded": {follows(0), 200}, "phi .2": {follows(.2), 0}, "phi .5": {follows(.5), 0}, "phi .9": {follows(.9), 0}} {
		alarms, armed := 0, 0
		for range baselines {
			sample := make([]float64, m)
			for i := range sample {
				sample[i] = c.value()
			}
			novelty := NewNoveltyOfValues(NewRanks(sample), AllowedFactor(sample))
			if novelty == nil || !novelty.Arm(rate) {
				continue
			}
			armed++
			for i := range int64(units) {
				if novelty.Observe(c.value(), i, false); novelty.Score() >= 1 {
					alarms++
					novelty.Reset()
				}
			}
		}
		most := rate * units * float64(armed)
		t.Logf("%s: %d alarms of %d baselines, %.0f are allowed", name, alarms, armed, most)
		if float64(alarms) > most+3*math.Sqrt(most) || armed < c.least {
			t.Errorf("%s: %d alarms of %d baselines, %.0f are allowed", name, alarms, armed, most)
		}
	}
}
