package receive

import (
	"slices"
	"strconv"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
)

func part0(batch int) *ingest.Message {
	return &ingest.Message{Headers: []ingest.Header{{Key: "other", Value: []byte("x")}, {Key: RequestHeader, Value: []byte(strconv.Itoa(batch) + "/0")}}}
}

func TestRecentRecognizesTheLastMessages(t *testing.T) {
	var r Recent
	for batch := range Remembered + 10 {
		if r.Seen(part0(batch)) {
			t.Fatalf("batch %d was not seen before", batch)
		}
		if batch%1000 == 7 { // over a restart
			saved := r.Saved()
			r = Recent{}
			if r.Restore(saved); !slices.Equal(r.Saved(), saved) {
				t.Fatal("what was restored differs")
			}
		}
		if !r.Seen(part0(batch)) {
			t.Fatalf("batch %d was seen before", batch)
		}
	}
	if !r.Seen(part0(10)) || r.Seen(part0(9)) {
		t.Error("it does not recognize exactly the last messages")
	}
	for range 2 {
		if r.Seen(&ingest.Message{}) {
			t.Error("a message without an id was recognized")
		}
	}
}
