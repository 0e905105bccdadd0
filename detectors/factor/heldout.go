package factor

import "github.com/rewardwatch/rewardwatch/ingest"

// folds is the number of parts of a baseline. Each is scored under laws that are learned from the others. A part consists
// of passes runs of units, spread over the baseline, each of at least leastRun: what has no unit of some hours of the day
// would have learned other laws than those that judge later units.
const (
	folds    = 4
	passes   = 16
	leastRun = 16 // units: they may depend on those before and after them
)

// foldsOf returns the fold of each of n units. Units that follow one another are in one fold, but where a run ends.
func foldsOf(n int) []int {
	run := max(leastRun, (n+folds*passes-1)/(folds*passes))
	run += run & 1 // the laws are fitted to even units, and measured on odd ones: a pair is in one fold
	out := make([]int, n)
	for i := range out {
		out[i] = i / run % folds
	}
	return out
}

// Held is the scores of a unit of the baseline under laws that have not been learned from it.
type Held struct {
	Unit    int // its index
	Steps   int // that are kept of it
	Factors [Factors]Scores
	Moved   [Factors]Scores // of the component that moved most, of starts and dynamics
}

// HeldOut returns the scores of the units from which the laws were learned, as they would be if these were later ones. It
// returns none if the others of a fold are too few to learn from.
func (l *Laws) HeldOut(units []Told, bytes int) []Held {
	if l.Model == nil {
		return nil
	}
	var all []Episode
	var held []Held
	for i := range units {
		if e := l.Model.Vocabulary.episode(units[i]); e != nil {
			all, held = append(all, e), append(held, Held{Unit: i, Steps: len(e)})
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

// Memory scores units one by one. It is not for use by several goroutines.
type Memory struct {
	Last   *Unit // scores of the last unit; nil if it has none
	Own    *Laws // of which the units before are, if they are not those of the group; else nil
	scorer *Scorer
}

// Score returns the scores of a unit under the laws, nil if it has none. It does not add the unit to them.
func (m *Memory) Score(laws *Laws, u *ingest.Unit) *Unit {
	if m.Last = nil; laws != nil && laws.Model != nil && u.Steps != nil {
		m.Last = m.told(laws.Model, Of(u))
	}
	return m.Last
}

// Lead returns the score, in the last unit, of the component of the first observation that moved most in the units before;
// none if that is not known.
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
