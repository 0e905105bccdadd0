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
	beta    []float32 // q x (p+1): intercepts and coefficients, for standardized targets
	mean    []float32 // p: of the features
	inverse []float32 // p(p+1)/2: the inverse of the Cholesky factor of their covariance, row by row
	radius  float32   // maximum squared Mahalanobis distance of steps in support
	law     []int32   // sorted keys of the residuals of each target in turn, or of the category's rank; nil if there are too few
}

// packed returns the leaf with its numbers in one block of memory, since a step reads most of them.
func (l leaf) packed() leaf {
	all := make([]float32, 0, len(l.mean)+len(l.inverse)+len(l.beta))
	for _, part := range []*[]float32{&l.mean, &l.inverse, &l.beta} {
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

// bytes returns the approximate memory of the regression in bytes.
func (r *regression) bytes() int {
	if r.cells != nil {
		return r.cells.bytes() + len(r.leaves)*(4*sketchSize+128)
	}
	return len(r.leaves) * (4*(r.q*(r.p+1)+r.p+r.p*(r.p+1)/2+r.laws()*sketchSize) + 128 + 24*r.laws() + 16)
}

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
		r.leaves[i] = leaf{beta: single(s.beta)}
		r.leaves[i].shape(&g)
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

// shape sets the location and the spread of the features of a leaf.
func (l *leaf) shape(g *gram) {
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
	l.mean = single(mean)
	// The inverse of a lower triangle, column by column.
	inverse := make([]float64, g.p*g.p)
	for j := range g.p {
		inverse[j*g.p+j] = 1 / cov[j*g.p+j]
		for i := j + 1; i < g.p; i++ {
			sum := 0.
			for k := j; k < i; k++ {
				sum -= cov[i*g.p+k] * inverse[k*g.p+j]
			}
			inverse[i*g.p+j] = sum / cov[i*g.p+i]
		}
	}
	for i := range g.p {
		l.inverse = append(l.inverse, single(inverse[i*g.p:i*g.p+i+1])...)
	}
	l.inverse = slices.Clip(l.inverse)
}

// distance returns the squared Mahalanobis distance of features from the mean of the leaf, or any number above r if the
// distance is larger than r. centred is scratch memory for as many features.
func (l *leaf) distance(r float32, x, centred []float32) float32 {
	mean := l.mean[:len(x)]
	centred = centred[:len(x)]
	for i, v := range x {
		centred[i] = v - mean[i]
	}
	return squaredLength(l.inverse[:len(x)*(len(x)+1)/2], centred, r)
}

// predict writes predictions of all targets to y, in standard deviations of the targets.
func (l *leaf) predict(y, x []float32) {
	linear(y, l.beta[:len(y)*(1+len(x))], x)
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
	distances, centred := make([][]float64, len(r.leaves)), make([]float32, r.p)
	for i := range rows {
		at := leafOf(r.nodes, rows[i].x)
		byLeaf[at] = append(byLeaf[at], i)
		distances[at] = append(distances[at], float64(r.leaves[at].distance(math.MaxFloat32, rows[i].x, centred)))
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

// score returns the normal score of a residual in the law of its leaf. Its rank is random among equal values, and
// beyond the outermost ones.
func score(law []int32, x float32, seed uint64) float32 {
	k, n := keyOf(x), len(law)
	low := rank(law, k)
	high := low
	for high < n && law[high] == k {
		high++
	}
	u := (float32(int32(low)) + float32(int32(high-low+1))*uniform(seed)) / float32(int32(n+1))
	return normal(u)
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
