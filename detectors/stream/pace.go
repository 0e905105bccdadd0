package stream

import (
	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/season"
)

// setPace finds the hours of the day in which the evidence of the quantity counts less, if hours differ.
func (q *Quantity) setPace(e Ends) {
	if q.Pace = nil; !e.Hours || q.Mix != nil || q.Walks() == nil {
		return
	}
	times, inflation := q.TimesOf(e), 1.0
	if q.Season != nil {
		inflation = q.Season.Inflation(times)
	}
	q.Pace = season.NewPace(q.judgedScores(times), times, q.Walks().Factor, inflation, e.Zone)
}

// judgedScores returns the scores of the collected values as the walks judge them, with mean 0 and variance 1: those of shares
// within their strata, or the normal scores of ranks and their squares.
func (q *Quantity) judgedScores(times []int64) [][]float64 {
	if q.Counts() {
		hits, steps := q.warmHits()
		strata := make([]int, len(hits))
		if q.Season != nil {
			strata = q.Season.StrataOf(times)
		}
		return [][]float64{detectors.CountScores(hits, steps, strata)}
	}
	own, ranks := q.WarmValues(), q.JudgedRanks()
	if q.Season != nil {
		own = q.Season.Own(own, times)
	}
	for i, x := range own {
		own[i] = detectors.NormalScore(ranks.OwnRank(x))
	}
	return season.LevelAndSpread(own)
}

// weigh sets the weight of the evidence of a unit at a time.
func (q *Quantity) weigh(ts int64) {
	if q.Pace == nil {
		return
	}
	if w := q.Walks(); w != nil {
		w.Weigh(1 / q.Pace.At(ts))
	}
}
