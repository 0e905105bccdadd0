package detectors

import (
	"bytes"
	"encoding/gob"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// plainEDetector is the definition: the sum over all starts of the product of L since the start, averaged over stakes
// and sides.
func plainEDetector(x []float64, mean float64, side Side) float64 {
	gains := map[Side]func(float64) float64{
		Above: func(x float64) float64 { return x/mean - 1 },
		Below: func(x float64) float64 { return (1-x)/(1-mean) - 1 },
	}
	sum, terms := 0.0, 0.0
	for s, gain := range gains {
		if side != Both && side != s {
			continue
		}
		for k := range guaranteedBets {
			terms++
			stake := .9 / math.Pow(2, float64(k))
			for start := range x {
				product := 1.0
				for _, v := range x[start:] {
					product *= 1 + stake*gain(v)
				}
				sum += product
			}
		}
	}
	return sum / terms
}

func TestGuaranteedIsTheSumOverAllStarts(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, side := range []Side{Below, Above, Both} {
		for _, mean := range []float64{.02, .5, .9} {
			g, err := NewGuaranteed(mean, 1000, side)
			if err != nil {
				t.Fatal(err)
			}
			var x []float64
			for range 60 {
				x = append(x, math.Round(4*rng.Float64())/4)
				if err := g.Observe(x[len(x)-1]); err != nil {
					t.Fatal(err)
				}
				want := plainEDetector(x, mean, side)
				if got := g.Evidence(); math.Abs(got-want) > 1e-9*want {
					t.Fatalf("side %d, mean %v: evidence %v after %d values, want %v", side, mean, got, len(x), want)
				}
				if got, want := g.Score(), math.Max(0, math.Log(want)/math.Log(1000)); math.Abs(got-want) > 1e-9 {
					t.Fatalf("score %v, want %v", got, want)
				}
			}
		}
	}
}

// healthyLaw is a distribution with the given mean at each value, given all values before it.
type healthyLaw struct {
	name string
	mean float64
	draw func(*rand.Rand) func() float64
}

func healthyLaws() []healthyLaw {
	return []healthyLaw{
		{"Bernoulli .3", .3, func(r *rand.Rand) func() float64 {
			return func() float64 {
				if r.Float64() < .3 {
					return 1
				}
				return 0
			}
		}},
		{"beta(1/2, 1)", 1. / 3, func(r *rand.Rand) func() float64 {
			return func() float64 { u := r.Float64(); return u * u }
		}},
		{"clustered volatility", .5, func(r *rand.Rand) func() float64 {
			wide := false
			return func() float64 {
				if r.Float64() < .02 {
					wide = !wide
				}
				d := .01
				if wide {
					d = .5
				}
				if r.Float64() < .5 {
					d = -d
				}
				return .5 + d
			}
		}},
		{"spread that follows the last value", .5, func(r *rand.Rand) func() float64 {
			last := 0.0
			return func() float64 {
				d := .02 + .48*last*r.Float64()
				last = r.Float64()
				if r.Float64() < .5 {
					d = -d
				}
				return .5 + d
			}
		}},
	}
}

// runLength returns the number of values to the first alarm, at most most.
func runLength(g *Guaranteed, draw func() float64, most int) int {
	g.Reset()
	for n := 1; n < most; n++ {
		if g.Observe(draw()) != nil || g.Score() >= 1 {
			return n
		}
	}
	return most
}

// The run lengths are cut off at 20 N, which makes their mean smaller.
func TestGuaranteedKeepsItsFalseAlarms(t *testing.T) {
	const n, runs = 100, 2000
	for _, law := range healthyLaws() {
		for _, side := range []Side{Below, Above, Both} {
			g, err := NewGuaranteed(law.mean, n, side)
			if err != nil {
				t.Fatal(err)
			}
			draw := law.draw(rand.New(rand.NewPCG(2, 2)))
			sum, square := 0.0, 0.0
			for range runs {
				length := float64(runLength(g, draw, 20*n))
				sum += length / runs
				square += length * length / runs
			}
			se := math.Sqrt((square - sum*sum) / runs)
			t.Logf("%s, side %d: mean run of %.0f values (standard error %.0f) at N = %d", law.name, side, sum, se, n)
			if sum+3*se < n {
				t.Errorf("%s, side %d: mean run of %.0f values (standard error %.0f), want at least %d", law.name, side, sum, se, n)
			}
		}
	}
}

// A test that knows both means needs about log N / KL values.
func TestGuaranteedDelay(t *testing.T) {
	const n, runs = 10_000, 200
	for _, side := range []Side{Above, Both} {
		for _, shifted := range []float64{.6, .7, .9} {
			g, err := NewGuaranteed(.5, n, side)
			if err != nil {
				t.Fatal(err)
			}
			rng := rand.New(rand.NewPCG(3, 3))
			mean := 0.0
			for range runs {
				length := runLength(g, func() float64 {
					if rng.Float64() < shifted {
						return 1
					}
					return 0
				}, 50*n)
				mean += float64(length) / runs
			}
			best := math.Log(n) / (shifted*math.Log(2*shifted) + (1-shifted)*math.Log(2*(1-shifted)))
			t.Logf("Bernoulli .5 -> %v, side %d, N = %d: delay %.1f; log N / KL = %.1f", shifted, side, n, mean, best)
			if mean > 1.5*best {
				t.Errorf("Bernoulli .5 -> %v: delay %.1f, want at most 1.5 times %.1f", shifted, mean, best)
			}
		}
	}
}

func TestGuaranteedRefusesWhatItCannotJudge(t *testing.T) {
	for _, mean := range []float64{0, 1, -1, 2, math.NaN()} {
		if _, err := NewGuaranteed(mean, 100, Both); err == nil {
			t.Errorf("a mean of %v was taken", mean)
		}
	}
	for _, n := range []float64{1, 0, -5, math.NaN(), math.Inf(1)} {
		if _, err := NewGuaranteed(.5, n, Both); err == nil {
			t.Errorf("N = %v was taken", n)
		}
	}
	if _, err := NewGuaranteed(.5, 100, Both+1); err == nil {
		t.Error("an unknown side was taken")
	}
	g, err := NewGuaranteed(.5, 100, Both)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Observe(.75); err != nil {
		t.Fatal(err)
	}
	before := *g
	for _, x := range []float64{-1e-9, 1 + 1e-9, math.NaN(), math.Inf(1)} {
		if err := g.Observe(x); !errors.Is(err, ErrNotInUnitInterval) {
			t.Errorf("%v: error %v", x, err)
		}
	}
	if *g != before {
		t.Error("a refused value changed the evidence")
	}
}

func TestGuaranteedRunsForEver(t *testing.T) {
	for _, mean := range []float64{1e-300, .5, 1 - 1e-16} {
		g, err := NewGuaranteed(mean, 1e6, Both)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 200_000 {
			if err := g.Observe(float64(i / 50_000 % 2)); err != nil {
				t.Fatal(err)
			}
			if s := g.Score(); math.IsNaN(s) || math.IsInf(s, 0) || s < 0 {
				t.Fatalf("mean %v: score %v after %d values", mean, s, i+1)
			}
		}
	}
}

func TestGuaranteedRestoresToTheSameBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	g, err := NewGuaranteed(.4, 1000, Both)
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if err := g.Observe(rng.Float64()); err != nil {
			t.Fatal(err)
		}
	}
	var buf bytes.Buffer
	var restored Guaranteed
	if err := errors.Join(gob.NewEncoder(&buf).Encode(g), gob.NewDecoder(&buf).Decode(&restored)); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		x := rng.Float64()
		if err := errors.Join(g.Observe(x), restored.Observe(x)); err != nil {
			t.Fatal(err)
		}
	}
	if *g != restored {
		t.Error("a restored test went another way")
	}
}

func TestGuaranteedAllocatesNothing(t *testing.T) {
	g, err := NewGuaranteed(.4, 1000, Both)
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(1000, func() {
		if g.Observe(.3) != nil || math.IsNaN(g.Score()) {
			t.Error("a value between 0 and 1 was refused")
		}
	}); n != 0 {
		t.Errorf("%v allocations a value", n)
	}
}

func BenchmarkGuaranteed(b *testing.B) {
	g, err := NewGuaranteed(.4, 1000, Both)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := g.Observe(.4); err != nil {
			b.Fatal(err)
		}
	}
}
