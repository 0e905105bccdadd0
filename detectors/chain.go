package detectors

import (
	"errors"
	"math"

	"gonum.org/v1/gonum/mat"
)

// The chain on which the false-alarm rate of a CUSUM walk is computed: its height in nats and its number of cells.
const (
	chainHeight = 8.0
	chainCells  = 96
)

// meanTimeToHeight returns the mean number of steps in which the walk S <- max(0, S + inc), inc drawn from increments
// with equal weights, climbs from 0 to chainHeight (Brook & Evans 1972). The walk is discretised to cells of width D:
// an increment (k+r)D, 0 <= r < 1, moves k+1 cells with probability (e^{rD}-1)/(e^D-1) and else k. This preserves E
// exp(inc), and with it the tail slope.
func meanTimeToHeight(increments []float64) float64 {
	shift := shiftProbabilities(increments)
	q := mat.NewDense(chainCells, chainCells, nil)
	for i := range chainCells {
		q.Set(i, i, 1)
		for k, p := range shift {
			j := max(0, i+k-chainCells)
			if j < chainCells {
				q.Set(i, j, q.At(i, j)-p)
			}
		}
	}
	return firstPassage(q)
}

// firstPassage solves (I - Q) t = 1 for the mean times t to absorption and returns the one from state 0; q is I - Q and
// is overwritten. The result is infinite if absorption cannot be reached.
func firstPassage(q *mat.Dense) float64 {
	n, _ := q.Dims()
	ones := make([]float64, n)
	for i := range ones {
		ones[i] = 1
	}
	var lu mat.LU
	lu.Factorize(q)
	times := mat.NewVecDense(n, nil)
	err := lu.SolveVecTo(times, false, mat.NewVecDense(n, ones))
	var condition mat.Condition
	if errors.As(err, &condition) && math.IsInf(float64(condition), 1) {
		return math.Inf(1)
	}
	return times.AtVec(0)
}

// shiftProbabilities returns the probability of moving k - chainCells cells at index k. Larger moves are truncated,
// since they end at 0 or beyond the height anyway.
func shiftProbabilities(increments []float64) []float64 {
	const width = chainHeight / chainCells
	p := make([]float64, 2*chainCells+1)
	each := 1 / float64(len(increments))
	add := func(cells int, weight float64) {
		p[max(0, min(2*chainCells, cells+chainCells))] += weight
	}
	for _, inc := range increments {
		whole := math.Floor(inc / width)
		up := math.Expm1(inc-whole*width) / math.Expm1(width)
		k := int(max(-2*chainCells, min(2*chainCells, whole)))
		add(k, each*(1-up))
		add(k+1, each*up)
	}
	return p
}
