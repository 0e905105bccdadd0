package factor

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Sizes of the law of a part if observations are discrete states.
const (
	maxCells  = 4096
	leastCell = 4  // minimum number of steps in a situation; situations with fewer count as unknown
	maxValues = 64 // maximum number of reward values to rank by
	sizes     = 5  // number of size classes of cells with separate laws, each twice as large as the one before
)

// cells counts what followed in each situation of a baseline whose observations are discrete states.
type cells struct {
	all     []cell    // sorted by key
	results []result  // of each cell in turn; the likeliest result of a cell first, or the smallest reward
	values  []float32 // sorted reward values; nil if results are categories
}

// cell is a situation: the states and actions that a part is conditioned on.
type cell struct {
	key  uint64
	from int32   // index of its first result
	n    int32   // number of steps
	mean float32 // of the rewards
}

// result counts how often a state, an action, an ending or a reward followed.
type result struct{ what, n int32 }

// visit is one step in a situation, as seen by one part.
type visit struct {
	key    uint64 // of the situation
	known  bool   // whether the baseline can include the situation
	what   int32  // the result that followed
	reward float32
	seed   uint64
}

// place holds the indices of the states before and after a step; -1 if unknown.
type place struct{ state, next int }

func (v *Vocabulary) placeOf(s *Step) place {
	at := place{v.stateOf(s.Observation), -1}
	if s.Next != nil {
		at.next = v.stateOf(s.Next)
	}
	return at
}

// visit returns the situation and the result of a step for a part.
func (m *Model) visit(r *regression, s *Step, at place) visit {
	v := visit{reward: s.Reward, seed: seedOf(s.Key+uint64(r.part)<<8*ingest.MixStep, 0)}
	action, acts := uint64(at.state)*uint64(m.layout.Categories)+uint64(s.Category), at.state >= 0 && s.Category >= 0
	switch r.part {
	case partStart:
		v.key, v.known, v.what = 0, true, int32(at.state)
	case partPolicy:
		v.key, v.known, v.what = uint64(at.state), at.state >= 0, int32(s.Category)
	case partChange:
		v.key, v.known, v.what = action, acts, int32(at.next)
	case partEnding:
		v.key, v.known, v.what = action, acts, int32(r.category(s))
	case partReward:
		v.key, v.known = action*uint64(m.Vocabulary.states())+uint64(at.next), acts && at.next >= 0
		v.what = between(r.cells.values, s.Reward)
	case partLastReward:
		v.key, v.known, v.what = 2*action+uint64(r.category(s)), acts, between(r.cells.values, s.Reward)
	}
	return v
}

// between returns the position of a reward among sorted values: an odd number for one of the values, an even number for
// a reward between them.
func between(values []float32, reward float32) int32 {
	i, found := slices.BinarySearch(values, reward)
	if found {
		return int32(2*i + 1)
	}
	return int32(2 * i)
}

// visits returns the visits of a part in every other episode, beginning with the one at index from.
func (m *Model) visits(r *regression, episodes []Episode, from int) []visit {
	var out []visit
	for i := from; i < len(episodes); i += 2 {
		for k := range episodes[i] {
			if s := &episodes[i][k]; r.part.has(s) {
				out = append(out, m.visit(r, s, m.Vocabulary.placeOf(s)))
			}
		}
	}
	return out
}

// learnCells learns one part from its most common situations, at most most of them, and reports whether the baseline
// has enough data about the part. As with regressions, situations are counted in every other episode, and how unusual
// the results are is measured on the rest.
func (m *Model) learnCells(p part, episodes []Episode, most int) (r regression, known bool) {
	r = regression{part: p, cells: &cells{}, scale: []float32{1}, leaves: make([]leaf, 2*sizes)}
	if p != partStart && p != partChange { // for which the example would be one of many states
		r.q, r.categories = p.targets(m.layout)
	}
	if p.factor() == Reward {
		r.cells.values = valuesOf(m.visits(&r, episodes, 0))
	}
	r.cells.fill(m.visits(&r, episodes, 0), most, m.Vocabulary.leastCell())
	ranks := make([][]float64, len(r.leaves))
	for _, v := range m.visits(&r, episodes, 1) {
		if i, found := r.cells.find(v.key); found && v.known {
			at := r.cells.leaf(i)
			ranks[at] = append(ranks[at], float64(r.cells.rank(i, v.what, v.seed)))
		}
	}
	for at := range ranks {
		if len(ranks[at]) >= leastSketch {
			law := keys(evenly(ranks[at], sketchSize))
			r.leaves[at].law, r.leaves[at].size = planted(law, len(law)), int32(len(law))
			known = true
		}
	}
	return r, known
}

