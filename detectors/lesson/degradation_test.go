package lesson

import (
	"math"
	"math/rand/v2"
	"testing"
)

// profilesOf returns n profiles of t segments whose rewards are correlated; segment j varies by sd[j] around 10 and
// is rounded to a multiple of grid, so that there are ties.
func profilesOf(rng *rand.Rand, n int, sd []float64, correlation, grid float64) [][]float32 {
	out := make([][]float32, n)
	for i := range out {
		level := rng.NormFloat64()
		for _, s := range sd {
			x := 10 + s*level
			if grid > 0 {
				x = math.Round(x/grid) * grid
			}
			out[i] = append(out[i], float32(x))
			level = correlation*level + math.Sqrt(1-correlation*correlation)*rng.NormFloat64()
		}
	}
	return out
}

// plainDegradation is the textbook form: the covariance matrix is computed element by element, shrunk by the
// estimated variances of the correlations, and inverted by Gauss-Jordan elimination.
func plainDegradation(profiles [][]float32) (mean, weights []float64) {
	n, t := float64(len(profiles)), len(profiles[0])
	mean = make([]float64, t)
	cov := make([][]float64, t)
	z := make([][]float64, len(profiles))
	for j := range t {
		for _, p := range profiles {
			mean[j] += float64(p[j]) / n
		}
	}
	for i := range t {
		cov[i] = make([]float64, t)
		for j := range t {
			for _, p := range profiles {
				cov[i][j] += (float64(p[i]) - mean[i]) * (float64(p[j]) - mean[j]) / n
			}
		}
	}
	for k, p := range profiles {
		for j := range t {
			z[k] = append(z[k], (float64(p[j])-mean[j])/math.Sqrt(cov[j][j]))
		}
	}
	variances, squares := 0.0, 0.0
	for i := range t {
		for j := range t {
			if i == j {
				continue
			}
			r := cov[i][j] / math.Sqrt(cov[i][i]*cov[j][j])
			squares += r * r
			for k := range profiles {
				e := z[k][i]*z[k][j] - r
				variances += e * e / n / n
			}
		}
	}
	l := min(1, variances/squares)
	for i := range t {
		for j := range t {
			if i != j {
				cov[i][j] *= 1 - l
			}
		}
	}
	weights = solvePlain(cov)
	information := 0.0
	for _, w := range weights {
		information += w
	}
	for j := range weights {
		weights[j] /= math.Sqrt(information)
	}
	return mean, weights
}

// solvePlain solves a x = 1.
func solvePlain(a [][]float64) []float64 {
	x := make([]float64, len(a))
	for i := range x {
		x[i] = 1
	}
	for i := range a {
		pivot := a[i][i]
		for j := range a {
			a[i][j] /= pivot
		}
		x[i] /= pivot
		for k := range a {
			if k == i {
				continue
			}
			f := a[k][i]
			for j := range a {
				a[k][j] -= f * a[i][j]
			}
			x[k] -= f * x[i]
		}
	}
	return x
}

func TestDegradationIsThePlainOne(t *testing.T) {
	for _, c := range []struct {
		name        string
		n           int
		sd          []float64
		correlation float64
		grid        float64
	}{
		{"correlated", 400, []float64{1, 1, 1, 1, 1, 1}, .8, 0},
		{"spreads that differ, ties", 300, []float64{1, .1, 3, .5}, .6, .05},
		{"few episodes", 12, []float64{1, 2, 1, 2, 1, 2, 1, 2}, .5, 0},
		{"independent", 500, []float64{1, 2, 3}, 0, 0},
	} {
		profiles := profilesOf(rand.New(rand.NewPCG(1, uint64(c.n))), c.n, c.sd, c.correlation, c.grid)
		mean, weights := plainDegradation(profiles)
		d := NewDegradation(profiles)
		for j := range weights {
			if math.Abs(d.Weights[j]-weights[j]) > 1e-8*math.Abs(weights[0]) || math.Abs(d.Mean[j]-mean[j]) > 1e-9 {
				t.Errorf("%s: segment %d: weight %v and mean %v, want %v and %v", c.name, j, d.Weights[j], d.Mean[j], weights[j], mean[j])
			}
		}
		for _, p := range profiles[:5] {
			want := 0.0
			for j, v := range p {
				want += weights[j] * (float64(v) - mean[j])
			}
			if got := d.Score(p); math.Abs(got-want) > 1e-8 {
				t.Errorf("%s: score %v, want %v", c.name, got, want)
			}
		}
	}
}

