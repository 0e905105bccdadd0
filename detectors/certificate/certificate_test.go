package certificate

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// bandError is the error probability of the band with the constants A and C by theorem 2 of Howard & Ramdas.
func bandError(a, c float64) float64 {
	least := 1.0
	for eta := 1.001; eta < 2*a*a; eta += .001 {
		if gamma := math.Sqrt(2/eta) * (a - math.Sqrt(2*(eta-1)/c)); gamma > 1 {
			least = min(least, 4*math.Exp(-gamma*gamma*c)*(1+1/((gamma*gamma-1)*math.Log(eta))))
		}
	}
	return least
}

func TestTimeUniformConstant(t *testing.T) {
	for alpha, published := range map[float64]float64{.05: 8.123, .01: 9.284} {
		if got := timeUniformConstant(alpha); got < published || got > published+.01 {
			t.Errorf("C = %.4f for an error of %v, want %v", got, alpha, published)
		}
	}
	for alpha := .05; alpha > 1e-12; alpha /= 1.7 {
		c := timeUniformConstant(alpha)
		if e := bandError(bandFactor, c); e > alpha*1.0005 { // .05 belongs to a C of 8.1227, which is rounded
			t.Errorf("C = %.3f has an error of %v, want at most %v", c, e, alpha)
		}
		if e := bandError(bandFactor, .985*c); e < alpha {
			t.Errorf("C = %.3f is more than 1.5%% too large for an error of %v", c, alpha)
		}
	}
}

// tied draws values with many ties.
func tied(rng *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = math.Round(3*rng.NormFloat64()) / 2
	}
	return x
}

func normal(rng *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = rng.NormFloat64()
	}
	return x
}

func constant(_ *rand.Rand, n int) []float64 { return make([]float64, n) }

// plainCertificate counts by the definition, for the starts and points of a certificate.
func plainCertificate(c *Bound, baseline, values []float64) float64 {
	best := 0.0
	for i := range c.Starts.Len() {
		at := c.Starts.At(i)
		since := values[at:]
		n, m := float64(len(since)), float64(len(baseline))
		if n < 16 {
			continue
		}
		j := float64(at / 16)
		level := .04 / ((j + 1) * (j + 2))
		band := .85*math.Sqrt((math.Log(1+math.Log(n/16))+8.123+.725*math.Log(.05/level))*c.Factor/n) +
			math.Sqrt(math.Log(2/.01)*c.Factor/2/m)
		for _, cut := range c.Cuts {
			count := func(sample []float64) (k float64) {
				for _, x := range sample {
					if x <= cut {
						k++
					}
				}
				return k
			}
			best = max(best, math.Abs(count(since)/n-count(baseline)/m)-band)
		}
	}
	return best
}

func TestCertificateAgreesWithCounting(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, draw := range []func(*rand.Rand, int) []float64{normal, tied, constant} {
		baseline := draw(rng, 200)
		c, err := New(slices.Sorted(slices.Values(baseline)), 1.3)
		if err != nil {
			t.Fatal(err)
		}
		var values []float64
		for i := range 1500 {
			x := rng.NormFloat64()
			if i > 700 {
				x = math.Round(2*x)/2 + 2
			}
			values = append(values, x)
			c.Add(x)
			if i%29 > 0 {
				continue
			}
			if got, want := c.AtLeast(), plainCertificate(c, baseline, values); math.Abs(got-want) > 1e-12 {
				t.Fatalf("%v after %d values, want %v", got, i+1, want)
			}
		}
		if c.AtLeast() < .05 {
			t.Errorf("%v at the end: the test compares zeros", c.AtLeast())
		}
	}
}

