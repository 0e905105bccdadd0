package detectors

import "math"

// The chain on which the false alarm rate of a CUSUM walk is computed: its height in nats and its number of cells.
const (
	chainHeight = 8.0
	chainCells  = 96
)

// meanTimeToHeight returns the mean number of steps in which the walk S <- max(0, S + inc), inc drawn from increments
// with weights that sum to 1, climbs from 0 to chainHeight (Brook & Evans 1972); infinite if it cannot. The walk is
// discretised to cells of width D: an increment (k+r)D, 0 <= r < 1, moves k+1 cells with probability
// (e^{rD}-1)/(e^D-1) and else k. This preserves E exp(inc), and with it the tail slope.
//
// A walk that falls below cell 0 begins again in cell 0. So the mean time is the mean number of steps until a walk from
// cell 0 leaves the cells at either end, divided by the probability that it leaves at the upper end.
func meanTimeToHeight(increments, weights []float64) float64 {
	shift := shiftProbabilities(increments, weights)
	steps, climbs, above := 0.0, 0.0, 0.0
	for from, visits := range chainVisits(shift) {
		above += shift[2*chainCells-from]
		steps += visits
		climbs += visits * above
	}
	if !(climbs > 0) {
		return math.Inf(1)
	}
	return steps / climbs
}

// chainVisits returns how often a walk from cell 0 visits each cell before it leaves them, up to a common factor. The
// moves between cells depend only on their distance, so these are the last column of the inverse of a Toeplitz matrix,
// from its last element to its first. Levinson's recursion (Golub & Van Loan, Matrix Computations, 4.7) finds the first
// and the last column for matrices of growing size.
func chainVisits(shift []float64) (visits [chainCells]float64) {
	var first, last [chainCells]float64
	first[0], last[0] = 1, 1
	pivot := 1 - shift[chainCells]
	for n := 1; n < chainCells; n++ {
		down, up := 0.0, 0.0
		moves := shift[chainCells-n:]
		for i := range n {
			down -= moves[i] * first[i]
			up -= moves[n+1+i] * last[i]
		}
		down, up = down/pivot, up/pivot
		for i := n; i > 0; i-- {
			first[i], last[i] = first[i]-down*last[i-1], last[i-1]-up*first[i]
		}
		last[0] = -up * first[0]
		pivot -= pivot * down * up
	}
	for i, x := range last {
		visits[chainCells-1-i] = x
	}
	return visits
}

// shiftProbabilities returns the probability of moving k - chainCells cells at index k. Larger moves are truncated,
// since they end at 0 or beyond the height anyway.
func shiftProbabilities(increments, weights []float64) []float64 {
	const width = chainHeight / chainCells
	p := make([]float64, 2*chainCells+1)
	grown := math.Expm1(width)
	add := func(cells int, weight float64) {
		p[max(0, min(2*chainCells, cells+chainCells))] += weight
	}
	for i, inc := range increments {
		whole := math.Floor(inc / width)
		up := math.Expm1(inc-whole*width) / grown
		k := int(max(-2*chainCells, min(2*chainCells, whole)))
		add(k, weights[i]*(1-up))
		add(k+1, weights[i]*up)
	}
	return p
}
