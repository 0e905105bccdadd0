package factor

import "math"

// Scoring a step spends most of its time in products of matrices and vectors, and in ranks. On amd64 these are written in
// assembly, since the compiler does not generate instructions that process eight numbers at once. For these
// instructions, matrices are stored in strips of eight rows, each strip column by column. If at most four rows are left,
// the last strip has four. Rows of zeros fill the last strip.

// wide is the number of rows of a strip. narrow is the number of rows of the last strip if it suffices.
const (
	wide   = 8
	narrow = 4
)

// plainStandardize subtracts the first each numbers of x from those at changes, and standardizes all. Behind each slice
// there must be room for wide more numbers.
func plainStandardize(x, centre, inverse []float32, changes, each int) {
	for i, v := range x[:each] {
		x[changes+i] -= v
	}
	for i, v := range x {
		x[i] = (v - centre[i]) * inverse[i]
	}
}

// plainSquaredLength returns the squared length of a vector: the product of a lower triangular matrix and x, plus the
// first column of the strips. A strip has no columns beyond the diagonal of its last row.
func plainSquaredLength(strips, x []float32) float32 {
	var squares [wide]float32
	for first := 0; first < len(x); first += wide {
		var sums [wide]float32
		strips = plainStrip(sums[:height(len(x)-first)], strips, x[:min(first+wide, len(x))])
		for i, v := range sums {
			squares[i] += v * v
		}
	}
	s := &squares
	return ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]))
}

// plainLinear writes the product of a matrix and x, plus the first column of the strips, to y.
func plainLinear(y, strips, x []float32) {
	for len(y) > 0 {
		var sums [wide]float32
		strips = plainStrip(sums[:height(len(y))], strips, x)
		y = y[copy(y, sums[:]):]
	}
}

// plainStrip writes the product of the first strip and x, plus its first column, to y. It returns the other strips. Even
// and odd columns have separate sums.
func plainStrip(y, strips, x []float32) []float32 {
	high := len(y)
	for i := 0; i < high; i += 4 {
		p, q, r, s := strips[i], strips[i+1], strips[i+2], strips[i+3]
		var oddP, oddQ, oddR, oddS float32
		at := i + high
		for j := 0; j+1 < len(x); j, at = j+2, at+2*high {
			even, odd := (*[4]float32)(strips[at:]), (*[4]float32)(strips[at+high:])
			u, v := x[j], x[j+1]
			p, q, r, s = p+even[0]*u, q+even[1]*u, r+even[2]*u, s+even[3]*u
			oddP, oddQ, oddR, oddS = oddP+odd[0]*v, oddQ+odd[1]*v, oddR+odd[2]*v, oddS+odd[3]*v
		}
		if n := len(x); n%2 == 1 {
			last, u := (*[4]float32)(strips[at:]), x[n-1]
			p, q, r, s = p+last[0]*u, q+last[1]*u, r+last[2]*u, s+last[3]*u
		}
		y[i], y[i+1], y[i+2], y[i+3] = p+oddP, q+oddQ, r+oddR, s+oddS
	}
	return strips[high*(1+len(x)):]
}

// height returns the number of rows of the first strip, given the number of rows that are left.
func height(rows int) int {
	if rows > narrow {
		return wide
	}
	return narrow
}

// shape is the shape of a matrix in strips, including the first column, which is added to products.
type shape struct {
	rows, columns int
	triangle      bool // lower triangular; the diagonal begins in the second column
}

// each calls do for each number of the matrix, row by row. i is its index in this order, and at its index in the strips.
// It returns the size of the strips.
func (s shape) each(do func(i, at int)) (size int) {
	i := 0
	for first := 0; first < s.rows; first += wide {
		high, columns := height(s.rows-first), s.columns
		if s.triangle {
			columns = min(1+first+wide, columns)
		}
		for row := first; row < min(first+high, s.rows); row++ {
			filled := columns
			if s.triangle {
				filled = row + 2
			}
			for j := range filled {
				do(i, size+high*j+row-first)
				i++
			}
		}
		size += high * columns
	}
	return size
}

// size returns how many numbers the strips contain.
func (s shape) size() int { return s.each(func(int, int) {}) }

// strips returns a matrix in strips, given its numbers row by row.
func (s shape) strips(numbers []float32) []float32 {
	out := make([]float32, s.size())
	s.each(func(i, at int) { out[at] = numbers[i] })
	return out
}

// numbers is the inverse of strips.
func (s shape) numbers(strips []float32) (out []float32) {
	s.each(func(_, at int) { out = append(out, strips[at]) })
	return out
}

// A law is stored as a tree of two levels, so that a search reads a quarter of it: first every eighth of the sorted keys
// except the last one, then the seven before each of these, and the last one. A law with fewer than sketchSize keys ends
// with keys that no number exceeds.
const (
	branches = sketchSize/8 - 1
	twigs    = 7
)

