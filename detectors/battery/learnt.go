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
	if with.Laws.Score(b.laws, u) == nil {
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
			scores := scoresOf(q.Name, b.laws, &with.Laws, f)
			if scores.N == 0 {
				continue
			}
			with.Values = append(with.Values, stream.Reading{Signal: s.Signal, Quantity: q.Name, X: lawValue(q, &scores, u.EndTS), Ts: u.EndTS})
		}
	}
}

// scoresOf returns the scores of the unit scored last that a quantity of a law is computed from; none if they are
// not known.
func scoresOf(quantity string, laws *factor.Laws, m *factor.Memory, f factor.Factor) factor.Scores {
	switch {
	case !signals.OfMostMoved(quantity):
		return m.Last.Factors[f]
	case f == factor.Start:
		return m.Lead(laws)
	}
	return m.Last.Moved
}

// lawValue returns a quantity of a law at a time.
func lawValue(q *stream.Quantity, s *factor.Scores, ts int64) float64 {
	if q.Name == signals.LawSquare || q.Name == signals.LawMostSquare {
		return q.Learnt.About.Square(s.Mean, s.Square, ts)
	}
	return s.Mean
}

// Scores returns the scores of the steps of the unit read last, or nil if it has none.
func (b *Battery) Scores() *factor.Unit { return b.scratch.Laws.Last }

// Sound reports whether all signals that the quantity is computed from, besides its own stream, are free of faults.
// rules holds the rule in force by stream.
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
