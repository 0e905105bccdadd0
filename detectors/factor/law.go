package factor

import (
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/saved"
)

// Sizes of a leaf's law.
const (
	sketchSize  = 64 // number of residuals
	leastSketch = 16 // minimum number of residuals in support; with fewer, the leaf scores nothing
)

// supportShare is the share of the baseline's steps in a leaf that define its support. Regressions are inaccurate
// outside of it, and a change that brings more such steps would move their scores although the law has not changed.
const supportShare = .9

// regression predicts the targets of one part, and holds the distribution of the residuals in each leaf. If
// observations are discrete states, cells predict the targets, and each leaf holds the distribution for similar cells.
type regression struct {
	part       part
	p, q       int
	categories bool
	scale      []float32 // q: standard deviations of the targets; 1 for categories
	tolerance  float32   // standard deviation of the noise that is added to a residual, in standard deviations of the target
	nodes      []node
	leaves     []leaf
	cells      *cells // nil if observations are numbers
}

// leaf is a leaf of a tree.
type leaf struct {
	beta    []float32 // intercepts and coefficients for standardized targets, in strips
	inverse []float32 // the inverse of the Cholesky factor of the features' covariance with the offsets of around, in strips
	mean    []float32 // of the features
	radius  float32   // maximum squared Mahalanobis distance of steps in support
	size    int32     // number of residuals of each law
	law     []int32   // keys of the residuals of each target in turn, or of the category's rank, planted; nil if there are too few
}

// packed returns the leaf with its numbers in one block of memory, since a step reads most of them.
func (l leaf) packed() leaf {
	all := make([]float32, 0, len(l.mean)+len(l.inverse)+len(l.beta))
	for _, part := range []*[]float32{&l.inverse, &l.beta, &l.mean} {
		from := len(all)
		all = append(all, *part...)
		if *part != nil {
			*part = all[from:len(all):len(all)]
		}
	}
	return l
}

// laws returns the number of residuals of a step.
func (r *regression) laws() int {
	if r.categories || r.cells != nil {
		return 1
	}
	return r.q
}

// bytes returns the approximate memory of the regression in bytes. It does not count the zeros in strips, which add up to
// a tenth: they would cost leaves.
func (r *regression) bytes() int {
	if r.cells != nil {
		return r.cells.bytes() + len(r.leaves)*(4*sketchSize+128)
	}
	return len(r.leaves) * (4*(r.q*(r.p+1)+r.p+r.p*(r.p+1)/2+r.laws()*sketchSize) + 128 + 24*r.laws() + 16)
}

// betas returns the shape of the coefficients of a leaf. triangle returns the shape of its inverse.
func (r *regression) betas() shape    { return shape{rows: r.q, columns: r.p + 1} }
func (r *regression) triangle() shape { return shape{rows: r.p, columns: r.p + 1, triangle: true} }

// fit fits the regressions in the leaves of a tree to a table of standardized targets.
func (r *regression) fit(t *table, nodes []node) {
	members := t.membersOf(nodes)
	r.nodes, r.leaves = nodes, make([]leaf, len(members))
	g, s := newGram(t.p, t.q), newSolver(t.p, t.q)
	for i, rows := range members {
		g.reset()
		for _, row := range rows {
			g.add(t.row(int(row)), t.told(int(row)))
		}
		s.solve(&g)
		r.leaves[i] = leaf{beta: r.betas().strips(single(s.beta))}
		r.leaves[i].mean, r.leaves[i].inverse = r.region(&g)
	}
}

func single(x []float64) []float32 {
	out := make([]float32, len(x))
	for i := range x {
		out[i] = float32(x[i])
	}
	return out
}

// narrowest is a variance that is added to each feature of a leaf, so that smaller differences hardly count. Its unit
// is the variance over all leaves.
const narrowest = 1e-3

// region returns the location and the spread of the features of a leaf: their mean, and the inverse in strips.
func (r *regression) region(g *gram) (centre, inverse []float32) {
	w := g.p + 1
	cov, mean := make([]float64, g.p*g.p), make([]float64, g.p)
	for i := range g.p {
		mean[i] = g.xx[(i+1)*w] / g.n
	}
	for i := range g.p {
		for j := range i + 1 {
			cov[i*g.p+j] = g.xx[(i+1)*w+j+1]/g.n - mean[i]*mean[j]
		}
		cov[i*g.p+i] += narrowest
	}
	cholesky(cov, g.p)
	// The inverse of a lower triangle, column by column.
	inverted := make([]float64, g.p*g.p)
	for j := range g.p {
		inverted[j*g.p+j] = 1 / cov[j*g.p+j]
		for i := j + 1; i < g.p; i++ {
			sum := 0.
			for k := j; k < i; k++ {
				sum -= cov[i*g.p+k] * inverted[k*g.p+j]
			}
			inverted[i*g.p+j] = sum / cov[i*g.p+i]
		}
	}
	var rows []float32
	for i := range g.p {
		rows = append(rows, single(inverted[i*g.p:i*g.p+i+1])...)
	}
	centre = single(mean)
	return centre, r.triangle().strips(around(centre, rows))
}

// around returns the rows of a triangular matrix, each after an offset. Added to the product with x, the offset makes it the
// product with x - mean.
func around(mean, triangle []float32) (rows []float32) {
	for i := range mean {
		product := 0.
		for j, v := range triangle[:i+1] {
			product += float64(v) * float64(mean[j])
		}
		rows = append(append(rows, float32(-product)), triangle[:i+1]...)
		triangle = triangle[i+1:]
	}
	return rows
}

