package factor

import (
	"math"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Unscored is the score of a coordinate that a step says nothing about, or outside its support.
var unscored = float32(math.NaN())

// Scorer scores steps under a model. It is not for use by several goroutines.
type Scorer struct {
	model     *Model
	x         []float32 // features of the last step
	near      []float32 // memory for as many
	z         []float32
	predicted []float32 // of each regression one after the other, where leaf is not nil
	leaf      []*leaf   // of each regression, in which the last step was in support; else nil
	halves    halves
	memory    lagMemory

	preferences int // of the coordinates, the last ones
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

// Step returns the normal scores of a step, one for each coordinate, until the next call; NaN where the law says
// nothing about the step. Those of preferences are prefer's. It counts, for each factor, the parts that the step could
// have been scored in, and those in whose support it is.
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

// scoreInto writes the scores of a step to z, and what is predicted of it. It returns the leaf in whose support the step
// is, nil if it is in none.
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

// read writes what the part predicts of a step to y, the category as 1 among zeros. It returns the category.
func (r *regression) read(s *Step, y []float32) (category int) {
	if r.categories {
		return oneOf(y, r.category(s))
	}
	for k := range y {
		y[k] = r.target(s, k)
	}
	return 0
}

// category returns the category that the part predicts of a step.
func (r *regression) category(s *Step) int {
	if r.part == partPolicy {
		return s.Category
	}
	if s.Terminated {
		return 1
	}
	return 0
}

// target returns what the part predicts of a step, in its own unit.
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

// Unit is the scores of an episode.
type Unit struct {
	Scored
	Signs   Signs
	Factors [Factors]Scores
	Moved   Scores // of the component of the observation that moved most; no steps if that is not known
}

// Scores is the scores of the steps of an episode under all parts of a law together.
type Scores struct {
	N            int
	Mean, Square float64
}

// add adds the sums of so many scores of a part.
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
