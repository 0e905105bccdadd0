package factor

// Scoring a step spends most of its time in products of matrices and vectors, and in ranks. On amd64 these are written in
// assembly, since the compiler does not generate instructions that process eight numbers at once. For these
// instructions, matrices are stored in strips of eight rows, each strip column by column. If at most four rows are left,
// the last strip has four. Rows of zeros fill the last strip.

// wide is the number of rows of a strip. narrow is the number of rows of the last strip if it suffices.
const (
	wide   = 8
	narrow = 4
)

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

// plainRanks writes, for each key, how many values of its law are below the key. Each law has size values, which are
// sorted.
func plainRanks(ranks, laws, keys []int32, size int) {
	for i, key := range keys {
		ranks[i] = int32(rank(laws[:size], key))
		laws = laws[size:]
	}
}

// rank returns how many values of a sorted law are below x. Each of its three levels depends on the one before, but the
// three comparisons of a level are independent of each other, and none is a branch, which would be mispredicted half of
// the time.
func rank(law []int32, x int32) int {
	if len(law) != sketchSize {
		low := 0
		for _, v := range law {
			low += below(v, x)
		}
		return low
	}
	l := (*[sketchSize]int32)(law)
	low := 16 * (below(l[15], x) + below(l[31], x) + below(l[47], x))
	four := l[low : low+16 : low+16]
	at := 4 * (below(four[3], x) + below(four[7], x) + below(four[11], x))
	one := four[at : at+4 : at+4]
	return low + at + below(one[0], x) + below(one[1], x) + below(one[2], x) + below(l[63], x)
}

// below returns 1 if a is below b, and 0 otherwise.
func below(a, b int32) int { return int(uint64(int64(a)-int64(b)) >> 63) }
