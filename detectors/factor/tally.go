package factor

// sums holds sums over the steps of an episode: one number for each lane, and wide more.
type sums struct {
	mean, square         []float32 // scores and their squares
	expected, actual     []float32 // predictions and what they predict, each in its own unit
	both, squares, cross []float32 // of the scores of a step and of the step before: their means, mean squares and products
	before               []float32 // scores of the step before; NaN if there is none
}

func newSums(n int) sums {
	n += wide
	numbers := func() []float32 { return make([]float32, n) }
	return sums{numbers(), numbers(), numbers(), numbers(), numbers(), numbers(), numbers(), numbers()}
}

// reset begins an episode.
func (s *sums) reset() {
	for _, x := range [][]float32{s.mean, s.square, s.expected, s.actual, s.both, s.squares, s.cross} {
		clear(x)
	}
	fill(s.before)
}

// plainAdd adds the first n lanes of a step, and up to wide lanes behind them. Lanes without a score add nothing.
func plainAdd(s *sums, l *lanes, n int) {
	for k, z := range l.z[:n] {
		before := s.before[k]
		if s.before[k] = z; z != z {
			continue
		}
		s.mean[k] += z
		s.square[k] += z * z
		s.expected[k] += l.expected[k] * l.unit[k]
		s.actual[k] += l.y[k]
		if before == before {
			s.both[k] += (z + before) * .5
			s.squares[k] += (z*z + before*before) * .5
			s.cross[k] += z * before
		}
	}
}

// tally counts the steps of an episode under one regression.
type tally struct {
	steps int32 // in support
	pairs int32 // of consecutive steps in support
	last  bool  // whether the step before was in support

	// The following are only for categories and discrete states, whose lanes hold ranks.
	shares []float32 // of the categories, predicted for the last step
	means  []Mean
}

// count adds the last step.
func (j *judge) count(s *Step) {
	if j.leaf == nil {
		j.last = false
		return
	}
	if j.steps++; j.last {
		j.pairs++
	}
	j.last = true
	if len(j.means) > 0 {
		j.compare(s)
	}
}

// compare adds the predicted and the actual values of the last step to the means.
func (j *judge) compare(s *Step) {
	if !j.categories {
		j.means[0].Expected += j.predicted[0] * j.scale[0]
		j.means[0].Actual += s.Reward
		return
	}
	total := shares(j.predicted)
	for k, p := range j.predicted {
		j.shares[k] = share(p) / total
		j.means[k].Expected += j.shares[k]
	}
	if category := j.category(s); category >= 0 {
		j.means[category].Actual++
	}
}
