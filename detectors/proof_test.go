package detectors

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
)

// The means are those of exp(g - C), computed branch by branch. Each side tolerates a shift of 1.
func TestProofIsThePlainMean(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	baseline, later := make([]float64, 300), make([]float64, 100)
	for i := range baseline {
		baseline[i] = math.Round(4 * rng.NormFloat64())
	}
	ranks := NewRanks(baseline)
	test := NewRankTest(baseline, ranks, 1.2)
	var p Proof
	sums := make([]float64, len(test.Branches))
	for i := range later {
		later[i] = math.Round(4 * rng.NormFloat64())
		p.Add(test, later[i]-1, later[i]+1)
		for k := range test.Branches {
			b, x := &test.Branches[k], later[i]-1
			if b.Param < 0 {
				x = later[i] + 1
			}
			sums[k] += math.Exp(b.Branch().increment(ranks.of(x)) - b.C)
		}
	}
	for k, want := range sums {
		if math.Abs(p.Sums[k]-want) > 1e-9 || p.Units != len(later) {
			t.Errorf("%s: %v over %d units, want %v", test.Branches[k].Branch(), p.Sums[k], p.Units, want)
		}
	}
}

// If nothing has changed, hardly anything is refuted: with three standard errors and ten branches that move
// together, in fewer than one proof in twenty; the bound is three standard errors above that. A shift of one
// standard deviation is always refuted, by a branch on its side.
func TestSimProofRefutesWhatHasMoved(t *testing.T) {
	const tests, units = 200, 100
	refuted := 0
	for seed := range uint64(tests) {
		rng := rand.New(rand.NewPCG(seed, 5))
		baseline := make([]float64, 500)
		for i := range baseline {
			baseline[i] = rng.ExpFloat64()
		}
		test := NewRankTest(baseline, NewRanks(baseline), 1)
		var same, moved Proof
		for range units {
			x := rng.ExpFloat64()
			same.Add(test, x, x)
			moved.Add(test, x+1, x+1)
		}
		if _, ok := same.Refuted(test); ok {
			refuted++
		}
		r, ok := moved.Refuted(test)
		if !ok || r.Mean <= r.Limit || r.Branch.Family == Location && r.Branch.Param < 0 {
			t.Errorf("seed %d: a shift upwards refutes %+v", seed, r)
		}
	}
	if got, most := float64(refuted)/tests, .05+3*math.Sqrt(.05*.95/tests); got > most {
		t.Errorf("%.2f refuted where nothing has moved, want at most %.2f", got, most)
	}
}

// A saved proof is restored to the same bits.
func TestProofIsRestored(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 0))
	rewards := normal(rng, 200)
	ranks := NewRanks(rewards)
	test := NewRankTest(rewards, ranks, 1)
	var proof Proof
	for _, x := range rewards[:20] {
		proof.Add(test, x, x)
	}
	proved := Proof{}
	if throughGob(t, &proof, &proved); !reflect.DeepEqual(proved, proof) {
		t.Errorf("restored %+v, want %+v", proved, proof)
	}
}
