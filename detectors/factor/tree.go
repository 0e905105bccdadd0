package factor

import (
	"math"
	"slices"
)

// Bounds of the trees.
const (
	maxLeaves     = 64
	bins          = 8       // between which a node may be split by a feature
	splitFeatures = 16      // of a node, at most, that it may be split by
	splitRows     = 2048    // of a node, at most, that its split is chosen by
	leastSplit    = 256     // of them, at least, however much they cost
	splitCost     = 4 << 20 // products of features for a node, beyond which fewer rows choose
	leastRows     = 24      // of a leaf
)

// node is a node of a tree. A leaf has no feature.
type node struct {
	feature int16 // -1 of a leaf
	next    int16 // the child for values up to the threshold, followed by the other; of a leaf its index
	at      float32
}

// table is rows of features and targets.
type table struct {
	p, q       int
	categories bool
	x, y       []float32
	floor      float64 // of a mean squared residual: less is not noticed
}

func (t *table) rows() int            { return len(t.y) / t.q }
func (t *table) row(i int) []float32  { return t.x[i*t.p : (i+1)*t.p] }
func (t *table) told(i int) []float32 { return t.y[i*t.q : (i+1)*t.q] }

// grower grows a tree whose leaves have their own linear regressions.
type grower struct {
	*table
	all, left solver
	bin       [bins]gram
	sum, rest gram
	nodes     []node
}

// open is a leaf that may be split.
type open struct {
	node    int
	rows    []int32
	feature int
	at      float32
	gain    float64 // in nats, less what the additional coefficients cost; up to 0 is no split
}

// grow returns the nodes of a tree of at most maxLeaves leaves. The leaf whose split explains most is split first, so
// pruned trees are those that would have been grown with fewer leaves.
func grow(t *table) []node {
	g := grower{table: t, all: newSolver(t.p, t.q), left: newSolver(t.p, t.q), sum: newGram(t.p, t.q), rest: newGram(t.p, t.q)}
	for i := range g.bin {
		g.bin[i] = newGram(t.p, t.q)
	}
	rows := make([]int32, t.rows())
	for i := range rows {
		rows[i] = int32(i)
	}
	g.nodes = []node{{feature: -1}}
	fringe := []open{g.consider(0, rows)}
	for len(fringe) < maxLeaves {
		best := 0
		for i := range fringe {
			if fringe[i].gain > fringe[best].gain {
				best = i
			}
		}
		o := fringe[best]
		if o.gain <= 0 {
			break
		}
		low, high := g.part(o)
		at := len(g.nodes)
		g.nodes = append(g.nodes, node{feature: -1}, node{feature: -1})
		g.nodes[o.node] = node{int16(o.feature), int16(at), o.at}
		fringe[best] = g.consider(at, low)
		fringe = append(fringe, g.consider(at+1, high))
	}
	return prune(g.nodes, len(fringe))
}

// prune returns the tree of the first splits that has at most so many leaves, which it numbers.
func prune(nodes []node, leaves int) []node {
	size := min(len(nodes), 2*leaves-1)
	out := slices.Clone(nodes[:size])
	number := int16(0)
	for i := range out {
		if n := &out[i]; n.feature < 0 || int(n.next) >= size {
			*n = node{feature: -1, next: number}
			number++
		}
	}
	return out
}

// membersOf returns the rows of each leaf.
func (t *table) membersOf(nodes []node) [][]int32 {
	members := make([][]int32, (len(nodes)+1)/2)
	for i := range t.rows() {
		at := leafOf(nodes, t.row(i))
		members[at] = append(members[at], int32(i))
	}
	return members
}

// part divides the rows of a leaf.
func (g *grower) part(o open) (low, high []int32) {
	for _, r := range o.rows {
		if g.row(int(r))[o.feature] <= o.at {
			low = append(low, r)
		} else {
			high = append(high, r)
		}
	}
	return low, high
}

// consider finds the best split of a leaf. Of many features it tries some, and those of other nodes others.
func (g *grower) consider(at int, rows []int32) open {
	o := open{node: at, rows: rows}
	least := max(leastRows, 2*(g.p+1))
	if len(rows) < 2*least || g.p == 0 {
		return o
	}
	sample := rows
	features := min(g.p, splitFeatures)
	if most := min(splitRows, max(leastSplit, 2*splitCost/(features*g.p*(g.p+1)))); len(rows) > most {
		sample = make([]int32, most)
		for i := range sample {
			sample[i] = rows[i*len(rows)/most]
		}
	}
	scale := float64(len(rows)) / float64(len(sample))
	values := make([]float32, len(sample))
	for i := range features {
		f := (at*splitFeatures + i) % g.p
		for i, r := range sample {
			values[i] = g.row(int(r))[f]
		}
		cuts := cutsOf(values)
		if len(cuts) > 0 {
			g.try(&o, f, cuts, sample, float64(least)/scale, scale)
		}
	}
	return o
}

// cutsOf returns at most bins-1 thresholds that divide the values evenly. It sorts the values.
func cutsOf(values []float32) []float32 {
	slices.Sort(values)
	var cuts []float32
	last := values[len(values)-1]
	for b := 1; b < bins; b++ {
		v := values[b*len(values)/bins]
		if v < last && (len(cuts) == 0 || v > cuts[len(cuts)-1]) {
			cuts = append(cuts, v)
		}
	}
	return cuts
}

// try improves the split of a leaf by one along a feature.
func (g *grower) try(o *open, f int, cuts []float32, sample []int32, least, scale float64) {
	for i := range len(cuts) + 1 {
		g.bin[i].reset()
	}
	g.sum.reset()
	g.rest.reset()
	for _, r := range sample {
		x := g.row(int(r))
		b := 0
		for b < len(cuts) && x[f] > cuts[b] {
			b++
		}
		g.bin[b].add(x, g.told(int(r)))
	}
	for i := range len(cuts) + 1 {
		g.rest.sum(&g.bin[i], 1)
	}
	g.all.solve(&g.rest)
	n := g.rest.n
	whole := g.misfit(g.all.sse, n)
	penalty := .5 * float64(g.p+2) * float64(g.free()) * math.Log(n*scale)
	for i, at := range cuts {
		g.sum.sum(&g.bin[i], 1)
		g.rest.sum(&g.bin[i], -1)
		if g.sum.n < least || g.rest.n < least {
			continue
		}
		g.all.solve(&g.rest)
		g.left.solve(&g.sum)
		if gain := scale*(whole-g.misfit(g.all.sse, g.rest.n)-g.misfit(g.left.sse, g.sum.n)) - penalty; gain > o.gain {
			o.gain, o.feature, o.at = gain, f, at
		}
	}
}

// free returns the number of independent targets.
func (g *grower) free() int {
	if g.categories {
		return 1
	}
	return g.q
}

// misfit returns the negative log-likelihood of the normal residuals of n rows with these sums of squares, but for a
// constant. A leaf in which the law is narrow is worth a separate leaf.
func (g *grower) misfit(sse []float64, n float64) float64 {
	sum, total := 0., 0.
	for _, s := range sse {
		total += s
		sum += .5 * n * math.Log(s/n+g.floor)
	}
	if g.categories {
		return .5 * n * math.Log(total/n+g.floor)
	}
	return sum
}

// leafOf returns the index of the leaf in which a row of features lies.
func leafOf(nodes []node, x []float32) int {
	n := nodes[0]
	for n.feature >= 0 {
		at := n.next
		if !(x[n.feature] <= n.at) {
			at++
		}
		n = nodes[at]
	}
	return int(n.next)
}
