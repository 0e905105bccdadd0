package factor

import "math"

// halves measures the movement of the component of the observation that moved most. The first half of an episode
// chooses the component and the direction, and the second half measures the movement, and vice versa. As a result, the
// expectation is 0 for episodes of any length. Without the split, it would be larger in short episodes, where the
// largest of several means is large by chance.
type halves struct {
	from, to     int // range of the coordinates of the changes of the observation; empty if there are fewer than two components
	counts       []int32
	mean, square []float32 // sums over the first half
}

func halvesOf(m *Model) halves {
	var h halves
	at := 0
	for i := range m.regressions {
		n := m.regressions[i].laws()
		if m.regressions[i].part == partChange && n > 1 {
			h = halves{at, at + n, make([]int32, n), make([]float32, n), make([]float32, n)}
		}
		at += n
	}
	return h
}

// first stores the sums of scores after the first half of the steps.
func (h *halves) first(counts []int32, mean, square []float32) {
	copy(h.counts, counts[h.from:h.to])
	copy(h.mean, mean[h.from:h.to])
	copy(h.square, square[h.from:h.to])
}

// moved returns the mean score of the component whose mean moved most, in the direction of the movement, and likewise
// the deviation of the mean square from 1, for the component whose mean square moved most. counts and sums are those of
// all steps.
func (h *halves) moved(counts []int32, means, squares []float32) Scores {
	var mean, square foremost
	steps := 0
	for k, n := range h.counts {
		at := h.from + k
		rest := counts[at] - n
		if n == 0 || rest == 0 {
			continue
		}
		steps += int(n + rest)
		mean.add(h.mean[k]/float32(n), (means[at]-h.mean[k])/float32(rest))
		square.add(h.square[k]/float32(n)-1, (squares[at]-h.square[k])/float32(rest)-1)
	}
	return Scores{steps, mean.value(), square.value()}
}

// foremost holds, for each half as the one that chooses, the value of the largest magnitude and the value of the same
// component in the other half.
type foremost struct{ chosen, other [2]float32 }

func (f *foremost) add(first, second float32) {
	for i, v := range [2][2]float32{{first, second}, {second, first}} {
		if math.Abs(float64(v[0])) > math.Abs(float64(f.chosen[i])) {
			f.chosen[i], f.other[i] = v[0], v[1]
		}
	}
}

// value returns the mean of the two measurements, each in the direction that the other half has chosen.
func (f *foremost) value() float64 {
	sum := 0.
	for i, v := range f.chosen {
		sum += math.Copysign(1, float64(v)) * float64(f.other[i])
	}
	return sum / 2
}