// valuesOf returns the distinct rewards or, if there are more than maxValues, quantiles of the rewards.
func valuesOf(visits []visit) []float32 {
	sample := make([]float64, len(visits))
	for i := range visits {
		sample[i] = float64(visits[i].reward)
	}
	slices.Sort(sample)
	if distinct := slices.Compact(slices.Clone(sample)); len(distinct) <= maxValues {
		sample = distinct
	}
	return slices.Compact(evenly(sample, maxValues))
}

// fill counts the visits of the most common situations, at most most of them, with at least least visits each.
func (c *cells) fill(visits []visit, most, least int) {
	visits = slices.DeleteFunc(visits, func(v visit) bool { return !v.known })
	slices.SortStableFunc(visits, func(a, b visit) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.what, b.what)) })
	var groups [][]visit
	for from, to := 0, 0; from < len(visits); from = to {
		for to < len(visits) && visits[to].key == visits[from].key {
			to++
		}
		if to-from >= least {
			groups = append(groups, visits[from:to])
		}
	}
	if len(groups) > most {
		slices.SortStableFunc(groups, func(a, b []visit) int { return cmp.Compare(len(b), len(a)) })
		groups = groups[:most]
		slices.SortFunc(groups, func(a, b []visit) int { return cmp.Compare(a[0].key, b[0].key) })
	}
	for _, g := range groups {
		c.append(g)
	}
}

// append adds a situation with its visits, which must be sorted by result.
func (c *cells) append(visits []visit) {
	sum, from := 0., len(c.results)
	for i, v := range visits {
		if i == 0 || v.what != visits[i-1].what {
			c.results = append(c.results, result{what: v.what})
		}
		c.results[len(c.results)-1].n++
		sum += float64(v.reward)
	}
	if c.values == nil {
		slices.SortStableFunc(c.results[from:], func(a, b result) int { return cmp.Compare(b.n, a.n) })
	}
	n := len(visits)
	c.all = append(c.all, cell{visits[0].key, int32(from), int32(n), float32(sum / float64(n))})
}

// find returns the index of a situation and whether the baseline includes it.
func (c *cells) find(key uint64) (i int, found bool) {
	return slices.BinarySearchFunc(c.all, key, func(c cell, key uint64) int { return cmp.Compare(c.key, key) })
}

// resultsOf returns the results of a cell.
func (c *cells) resultsOf(i int) []result {
	to := len(c.results)
	if i+1 < len(c.all) {
		to = int(c.all[i+1].from)
	}
	return c.results[c.all[i].from:to]
}

// leaf returns the index of the law for cells of similar size that likewise have one result, or several.
func (c *cells) leaf(i int) int {
	size := min(bits.Len(uint(c.all[i].n)/leastCell), sizes) - 1
	if len(c.resultsOf(i)) > 1 {
		return 2*size + 1
	}
	return 2 * size
}

// count returns how often any of the results that rank before what followed in a cell, and how often what did.
func (c *cells) count(i int, what int32) (before, own int32) {
	for _, o := range c.resultsOf(i) {
		if o.what == what {
			return before, o.n
		}
		if c.values != nil && o.what > what {
			break
		}
		before += o.n
	}
	return before, 0
}

// rank returns the rank of a result among those of a cell, from 0 to 1. It is random within the share of the result, to
// which the step itself is added.
func (c *cells) rank(i int, what int32, seed uint64) float32 {
	before, own := c.count(i, what)
	return (float32(before) + float32(own+1)*uniform(seed)) / float32(c.all[i].n+1)
}

// bytes returns the approximate memory of the cells in bytes.
func (c *cells) bytes() int { return 24*len(c.all) + 8*len(c.results) + 4*len(c.values) }

// look is judge.look for discrete states. It returns the leaf of the situation; nil if the baseline does not include the
// situation.
func (m *Model) look(j *judge, s *Step, at place) *leaf {
	v := m.visit(j.regression, s, at)
	i, found := j.cells.find(v.key)
	if !found || !v.known || j.leaves[j.cells.leaf(i)].law == nil {
		return nil
	}
	l := &j.leaves[j.cells.leaf(i)]
	j.y[0], j.seeds[0] = j.cells.rank(i, v.what, v.seed), ingest.Mix(v.seed)
	j.cells.expect(i, j.predicted)
	return l
}

// expect writes the mean reward of a cell, or the shares of the categories, to y.
func (c *cells) expect(i int, y []float32) {
	if c.values != nil {
		y[0] = c.all[i].mean
		return
	}
	if clear(y); len(y) == 0 {
		return
	}
	for _, o := range c.resultsOf(i) {
		if o.what >= 0 {
			y[o.what] = float32(o.n) / float32(c.all[i].n)
		}
	}
}
