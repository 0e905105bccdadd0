package alerts

import (
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Episodes of several agents overlap: the unit of the onset may have begun after the last one of its interval.
func TestOnsetLiesInItsInterval(t *testing.T) {
	unit := func(ordinal, first int64) bank.UnitRef {
		return bank.UnitRef{Ordinal: ordinal, First: ingest.Position{Offset: first}}
	}
	a := Alarm{OnsetFrom: unit(10, 500), Onset: unit(11, 620), OnsetTo: unit(12, 590)}
	if got := *a.OnsetInterval(); got != (Interval{First: 500, Last: 620}) {
		t.Errorf("interval %+v, want records 500 to 620", got)
	}
}