// For every number of values back, there is a start that is at most twice as old, plus one step.
func TestCertificateKeepsStartsOfAllAges(t *testing.T) {
	c, err := New([]float64{0, 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for range 300_000 {
		c.Add(0)
		if c.Seen%1000 != 0 {
			continue
		}
		if c.Starts.Len() > mostStarts || c.Starts.At(0) != 0 {
			t.Fatalf("%d starts, the first at %d", c.Starts.Len(), c.Starts.At(0))
		}
		for i := range c.Starts.Len() - 1 {
			older, newer := c.Seen-c.Starts.At(i), c.Seen-c.Starts.At(i+1)
			if c.Starts.At(i)%step != 0 || older > 2*newer+step {
				t.Fatalf("after %d values starts %d and %d values ago follow one another", c.Seen, older, newer)
			}
		}
	}
}

// certified adds values and returns the largest certificate over the run.
func certified(c *Bound, draw func() float64, n int) float64 {
	largest := 0.0
	for i := range n {
		c.Add(draw())
		if i%16 == 15 {
			largest = max(largest, c.AtLeast())
		}
	}
	return largest
}

func TestSimCertificateIsRarelyWrong(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	const runs = 200
	rng := rand.New(rand.NewPCG(2, 2))
	allowed := .05 + 3*math.Sqrt(.05*.95/runs)
	for _, shift := range []float64{0, .5, 2} {
		moved := math.Erf(shift / 2 / math.Sqrt2) // the largest difference of the distribution functions
		for _, m := range []int{100, 500} {
			wrong, largest := 0.0, 0.0
			for range runs {
				c, err := New(normal(rng, m), 1)
				if err != nil {
					t.Fatal(err)
				}
				d := certified(c, func() float64 { return shift + rng.NormFloat64() }, 3000)
				largest = max(largest, d)
				if d > moved {
					wrong++
				}
			}
			t.Logf("shift of %v sd, m = %d: moved by %.3f, largest certificate %.3f, too large in %.1f%% of runs of 3,000", shift, m, moved, largest, 100*wrong/runs)
			if wrong/runs > allowed {
				t.Errorf("shift of %v sd, m = %d: too large in %.1f%% of runs", shift, m, 100*wrong/runs)
			}
		}
	}
}

// A change of the distribution function by D is certified once the bands are narrower than D.
func TestCertificatePower(t *testing.T) {
	const runs = 100
	rng := rand.New(rand.NewPCG(3, 3))
	for _, c := range []struct {
		shift   float64
		healthy int
		after   int     // values since the change
		least   float64 // mean certificate by then, 3 standard errors below what was measured
	}{
		{.5, 500, 1500, .044},
		{1, 500, 100, .008},
		{1, 500, 400, .145},
		{1, 10_000, 200, .04},
		{2, 500, 50, .123},
		{2, 500, 200, .371},
		{2, 10_000, 50, .097},
	} {
		mean, square := 0.0, 0.0
		for range runs {
			certificate, err := New(normal(rng, 500), 1)
			if err != nil {
				t.Fatal(err)
			}
			for range c.healthy {
				certificate.Add(rng.NormFloat64())
			}
			for range c.after {
				certificate.Add(c.shift + rng.NormFloat64())
			}
			d := certificate.AtLeast()
			mean += d / runs
			square += d * d / runs
		}
		t.Logf("shift of %v sd after %d values: moved by %.3f, certified %.3f (standard error %.4f) %d values later",
			c.shift, c.healthy, math.Erf(c.shift/2/math.Sqrt2), mean, math.Sqrt((square-mean*mean)/runs), c.after)
		if mean < c.least {
			t.Errorf("shift of %v sd after %d values: %.3f certified %d values later, want at least %v", c.shift, c.healthy, mean, c.after, c.least)
		}
	}
}

func TestCertificateSeesChangesBesideAnAtom(t *testing.T) {
	for _, x := range []float64{6.9, 7.1} {
		c, err := New([]float64{7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7}, 1)
		if err != nil {
			t.Fatal(err)
		}
		for range 200 {
			c.Add(x)
		}
		if d := c.AtLeast(); d < .4 {
			t.Errorf("%v instead of 7: certified %v", x, d)
		}
	}
}

func TestCertificateRefusals(t *testing.T) {
	for _, baseline := range [][]float64{nil, {1, math.NaN()}} {
		if _, err := New(baseline, 1); err == nil {
			t.Errorf("a baseline of %v was taken", baseline)
		}
	}
	c, err := New([]float64{math.Inf(-1), 0, math.Inf(1)}, 1)
	if err != nil {
		t.Fatal(err)
	}
	c.Add(math.NaN())
	if c.Seen != 0 || c.AtLeast() != 0 {
		t.Error("NaN was counted")
	}
}

func TestCertificateRestoresAndRestarts(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	c, err := New(normal(rng, 100), 1.5)
	if err != nil {
		t.Fatal(err)
	}
	certified(c, rng.NormFloat64, 777)
	restored := &Bound{
		Units: c.Units, Factor: c.Factor, Cuts: slices.Clone(c.Cuts), Base: slices.Clone(c.Base), Seen: c.Seen, Counts: slices.Clone(c.Counts),
	}
	for i := range c.Starts.Len() {
		restored.AddStart(c.Starts.At(i), c.Starts.Packed(i))
	}
	for range 300 {
		x := 2 + rng.NormFloat64()
		c.Add(x)
		restored.Add(x)
	}
	if !reflect.DeepEqual(c, restored) {
		t.Error("a restored certificate went another way")
	}
	if c.AtLeast() == 0 {
		t.Fatal("nothing is certified")
	}
	c.Reset()
	for range first - 1 {
		c.Add(9)
	}
	if c.AtLeast() != 0 {
		t.Error("a certificate remembers what was before its reset")
	}
}

func TestCertificateAllocatesNothingOnceItsStartsAreThere(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	c, err := New(normal(rng, 500), 1)
	if err != nil {
		t.Fatal(err)
	}
	certified(c, rng.NormFloat64, step*mostStarts)
	if n := testing.AllocsPerRun(5000, func() { c.Add(.3) }); n != 0 {
		t.Errorf("%v allocations a value", n)
	}
}

func BenchmarkBound(b *testing.B) {
	rng := rand.New(rand.NewPCG(6, 6))
	c, err := New(normal(rng, 500), 1)
	if err != nil {
		b.Fatal(err)
	}
	values := normal(rng, 1024)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		c.Add(values[i%len(values)])
		i++
	}
}