// triangleOf is the inverse of around.
func triangleOf(rows []float32) (triangle []float32) {
	for n := 1; len(rows) > n; n++ {
		triangle = append(triangle, rows[1:n+1]...)
		rows = rows[n+1:]
	}
	return triangle
}

// distance returns the squared Mahalanobis distance of features from the mean of the leaf.
func (l *leaf) distance(x []float32) float32 { return squaredLength(l.inverse, x) }

// predict writes predictions of all targets to y, in standard deviations of the targets.
func (l *leaf) predict(y, x []float32) {
	linear(y, l.beta, x)
}

// residual returns the residual of a target, with noise. y is in the unit of the target, predicted in its standard
// deviations.
func (r *regression) residual(k int, y, predicted float32, seed uint64) float32 {
	return y/r.scale[k] - predicted + r.tolerance*noise(seed)
}

// surprise returns how unusual a category is, from 0 to 1: the total predicted share of likelier categories, plus a
// random part of its own share. It returns 1 for a category that the baseline does not include.
func surprise(predicted []float32, category int, seed uint64) float32 {
	if category < 0 {
		return 1
	}
	own := share(predicted[category])
	var before, total float32
	for k, p := range predicted {
		s := share(p)
		total += s
		if s > own || s == own && k < category {
			before += s
		}
	}
	return (before + own*uniform(seed)) / total
}

// share returns a predicted share with a lower bound, since a linear regression can predict less than 0.
func share(p float32) float32 { return max(p, 1e-3) }

// learn learns the distribution of the residuals in each leaf, from steps that the regression was not fitted to.
func (r *regression) learn(rows []sampled) {
	byLeaf, predicted := make([][]int, len(r.leaves)), make([]float32, r.q)
	distances := make([][]float64, len(r.leaves))
	for i := range rows {
		at := leafOf(r.nodes, rows[i].x)
		byLeaf[at] = append(byLeaf[at], i)
		distances[at] = append(distances[at], float64(r.leaves[at].distance(rows[i].x)))
	}
	for at := range r.leaves {
		if len(byLeaf[at]) == 0 {
			continue
		}
		l := &r.leaves[at]
		l.radius = float32(detectors.Quantiles(distances[at], supportShare)[0])
		residuals := make([][]float64, r.laws())
		for n, i := range byLeaf[at] {
			if float32(distances[at][n]) > l.radius {
				continue
			}
			l.predict(predicted, rows[i].x)
			for k := range residuals {
				residuals[k] = append(residuals[k], float64(r.left(k, &rows[i], predicted)))
			}
		}
		if len(residuals) > 0 && len(residuals[0]) >= leastSketch {
			for k := range residuals {
				l.law = append(l.law, keys(evenly(residuals[k], sketchSize))...)
			}
			l.size = int32(len(l.law) / len(residuals))
			l.law = planted(l.law, int(l.size))
		}
		*l = l.packed()
	}
}

// left returns the k-th residual of a step.
func (r *regression) left(k int, s *sampled, predicted []float32) float32 {
	seed := seedOf(s.key, k)
	if r.categories {
		return surprise(predicted, s.category, seed)
	}
	return r.residual(k, s.y[k], predicted[k], seed)
}

// evenly sorts a sample and returns at most most of its values, evenly spaced by rank.
func evenly(sample []float64, most int) []float32 {
	slices.Sort(sample)
	out := make([]float32, min(len(sample), most))
	for i := range out {
		out[i] = float32(sample[(2*i+1)*len(sample)/(2*len(out))])
	}
	return out
}

// keyOf returns an integer that sorts like x. Integers can be compared without a branch.
func keyOf(x float32) int32 {
	bits := int32(math.Float32bits(x + 0)) // + 0 turns negative zero into zero
	return bits ^ bits>>31&math.MaxInt32
}

// number is the inverse of keyOf.
func number(key int32) float32 { return math.Float32frombits(uint32(key ^ key>>31&math.MaxInt32)) }

// keys returns the keys of numbers; nil for nil.
func keys(x []float32) []int32 { return saved.Each(x, keyOf) }

// seedOf returns the random bits for the k-th residual of a step: 42 bits for its noise, and the other 22 bits for its
// score.
func seedOf(key uint64, k int) uint64 { return ingest.Mix(key + uint64(k)*ingest.MixStep) }

// uniform returns a number in (0, 1).
func uniform(seed uint64) float32 { return (float32(int32(seed>>42)) + .5) / (1 << 22) }

// noise returns a nearly normal number of variance 1: the scaled sum of three uniform ones.
func noise(seed uint64) float32 {
	sum := seed&0x3fff + seed>>14&0x3fff + seed>>28&0x3fff
	return 2 * (float32(int32(sum))/16384 - 1.5)
}

// normalCells is the number of intervals in which the normal quantile is interpolated.
const normalCells = 2048

var normalTable = func() (t [normalCells + 1]float32) {
	for i := range t {
		p := min(max(float64(i)/normalCells, .25/normalCells), 1-.25/normalCells)
		t[i] = float32(math.Sqrt2 * math.Erfinv(2*p-1))
	}
	return t
}()

// normal returns the standard normal quantile of u, limited to about ±3.7.
func normal(u float32) float32 {
	at := u * normalCells
	i := min(int32(at), normalCells-1)
	return normalTable[i] + (at-float32(i))*(normalTable[i+1]-normalTable[i])
}
