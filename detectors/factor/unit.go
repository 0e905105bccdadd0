package factor

import (
	"math"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// unscored is the score of a coordinate that does not apply to a step, or whose support does not include the step.
var unscored = float32(math.NaN())

// Scorer scores steps under a model. It is not safe for concurrent use.
type Scorer struct {
	model  *Model
	x      []float32 // features of the last step
	z      []float32
	judges []judge // one for each regression
	halves halves
	memory lagMemory

	preferences int // number of coordinates that are preferences, the last ones
}

// judge is a regression with its results for the last step.
type judge struct {
	*regression
	leaf      *leaf     // the leaf whose support includes the step; if nil, the other results are not valid
	x         []float32 // the features that the part is conditioned on
	predicted []float32
	z         []float32 // scores
	keys      []int32   // of the residuals
	ranks     []int32   // of the residuals in their laws
	seeds     []uint64  // of the scores
}

// NewScorer returns a scorer of a model.
func NewScorer(m *Model) *Scorer {
	n := m.layout.features()
	s := &Scorer{
		model: m, x: make([]float32, n), z: make([]float32, len(m.names)), judges: make([]judge, len(m.regressions)), halves: halvesOf(m),
		memory: lagMemory{x: make([]float32, n), predicted: make([]float32, m.layout.Observations)},

		preferences: m.preferences(),
	}
	z := s.z
	for i := range m.regressions {
		r := &m.regressions[i]
		n := r.laws()
		s.judges[i] = judge{
			regression: r, x: s.x[:r.p], predicted: make([]float32, r.q), z: z[:n:n],
			keys: make([]int32, n), ranks: make([]int32, n), seeds: make([]uint64, n),
		}
		z = z[n:]
	}
	return s
}

// Step returns the normal scores of a step, one per coordinate; NaN where the law does not apply to the step. The slice
// is valid until the next call. Step does not set the scores of preferences, see prefer. For each factor, it adds to
// asked the number of parts that apply to the step, and to supported the number of those whose support includes it.
func (s *Scorer) Step(step *Step, asked, supported *[Factors]int32) []float32 {
	var where place
	if s.model.Vocabulary.tabular() {
		where = s.model.Vocabulary.placeOf(step)
	} else {
		s.model.features(step, s.x)
	}
	for i := range s.judges {
		j := &s.judges[i]
		j.leaf = nil
		if !j.part.has(step) {
			continue
		}
		f := j.part.factor()
		asked[f]++
		if j.cells != nil {
			j.leaf = s.model.look(j, step, where)
		} else {
			j.leaf = j.look(step)
		}
		if j.leaf != nil {
			supported[f]++
		}
	}
	// Scoring after all regressions lets the processor compute the scores of different parts at the same time.
	for i := range s.judges {
		s.judges[i].score()
	}
	return s.z
}

func fill(z []float32) {
	for k := range z {
		z[k] = unscored
	}
}

// look computes the predictions for a step, the keys of its residuals, and the seeds of its scores. It returns the leaf
// whose support includes the step; nil if there is none.
func (j *judge) look(s *Step) *leaf {
	l := &j.leaves[leafOf(j.nodes, j.x)]
	if !l.supports(j.x) {
		return nil
	}
	l.predict(j.predicted, j.x)
	key := s.Key + uint64(j.part)<<8*ingest.MixStep
	if j.categories {
		seed := seedOf(key, 0)
		j.keys[0], j.seeds[0] = keyOf(surprise(j.predicted, j.category(s), seed)), ingest.Mix(seed)
		return l
	}
	y := j.z // until it is scored
	j.targets(s, y)
	keys, seeds, predicted := j.keys[:len(y)], j.seeds[:len(y)], j.predicted[:len(y)]
	for k, v := range y {
		seeds[k] = seedOf(key, k)
		keys[k] = keyOf(j.residual(k, v, predicted[k], seeds[k]))
	}
	return l
}

// score computes the normal scores of the residuals in the laws of their leaf. The rank of a residual is random among
// equal values, and beyond the outermost ones.
func (j *judge) score() {
	if j.leaf == nil {
		fill(j.z)
		return
	}
	z, laws := j.z, j.leaf.law
	size := len(laws) / len(z)
	ranks(j.ranks, laws, j.keys, size)
	keys, lows, seeds := j.keys[:len(z)], j.ranks[:len(z)], j.seeds[:len(z)]
	all := float32(int32(size + 1))
	for i := range z {
		low, ties := lows[i], int32(0)
		for at := int(low); at < size && laws[at] == keys[i]; at++ {
			ties++
		}
		laws = laws[size:]
		z[i] = normal((float32(low) + float32(ties+1)*uniform(seeds[i])) / all)
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

// Score scores the kept steps of an episode.
func (s *Scorer) Score(e Episode) Unit {
	n := len(s.model.names)
	u := Unit{Scored: Scored{Mean: make([]float32, n), Square: make([]float32, n)}}
	counts, previous := make([]int32, n), make([]float32, n)
	for i := range e {
		if i == len(e)/2 {
			s.halves.first(counts, &u.Scored)
		}
		z := s.Step(&e[i], &u.Asked, &u.Supported)
		s.prefer(&e[i])
		for k, v := range z {
			if v == v {
				counts[k]++
				u.Mean[k] += v
				u.Square[k] += v * v
			}
		}
		u.Signs.add(s, e, i, z, previous)
		u.Signs.compare(s, &e[i])
		copy(previous, z)
	}
	u.Moved = s.halves.moved(counts, &u.Scored)
	for k, c := range counts {
		if at := s.model.names[k]; at.part != partPreference {
			u.Factors[at.Factor].add(c, u.Mean[k], u.Square[k])
		} else {
			u.Square[k] = unscored // it depends on the situations
		}
		if c == 0 {
			u.Mean[k], u.Square[k] = unscored, unscored
			continue
		}
		u.Mean[k] /= float32(c)
		u.Square[k] /= float32(c)
	}
	for f := range u.Factors {
		u.Factors[f].divide()
	}
	return u
}
