package mix_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/mix"
)

// law draws a stratum and a value in it.
type law struct {
	shares, means []float64
	sd            float64
}

func (l law) cells(rng *rand.Rand, n int) []mix.Cell {
	cells := make([]mix.Cell, len(l.shares))
	for range n {
		x, at := rng.Float64(), 0
		for at < len(l.shares)-1 && x >= l.shares[at] {
			x -= l.shares[at]
			at++
		}
		cells[at].Add(l.means[at] + l.sd*rng.NormFloat64())
	}
	return cells
}

func before() law {
	return law{[]float64{.5, .38, .12}, []float64{.6, 0, -1.2}, 1}
}

func TestPartsSumToTheChange(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		b, a := before().cells(rng, 1+rng.IntN(200)), law{[]float64{.2, .2, .6}, []float64{0, 1, -1}, .5}.cells(rng, 1+rng.IntN(200))
		sums := func(cells []mix.Cell) (n, sum float64) {
			for _, c := range cells {
				n, sum = n+float64(c.N), sum+float64(c.N)*c.Mean
			}
			return n, sum
		}
		nb, sb := sums(b)
		na, sa := sums(a)
		s, _ := mix.Of(b, a, 1)
		if want := sa/na - sb/nb; math.Abs(s.Change-want) > 1e-9 || math.Abs(s.Mix+s.Within-want) > 1e-9 {
			t.Fatalf("change %v = %v + %v, want %v", s.Change, s.Mix, s.Within, want)
		}
	}
}

// The standard errors equal those over many baselines and changes, and P is uniform if no stratum has changed.
// Because variances are estimated, P is smaller than that if there are few units: with 60, of which 14 are in a
// stratum, .05 stands for about .07.
func TestSimErrorsOfTheParts(t *testing.T) {
	const runs = 4000
	more := law{[]float64{.3, .23, .47}, before().means, 1}
	worse := law{more.shares, []float64{.1, -.5, -1.7}, 1}
	for name, c := range map[string]struct {
		after       law
		n           int
		mix, within float64
		rare        float64 // largest share of runs with P below .05
	}{
		"nothing":           {before(), 200, 0, 0, .06},
		"the mix":           {more, 200, -.2*.6 - .35*1.2, 0, .06},
		"the mix, for less": {more, 60, -.2*.6 - .35*1.2, 0, .08},
		"both":              {worse, 200, -.2*.35 + .15*.25 - .35*1.45, -.5, 1},
	} {
		rng := rand.New(rand.NewPCG(3, 4))
		var m, w, me, we mix.Cell
		rare := 0.
		for range runs {
			s, _ := mix.Of(before().cells(rng, 500), c.after.cells(rng, c.n), 1)
			m.Add(s.Mix)
			w.Add(s.Within)
			me.Add(s.MixError * s.MixError)
			we.Add(s.WithinError * s.WithinError)
			if s.P < .05 {
				rare++
			}
		}
		check := func(what string, got, variance, want float64) {
			if math.Abs(got-want) > 4*math.Sqrt(variance/runs) {
				t.Errorf("%s: %s is %.4f, want %.4f", name, what, got, want)
			}
		}
		vm, vw := m.M2/(runs-1), w.M2/(runs-1)
		check("the mix", m.Mean, vm, c.mix)
		check("what happened within", w.Mean, vw, c.within)
		// A variance over that many runs has a relative error of sqrt(2/runs) = .022; the delta method may be off
		// by a twentieth.
		for what, ratio := range map[string]float64{"mix": me.Mean / vm, "within": we.Mean / vw} {
			if ratio < .88 || ratio > 1.12 {
				t.Errorf("%s: the squared error of %s is %.3f of the variance", name, what, ratio)
			}
		}
		if share := rare / runs; share < .04 || share > c.rare {
			t.Errorf("%s: P is below .05 in %.3f of the runs", name, share)
		}
	}
}

// Units that depend on each other contain less information.
func TestDependenceWidensErrors(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	b, a := before().cells(rng, 500), law{[]float64{.3, .23, .47}, []float64{.3, 0, -1.2}, 1}.cells(rng, 300)
	one, _ := mix.Of(b, a, 1)
	four, _ := mix.Of(b, a, 4)
	if math.Abs(four.MixError-2*one.MixError) > 1e-9 || math.Abs(four.WithinError-2*one.WithinError) > 1e-9 || four.P <= one.P {
		t.Errorf("errors %v and %v, P %v at a factor of 4; %v, %v and %v at 1", four.MixError, four.WithinError, four.P, one.MixError, one.WithinError, one.P)
	}
}

func cell(n int64, mean float64) mix.Cell { return mix.Cell{N: n, Mean: mean, M2: float64(n)} }

func TestStrataThatAreMissing(t *testing.T) {
	for name, c := range map[string]struct {
		before, after []mix.Cell
		want          float64 // of the mix
		most          int
	}{
		"a new one":  {[]mix.Cell{cell(100, 1), {}}, []mix.Cell{cell(50, 1), cell(50, 0)}, -.5, 1},
		"an old one": {[]mix.Cell{cell(50, 1), cell(50, 0)}, []mix.Cell{cell(100, 1), {}}, .5, 1},
		"all before": {[]mix.Cell{{}, {}}, []mix.Cell{cell(10, 1), {}}, 0, -1},
		"all after":  {[]mix.Cell{cell(10, 1), {}}, []mix.Cell{{}, {}}, 0, -1},
	} {
		s, most := mix.Of(c.before, c.after, 1)
		if math.Abs(s.Mix-c.want) > 1e-12 || s.Within != 0 || most != c.most || math.IsNaN(s.P) {
			t.Errorf("%s: mix %v (want %v), within %v, most %d (want %d), P %v", name, s.Mix, c.want, s.Within, most, c.most, s.P)
		}
	}
}

func TestWhatTheMixExplains(t *testing.T) {
	more := law{[]float64{.3, .23, .47}, before().means, 1}
	for name, c := range map[string]struct {
		after                      law
		n                          int
		explained, beyond, contrib bool
	}{
		"the mix":            {more, 400, true, false, true},
		"too few units":      {more, 40, false, false, true},
		"within":             {law{before().shares, []float64{-.2, -.8, -2}, 1}, 400, false, true, false},
		"both":               {law{more.shares, []float64{0, -.6, -1.8}, 1}, 400, false, true, true},
		"strata that cancel": {law{more.shares, []float64{-.6, 1.6, -1.2}, 1}, 400, false, true, true},
	} {
		rng := rand.New(rand.NewPCG(7, 8)) // the same for each, whatever their order
		s, _ := mix.Of(before().cells(rng, 2000), c.after.cells(rng, c.n), 1)
		if s.Explained() != c.explained || s.Beyond() != c.beyond || s.Contributes() != c.contrib {
			t.Errorf("%s: explained %v, beyond %v, contributes %v: %+v", name, s.Explained(), s.Beyond(), s.Contributes(), s)
		}
	}
}

// If an error that never happened before happens to users who come more often now, their share is not the cause.
func TestTheMixOfEqualValuesContributesNothing(t *testing.T) {
	cells := func(n int, x float64) (c mix.Cell) {
		for range n {
			c.Add(x)
		}
		return c
	}
	s, _ := mix.Of([]mix.Cell{cells(900, 0), cells(100, 0)}, []mix.Cell{cells(100, 0), cells(900, 1)}, 1)
	if s.Contributes() || s.Explained() {
		t.Errorf("%+v contributes", s)
	}
}
