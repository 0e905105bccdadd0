package battery

import (
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors/factor"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// learntReadings appends the learned quantities of a unit to the readings that they are computed from.
func (b *Battery) learntReadings(u *ingest.Unit, values []stream.Reading) []stream.Reading {
	for _, s := range b.Streams {
		for _, q := range s.Quantities {
			if q.Learnt == nil {
				continue
			}
			if x := q.Learnt.Value(s.Signal, u, values); !math.IsNaN(x) && !math.IsInf(x, 0) {
				values = append(values, stream.Reading{Signal: s.Signal, Quantity: q.Name, X: x, Ts: u.EndTS})
			}
		}
	}
	return values
}

// lawReadings appends the scores of the steps of a unit under the laws of the baseline.
func (b *Battery) lawReadings(u *ingest.Unit, with *stream.Scratch) {
	scores := with.Laws.Score(b.laws, u)
	if scores == nil {
		return
	}
	for f := range factor.Factors {
		i, found := b.Find(signals.Law(f.String()))
		if !found {
			continue
		}
		s := b.Streams[i]
		for _, q := range s.Quantities {
			if q.Learnt == nil || !q.Learnt.Law {
				continue
			}
			x, of := lawValue(q, scores, f, u.EndTS)
			if of == 0 {
				continue
			}
			with.Values = append(with.Values, stream.Reading{Signal: s.Signal, Quantity: q.Name, X: x, Ts: u.EndTS})
		}
	}
}

// lawValue returns a quantity of a law at a time, and of how many scores it is; of none if it is not known.
func lawValue(q *stream.Quantity, u *factor.Unit, f factor.Factor, ts int64) (x float64, of int) {
	s := &u.Factors[f]
	if signals.OfMostMoved(q.Name) {
		s = &u.Moved
	}
	if q.Name == signals.LawSquare || q.Name == signals.LawMostSquare {
		return q.Learnt.About.Square(s.Mean, s.Square, ts), s.N
	}
	return s.Mean, s.N
}

// Scores returns the scores of the steps of the unit that was read last, nil if it has none.
func (b *Battery) Scores() *factor.Unit { return b.scratch.Laws.Last }

// Sound reports whether all signals that the quantity is computed from, besides its own stream, are free of faults.
func (b *Battery) Sound(q *stream.Quantity, rules []string) bool {
	switch {
	case q.Learnt == nil:
		return true
	case q.Learnt.Law: // a step consists of all signals
		return !slices.ContainsFunc(rules, func(rule string) bool { return rule != "" })
	case q.Learnt.Given == "":
		return true
	}
	i, found := b.Find(q.Learnt.Given)
	return !found || rules[i] == ""
}
