package factor

import "github.com/rewardwatch/rewardwatch/ingest"

// folds is the number of parts of a baseline. Each part is scored under laws that are learned from the other parts. A
// part consists of up to passes runs of at least leastRun successive units, spread over the baseline: laws that have
// not seen any unit of some hours of the day would differ from those that score later units.
const (
	folds    = 4
	passes   = 16
	leastRun = 16 // number of units; successive units can depend on each other
)

// foldsOf returns the fold of each of n units. The units of a run are in the same fold.
func foldsOf(n int) []int {
	run := max(leastRun, (n+folds*passes-1)/(folds*passes))
	run += run & 1 // even, as laws are fitted to even units and measured on odd ones, and both of a pair must be in one fold
	out := make([]int, n)
	for i := range out {
		out[i] = i / run % folds
	}
	return out
}

// Held holds the scores of a unit of the baseline under laws that were not learned from it.
type Held struct {
	Unit    int // its index
	Factors [Factors]Scores
	Moved   [Factors]Scores // of the component that moved most, for starts and dynamics
}

// HeldOut returns the scores of the units that the laws were learned from, computed as for later units. It returns none
// if the other units of a fold are too few to learn from.
func (l *Laws) HeldOut(units []Told, bytes int) []Held {
	if l.Model == nil {
		return nil
	}
	var all []Episode
	var held []Held
	for i := range units {
		if e := l.Model.Vocabulary.episode(units[i]); e != nil {
			all, held = append(all, e), append(held, Held{Unit: i})
		}
	}
	of, scored := foldsOf(len(all)), make([]Scored, len(all))
	for fold := range folds {
		var others []Episode
		for i, e := range all {
			if of[i] != fold {
				others = append(others, e)
			}
		}
		m := Learn(l.Model.Vocabulary, others, bytes)
		if m == nil {
			return nil
		}
		s := NewScorer(m)
		for i, e := range all {
			if of[i] == fold {
				u := s.Score(e)
				held[i].Factors, held[i].Moved[Dynamics] = u.Factors, u.Moved
				scored[i].Mean = u.Mean[:m.starts()]
			}
		}
	}
	for i := range held {
		held[i].Moved[Start] = lead(scored[:i], l.Model.starts(), &scored[i])
	}
	return held
}

// Memory scores units one after the other. It is not safe for concurrent use.
type Memory struct {
	Last   *Unit // scores of the last unit; nil if it has none
	Own    *Laws // laws of the preceding units, if they are not the group's; otherwise nil
	scorer *Scorer
}

// Score returns the scores of a unit under the laws; nil if it has none. It does not add the unit to the laws, see
// Observe.
func (m *Memory) Score(laws *Laws, u *ingest.Unit) *Unit {
	if m.Last = nil; laws != nil && laws.Model != nil && u.Steps != nil {
		m.Last = m.told(laws.Model, Of(u))
	}
	return m.Last
}

// Lead returns the last unit's score in the component of the first observation that moved most in the preceding units;
// zero if that is unknown.
func (m *Memory) Lead(laws *Laws) Scores {
	before := laws
	if m.Own != nil {
		before = m.Own
	}
	return lead(before.Recent, laws.Model.starts(), &m.Last.Scored)
}

func (m *Memory) told(model *Model, t Told) *Unit {
	if t.Steps == nil {
		return nil
	}
	if model.Most > 0 {
		t = t.Thinned(model.Most)
	}
	e := model.Vocabulary.episode(t)
	if e == nil {
		return nil
	}
	if m.scorer == nil || m.scorer.model != model {
		m.scorer = NewScorer(model)
	}
	scored := m.scorer.Score(e)
	return &scored
}