// placeOf returns the place in the tree of the key at a place among the sorted keys.
func placeOf(at int) int {
	branch, twig := at/(twigs+1), at%(twigs+1)
	if twig == twigs && branch < branches {
		return branch
	}
	return branches + twigs*branch + twig
}

// planted returns the trees of laws of the given size, given the sorted keys of each in turn.
func planted(sorted []int32, size int) (laws []int32) {
	for len(sorted) > 0 {
		law := make([]int32, sketchSize)
		for at := range law {
			if law[placeOf(at)] = math.MaxInt32; at < size {
				law[placeOf(at)] = sorted[at]
			}
		}
		laws, sorted = append(laws, law...), sorted[size:]
	}
	return laws
}

// uprooted is the inverse of planted.
func uprooted(laws []int32, size int) (sorted []int32) {
	for ; len(laws) > 0; laws = laws[sketchSize:] {
		for at := range size {
			sorted = append(sorted, laws[placeOf(at)])
		}
	}
	return sorted
}

// plainRanks writes, for each key, how many values of its law are below the key, and how many equal it.
func plainRanks(ranks, ties, laws, keys []int32) {
	for i, key := range keys {
		low := rank(laws, key)
		at := low
		for at < sketchSize && laws[placeOf(at)] == key {
			at++
		}
		ranks[i], ties[i] = int32(low), int32(at-low)
		laws = laws[sketchSize:]
	}
}

// rank returns how many values of a law are below x. The comparisons of a level are independent of each other, and none
// is a branch, which would be mispredicted half of the time. The value behind the twigs of a branch is not below x, unless
// it is the last one.
func rank(law []int32, x int32) (low int) {
	branch := 0
	for _, v := range law[:branches] {
		branch += below(v, x)
	}
	low = branch * (twigs + 1)
	for _, v := range law[branches+twigs*branch:][:twigs+1] {
		low += below(v, x)
	}
	return low
}

// below returns 1 if a is below b, and 0 otherwise.
func below(a, b int32) int { return int(uint64(int64(a)-int64(b)) >> 63) }

// lanes holds the numbers of a step that its laws judge: one lane for each, and wide more, so that eight at once can be
// read and written from any lane on.
type lanes struct {
	y, unit     []float32 // the number, and its standard deviation
	scaled      []float32 // the number in standard deviations
	expected    []float32 // its prediction, likewise
	blur        []float32 // standard deviation of the noise, likewise
	seeds       []uint64
	keys        []int32   // of the residuals
	ranks, ties []int32   // of the keys in their laws
	of          []float32 // number of ranks of the law; NaN if there is no law
	z           []float32 // scores
}

func newLanes(n int) lanes {
	n += wide
	numbers := func() []float32 { return make([]float32, n) }
	l := lanes{
		y: numbers(), unit: numbers(), scaled: numbers(), expected: numbers(), blur: numbers(), seeds: make([]uint64, n),
		keys: make([]int32, n), ranks: make([]int32, n), ties: make([]int32, n), of: numbers(), z: numbers(),
	}
	fill(l.of)
	return l
}

// cut returns the lanes from one to another.
func (l *lanes) cut(from, to int) lanes {
	return lanes{
		y: l.y[from:to:to], unit: l.unit[from:to:to], scaled: l.scaled[from:to:to], expected: l.expected[from:to:to],
		blur: l.blur[from:to:to], seeds: l.seeds[from:to:to], keys: l.keys[from:to:to], ranks: l.ranks[from:to:to],
		ties: l.ties[from:to:to], of: l.of[from:to:to], z: l.z[from:to:to],
	}
}

// plainResiduals computes the keys of the residuals of the given lanes, and of up to wide lanes behind them.
func plainResiduals(l *lanes, from, to int) {
	for k := from; k < to; k++ {
		l.scaled[k] = l.y[k] / l.unit[k]
		l.keys[k] = keyOf(l.scaled[k] - l.expected[k] + l.blur[k]*noise(l.seeds[k]))
	}
}

// plainNormals computes the normal scores of the given lanes, and of up to wide lanes behind them. The rank of a residual
// is random among equal values, and beyond the outermost ones.
func plainNormals(l *lanes, from, to int) {
	for k := from; k < to; k++ {
		u := (float32(l.ranks[k]) + float32(l.ties[k]+1)*uniform(l.seeds[k])) / l.of[k]
		if l.z[k] = unscored; u == u {
			l.z[k] = normal(u)
		}
	}
}

// plainExpect predicts the numbers of a step if the leaf supports it, and reports whether it does.
func plainExpect(j *judge, l *leaf) bool {
	if !(plainSquaredLength(l.inverse, j.x) <= l.radius) {
		return false
	}
	plainLinear(j.predicted, l.beta, j.x)
	return true
}

// plainScore computes the scores of judges, which have the lanes from from to to of l.
func plainScore(judges []judge, l *lanes, from, to int) {
	plainResiduals(l, from, to)
	for i := range judges {
		if j := &judges[i]; j.leaf != nil {
			plainRanks(j.ranks, j.ties, j.leaf.law, j.keys)
		}
	}
	plainNormals(l, from, to)
}
