package factor

// Scoring a step spends most of its time in two sums of products. On amd64 they are written in assembly, since the
// compiler does not generate instructions that process four numbers at once.

// plainSquaredLength returns the squared length of the product of x and a lower triangular matrix, stored row by row.
// If the result exceeds bound, it may return any smaller number that also exceeds bound.
func plainSquaredLength(triangle, x []float32, bound float32) float32 {
	var total float32
	for n := 1; n <= len(x); n++ {
		v := dot(triangle[:n], x)
		triangle = triangle[n:]
		if total += v * v; total > bound {
			break
		}
	}
	return total
}

// plainLinear writes linear predictions from x to y. beta holds an intercept and one coefficient per component of x for
// each of them.
func plainLinear(y, beta, x []float32) {
	for k := range y {
		y[k] = beta[0] + dot(beta[1:1+len(x)], x)
		beta = beta[1+len(x):]
	}
}

// dot returns the sum of the products of a with the beginning of b. It adds in four lanes, with the remainder in the
// first lane.
func dot(a, b []float32) float32 {
	var p, q, r, s float32
	j := 0
	for ; j <= len(a)-4; j += 4 {
		x, y := (*[4]float32)(a[j:]), (*[4]float32)(b[j:])
		p += x[0] * y[0]
		q += x[1] * y[1]
		r += x[2] * y[2]
		s += x[3] * y[3]
	}
	for ; j < len(a); j++ {
		p += a[j] * b[j]
	}
	return (p + q) + (r + s)
}
