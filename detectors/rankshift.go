package detectors

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// leastTail bounds the tail probabilities that are turned into normal scores: beyond it they cannot be told from 0.
const leastTail = 1e-15

// Shift tells how far recent values, of which there must be at least one and no NaN, have moved from the sample, in
// standard deviations of the sample's own normal scores: their level by the mean score, and their spread by the mean
// squared score. With n independent recent values and a sample of m, both have a standard error of
// sqrt(1/n + 1/m) where nothing has moved. Scores are those of new values, clipped to +-2.5, so that outliers count for
// little; ties are allowed for. A shift whose score is the same for the whole sample is 0.
func (r *Ranks) Shift(recent []float64) (location, spread float64) {
	var own, square scoreMoments
	for i := range r.Points {
		z, n := r.score(i), float64(r.count(i))
		own.add(z, n)
		square.add(z*z, n)
	}
	var sum, sumSquares float64
	for _, x := range recent {
		z := r.of(x).z
		sum += z
		sumSquares += z * z
	}
	n := float64(len(recent))
	return own.distance(sum / n), square.distance(sumSquares / n)
}

// scoreMoments sums up weighted scores.
type scoreMoments struct{ n, sum, squares float64 }

func (s *scoreMoments) add(score, weight float64) {
	s.n += weight
	s.sum += weight * score
	s.squares += weight * score * score
}

// distance is how many standard deviations a mean score lies from that of the sample.
func (s *scoreMoments) distance(mean float64) float64 {
	m := s.sum / s.n
	variance := s.squares/s.n - m*m
	if variance <= 1e-12 {
		return 0
	}
	return (mean - m) / math.Sqrt(variance)
}

// NovelScore tells how unlikely so many novel values, which are not the mode, are among recent ones of a nearly constant
// sample, as a normal score: 0 where they are no more than expected, and 7.9 at most. The sample's rate is taken as its
// upper 90 % limit, as by Novelty, and the tail is that of the binomial distribution.
func (r *Ranks) NovelScore(recent []float64) float64 {
	mode, equal := r.Mode()
	novel := 0
	for _, x := range recent {
		if x != mode {
			novel++
		}
	}
	if novel == 0 {
		return 0
	}
	rate := mathext.InvRegIncBeta(float64(r.Len()-equal+1), float64(equal), .9)
	tail := mathext.RegIncBeta(float64(novel), float64(len(recent)-novel+1), rate)
	return max(0, math.Sqrt2*math.Erfinv(1-2*max(leastTail, tail)))
}
