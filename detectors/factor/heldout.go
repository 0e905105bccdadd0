package factor

import "github.com/rewardwatch/rewardwatch/ingest"

// folds is the number of parts of a baseline. Each is scored under laws that are learned from the others.
const folds = 4

// Held is the scores of a unit of the baseline under laws that have not been learned from it.
type Held struct {
	Unit    int // its index
	Factors [Factors]Scores
}

// HeldOut returns the scores of the units from which the laws were learned, as they would be if these were later ones.
// Units that follow one another are in one fold, since they may depend on each other. It returns none if the others of a
// fold are too few to learn from.
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
	for fold := range folds {
		// Of even ones the laws are fitted, and measured on odd ones: an episode is either in all folds.
		from, to := fold*len(all)/folds&^1, (fold+1)*len(all)/folds&^1
		if fold == folds-1 {
			to = len(all)
		}
		others := make([]Episode, 0, len(all))
		others = append(append(others, all[:from]...), all[to:]...)
		m := Learn(l.Model.Vocabulary, others, bytes)
		if m == nil {
			return nil
		}
		s := NewScorer(m)
		for i := from; i < to; i++ {
			held[i].Factors = s.Score(all[i]).Factors
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
