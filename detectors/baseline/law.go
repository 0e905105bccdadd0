package baseline

import (
	"github.com/rewardwatch/rewardwatch/detectors/factor"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
)

// LawLessons holds the lessons of a law by quantity; nil for a quantity that too few units have scores for.
type LawLessons map[string]*Lesson

// LessonsOfLaw returns the lessons of the mean scores under a law, of their mean squares and, for a policy that learns,
// of the component that moved most. places are the places of the held-out units in the warm-up.
//
// Mean squares are taken about the daily mean of the scores, if there is one. Otherwise, where the model misses
// differences between hours, the square of a score would be small while the score passes zero, although nothing varies
// less.
func LessonsOfLaw(f factor.Factor, held []factor.Held, places []int32, e stream.Ends, learns bool) LawLessons {
	out := LawLessons{}
	out.learn(held, places, e, signals.LawMean, signals.LawSquare, func(h *factor.Held) factor.Scores { return h.Factors[f] })
	if learns && (f == factor.Dynamics || f == factor.Start) {
		out.learn(held, places, stream.Ends{}, signals.LawMostMean, signals.LawMostSquare, func(h *factor.Held) factor.Scores { return h.Moved[f] })
	}
	if f == factor.Start { // an episode has only one start, whose square is uninformative
		delete(out, signals.LawMostSquare)
	}
	return out
}

// MostOfLaw returns the maximum number of quantities of a law.
func MostOfLaw(f factor.Factor, learns bool) int {
	switch {
	case learns && f == factor.Dynamics:
		return 4
	case learns && f == factor.Start:
		return 3
	}
	return 2
}

func (l LawLessons) learn(held []factor.Held, places []int32, e stream.Ends, mean, square string, of func(*factor.Held) factor.Scores) {
	var units []int32
	var means, squares []float64
	for i := range held {
		if s := of(&held[i]); s.N > 0 {
			units = append(units, places[held[i].Unit])
			means, squares = append(means, s.Mean), append(squares, s.Square)
		}
	}
	l[mean], l[square] = nil, nil
	if len(units) >= LeastLearnt {
		l[mean] = newLesson(&stream.Learnt{Law: true}, units, means)
		about := e.DailyOf(units, means)
		for i, unit := range units {
			squares[i] = about.Square(means[i], squares[i], e.TimeOf(unit))
		}
		l[square] = newLesson(&stream.Learnt{Law: true, About: about}, units, squares)
	}
}

// None reports whether there is no lesson.
func (l LawLessons) None() bool {
	for _, lesson := range l {
		if lesson != nil {
			return false
		}
	}
	return true
}

// Become makes the lessons the baselines of the quantities of the law's stream.
func (l LawLessons) Become(s *stream.Stream) {
	for _, name := range signals.LawQuantities {
		l[name].Become(s, name)
	}
}
