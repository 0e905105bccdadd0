package lesson

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// A segment takes part if its standard deviation is at least these shares of the mean level of the segments and of
// their mean standard deviation. A smaller one may be a rounding error, because profiles are float32, or would
// outweigh all other segments without evidence.
const (
	leastOfLevel  = 1e-5
	leastOfSpread = 1e-3
)

// Degradation weights the course of an episode's rewards so that a change that lowers or raises all of it evenly
// shows best (the uniform degradation test of Greenberg & Mannor, ICML 2021). Of all linear statistics of an
// episode's reward vector r with covariance S this one has the most power against r - e 1, and for normal rewards
// it is the likelihood ratio:
//
//	s = 1' S^-1 (r - m) / sqrt(1' S^-1 1)
//
// so that s has mean 0 and variance 1 over the baseline and falls with the rewards. Rewards that vary little, or that
// others predict, weigh more than in the return. m is the mean profile of the baseline. S is D R D, with D the standard
// deviations by segment and R their correlations, shrunk towards independence, (1-l) R + l I. The l is the one that
// minimises the squared error (Ledoit & Wolf, Journal of Multivariate Analysis 2004, for correlations as in Schaefer &
// Strimmer 2005); l vanishes as the baseline grows. A segment that hardly varies in the baseline is left out. Its
// fields are its whole state.
type Degradation struct {
	Mean    []float64 // m by segment
	Weights []float64 // S^-1 1 / sqrt(1' S^-1 1) by segment, 0 for one that is left out
	Shrunk  float64   // l
}

// NewDegradation learns the weights from profiles of the same length, at least two. It returns nil if no segment
// varies.
func NewDegradation(profiles [][]float32) *Degradation {
	d := &Degradation{Mean: make([]float64, len(profiles[0])), Weights: make([]float64, len(profiles[0]))}
	sd := d.moments(profiles)
	used := d.varying(sd)
	if len(used) == 0 {
		return nil
	}
	x := d.standardize(profiles, sd, used)
	correlations, l := shrunkCorrelations(x, len(profiles), len(used))
	d.Shrunk = l
	if !d.weigh(correlations, sd, used) {
		return nil
	}
	return d
}

// moments sets the means and returns the standard deviations, by segment.
func (d *Degradation) moments(profiles [][]float32) (sd []float64) {
	sd = make([]float64, len(d.Mean))
	for _, p := range profiles {
		for j, v := range p {
			d.Mean[j] += float64(v) / float64(len(profiles))
		}
	}
	for j := range sd {
		for _, p := range profiles {
			e := float64(p[j]) - d.Mean[j]
			sd[j] += e * e / float64(len(profiles))
		}
		sd[j] = math.Sqrt(sd[j])
	}
	return sd
}

// varying returns the segments that vary enough to take part.
func (d *Degradation) varying(sd []float64) (used []int) {
	level := 0.0
	for _, m := range d.Mean {
		level += math.Abs(m) / float64(len(d.Mean))
	}
	least := max(leastOfLevel*level, leastOfSpread*meanOf(sd))
	for j, s := range sd {
		if s > 0 && s >= least {
			used = append(used, j)
		}
	}
	return used
}

// standardize returns the used segments in standard deviations from their means, profile by profile.
func (d *Degradation) standardize(profiles [][]float32, sd []float64, used []int) []float64 {
	x := make([]float64, 0, len(profiles)*len(used))
	for _, p := range profiles {
		for _, j := range used {
			x = append(x, (float64(p[j])-d.Mean[j])/sd[j])
		}
	}
	return x
}

// shrunkCorrelations returns (1-l) R + l I of n standardized vectors of t numbers each, and l = min(1, b/d): with R the
// mean of the x x', d is the sum of the squares of its elements off the diagonal, and b the sum of the estimated
// variances of these elements.
func shrunkCorrelations(x []float64, n, t int) (*mat.SymDense, float64) {
	r := mat.NewSymDense(t, nil)
	r.SymOuterK(1/float64(n), mat.NewDense(n, t, x).T())
	d := 0.0
	for i := range t {
		for j := range i {
			d += 2 * r.At(i, j) * r.At(i, j)
		}
	}
	squares := 0.0 // of the elements of all x x' off the diagonal
	for i := range n {
		second, fourth := 0.0, 0.0
		for _, v := range x[i*t : (i+1)*t] {
			second += v * v
			fourth += v * v * v * v
		}
		squares += second*second - fourth
	}
	b := (squares/float64(n) - d) / float64(n)
	l := 1.0
	if b < d {
		l = max(0, b/d)
	}
	for i := range t {
		for j := range i {
			r.SetSym(i, j, (1-l)*r.At(i, j))
		}
	}
	return r, l
}

// weigh solves for the weights. It returns false if the covariance cannot be inverted because segments determine
// each other exactly.
func (d *Degradation) weigh(correlations *mat.SymDense, sd []float64, used []int) bool {
	ones := mat.NewVecDense(len(used), nil) // D^-1 1
	for i, j := range used {
		ones.SetVec(i, 1/sd[j])
	}
	var factor mat.Cholesky
	if !factor.Factorize(correlations) {
		return false
	}
	var w mat.VecDense
	if err := factor.SolveVecTo(&w, ones); err != nil {
		return false
	}
	norm := math.Sqrt(mat.Dot(ones, &w))
	for i, j := range used {
		d.Weights[j] = w.AtVec(i) / sd[j] / norm
	}
	return true
}

// Score returns s of a profile, or NaN if its number of segments differs from that of the learned profiles.
func (d *Degradation) Score(profile []float32) float64 {
	if len(profile) != len(d.Weights) {
		return math.NaN()
	}
	s := 0.0
	for j, v := range profile {
		s += d.Weights[j] * (float64(v) - d.Mean[j])
	}
	return s
}

// LearnDegradation learns the weights from a baseline's profiles, which have the same length and are in time order.
// scores are those of the same episodes, each with weights learned from the other folds; model is learned from all
// of them, for later episodes. It returns nil if there are too few profiles, or if no weights can be learned.
func LearnDegradation(profiles [][]float32) (scores []float64, model *Degradation) {
	n := len(profiles)
	if n < 2*folds {
		return nil, nil
	}
	model = NewDegradation(profiles)
	scores = make([]float64, n)
	for k := range folds {
		from, to := fold(n, k)
		d := NewDegradation(without(profiles, from, to))
		if d == nil || model == nil {
			return nil, nil
		}
		for i := from; i < to; i++ {
			scores[i] = d.Score(profiles[i])
		}
	}
	return scores, model
}
