package detectors

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// ksRunLength returns the mean number of units to the first D >= d over a long uniform stream. After each passage
// the window is filled again, and the units at the end without a passage count as well. It is infinite if d was
// never reached.
func ksRunLength(t *testing.T, baseline []float64, window int, d float64, units int, r *rand.Rand) float64 {
	t.Helper()
	k, err := NewSlidingKS(baseline, window)
	if err != nil {
		t.Fatal(err)
	}
	refill := func() {
		for range window {
			k.Add(r.Float64())
		}
	}
	refill()
	reached := 0
	for range units {
		if at, _ := k.Statistic(); at >= d {
			reached++
			refill()
			continue
		}
		k.Add(r.Float64())
	}
	return float64(units) / float64(reached)
}

func uniformValues(n int, r *rand.Rand) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = r.Float64()
	}
	return x
}

// The share of baselines that keep the ARL0 is at least .99 less three standard errors, and the median baseline has
// less than the factor times the ARL0. The factor is the price of protecting the other baselines: it grows with the
// error of a baseline relative to that of a window, sqrt(window/m), and with the threshold.
func TestSimKSThresholdKeepsItsARL0(t *testing.T) {
	const baselines = 200
	least := .99 - 3*math.Sqrt(.99*.01/baselines)
	for name, c := range map[string]struct {
		m, window int
		arl0      float64
		passages  float64 // expected for a baseline that just keeps the ARL0; more if the baselines differ little
		factor    float64
	}{
		"the default":        {500, 200, 500, 30, 12},
		"the default, 2,000": {500, 200, 2000, 20, 25},
		"between two sizes":  {350, 200, 500, 20, 16},
		"a large baseline":   {2000, 200, 500, 60, 3},
		"a short window":     {500, 50, 500, 20, 5},
		"a long window":      {1000, 400, 500, 20, 10},
		"beyond all sizes":   {9000, 200, 500, 40, 2},
		"a small baseline":   {250, 50, 500, 20, 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, ok := KSThreshold(c.m, c.window, math.Log(c.arl0))
			if !ok {
				t.Fatal("no threshold")
			}
			var lengths []float64
			kept := 0
			for b := range baselines {
				r := rand.New(rand.NewPCG(uint64(c.m*c.window), uint64(b)))
				length := ksRunLength(t, uniformValues(c.m, r), c.window, d, int(c.passages*c.arl0), r)
				lengths = append(lengths, length)
				if length >= c.arl0 {
					kept++
				}
			}
			slices.Sort(lengths)
			share, median := float64(kept)/baselines, lengths[baselines/2]/c.arl0
			t.Logf("d = %.4f: share %.3f, median %.1f", d, share, median)
			if share < least {
				t.Errorf("%.3f of the baselines keep an ARL0 of %v, expected at least %.3f", share, c.arl0, least)
			}
			if median > c.factor {
				t.Errorf("the median baseline has %.1f times the ARL0, expected at most %v", median, c.factor)
			}
		})
	}
}

// Making values equal can only bring the distribution functions closer together at each unit, so a threshold for
// continuous data is reached no earlier if the data have ties.
func TestTiesNeverRaiseKS(t *testing.T) {
	for name, tie := range map[string]func(float64) float64{
		"hundredths":   func(u float64) float64 { return math.Floor(100*u) / 100 },
		"five values":  func(u float64) float64 { return math.Floor(5 * u) },
		"an atom":      func(u float64) float64 { return max(u, .7) },
		"one in forty": func(u float64) float64 { return max(math.Floor(40*u), 38) },
	} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(7, 8))
			baseline := uniformValues(150, r)
			tied := make([]float64, len(baseline))
			for i, u := range baseline {
				tied[i] = tie(u)
			}
			compareTied(t, baseline, tied, tie, r)
		})
	}
}

func compareTied(t *testing.T, baseline, tied []float64, tie func(float64) float64, r *rand.Rand) {
	t.Helper()
	const window = 50
	k, err := NewSlidingKS(baseline, window)
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewSlidingKS(tied, window)
	if err != nil {
		t.Fatal(err)
	}
	smaller := 0
	for range 5000 {
		u := r.Float64()
		k.Add(u)
		l.Add(tie(u))
		d, full := k.Statistic()
		e, _ := l.Statistic()
		if full && e > d {
			t.Fatalf("D = %v without ties, %v with ties", d, e)
		}
		if full && e < d {
			smaller++
		}
	}
	if smaller == 0 {
		t.Error("the ties changed nothing: nothing was tested")
	}
}

