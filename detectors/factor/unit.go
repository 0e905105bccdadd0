package factor

import (
	"math"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// unscored is the score of a coordinate that does not apply to a step, or whose support does not include the step.
var unscored = float32(math.NaN())

// Scorer scores steps under a model. It is not safe for concurrent use.
type Scorer struct {
	model   *Model
	x       []float32 // features of the last step; as the next two, with room for `wide` more
	centre  []float32 // of the features
	inverse []float32
	judges  []judge // one for each regression
	change  *judge  // of the change of the observation; nil for discrete states, which have no distances
	lanes   lanes
	sums    sums
	halves  halves
	memory  lagMemory
	counts  []int32   // of the scores of each coordinate
	prefer  []float32 // sums of the preferences, the last coordinates
	signs   Signs     // of the last episode
}

// judge is a regression with its results for the last step.
type judge struct {
	*regression
	leaf      *leaf     // the leaf whose support includes the step; if nil, the other results are not valid
	x         []float32 // the features that the part is conditioned on
	predicted []float32
	region    *leaf // the leaf that the step belongs to, whether or not its support includes the step
	first     int   // index of the first lane
	size      int32 // number of values of each law of the leaf; 0 if it is nil
	lanes           // of the part
	tally
}

// NewScorer returns a scorer of a model.
func NewScorer(m *Model) *Scorer {
	n := m.layout.features()
	laws := 0
	for i := range m.regressions {
		laws += m.regressions[i].laws()
	}
	s := &Scorer{
		model: m, x: roomy(n, nil), centre: roomy(n, m.centre), inverse: roomy(n, m.inverse),
		judges: make([]judge, len(m.regressions)), lanes: newLanes(laws), sums: newSums(laws), halves: halvesOf(m),
		memory: lagMemoryOf(m.layout), counts: make([]int32, max(laws, len(m.names))), prefer: make([]float32, m.preferences()),
		signs: Signs{Pairs: make([]Pair, m.layout.Observations), Means: make([]Mean, m.targets())},
	}
	first, targets := 0, 0
	for i := range m.regressions {
		r := &m.regressions[i]
		j := judge{regression: r, x: s.x[:r.p], first: first, lanes: s.lanes.cut(first, first+r.laws())}
		if j.predicted = j.expected; r.cells != nil || r.categories { // their residuals are complete
			j.predicted, j.shares, j.means = make([]float32, r.q), make([]float32, r.q), s.signs.Means[targets:targets+r.q]
		}
		for k := range j.unit {
			if j.unit[k] = 1; r.cells == nil && !r.categories {
				j.unit[k], j.blur[k] = r.scale[k], r.tolerance
			}
		}
		if s.judges[i] = j; r.part == partChange && r.cells == nil {
			s.change = &s.judges[i]
		}
		first += r.laws()
		targets += r.q
	}
	return s
}

// roomy returns a copy of x of the given length, with room for wide more numbers.
func roomy(n int, x []float32) []float32 {
	out := make([]float32, n, n+wide)
	copy(out, x)
	return out
}

// Step returns the normal scores of a step, one per coordinate; NaN where the law does not apply to the step. The slice
// is valid until the next call. It does not include preferences. For each factor, Step adds to asked the number of parts
// that apply to the step, and to supported the number of those whose support includes it.
func (s *Scorer) Step(step *Step, asked, supported *[Factors]int32) []float32 {
	var where place
	if s.model.Vocabulary.tabular() {
		where = s.model.Vocabulary.placeOf(step)
	} else {
		s.features(step)
	}
	for i := range s.judges {
		j := &s.judges[i]
		if !j.part.has(step) {
			j.take(nil)
			continue
		}
		f := j.part.factor()
		asked[f]++
		if j.cells != nil {
			j.take(s.model.look(j, step, where))
		} else {
			j.take(j.look(step))
		}
		if j.leaf != nil {
			supported[f]++
		}
	}
	s.score()
	return s.lanes.z[:s.laws()]
}

// laws returns the number of lanes.
func (s *Scorer) laws() int { return len(s.lanes.z) - wide }

// features writes the standardized features of a step to s.x.
func (s *Scorer) features(step *Step) {
	l := &s.model.layout
	d, changes := l.Observations, l.Observations+l.actions()
	copy(s.x, step.Observation)
	if l.Categories > 0 {
		for k := range s.x[d:changes] {
			s.x[d+k] = 0
		}
		if step.Category >= 0 {
			s.x[d+step.Category] = 1
		}
	} else {
		copy(s.x[d:changes], step.Action)
	}
	n, each := changes, 0
	if step.Next != nil {
		copy(s.x[changes:], step.Next)
		n, each = len(s.x), d
	}
	standardize(s.x[:n], s.centre, s.inverse, changes, each)
}

// score computes the scores of all parts. Computing them together lets the processor compute eight at once.
func (s *Scorer) score() {
	judges := s.judges
	for len(judges) > 0 && judges[0].leaf == nil {
		fill(judges[0].z)
		judges = judges[1:]
	}
	if len(judges) == 0 {
		return
	}
	last := &judges[len(judges)-1]
	score(judges, &s.lanes, judges[0].first, last.first+len(last.z))
}

func fill(z []float32) {
	for k := range z {
		z[k] = unscored
	}
}

// look computes the predictions for a step and the seeds of its scores. It returns the leaf whose support includes the
// step; nil if there is none.
func (j *judge) look(s *Step) *leaf {
	l := &j.leaves[leafOf(j.nodes, j.x)]
	if j.region = l; l.law == nil || !expect(j, l) {
		return nil
	}
	key := s.Key + uint64(j.part)<<8*ingest.MixStep
	if j.categories {
		seed := seedOf(key, 0)
		j.y[0], j.seeds[0] = surprise(j.predicted, j.category(s), seed), ingest.Mix(seed)
		return l
	}
	j.targets(s, j.y)
	for k := range j.seeds {
		j.seeds[k] = seedOf(key, k)
	}
	return l
}

// take stores the leaf whose support includes the step, or nil.
func (j *judge) take(l *leaf) {
	size := int32(0)
	if j.leaf = l; l != nil {
		size = l.size
	}
	if size == j.size {
		return
	}
	of := unscored
	if size > 0 {
		of = float32(size + 1)
	}
	j.size = size
	for k := range j.of {
		j.of[k] = of
	}
}

// targets writes the numbers of a step that the part predicts to y, each in its own unit.
func (r *regression) targets(s *Step, y []float32) {
	switch r.part {
	case partStart:
		copy(y, s.Observation)
	case partPolicy:
		copy(y, s.Action)
	case partChange:
		next, now := s.Next[:len(y)], s.Observation[:len(y)]
		for k := range y {
			y[k] = next[k] - now[k]
		}
	default:
		y[0] = s.Reward
	}
}

// read writes the values of a step that the part predicts to y, a category as 1 among zeros. It returns the category.
func (r *regression) read(s *Step, y []float32) (category int) {
	if r.categories {
		return oneOf(y, r.category(s))
	}
	r.targets(s, y)
	return 0
}

// category returns the category of a step that the part predicts.
func (r *regression) category(s *Step) int {
	if r.part == partPolicy {
		return s.Category
	}
	if s.Terminated {
		return 1
	}
	return 0
}

// target returns the k-th number of a step that the part predicts, in its own unit.
func (r *regression) target(s *Step, k int) float32 {
	switch r.part {
	case partStart:
		return s.Observation[k]
	case partPolicy:
		return s.Action[k]
	case partChange:
		return s.Next[k] - s.Observation[k]
	default:
		return s.Reward
	}
}

// Unit holds the scores of an episode.
type Unit struct {
	Scored
	Signs   Signs
	Factors [Factors]Scores
	Moved   Scores // of the component of the observation that moved most; zero if that is unknown
}

// Scores holds the number of scores of an episode's steps under all parts of a law together, and their mean and mean
// square.
type Scores struct {
	N            int
	Mean, Square float64
}

// add adds the sums of n scores of a part.
func (s *Scores) add(n int32, sum, squares float32) {
	s.N += int(n)
	s.Mean += float64(sum)
	s.Square += float64(squares)
}

// divide turns sums into means.
func (s *Scores) divide() {
	if s.N > 0 {
		s.Mean /= float64(s.N)
		s.Square /= float64(s.N)
	}
}

// Score scores the kept steps of an episode. The signs are valid until the next call.
func (s *Scorer) Score(e Episode) Unit {
	var u Unit
	s.begin()
	for i := range e {
		if i == len(e)/2 {
			s.halves.first(s.count(), s.sums.mean, s.sums.square)
		}
		s.Step(&e[i], &u.Asked, &u.Supported)
		if i > 0 && e[i-1].Number+1 == e[i].Number {
			s.lag(&e[i], &e[i-1])
		} else {
			s.split()
		}
		s.add(&e[i])
	}
	u.Moved = s.halves.moved(s.count(), s.sums.mean, s.sums.square)
	u.Mean, u.Square = s.means(&u.Factors)
	u.Signs = s.signsOf(e)
	return u
}

// begin forgets the episode before.
func (s *Scorer) begin() {
	s.sums.reset()
	clear(s.prefer)
	clear(s.signs.Pairs)
	clear(s.signs.Means)
	for i := range s.judges {
		j := &s.judges[i]
		j.steps, j.pairs = 0, 0
	}
}

// split makes the next step one that does not follow the step before.
func (s *Scorer) split() {
	fill(s.sums.before)
	for i := range s.judges {
		s.judges[i].last = false
	}
}

// add adds the step that was scored last to the sums.
func (s *Scorer) add(step *Step) {
	addLanes(&s.sums, &s.lanes, s.laws())
	for i := range s.judges {
		j := &s.judges[i]
		j.count(step)
		if j.part == partPolicy && j.leaf != nil {
			addPreferences(s.prefer, j.shares, step.Category)
		}
	}
}

// count returns the number of scores of each coordinate.
func (s *Scorer) count() []int32 {
	for i := range s.judges {
		j := &s.judges[i]
		for k := range j.z {
			s.counts[j.first+k] = j.steps
		}
		for k := range s.prefer {
			if j.part == partPolicy {
				s.counts[s.laws()+k] = j.steps
			}
		}
	}
	return s.counts
}

// means returns the means of the scores of each coordinate and of their squares. It adds those of all coordinates of a
// factor to factors.
func (s *Scorer) means(factors *[Factors]Scores) (mean, square []float32) {
	n := len(s.model.names)
	both := make([]float32, 2*n)
	mean, square = both[:n:n], both[n:]
	copy(mean, s.sums.mean[:s.laws()])
	copy(mean[n-len(s.prefer):], s.prefer)
	copy(square, s.sums.square[:s.laws()])
	for k, at := range s.model.names {
		c := s.counts[k]
		if at.part != partPreference {
			factors[at.Factor].add(c, mean[k], square[k])
		} else {
			square[k] = unscored // it depends on the situations
		}
		if c == 0 {
			mean[k], square[k] = unscored, unscored
			continue
		}
		mean[k] /= float32(c)
		square[k] /= float32(c)
	}
	for f := range factors {
		factors[f].divide()
	}
	return mean, square
}
