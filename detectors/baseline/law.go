package baseline

import (
	"github.com/rewardwatch/rewardwatch/detectors/factor"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
)

// LawLessons returns the lessons of the mean scores under a law, and of their mean squares; nil if too few units have
// scores. places are those of the units in the warm-up.
func LawLessons(f factor.Factor, held []factor.Held, places []int32) (mean, square *Lesson) {
	var units []int32
	var means, squares []float64
	for i := range held {
		if s := held[i].Factors[f]; s.N > 0 {
			units = append(units, places[held[i].Unit])
			means, squares = append(means, s.Mean), append(squares, s.Square)
		}
	}
	if len(units) < LeastLearnt {
		return nil, nil
	}
	return newLesson(&stream.Learnt{Law: true}, units, means), newLesson(&stream.Learnt{Law: true}, units, squares)
}
