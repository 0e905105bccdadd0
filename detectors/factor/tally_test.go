package factor

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// plainUnit scores an episode as the definitions say: number by number, from the scores and predictions of each step.
func plainUnit(s *Scorer, e Episode) Unit {
	n := len(s.model.names)
	u := Unit{Scored: Scored{Mean: make([]float32, n), Square: make([]float32, n)}}
	counts, previous := make([]int32, n), make([]float32, n)
	for i := range e {
		if i == len(e)/2 {
			s.halves.first(counts, u.Mean, u.Square)
		}
		z := append(slices.Clone(s.Step(&e[i], &u.Asked, &u.Supported)), plainPreferences(s, &e[i])...)
		for k, v := range z {
			if v == v {
				counts[k]++
				u.Mean[k] += v
				u.Square[k] += v * v
			}
		}
		plainSigns(&u.Signs, s, e, i, z, previous)
		plainCompare(&u.Signs, s, &e[i])
		copy(previous, z)
	}
	u.Moved = s.halves.moved(counts, u.Mean, u.Square)
	for k, c := range counts {
		if at := s.model.names[k]; at.part != partPreference {
			u.Factors[at.Factor].add(c, u.Mean[k], u.Square[k])
		} else {
			u.Square[k] = unscored
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

// plainPreferences returns the preferences of the step that was scored last.
func plainPreferences(s *Scorer, step *Step) []float32 {
	left := make([]float32, s.model.preferences())
	for i := range s.judges {
		j := &s.judges[i]
		if j.part != partPolicy {
			continue
		}
		if j.leaf == nil {
			fill(left)
			break
		}
		for k := range left {
			left[k] = -share(j.predicted[k]) / shares(j.predicted)
		}
		if c := step.Category; c >= 0 && c < len(left) {
			left[c]++
		}
	}
	return left
}

// plainSigns adds step i of an episode, which was scored last, to the pairs.
func plainSigns(u *Signs, s *Scorer, e Episode, i int, z, previous []float32) {
	step := &e[i]
	if step.Next == nil {
		return
	}
	if u.Pairs == nil {
		u.Pairs = make([]Pair, s.model.layout.Observations)
	}
	for k := range u.Pairs {
		u.Pairs[k].Steps++
		if step.Next[k] != step.Observation[k] {
			u.Pairs[k].Changed++
		}
	}
	if step.Number == 0 {
		if u.Begun = 1; slices.Equal(step.Next, step.Observation) {
			u.Repeated = 1
		}
	}
	if i == 0 || e[i-1].Number+1 != step.Number || s.model.Vocabulary.tabular() {
		return
	}
	for at, c := range s.model.names {
		if c.part == partChange && z[at] == z[at] && previous[at] == previous[at] {
			p := &u.Pairs[c.Index]
			p.N++
			p.Sum += (z[at] + previous[at]) / 2
			p.Square += (z[at]*z[at] + previous[at]*previous[at]) / 2
			p.Cross += z[at] * previous[at]
		}
	}
	for k := range s.judges {
		if r := s.judges[k].regression; r.part == partChange {
			plainLag(u.Pairs, s, r, step, step, func(p *Pair) *float32 { return &p.Now })
			plainLag(u.Pairs, s, r, step, &e[i-1], func(p *Pair) *float32 { return &p.Before })
		}
	}
}

// plainLag adds the squared errors of the predictions of a step with the action of another one.
func plainLag(pairs []Pair, s *Scorer, r *regression, step, with *Step, sum func(*Pair) *float32) {
	x, predicted := slices.Clone(s.x[:r.p]), make([]float32, r.q)
	s.model.act(with, x)
	l := &r.leaves[leafOf(r.nodes, x)]
	plainLinear(predicted, l.beta, x)
	for k := range r.q {
		d := r.target(step, k)/r.scale[k] - predicted[k]
		*sum(&pairs[k]) += d * d
	}
}

// plainCompare adds the predicted and the actual values of the step that was scored last.
func plainCompare(u *Signs, s *Scorer, step *Step) {
	if u.Means == nil {
		u.Means = make([]Mean, s.model.targets())
	}
	means := u.Means
	for i := range s.judges {
		j := &s.judges[i]
		for k := 0; k < j.q && j.leaf != nil; k++ {
			m := &means[k]
			m.N++
			if !j.categories {
				m.Expected += j.predicted[k] * j.scale[k]
				m.Actual += j.target(step, k)
				continue
			}
			m.Expected += share(j.predicted[k]) / shares(j.predicted)
			if k == j.category(step) {
				m.Actual++
			}
		}
		means = means[j.q:]
	}
}

// wanderers returns episodes with gaps between the kept steps, actions and observations outside of the support,
// observations that stay as they are, unknown actions, and only one step.
func wanderers(seed uint64, n int, numbers bool) []Episode {
	rng := rand.New(rand.NewPCG(seed, 2))
	episodes := walkers(seed, n)
	for i, e := range episodes {
		for k := range e {
			s := &e[k]
			if numbers {
				s.Action, s.Category = []float32{float32(s.Category) + .2*float32(rng.NormFloat64())}, 0
			} else if rng.IntN(20) == 0 {
				s.Category = -1
			}
			if rng.IntN(20) == 0 {
				s.Observation[rng.IntN(8)] *= 9
			}
			if s.Next != nil && rng.IntN(20) == 0 {
				copy(s.Next, s.Observation)
			}
		}
		if gap := rng.IntN(40); gap > 30 {
			e[gap-1].Next = nil
			episodes[i] = slices.Delete(e, gap, min(gap+3, 39))
		} else if gap == 0 {
			episodes[i] = e[:1]
		}
	}
	return episodes
}

// Units equal those that the definitions give, to the last bit.
func TestUnits(t *testing.T) {
	states := mapped().Vocabulary
	for name, c := range map[string]struct {
		vocabulary Vocabulary
		episodes   func(seed uint64, n int) []Episode
	}{
		"states":     {states, func(seed uint64, n int) []Episode { return states.episodes(calm().told(seed, n)) }},
		"categories": {vocabulary(8, 0, 3), walkers},
		"numbers":    {vocabulary(8, 1, 0), func(seed uint64, n int) []Episode { return wanderers(seed, n, true) }},
		"gaps":       {vocabulary(8, 0, 3), func(seed uint64, n int) []Episode { return wanderers(seed, n, false) }},
	} {
		m := Learn(c.vocabulary, c.episodes(1, 200), defaultBytes)
		s, plain := NewScorer(m), NewScorer(m)
		unsupported := int32(0)
		for _, e := range c.episodes(3, 200) {
			got, want := s.Score(e), plainUnit(plain, e)
			if !same(got.Mean, want.Mean) || !same(got.Square, want.Square) {
				t.Fatalf("%s: scores are %v, want %v", name, got.Scored, want.Scored)
			}
			got.Mean, got.Square, want.Mean, want.Square = nil, nil, nil, nil
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%s: %+v, want %+v", name, got, want)
			}
			unsupported += got.Asked[Dynamics] - got.Supported[Dynamics]
		}
		if unsupported == 0 {
			t.Errorf("%s: all steps are in support", name)
		}
	}
}

func same(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) })
}
