package factor

import (
	"math"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// unscored is the score of a coordinate that does not apply to a step, or whose support does not include the step.
var unscored = float32(math.NaN())

// Scorer scores steps under a model. It is not safe for concurrent use.
type Scorer struct {
	model     *Model
	x         []float32 // features of the last step
	near      []float32 // scratch memory for as many features
	z         []float32
	predicted []float32 // of each regression in turn; only valid where leaf is not nil
	leaf      []*leaf   // of each regression: the leaf with the last step in its support, or nil
	halves    halves
	memory    lagMemory

	preferences int // number of coordinates that are preferences, the last ones
}

// NewScorer returns a scorer of a model.
func NewScorer(m *Model) *Scorer {
	n, targets := m.layout.features(), m.targets()
	return &Scorer{
		model: m, x: make([]float32, n), near: make([]float32, n), z: make([]float32, len(m.names)),
		predicted: make([]float32, targets), leaf: make([]*leaf, len(m.regressions)), halves: halvesOf(m),
		memory: lagMemory{x: make([]float32, n), predicted: make([]float32, m.layout.Observations)},

		preferences: m.preferences(),
	}
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
	at, target := 0, 0
	for i := range s.model.regressions {
		r := &s.model.regressions[i]
		z, predicted := s.z[at:at+r.laws()], s.predicted[target:target+r.q]
		at += len(z)
		target += r.q
		s.leaf[i] = nil
		if !r.part.has(step) {
			fill(z)
			continue
		}
		f := r.part.factor()
		asked[f]++
		if r.cells != nil {
			s.leaf[i] = s.model.scoreCell(r, z, predicted, step, where)
		} else {
			s.leaf[i] = r.scoreInto(z, predicted, step, s.x[:r.p], s.near)
		}
		if s.leaf[i] != nil {
			supported[f]++
		}
	}
	return s.z
}

func fill(z []float32) {
	for k := range z {
		z[k] = unscored
	}
}

// scoreInto writes the scores of a step to z, and the predictions to predicted. It returns the leaf whose support
// includes the step; nil if there is none.
func (r *regression) scoreInto(z, predicted []float32, s *Step, x, near []float32) *leaf {
	l := &r.leaves[leafOf(r.nodes, x)]
	if l.law == nil || l.distance(l.radius, x, near) > l.radius {
		fill(z)
		return nil
	}
	l.predict(predicted, x)
	key := s.Key + uint64(r.part)<<8*ingest.MixStep
	if r.categories {
		seed := seedOf(key, 0)
		z[0] = score(l.law, surprise(predicted, r.category(s), seed), ingest.Mix(seed))
		return l
	}
	law, n := l.law, len(l.law)/len(z)
	for k := range z {
		seed := seedOf(key, k)
		z[k] = score(law[:n], r.residual(k, r.target(s, k), predicted[k], seed), seed)
		law = law[n:]
	}
	return l
}

// read writes the values of a step that the part predicts to y, a category as 1 among zeros. It returns the category.
func (r *regression) read(s *Step, y []float32) (category int) {
	if r.categories {
		return oneOf(y, r.category(s))
	}
	for k := range y {
		y[k] = r.target(s, k)
	}
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
