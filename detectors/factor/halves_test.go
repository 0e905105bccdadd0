package factor

import (
	"math"
	"math/rand/v2"
	"testing"
)

// In short episodes, the largest of several means is large by chance. What one half chooses and the other half measures
// is not: its mean is 0 unless a component moves, for episodes of any length, and then it is the movement of that
// component.
func TestTheComponentThatMovedMost(t *testing.T) {
	const episodes = 20_000
	for _, steps := range []int{2, 4, 10, 40} {
		for _, k := range []int{2, 8} {
			for _, shift := range []float64{0, -2} {
				rng := rand.New(rand.NewPCG(uint64(steps), uint64(k)))
				h := halves{1, 1 + k, make([]int32, k), make([]float32, k), make([]float32, k)}
				var mean, square float64
				for range episodes {
					counts, sums := make([]int32, k+1), Scored{Mean: make([]float32, k+1), Square: make([]float32, k+1)}
					for i := range steps {
						if i == steps/2 {
							h.first(counts, sums.Mean, sums.Square)
						}
						for c := range counts {
							z := float32(rng.NormFloat64())
							if c == k {
								z += float32(shift)
							}
							counts[c]++
							sums.Mean[c] += z
							sums.Square[c] += z * z
						}
					}
					s := h.moved(counts, sums.Mean, sums.Square)
					if s.N != k*steps {
						t.Fatalf("%d scores, want %d", s.N, k*steps)
					}
					mean += s.Mean / episodes
					square += s.Square / episodes
				}
				least, most := 0., .04 // three standard errors for the shortest episodes
				if shift != 0 {
					least, most = .5*math.Abs(shift), math.Abs(shift)+.04
				}
				if mean < least-.04 || mean > most || shift == 0 && math.Abs(square) > .06 || shift != 0 && square < 1 {
					t.Errorf("%d steps, %d components, shift %v: mean %.3f, square %.3f", steps, k, shift, mean, square)
				}
			}
		}
	}
}

// Laws of discrete states have a single coordinate for all components, so there is none to choose.
func TestOneCoordinateHasNoHalves(t *testing.T) {
	h := halvesOf(&Model{regressions: []regression{{part: partStart, q: 2}, {part: partChange, q: 1}, {part: partReward, q: 1}}})
	if s := h.moved([]int32{9, 9, 9, 9}, make([]float32, 4), make([]float32, 4)); s.N != 0 {
		t.Errorf("%+v", s)
	}
	h = halvesOf(&Model{regressions: []regression{{part: partStart, q: 2}, {part: partChange, q: 3}, {part: partReward, q: 1}}})
	if h.from != 2 || h.to != 5 {
		t.Errorf("the changes are the coordinates %d to %d", h.from, h.to)
	}
}
