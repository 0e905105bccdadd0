package factor

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Sizes of the law of a part in a world of discrete states.
const (
	maxCells  = 4096
	leastCell = 4  // steps of a situation: with fewer it is new ground
	maxValues = 64 // between which rewards are ranked
	sizes     = 5  // of cells that have their own laws, each twice as large as the one before
)

// cells is what followed in each situation of a baseline whose observations are discrete states.
type cells struct {
	all     []cell    // by key
	results []result  // of the cells one after the other: the likeliest first, and of rewards the smallest
	values  []float32 // of rewards, in order; nil if results are categories
}

// cell is a situation.
type cell struct {
	key  uint64
	from int32   // its first result
	n    int32   // steps
	mean float32 // of rewards
}

// result is how often something followed: a state, an action, an end, or a reward.
type result struct{ what, n int32 }

// visit is a step in a situation.
type visit struct {
	key    uint64 // of the situation
	known  bool   // whether a baseline can have it
	what   int32  // followed
	reward float32
	seed   uint64
}

// place is the indices of the states before and after a step, -1 of those that are unknown.
type place struct{ state, next int }

func (v *Vocabulary) placeOf(s *Step) place {
	at := place{v.stateOf(s.Observation), -1}
	if s.Next != nil {
		at.next = v.stateOf(s.Next)
	}
	return at
}

// visit returns what a step says about a part.
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

// between returns a number in the order of rewards: odd for one of the values, even for those between them.
func between(values []float32, reward float32) int32 {
	i, found := slices.BinarySearch(values, reward)
	if found {
		return int32(2*i + 1)
	}
	return int32(2 * i)
}

// visits returns what the steps of every other episode say about a part.
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

// learnCells learns one part from at most so many situations, the commonest ones, and reports whether the baseline says
// enough about the part. As with regressions, situations are counted in every other episode, and how unusual what
// follows seems then is measured on the rest.
func (m *Model) learnCells(p part, episodes []Episode, most int) (r regression, known bool) {
	r = regression{part: p, cells: &cells{}, scale: []float32{1}, leaves: make([]leaf, 2*sizes)}
	if p != partStart && p != partChange { // of which the example would be one of many states
		r.q, r.categories = p.targets(m.layout)
	}
	if p.factor() == Reward {
		r.cells.values = valuesOf(m.visits(&r, episodes, 0))
	}
	r.cells.fill(m.visits(&r, episodes, 0), most)
	ranks := make([][]float64, len(r.leaves))
	for _, v := range m.visits(&r, episodes, 1) {
		if i, found := r.cells.find(v.key); found && v.known {
			at := r.cells.leaf(i)
			ranks[at] = append(ranks[at], float64(r.cells.rank(i, v.what, v.seed)))
		}
	}
	for at := range ranks {
		if len(ranks[at]) >= leastSketch {
			r.leaves[at].law = keys(evenly(ranks[at], sketchSize))
			known = true
		}
	}
	return r, known
}

// valuesOf returns the rewards, or if they are many some that divide them evenly.
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

// fill counts the visits of at most so many situations.
func (c *cells) fill(visits []visit, most int) {
	visits = slices.DeleteFunc(visits, func(v visit) bool { return !v.known })
	slices.SortStableFunc(visits, func(a, b visit) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.what, b.what)) })
	var groups [][]visit
	for from, to := 0, 0; from < len(visits); from = to {
		for to < len(visits) && visits[to].key == visits[from].key {
			to++
		}
		if to-from >= leastCell {
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

// append adds a situation with its visits, those with the same result side by side.
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

// find returns the index of a situation, and whether the baseline knows it.
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

// leaf returns the index of the law of cells of the same size that also lead to one result, or to several.
func (c *cells) leaf(i int) int {
	size := min(bits.Len(uint(c.all[i].n)/leastCell), sizes) - 1
	if len(c.resultsOf(i)) > 1 {
		return 2*size + 1
	}
	return 2 * size
}

// count returns how often the results before one followed in a cell, and that one itself.
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

// rank returns the rank of a result among those of a cell, from 0 to 1. Within its share, to which the result itself
// adds, it is random.
func (c *cells) rank(i int, what int32, seed uint64) float32 {
	before, own := c.count(i, what)
	return (float32(before) + float32(own+1)*uniform(seed)) / float32(c.all[i].n+1)
}

// bytes returns about how much memory the cells take.
func (c *cells) bytes() int { return 24*len(c.all) + 8*len(c.results) + 4*len(c.values) }

// scoreCell writes the score of a step to z, and what is predicted of it. It returns the leaf of its situation, nil if the
// baseline does not know it.
func (m *Model) scoreCell(r *regression, z, predicted []float32, s *Step, at place) *leaf {
	v := m.visit(r, s, at)
	i, found := r.cells.find(v.key)
	if !found || !v.known || r.leaves[r.cells.leaf(i)].law == nil {
		fill(z)
		return nil
	}
	l := &r.leaves[r.cells.leaf(i)]
	z[0] = score(l.law, r.cells.rank(i, v.what, v.seed), ingest.Mix(v.seed))
	r.cells.expect(i, predicted)
	return l
}

// expect writes the mean reward of a cell to y, or its shares of categories.
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
