package detectors

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// leastTail bounds the tail probabilities that are converted to normal scores: smaller ones are indistinguishable from
// 0.
const leastTail = 1e-15

// Shift returns how far recent values, at least one and no NaN, have moved from the sample, in standard deviations of
// the sample's own normal scores: their level by the mean score, and their spread by the mean squared score. With n
// independent recent values and a sample of m, both have a standard error of sqrt(1/n + 1/m) if nothing has moved.
// Scores are those of new values, clipped to +-2.5, so that outliers have little weight; they allow for ties. A shift
// whose score is the same for the whole sample is 0.
func (r *Ranks) Shift(recent []float64) (location, spread float64) {
	own := r.ownScores()
	var sum, sumSquares float64
	for _, x := range recent {
		z := r.of(x).z
		sum += z
		sumSquares += z * z
	}
	n := float64(len(recent))
	return own.level.distance(sum / n), own.square.distance(sumSquares / n)
}

// ownScores are the sums of the scores of a sample's own points, and of their squares.
type ownScores struct{ level, square scoreMoments }

func (o *ownScores) add(score, weight float64) {
	o.level.add(score, weight)
	o.square.add(score*score, weight)
}

// ownScores returns the scores of the sample's own points.
func (r *Ranks) ownScores() *ownScores {
	if r.Below == nil && !r.Uniform {
		return &r.scores.untied
	}
	own := &ownScores{}
	for i := range r.Points {
		own.add(r.score(i), float64(r.count(i)))
	}
	return own
}

// scoreMoments are the sums of weighted scores.
type scoreMoments struct{ n, sum, squares float64 }

func (s *scoreMoments) add(score, weight float64) {
	s.n += weight
	s.sum += weight * score
	s.squares += weight * score * score
}

// distance returns the number of standard deviations between a mean score and that of the sample.
func (s *scoreMoments) distance(mean float64) float64 {
	m := s.sum / s.n
	variance := s.squares/s.n - m*m
	if variance <= 1e-12 {
		return 0
	}
	return (mean - m) / math.Sqrt(variance)
}

// NovelScore returns, as a normal score, how unlikely the number of novel values is among recent values of a nearly
// constant sample; values other than the mode are novel. The score is 0 if they are as many as expected, positive
// up to 7.9 if they are more, and negative down to -7.9 if they are fewer. The sample's rate is taken as the 90 %
// limit on that side, as in Novelty, and the tail is that of the binomial distribution.
func (r *Ranks) NovelScore(recent []float64) float64 {
	mode, _ := r.Mode()
	novel := 0.0
	for _, x := range recent {
		if x != mode {
			novel++
		}
	}
	n := float64(len(recent))
	switch low, high := r.novelLimits(); {
	case novel > high*n:
		return tailScore(mathext.RegIncBeta(novel, n-novel+1, high))
	case novel < low*n:
		return -tailScore(mathext.RegIncBeta(n-novel, novel+1, 1-low))
	}
	return 0
}

// tailScore returns the normal score that has the given probability above it, at least 0.
func tailScore(tail float64) float64 {
	return max(0, math.Sqrt2*math.Erfinv(1-2*max(leastTail, tail)))
}
