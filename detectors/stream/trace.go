package stream

import (
	"math"

	"github.com/rewardwatch/rewardwatch/detectors"
)

// TrailUnits is the number of last units that are recorded one by one.
const TrailUnits = 512

// Trace holds the values of the last units that the tests of a quantity have seen. Exported fields are saved.
type Trace struct {
	Values detectors.Floats // a ring by ordinal, from First on; NaN for a unit without a value or with one excluded by a fault
	First  int64            // ordinal of the first value since the trace began
	Next   int64            // ordinal after the newest
}

// Add keeps the value of unit number ordinal.
func (t *Trace) Add(x float64, ordinal int64) {
	if len(t.Values) == 0 || ordinal-t.Next >= TrailUnits {
		t.Values, t.First, t.Next = t.Values[:0], ordinal, ordinal
	}
	for t.Next < ordinal {
		t.put(math.NaN())
	}
	t.put(x)
}

func (t *Trace) put(x float64) {
	if len(t.Values) < TrailUnits {
		t.Values = AppendUpTo(t.Values, x, TrailUnits)
	} else {
		t.Values[(t.Next-t.First)%TrailUnits] = x
	}
	t.Next++
}

// Since returns the recorded values from an ordinal on, and the ordinals of their units.
func (t *Trace) Since(ordinal int64) (values []float64, ordinals []int64) {
	for o := max(ordinal, t.Next-int64(len(t.Values))); o < t.Next; o++ {
		if x := t.Values[(o-t.First)%TrailUnits]; !math.IsNaN(x) {
			values = append(values, x)
			ordinals = append(ordinals, o)
		}
	}
	return values, ordinals
}

// AppendUpTo appends x to a slice that becomes a ring of at most most elements. It never allocates room for more.
func AppendUpTo[T any](ring []T, x T, most int) []T {
	if len(ring) == cap(ring) {
		grown := make([]T, len(ring), min(most, max(16, 2*len(ring))))
		copy(grown, ring)
		ring = grown
	}
	return append(ring, x)
}
