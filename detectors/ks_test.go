package detectors

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"
)

// bruteKS is the textbook statistic: the distribution functions compared at every point of both samples.
func bruteKS(baseline, window []float64) float64 {
	share := func(sample []float64, x float64) float64 {
		n := 0
		for _, v := range sample {
			if v <= x {
				n++
			}
		}
		return float64(n) / float64(len(sample))
	}
	d := 0.0
	for _, x := range slices.Concat(baseline, window) {
		d = max(d, math.Abs(share(baseline, x)-share(window, x)))
	}
	return d
}

func sortedCopy(x []float64) []float64 {
	x = slices.Clone(x)
	slices.Sort(x)
	return x
}

func TestSlidingKSEqualsGonum(t *testing.T) {
	laws := map[string]func(*rand.Rand) float64{
		"normal":    func(r *rand.Rand) float64 { return r.NormFloat64() },
		"many ties": func(r *rand.Rand) float64 { return math.Round(3 * r.NormFloat64()) },
		"0/1":       func(r *rand.Rand) float64 { return float64(r.IntN(2)) },
		"constant":  func(*rand.Rand) float64 { return 7 },
		"signed zeros": func(r *rand.Rand) float64 {
			return []float64{math.Copysign(0, -1), 0, 1}[r.IntN(3)]
		},
		"infinities": func(r *rand.Rand) float64 {
			return []float64{math.Inf(-1), -1, 0, 1, math.Inf(1)}[r.IntN(5)]
		},
	}
	for name, draw := range laws {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			for _, size := range [][2]int{{1, 1}, {3, 1}, {1, 5}, {8, 3}, {40, 17}, {101, 200}} {
				compareWithGonum(t, r, draw, size[0], size[1])
			}
		})
	}
}

func compareWithGonum(t *testing.T, r *rand.Rand, draw func(*rand.Rand) float64, m, w int) {
	t.Helper()
	baseline := make([]float64, m)
	for i := range baseline {
		baseline[i] = draw(r)
	}
	k, err := NewSlidingKS(baseline, w)
	if err != nil {
		t.Fatal(err)
	}
	var seen []float64
	for i := range w + 500 {
		x := draw(r)
		if i > w+250 {
			x += 1 // also values between and beyond the baseline's points
		}
		seen = append(seen, x)
		k.Add(x)
		d, full := k.Statistic()
		if full != (i+1 >= w) {
			t.Fatalf("m=%d w=%d: full=%v after %d values", m, w, full, i+1)
		}
		if !full {
			if !math.IsNaN(d) {
				t.Fatalf("D = %v from a window that is not full", d)
			}
			continue
		}
		window := seen[len(seen)-w:]
		want := stat.KolmogorovSmirnov(sortedCopy(baseline), nil, sortedCopy(window), nil)
		if math.Abs(d-want) > 1e-12 {
			t.Fatalf("m=%d w=%d: D = %v after %d values, gonum says %v", m, w, d, i+1, want)
		}
		if i%37 == 0 && math.Abs(d-bruteKS(baseline, window)) > 1e-12 {
			t.Fatalf("m=%d w=%d: D = %v after %d values, by definition %v", m, w, d, i+1, bruteKS(baseline, window))
		}
	}
}

func TestSlidingKSRestoresFromItsWindow(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	baseline := make([]float64, 60)
	for i := range baseline {
		baseline[i] = math.Round(5 * r.NormFloat64())
	}
	for _, added := range []int{0, 1, 24, 25, 26, 90} {
		k, err := NewSlidingKS(baseline, 25)
		if err != nil {
			t.Fatal(err)
		}
		for range added {
			k.Add(math.Round(6 * r.NormFloat64()))
		}
		restored, err := NewSlidingKS(baseline, 25)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range k.Window() {
			restored.Add(x)
		}
		resumed, err := order(baseline).Resume(25, k.Window())
		if err != nil || !reflect.DeepEqual(resumed, restored) {
			t.Fatalf("%d values: resumed %+v, %v, one by one %+v", added, resumed, err, restored)
		}
		for i := range 60 {
			d, full := k.Statistic()
			again, againFull := restored.Statistic()
			if full != againFull || full && d != again {
				t.Fatalf("%d values, then %d: %v %v, restored %v %v", added, i, d, full, again, againFull)
			}
			x := r.NormFloat64()
			k.Add(x)
			restored.Add(x)
		}
	}
}

func TestSlidingKSIgnoresNaN(t *testing.T) {
	k, err := NewSlidingKS([]float64{1, 2, 3}, 2)
	if err != nil {
		t.Fatal(err)
	}
	k.Add(2)
	k.Add(math.NaN())
	if _, full := k.Statistic(); full {
		t.Error("NaN filled the window")
	}
	k.Add(9)
	if got := k.Window(); !slices.Equal(got, []float64{2, math.Nextafter(3, 4)}) {
		t.Errorf("the window holds %v", got)
	}
}

func TestNewSlidingKSRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		baseline []float64
		window   int
	}{
		"no baseline":    {nil, 10},
		"NaN":            {[]float64{1, math.NaN()}, 10},
		"no window":      {[]float64{1}, 0},
		"negative":       {[]float64{1}, -5},
		"more than fits": {make([]float64, 2), math.MaxInt32},
		"too long":       {[]float64{1}, 1 << 16},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := NewSlidingKS(c.baseline, c.window); err == nil {
				t.Error("it was accepted")
			}
		})
	}
}

func TestSlidingKSLeavesItsBaselineAlone(t *testing.T) {
	baseline := []float64{3, 1, 2}
	k, err := NewSlidingKS(baseline, 1)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(baseline, []float64{3, 1, 2}) {
		t.Errorf("the caller's baseline became %v", baseline)
	}
	baseline[0] = 100
	k.Add(3)
	if d, _ := k.Statistic(); d != 2.0/3 {
		t.Errorf("D = %v, want 2/3", d)
	}
}

func TestSlidingKSAddAllocatesNothing(t *testing.T) {
	k, values := benchmarkKS(t, 1024, 1000)
	i := 0
	if n := testing.AllocsPerRun(5000, func() { k.Add(values[i%len(values)]); i++ }); n != 0 {
		t.Errorf("%v allocations an update", n)
	}
}

func TestSlidingKSMemory(t *testing.T) {
	k, _ := benchmarkKS(t, 500, 200)
	size := cap(k.counts) + cap(k.over) + 12*cap(k.nodes) + 2*cap(k.where.short) + 4*cap(k.where.long)
	if size > 3<<10 {
		t.Errorf("a window of 200 beside a baseline of 500 takes %d bytes, more than 3 KiB", size)
	}
}

func benchmarkKS(tb testing.TB, m, w int) (*SlidingKS, []float64) {
	tb.Helper()
	r := rand.New(rand.NewPCG(5, 6))
	normal := func(n int) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = r.NormFloat64()
		}
		return x
	}
	k, err := NewSlidingKS(normal(m), w)
	if err != nil {
		tb.Fatal(err)
	}
	values := normal(1 << 16)
	for _, x := range values[:w] {
		k.Add(x)
	}
	return k, values
}
