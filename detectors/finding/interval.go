package finding

import (
	"fmt"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Interval is the range that contains an onset with 90% confidence, both ends included.
type Interval struct {
	FirstUnit int64      `json:"first_unit"` // ordinals within the group, from 0
	LastUnit  int64      `json:"last_unit"`
	FirstTS   *time.Time `json:"first_ts"` // of the last events of these units; nil without a clock
	LastTS    *time.Time `json:"last_ts"`
	// FirstIndex and LastIndex are offsets of the first records of units: indexes in a file. They are nil if the units at
	// the ends and the onset lie in several partitions, whose offsets cannot be compared.
	FirstIndex *int64         `json:"first_index"`
	LastIndex  *int64         `json:"last_index"`
	Offsets    []ingest.Range `json:"offsets"` // of all its units, one range per partition
}

// IntervalOf returns the 90% interval of an onset; offsets are those of its units. It returns nil if none was
// estimated.
func IntervalOf(from, onset, to UnitRef, offsets []ingest.Range) *Interval {
	if from == (UnitRef{}) && to == (UnitRef{}) {
		return nil
	}
	i := &Interval{
		FirstUnit: from.Ordinal, LastUnit: to.Ordinal, FirstTS: timeOf(from.TS), LastTS: timeOf(to.TS),
		Offsets: append([]ingest.Range{}, offsets...),
	}
	if p := onset.First.Partition; from.First.Partition == p && to.First.Partition == p {
		// Episodes of several agents overlap: one that ended later may have begun earlier.
		at := onset.First.Offset
		i.FirstIndex = new(min(from.First.Offset, at, to.First.Offset))
		i.LastIndex = new(max(from.First.Offset, at, to.First.Offset))
	}
	return i
}

// Words names the units between which the onset lies, and their times if there is a clock.
func (i *Interval) Words(unit UnitName) string {
	if i.FirstUnit == i.LastUnit {
		return "at " + unit.One() + " " + when(i.FirstUnit, i.FirstTS)
	}
	return fmt.Sprintf("between %s %s and %s", unit.Many(), when(i.FirstUnit, i.FirstTS), when(i.LastUnit, i.LastTS))
}

func when(ordinal int64, ts *time.Time) string {
	if ts == nil {
		return fmt.Sprint(ordinal)
	}
	return fmt.Sprintf("%d (%s)", ordinal, Stamp(*ts))
}

// timeOf returns nil for 0, which marks telemetry without a clock.
func timeOf(ns int64) *time.Time {
	if ns == 0 {
		return nil
	}
	return new(time.Unix(0, ns).UTC())
}
