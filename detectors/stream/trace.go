package stream

import (
	"math"
	"slices"

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
	for o := max(ordinal, t.oldest()); o < t.Next; o++ {
		if x := t.at(o); !math.IsNaN(x) {
			values = append(values, x)
			ordinals = append(ordinals, o)
		}
	}
	return values, ordinals
}

// appendNewest appends the recorded values from an ordinal on, at most CurrentUnits of the newest, oldest first.
func (t *Trace) appendNewest(values []float64, ordinal int64) []float64 {
	from, n := t.Next, 0
	for o := max(ordinal, t.oldest()); from > o && n < CurrentUnits; {
		if from--; !math.IsNaN(t.at(from)) {
			n++
		}
	}
	values = slices.Grow(values, n)
	for o := from; o < t.Next; o++ {
		if x := t.at(o); !math.IsNaN(x) {
			values = append(values, x)
		}
	}
	return values
}

// oldest returns the ordinal of the oldest unit recorded.
func (t *Trace) oldest() int64 { return t.Next - int64(len(t.Values)) }

// at returns the value of a recorded unit.
func (t *Trace) at(ordinal int64) float64 { return t.Values[(ordinal-t.First)%TrailUnits] }

// AppendUpTo appends x to a slice that becomes a ring of at most most elements. It never allocates room for more.
func AppendUpTo[T any](ring []T, x T, most int) []T {
	if len(ring) == cap(ring) {
		grown := make([]T, len(ring), min(most, max(16, 2*len(ring))))
		copy(grown, ring)
		ring = grown
	}
	return append(ring, x)
}
