package factor

import "math"

// shrinkage is the ridge penalty of a standardized feature, per row.
const shrinkage = 1e-4

// gram holds the sums that determine a linear regression with an intercept: the products of all features, of which the
// first is 1, with each other and with the targets.
type gram struct {
	p, q int
	n    float64
	xx   []float64 // (p+1) x (p+1), the lower triangle
	xy   []float64 // q x (p+1)
	yy   []float64 // q
}

func newGram(p, q int) gram {
	return gram{p: p, q: q, xx: make([]float64, (p+1)*(p+1)), xy: make([]float64, q*(p+1)), yy: make([]float64, q)}
}

func (g *gram) reset() {
	g.n = 0
	clear(g.xx)
	clear(g.xy)
	clear(g.yy)
}

// add adds one row of features and targets.
func (g *gram) add(x, y []float32) {
	g.n++
	w := g.p + 1
	g.xx[0]++
	for i := range g.p {
		xi := float64(x[i])
		row := g.xx[(i+1)*w:]
		row[0] += xi
		for j := range i + 1 {
			row[j+1] += xi * float64(x[j])
		}
	}
	for k := range g.q {
		yk := float64(y[k])
		row := g.xy[k*w : (k+1)*w]
		row[0] += yk
		for i := range g.p {
			row[i+1] += yk * float64(x[i])
		}
		g.yy[k] += yk * yk
	}
}

// sum adds the rows of another gram or, with a sign of -1, subtracts them.
func (g *gram) sum(o *gram, sign float64) {
	g.n += sign * o.n
	for i := range g.xx {
		g.xx[i] += sign * o.xx[i]
	}
	for i := range g.xy {
		g.xy[i] += sign * o.xy[i]
	}
	for i := range g.yy {
		g.yy[i] += sign * o.yy[i]
	}
}

// solver holds the memory of a regression.
type solver struct {
	chol []float64 // (p+1) x (p+1)
	beta []float64 // q x (p+1), the intercept first
	sse  []float64 // q: sums of squared residuals
}

func newSolver(p, q int) solver {
	return solver{make([]float64, (p+1)*(p+1)), make([]float64, q*(p+1)), make([]float64, q)}
}

// solve computes the coefficients and the sums of squared residuals by Cholesky decomposition.
func (s *solver) solve(g *gram) {
	w := g.p + 1
	copy(s.chol, g.xx)
	for i := 1; i < w; i++ {
		s.chol[i*w+i] += shrinkage * g.n
	}
	cholesky(s.chol, w)
	for k := range g.q {
		b, xy := s.beta[k*w:(k+1)*w], g.xy[k*w:(k+1)*w]
		copy(b, xy)
		substitute(s.chol, b, w)
		explained := 0.
		for i := range b {
			explained += b[i] * xy[i]
		}
		s.sse[k] = max(0, g.yy[k]-explained)
	}
}

// cholesky replaces the lower triangle of a symmetric matrix with n rows by its Cholesky factor.
func cholesky(a []float64, n int) {
	for i := range n {
		for j := range i + 1 {
			sum := a[i*n+j]
			for k := range j {
				sum -= a[i*n+k] * a[j*n+k]
			}
			if i == j {
				a[i*n+i] = math.Sqrt(max(sum, 1e-12))
			} else {
				a[i*n+j] = sum / a[j*n+j]
			}
		}
	}
}

// substitute solves L L' x = b in place.
func substitute(l, b []float64, n int) {
	for i := range n {
		for k := range i {
			b[i] -= l[i*n+k] * b[k]
		}
		b[i] /= l[i*n+i]
	}
	for i := n - 1; i >= 0; i-- {
		for k := i + 1; k < n; k++ {
			b[i] -= l[k*n+i] * b[k]
		}
		b[i] /= l[i*n+i]
	}
}