func TestKSThresholdIsMonotone(t *testing.T) {
	sizes := []int{100, 101, 130, 180, 249, 250, 251, 350, 499, 500, 501, 700, 1000, 1500, 2000, 3000, 4000, 5000}
	levels := []float64{4, math.Log(500), 6.5, 7, 7.5, 8, 8.5, 9, 9.5, 10, 11, 12, 13, 13.5, math.Log(1e6), 14, 16, 18, 20}
	d := func(m, window int, level float64) float64 {
		d, ok := KSThreshold(m, window, level)
		if !ok || d <= 0 || d >= 1 {
			t.Fatalf("m=%d, window %d, log ARL0 %v: %v, %v", m, window, level, d, ok)
		}
		return d
	}
	for i, m := range sizes {
		for j, window := range ksTable.windows {
			for k, level := range levels {
				at := d(m, window, level)
				if i > 0 && (m <= 4000 && at >= d(sizes[i-1], window, level) || at > d(sizes[i-1], window, level)) {
					t.Errorf("window %d, log ARL0 %v: d does not fall from m=%d to %d", window, level, sizes[i-1], m)
				}
				if j > 0 && at >= d(m, ksTable.windows[j-1], level) {
					t.Errorf("m=%d, log ARL0 %v: d does not fall from a window of %d to %d", m, level, ksTable.windows[j-1], window)
				}
				if k > 1 && at <= d(m, window, levels[k-1]) || k == 1 && at != d(m, window, levels[0]) {
					t.Errorf("m=%d, window %d: d does not rise from a log ARL0 of %v to %v", m, window, levels[k-1], level)
				}
			}
		}
	}
}

// Without one of its sizes, the table returns a larger threshold there: interpolation between sizes errs on the
// safe side.
func TestKSThresholdBetweenSizesIsSafe(t *testing.T) {
	for w, window := range ksTable.windows {
		for j := 1; j < len(ksTable.sizes)-1; j++ {
			without := ksTable
			without.sizes = slices.Delete(slices.Clone(ksTable.sizes), j, j+1)
			without.d = [][][]float64{slices.Delete(slices.Clone(ksTable.d[w]), j, j+1)}
			without.windows = []int{window}
			for k, arl0 := range ksTable.levels {
				if d := without.threshold(ksTable.sizes[j], window, math.Log(arl0)); d < ksTable.d[w][j][k] {
					t.Errorf("window %d, ARL0 %v: %.4f at m=%d between its neighbours, simulated %.4f", window, arl0, d, ksTable.sizes[j], ksTable.d[w][j][k])
				}
			}
		}
	}
}

// Without one of its levels, the table is off there by at most 1 %. Between its actual levels, at half the
// distance, the error is about a quarter of that.
func TestKSThresholdBetweenLevels(t *testing.T) {
	for w, window := range ksTable.windows {
		for j, m := range ksTable.sizes {
			row := ksTable.d[w][j]
			for k := 1; k < len(row)-1; k++ {
				without := ksTable
				without.levels = slices.Delete(slices.Clone(ksTable.levels), k, k+1)
				d := without.at(slices.Delete(slices.Clone(row), k, k+1), math.Log(ksTable.levels[k]))
				if math.Abs(d/row[k]-1) > .01 {
					t.Errorf("m=%d, window %d, ARL0 %v: %.4f between its neighbours, simulated %.4f", m, window, ksTable.levels[k], d, row[k])
				}
			}
		}
	}
}

// The line of d^2 over a tenfold is at or above the table a tenfold further, by less than 1.5 %: extrapolating
// beyond the table is on the safe side. The .2 % are for the steps of D, which are wide in a small baseline and
// window.
func TestKSThresholdBeyondLevelsIsSafe(t *testing.T) {
	for _, known := range []float64{1e5, 1e6, 1e7, 1e8} {
		cut := slices.Index(ksTable.levels, known) + 1
		further := slices.Index(ksTable.levels, 10*known)
		shorter := ksTable
		shorter.levels = ksTable.levels[:cut]
		for w, window := range ksTable.windows {
			for j, m := range ksTable.sizes {
				row := ksTable.d[w][j]
				d := shorter.at(row[:cut], math.Log(10*known))
				if d < .998*row[further] || d > 1.015*row[further] {
					t.Errorf("m=%d, window %d, ARL0 %v: %.4f by the line, %.4f in the table", m, window, 10*known, d, row[further])
				}
			}
		}
	}
}

func TestKSThresholdRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		m, window int
		logARL0   float64
	}{
		"a baseline below the table":     {99, 200, 8},
		"no baseline":                    {0, 200, 8},
		"a window between two":           {500, 150, 8},
		"no window":                      {500, 0, 8},
		"a level that would need D of 1": {100, 50, math.Log(1e60)},
		"an infinite level":              {500, 200, math.Inf(1)},
		"a level that is not a number":   {500, 200, math.NaN()},
		"not a number beyond all sizes":  {9000, 200, math.NaN()},
	} {
		t.Run(name, func(t *testing.T) {
			if d, ok := KSThreshold(c.m, c.window, c.logARL0); ok || !math.IsNaN(d) {
				t.Errorf("%v, %v", d, ok)
			}
		})
	}
}
