package battery

import (
	"math"

	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// learntReadings appends the learnt quantities of a unit to the readings that they are computed from.
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

// Sound reports whether all signals that the quantity is computed from, besides its own stream, are free of faults.
func (b *Battery) Sound(q *stream.Quantity, rules []string) bool {
	if q.Learnt == nil || q.Learnt.Given == "" {
		return true
	}
	i, found := b.Find(q.Learnt.Given)
	return !found || rules[i] == ""
}
