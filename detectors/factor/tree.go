package factor

import (
	"math"
	"slices"
)

// Limits of the trees.
const (
	maxLeaves     = 64
	bins          = 8       // number of intervals of a feature, between which a node may be split
	splitFeatures = 16      // maximum number of features considered for a split
	splitRows     = 2048    // maximum number of rows used to choose a split
	leastSplit    = 256     // minimum number of these rows, regardless of their cost
	splitCost     = 4 << 20 // number of products of features per node beyond which fewer rows are used
	leastRows     = 24      // minimum number of rows of a leaf
)

// node is a node of a tree. A leaf has no feature to split by.
type node struct {
	feature int16 // -1 for a leaf
	next    int16 // the child for values up to the threshold, followed by the other child; for a leaf, its index
	at      float32
}

// table holds rows of features and targets.
type table struct {
	p, q       int
	categories bool
	x, y       []float32
	floor      float64 // mean squared residual below which differences do not matter
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

// open is a leaf with the best split found for it.
type open struct {
	node    int
	rows    []int32
	feature int
	at      float32
	gain    float64 // in nats, minus the cost of the additional coefficients; not positive if there is no split
}

// grow returns the nodes of a tree with at most maxLeaves leaves. The leaf whose split explains most is split first, so
// a pruned tree equals the one that would have been grown with fewer leaves.
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

// prune returns the tree of the first splits with at most the given number of leaves, and numbers the leaves.
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

// part divides the rows of a leaf by its split.
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

// consider finds the best split of a leaf. If there are many features, it considers some of them, which differ from
// node to node.
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

// try updates the split of a leaf if a split along feature f is better.
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

// free returns the number of independent targets: the shares of categories count as one.
func (g *grower) free() int {
	if g.categories {
		return 1
	}
	return g.q
}

// misfit returns the negative log-likelihood, up to a constant, of the normal residuals of n rows with the given sums
// of squares. It rewards splitting off a region in which residuals are small.
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

// leafOf returns the index of the leaf that a row of features belongs to.
func leafOf(nodes []node, x []float32) int {
	n := &nodes[0]
	for n.feature >= 0 {
		at := n.next
		if !(x[n.feature] <= n.at) {
			at++
		}
		n = &nodes[at]
	}
	return int(n.next)
}
