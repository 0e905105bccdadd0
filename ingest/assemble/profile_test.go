package assemble

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// plainProfile is the definition of a profile: the length of a segment is the smallest power of two that leaves at most
// profileSize complete segments. The profile consists of their means. It is shortened when one more segment becomes
// complete.
func plainProfile(x []float64) ([]float32, int64) {
	steps := 1
	for len(x)/steps > profileSize {
		steps *= 2
	}
	var means []float32
	for i := 0; i+steps <= len(x); i += steps {
		sum := 0.
		for _, v := range x[i : i+steps] {
			sum += v
		}
		means = append(means, float32(sum/float64(steps)))
	}
	return means, int64(steps)
}

func TestProfileIsThePlainOne(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	var p profile
	p.reset()
	var x []float64
	for range 5000 {
		v := float64(r.IntN(2001) - 1000) // integers, whose sums are exact in any order
		x = append(x, v)
		p.add(v)
		want, steps := plainProfile(x)
		if got := p.appendMeans(nil); !slices.Equal(got, want) || p.Steps != steps {
			t.Fatalf("after %d values: %v by %d, want %v by %d", len(x), got, p.Steps, want, steps)
		}
	}
	p.reset()
	p.add(3)
	if got := p.appendMeans(nil); !slices.Equal(got, []float32{3}) {
		t.Errorf("after a reset and one value: %v", got)
	}
}
