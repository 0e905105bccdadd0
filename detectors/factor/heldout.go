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
	Factors [Factors]Scores
	Moved   Scores // as of Unit
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
			all, held = append(all, e), append(held, Held{Unit: i})
		}
	}
	of := foldsOf(len(all))
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
				held[i].Factors, held[i].Moved = u.Factors, u.Moved
			}
		}
	}
	return held
}

// Memory scores units one by one. It is not for use by several goroutines.
type Memory struct {
	Last   *Unit // scores of the last unit; nil if it has none
	scorer *Scorer
}

// Score returns the scores of a unit under a model, nil if it has none.
func (m *Memory) Score(model *Model, u *ingest.Unit) *Unit {
	if m.Last = nil; model != nil && u.Steps != nil {
		m.Last = m.told(model, Of(u))
	}
	return m.Last
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