// Independent segments are weighted by the inverse of their variances, and chance correlations are shrunk away.
func TestIndependentSegmentsWeighByTheirVariance(t *testing.T) {
	const n = 20_000
	d := NewDegradation(profilesOf(rand.New(rand.NewPCG(2, 0)), n, []float64{1, .5, 2}, 0, 0))
	// The ratio of two variances has a relative standard error of 2/sqrt(n); the bound is three of them, plus the
	// remaining correlations.
	for j, want := range []float64{1, 4, .25} {
		if got := d.Weights[j] / d.Weights[0]; math.Abs(got-want) > want*(3*2/math.Sqrt(n)+.02) {
			t.Errorf("segment %d weighs %.3f times as much as the first, want %.3f", j, got, want)
		}
	}
}

// The scores of held-out episodes have mean 0 and a variance near 1, and no score uses weights that have seen its
// episode.
func TestScoresAreHeldOut(t *testing.T) {
	const n = 501
	profiles := profilesOf(rand.New(rand.NewPCG(3, 0)), n, []float64{1, .3, 1, .3, 1, .3, 1, .3}, .9, 0)
	scores, model := LearnDegradation(profiles)
	for k := range folds {
		from, to := k*n/folds, (k+1)*n/folds
		var others [][]float32
		for i, p := range profiles {
			if i < from || i >= to {
				others = append(others, p)
			}
		}
		d := NewDegradation(others)
		for i := from; i < to; i++ {
			if want := d.Score(profiles[i]); scores[i] != want {
				t.Fatalf("score %d is %v, want %v", i, scores[i], want)
			}
		}
	}
	mean, square := 0.0, 0.0
	for _, s := range scores {
		mean += s / n
		square += s * s / n
	}
	if math.Abs(mean) > 3/math.Sqrt(n) || math.Abs(square-1) > 3*math.Sqrt(2.0/n)+.05 {
		t.Errorf("held-out scores have mean %.3f and mean square %.3f", mean, square)
	}
	if all := NewDegradation(profiles); model.Weights[0] != all.Weights[0] {
		t.Errorf("the model has not learnt from all episodes")
	}
}

func TestWhatCannotBeWeighedIsLeftOut(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 0))
	profiles := profilesOf(rng, 100, []float64{1, 0, 1e-9, 1}, 0, 0)
	d := NewDegradation(profiles)
	if d.Weights[1] != 0 || d.Weights[2] != 0 || d.Weights[0] == 0 || d.Weights[3] == 0 {
		t.Errorf("weights %v, want none of the constant segments", d.Weights)
	}
	if got := d.Score([]float32{1, 2, 3}); !math.IsNaN(got) {
		t.Errorf("score %v of a profile of another length", got)
	}
	if d := NewDegradation(profilesOf(rng, 50, []float64{0, 0}, 0, 0)); d != nil {
		t.Errorf("weights %v of rewards that never change", d.Weights)
	}
	if scores, model := LearnDegradation(profilesOf(rng, 50, []float64{0, 0}, 0, 0)); scores != nil || model != nil {
		t.Error("something was learnt of rewards that never change")
	}
	if scores, model := LearnDegradation(profiles[:2*folds-1]); scores != nil || model != nil {
		t.Error("something was learnt of too few episodes")
	}
	twin := make([][]float32, 100)
	for i, p := range profiles {
		twin[i] = []float32{p[0], p[0], p[3]}
	}
	if d := NewDegradation(twin); d != nil && math.IsNaN(d.Score(twin[0])) {
		t.Errorf("weights %v of segments that tell one another", d.Weights)
	}
}

func BenchmarkLearnDegradation(b *testing.B) {
	profiles := profilesOf(rand.New(rand.NewPCG(5, 0)), 2000, make([]float64, 32), .9, 0)
	for i := range profiles {
		for j := range profiles[i] {
			profiles[i][j] += float32(i*j%17) + float32(i%13)
		}
	}
	for b.Loop() {
		LearnDegradation(profiles)
	}
}

func BenchmarkDegradationScore(b *testing.B) {
	profiles := profilesOf(rand.New(rand.NewPCG(6, 0)), 200, []float64{1, 1, 1, 1, 1, 1, 1, 1}, .5, 0)
	d := NewDegradation(profiles)
	b.ReportAllocs()
	for b.Loop() {
		d.Score(profiles[0])
	}
}
