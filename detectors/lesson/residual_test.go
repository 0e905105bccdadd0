package lesson

import (
	"bytes"
	"encoding/gob"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// plainExpected is a textbook regression on binned means: values sorted by reward, bins that end at multiples of
// n/bins but not between equal rewards, and interpolation between adjacent bins.
func plainExpected(rewards, outcomes []float64, bins int, at float64) float64 {
	type pair struct{ reward, outcome float64 }
	var pairs []pair
	for i := range rewards {
		pairs = append(pairs, pair{rewards[i], outcomes[i]})
	}
	slices.SortStableFunc(pairs, func(a, b pair) int {
		switch {
		case a.reward < b.reward:
			return -1
		case a.reward > b.reward:
			return 1
		}
		return 0
	})
	var means, centres []float64
	var bin []pair
	for i, p := range pairs {
		bin = append(bin, p)
		last := i == len(pairs)-1
		if !last && (pairs[i+1].reward == p.reward || (i+1) < (len(means)+1)*len(pairs)/bins) {
			continue
		}
		x, y := 0.0, 0.0
		for _, q := range bin {
			x, y = x+q.reward, y+q.outcome
		}
		centres, means = append(centres, x/float64(len(bin))), append(means, y/float64(len(bin)))
		bin = nil
	}
	for i := range centres {
		if at <= centres[i] {
			if i == 0 {
				return means[0]
			}
			return means[i-1] + (means[i]-means[i-1])*(at-centres[i-1])/(centres[i]-centres[i-1])
		}
	}
	return means[len(means)-1]
}

func TestRegressionIsThePlainOne(t *testing.T) {
	for _, c := range []struct {
		name string
		grid float64 // rewards are rounded to it, so that there are ties
		n    int
		bins int
	}{{"no ties", 0, 300, 6}, {"ties", .25, 300, 6}, {"many ties", 1, 200, 8}, {"two rewards", 4, 100, 5}, {"few values", 0, 7, 12}} {
		rng := rand.New(rand.NewPCG(1, uint64(c.n)))
		rewards, outcomes := make([]float64, c.n), make([]float64, c.n)
		for i := range rewards {
			rewards[i] = rng.NormFloat64()
			if c.grid > 0 {
				rewards[i] = math.Round(rewards[i]/c.grid) * c.grid
			}
			outcomes[i] = rewards[i]*rewards[i] + rng.NormFloat64()
		}
		r := NewRegression(rewards, outcomes, c.bins)
		for _, at := range append([]float64{-9, 9}, rewards...) {
			if got, want := r.Expected(at), plainExpected(rewards, outcomes, c.bins, at); math.Abs(got-want) > 1e-9 {
				t.Fatalf("%s: expected %v at %v, want %v", c.name, got, at, want)
			}
		}
	}
}

// A straight line is followed between the outermost bins, and the value stays constant beyond them.
func TestRegressionFollowsALine(t *testing.T) {
	var rewards, outcomes []float64
	for i := range 120 {
		rewards, outcomes = append(rewards, float64(i)), append(outcomes, 3-2*float64(i))
	}
	r := NewRegression(rewards, outcomes, 12)
	for _, at := range []float64{4.5, 20, 61.25, 114.5} {
		if got := r.Residual(at, 3-2*at); math.Abs(got) > 1e-9 {
			t.Errorf("residual %v at %v on the line", got, at)
		}
	}
	if low, high := r.Expected(-1e9), r.Expected(math.Inf(1)); low != 3-2*4.5 || high != 3-2*114.5 {
		t.Errorf("expected %v and %v far beyond, want the outermost bins", low, high)
	}
	if got := r.Expected(math.NaN()); !math.IsNaN(got) {
		t.Errorf("expected %v at NaN", got)
	}
}

// The residual of a unit is that of a regression that has seen neither the unit nor its fold.
func TestResidualsAreHeldOut(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 0))
	const n = 503
	rewards, outcomes := make([]float64, n), make([]float64, n)
	for i := range rewards {
		rewards[i] = rng.ExpFloat64()
		outcomes[i] = math.Sqrt(rewards[i]) + .3*rng.NormFloat64()
	}
	residuals, model, explained := OutcomeGivenReward(rewards, outcomes)
	left, all := 0.0, 0.0
	for i := range n {
		from, to := 0, 0
		for k := range folds {
			if from, to = k*n/folds, (k+1)*n/folds; i < to {
				break
			}
		}
		var x, y []float64
		total := 0.0
		for k := range n {
			if k < from || k >= to {
				x, y, total = append(x, rewards[k]), append(y, outcomes[k]), total+outcomes[k]
			}
		}
		want := outcomes[i] - plainExpected(x, y, n/valuesAKnot, rewards[i])
		if math.Abs(residuals[i]-want) > 1e-9 {
			t.Fatalf("residual %d is %v, want %v", i, residuals[i], want)
		}
		left += want * want
		all += math.Pow(outcomes[i]-total/float64(len(y)), 2)
	}
	if want := 1 - left/all; math.Abs(explained-want) > 1e-9 || explained < .5 {
		t.Errorf("explained %v, want %v", explained, want)
	}
	if want := plainExpected(rewards, outcomes, n/valuesAKnot, 1); math.Abs(model.Expected(1)-want) > 1e-9 {
		t.Errorf("the model expects %v, want %v", model.Expected(1), want)
	}
}

// If the reward is unrelated to an outcome, nothing is explained: the mean of ten samples is within three standard
// errors of at most 0.
func TestNothingIsExplainedByNoise(t *testing.T) {
	const samples, n = 10, 500
	sum, squares := 0.0, 0.0
	for seed := range uint64(samples) {
		rng := rand.New(rand.NewPCG(seed, 3))
		rewards, outcomes := make([]float64, n), make([]float64, n)
		for i := range rewards {
			rewards[i], outcomes[i] = rng.NormFloat64(), rng.NormFloat64()
		}
		_, _, explained := OutcomeGivenReward(rewards, outcomes)
		sum, squares = sum+explained, squares+explained*explained
	}
	mean := sum / samples
	if se := math.Sqrt((squares/samples - mean*mean) / (samples - 1)); mean > 3*se {
		t.Errorf("%.3f explained (standard error %.3f)", mean, se)
	}
	if _, _, explained := OutcomeGivenReward([]float64{1, 2, 3, 4, 5}, []float64{7, 7, 7, 7, 7}); explained != 0 {
		t.Errorf("%v explained of an outcome that never changes", explained)
	}
}

func TestLearntThingsAreRestoredToTheSameBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 0))
	rewards, profiles := make([]float64, 200), make([][]float32, 200)
	for i := range rewards {
		rewards[i], profiles[i] = rng.NormFloat64(), []float32{rng.Float32(), rng.Float32(), rng.Float32()}
	}
	regression := NewRegression(rewards, rewards, 4)
	back := &Regression{}
	if throughGob(t, regression, back); !reflect.DeepEqual(back, regression) {
		t.Errorf("restored %+v, want %+v", back, regression)
	}
	degradation := NewDegradation(profiles)
	course := &Degradation{}
	if throughGob(t, degradation, course); !reflect.DeepEqual(course, degradation) {
		t.Errorf("restored %+v, want %+v", course, degradation)
	}
}

// throughGob writes a state and reads it into another.
func throughGob(t *testing.T, from, to any) {
	t.Helper()
	var buffer bytes.Buffer
	if err := gob.NewEncoder(&buffer).Encode(from); err != nil {
		t.Fatal(err)
	}
	if err := gob.NewDecoder(&buffer).Decode(to); err != nil {
		t.Fatal(err)
	}
}
