package ingest_test

import (
	"encoding/json"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
)

func TestPartitionHoldsTopicAndNumber(t *testing.T) {
	const most = 1<<20 - 1
	for _, tt := range []struct {
		topic  int
		number int32
	}{{0, 0}, {0, most}, {1, 0}, {1, 7}, {ingest.MaxTopics - 1, most}} {
		p := ingest.PartitionOf(tt.topic, tt.number)
		if p.Topic() != tt.topic || p.Number() != tt.number || p < 0 {
			t.Errorf("partition %d of topic %d is %d: number %d of topic %d", tt.number, tt.topic, int32(p), p.Number(), p.Topic())
		}
	}
	if p := ingest.PartitionOf(0, 5); p != 5 {
		t.Errorf("partition 5 of the first topic is %d", int32(p))
	}
	text, err := json.Marshal(ingest.Range{Partition: ingest.PartitionOf(2, 5), First: 1, Last: 2})
	if err != nil || string(text) != `{"partition":5,"first":1,"last":2}` {
		t.Errorf("a range is written as %s, %v", text, err)
	}
}
