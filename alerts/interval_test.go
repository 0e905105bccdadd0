package alerts

import (
	"encoding/json"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

func TestOnsetInterval(t *testing.T) {
	unit := func(ordinal int64, partition int32, first, ts int64) finding.UnitRef {
		return finding.UnitRef{Ordinal: ordinal, First: ingest.Position{Partition: ingest.Partition(partition), Offset: first}, TS: ts}
	}
	const second = 1_000_000_000
	tests := map[string]struct {
		alarm      Alarm
		json, text string
	}{
		// Episodes of several agents overlap: the unit of the onset may have begun after the last one of its interval.
		"one partition, no clock": {
			Alarm{
				OnsetFrom: unit(10, 0, 500, 0), Onset: unit(11, 0, 620, 0), OnsetTo: unit(12, 0, 590, 0),
				OnsetOffsets: []ingest.Range{{First: 500, Last: 700}},
			},
			`{"first_unit":10,"last_unit":12,"first_ts":null,"last_ts":null,"first_index":500,"last_index":620,` +
				`"offsets":[{"partition":0,"first":500,"last":700}]}`,
			"between units 10 and 12",
		},
		"several partitions": {
			Alarm{
				OnsetFrom: unit(10, 3, 500, 60*second), Onset: unit(11, 0, 7, 70*second), OnsetTo: unit(12, 3, 590, 80*second),
				OnsetOffsets: []ingest.Range{{Partition: 0, First: 7, Last: 30}, {Partition: 3, First: 500, Last: 610}},
			},
			`{"first_unit":10,"last_unit":12,"first_ts":"1970-01-01T00:01:00Z","last_ts":"1970-01-01T00:01:20Z",` +
				`"first_index":null,"last_index":null,` +
				`"offsets":[{"partition":0,"first":7,"last":30},{"partition":3,"first":500,"last":610}]}`,
			"between units 10 (1970-01-01 00:01:00 UTC) and 12 (1970-01-01 00:01:20 UTC)",
		},
		"one unit, of a state without offsets": {
			Alarm{OnsetFrom: unit(10, 0, 5, 0), Onset: unit(10, 0, 5, 0), OnsetTo: unit(10, 0, 5, 0)},
			`{"first_unit":10,"last_unit":10,"first_ts":null,"last_ts":null,"first_index":5,"last_index":5,"offsets":[]}`,
			"at unit 10",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			i := tt.alarm.OnsetInterval()
			got, err := json.Marshal(i)
			if err != nil || string(got) != tt.json {
				t.Errorf("got\n%s, %v, want\n%s", got, err, tt.json)
			}
			if got := i.Words(finding.UnitName{}); got != tt.text {
				t.Errorf("got %s, want %s", got, tt.text)
			}
		})
	}
	if i := (&Alarm{}).OnsetInterval(); i != nil {
		t.Errorf("got %+v where none was estimated", i)
	}
}
