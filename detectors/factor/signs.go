package factor

import "slices"

// Signs are sums over the consecutive steps of an episode that distinguish broken observations from changed dynamics.
type Signs struct {
	Pairs []Pair // per component of the observation
	// Begun is 1 if the first two steps of the episode were kept. Repeated is 1 if their observations are also equal: a
	// lagging sensor can only repeat the first observation.
	Begun, Repeated int32

	Means []Mean // per number that the model predicts, one regression after the other
}

// Mean holds sums over the steps in support of a law: the values that it predicts and the actual values, in the unit of
// the number or as shares of a category.
type Mean struct{ N, Expected, Actual float32 }

// Pair holds sums over pairs of consecutive steps.
type Pair struct {
	N, Sum, Square, Cross float32 // of the scores of the dynamics, which alternate if a sensor is noisy
	Now, Before           float32 // squared residuals, given the action of the step and that of the step before
	Steps, Changed        float32 // number of steps with a next observation, and of those in which it differs
}

// signsOf returns the signs of the episode that was scored last.
func (s *Scorer) signsOf(e Episode) Signs {
	out := s.signs
	if len(e) == 0 {
		return Signs{}
	}
	out.changes(e)
	if c := s.change; c != nil {
		for k := range out.Pairs {
			p, at := &out.Pairs[k], c.first+k
			p.N, p.Sum, p.Square, p.Cross = float32(c.pairs), s.sums.both[at], s.sums.squares[at], s.sums.cross[at]
		}
	}
	means := out.Means
	for i := range s.judges {
		j := &s.judges[i]
		for k := range j.q {
			m := &means[k]
			if m.N = float32(j.steps); j.means == nil {
				m.Expected, m.Actual = s.sums.expected[j.first+k], s.sums.actual[j.first+k]
			}
		}
		means = means[j.q:]
	}
	return out
}

// changes counts the steps of an episode with a next observation, and those in which each component changes. If there
// are none, the signs have no pairs.
func (s *Signs) changes(e Episode) {
	steps := 0
	for i := range e {
		step := &e[i]
		if step.Next == nil {
			continue
		}
		steps++
		changed := false
		next, now := step.Next[:len(s.Pairs)], step.Observation[:len(s.Pairs)]
		for k := range s.Pairs {
			if next[k] != now[k] {
				s.Pairs[k].Changed++
				changed = true
			}
		}
		if step.Number == 0 {
			if s.Begun = 1; !changed {
				s.Repeated = 1
			}
		}
	}
	if steps == 0 {
		s.Pairs = nil
	}
	for k := range s.Pairs {
		s.Pairs[k].Steps = float32(steps)
	}
}

// lagMemory is scratch memory for the features of a step with the action of the step before, and for the prediction.
type lagMemory struct{ x, predicted []float32 }

func lagMemoryOf(l Layout) lagMemory {
	return lagMemory{make([]float32, l.features()), make([]float32, l.Observations)}
}

// lag adds how well the action of the step before predicts the change of the observation, compared with the action of
// the step itself, which must be the one scored last.
func (s *Scorer) lag(step, before *Step) {
	j := s.change
	if j == nil || step.Next == nil {
		return
	}
	predicted, memory := j.expected, s.memory.predicted
	if j.leaf == nil { // neither predicted nor scaled
		predicted = memory
		j.region.predict(predicted, j.x)
		j.targets(step, j.y)
		for k, y := range j.y {
			j.scaled[k] = y / j.unit[k]
		}
	}
	for k := range s.signs.Pairs {
		s.signs.Pairs[k].Now += squaredError(j.scaled[k], predicted[k])
	}
	if !step.acts(before) {
		x := s.memory.x[:j.p]
		copy(x, j.x)
		s.model.act(before, x)
		predicted = memory
		j.leaves[leafOf(j.nodes, x)].predict(predicted, x)
	}
	for k := range s.signs.Pairs {
		s.signs.Pairs[k].Before += squaredError(j.scaled[k], predicted[k])
	}
}

func squaredError(y, predicted float32) float32 { return (y - predicted) * (y - predicted) }

// acts reports whether the step has the same action as another one.
func (s *Step) acts(as *Step) bool {
	return s.Category == as.Category && slices.Equal(s.Action, as.Action)
}

// sum adds the signs of other episodes.
func (s *Signs) sum(o *Signs) {
	if s.Pairs == nil && o.Pairs != nil {
		s.Pairs = make([]Pair, len(o.Pairs))
	}
	for k := range o.Pairs {
		a, b := &s.Pairs[k], &o.Pairs[k]
		a.N += b.N
		a.Sum += b.Sum
		a.Square += b.Square
		a.Cross += b.Cross
		a.Now += b.Now
		a.Before += b.Before
		a.Steps += b.Steps
		a.Changed += b.Changed
	}
	if s.Means == nil && o.Means != nil {
		s.Means = make([]Mean, len(o.Means))
	}
	for k, m := range o.Means {
		s.Means[k].N += m.N
		s.Means[k].Expected += m.Expected
		s.Means[k].Actual += m.Actual
	}
	s.Begun += o.Begun
	s.Repeated += o.Repeated
}

// correlation returns the correlation between the scores of consecutive steps; 0 if there are too few.
func (p *Pair) correlation() float32 {
	if p.N < 30 {
		return 0
	}
	mean := p.Sum / p.N
	variance := p.Square/p.N - mean*mean
	if variance <= 0 {
		return 0
	}
	return (p.Cross/p.N - mean*mean) / variance
}
