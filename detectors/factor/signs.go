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

// add adds step i of an episode, with its scores and those of the step before.
func (s *Signs) add(by *Scorer, e Episode, i int, z, previous []float32) {
	step, m := &e[i], by.model
	if step.Next == nil {
		return
	}
	if s.Pairs == nil {
		s.Pairs = make([]Pair, m.layout.Observations)
	}
	for k := range s.Pairs {
		s.Pairs[k].Steps++
		if step.Next[k] != step.Observation[k] {
			s.Pairs[k].Changed++
		}
	}
	if step.Number == 0 {
		s.Begun = 1
		s.Repeated = 1
		for k := range step.Next {
			if step.Next[k] != step.Observation[k] {
				s.Repeated = 0
			}
		}
	}
	if i == 0 || e[i-1].Number+1 != step.Number || m.Vocabulary.tabular() { // discrete states have no distances
		return
	}
	for at, c := range m.names {
		if c.part == partChange && z[at] == z[at] && previous[at] == previous[at] {
			p := &s.Pairs[c.Index]
			p.N++
			p.Sum += (z[at] + previous[at]) / 2
			p.Square += (z[at]*z[at] + previous[at]*previous[at]) / 2
			p.Cross += z[at] * previous[at]
		}
	}
	s.lag(by, step, &e[i-1])
}

// lagMemory is scratch memory for the features of a step with the action of the step before, and for the prediction.
type lagMemory struct{ x, predicted []float32 }

// lag adds how well the action of the step before predicts the change of the observation, compared with the action of
// the step itself, which must be the one scored last.
func (s *Signs) lag(by *Scorer, step, before *Step) {
	for i := range by.judges {
		r := &by.judges[i]
		if r.part != partChange {
			continue
		}
		predicted := by.memory.predicted
		if r.leaf != nil { // already predicted
			copy(predicted, r.predicted)
		} else {
			r.predictChange(by.x[:r.p], predicted)
		}
		for k := range r.q {
			s.Pairs[k].Now += r.squaredError(k, step, predicted)
		}
		if !step.acts(before) {
			copy(by.memory.x, by.x[:r.p])
			by.model.act(before, by.memory.x)
			r.predictChange(by.memory.x[:r.p], predicted)
		}
		for k := range r.q {
			s.Pairs[k].Before += r.squaredError(k, step, predicted)
		}
	}
}

// predictChange writes the law's predictions for features to y, whether or not they are in its support.
func (r *regression) predictChange(x, y []float32) { r.leaves[leafOf(r.nodes, x)].predict(y, x) }

// squaredError returns the squared error of the prediction of the k-th number, in variances of that number.
func (r *regression) squaredError(k int, s *Step, predicted []float32) float32 {
	d := r.target(s, k)/r.scale[k] - predicted[k]
	return d * d
}

// acts reports whether the step has the same action as another one.
func (s *Step) acts(as *Step) bool {
	return s.Category == as.Category && slices.Equal(s.Action, as.Action)
}

// compare adds the predicted and the actual values of the step that was scored last.
func (s *Signs) compare(by *Scorer, step *Step) {
	if s.Means == nil {
		s.Means = make([]Mean, by.model.targets())
	}
	at := 0
	for i := range by.judges {
		r := &by.judges[i]
		if r.leaf != nil {
			r.compare(s.Means[at:at+r.q], r.predicted, step)
		}
		at += r.q
	}
}

// compare adds the predicted and the actual values of a step.
func (r *regression) compare(means []Mean, predicted []float32, s *Step) {
	total, category := float32(1), 0
	if r.categories {
		total, category = shares(predicted), r.category(s)
	}
	for k := range means {
		m := &means[k]
		m.N++
		if !r.categories {
			m.Expected += predicted[k] * r.scale[k]
			m.Actual += r.target(s, k)
			continue
		}
		m.Expected += share(predicted[k]) / total
		if k == category {
			m.Actual++
		}
	}
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
