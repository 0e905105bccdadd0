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
			r.Processed(0)
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

// Known senders do not displace each other's messages, even after a restart. All other senders share one room.
func TestSendersAreRememberedApart(t *testing.T) {
	known := Recent{Senders: func(name string) bool { return name == "ads" || name == "shop" }}
	r := known
	sent := func(sender string, batch int) bool {
		m := part0(batch)
		m.Headers = append(m.Headers, ingest.Header{Key: SenderHeader, Value: []byte(sender)})
		return r.Seen(m)
	}
	again := func() {
		r.Processed(0)
		saved, apart := r.Saved(), r.SavedApart()
		r = known
		r.Restore(saved, apart...)
	}
	sent("ads", 1)
	sent("", 1)
	for batch := range 2 * Remembered {
		sent("shop", batch)
		sent("eve", batch)
		if batch == Remembered {
			again()
		}
	}
	if again(); !sent("ads", 1) || sent("", 1) {
		t.Error("a sender displaces another's message, or the others have no limit")
	}
	if len(r.apart) != 2 {
		t.Errorf("%d senders are remembered apart", len(r.apart))
	}
}

// Messages that are not processed yet are not saved as seen: they are read again after a crash.
func TestOnlyWhatIsProcessedIsSavedAsSeen(t *testing.T) {
	var r Recent
	see := func(topic int, part string) {
		m := ingest.Message{Pos: ingest.Position{Partition: ingest.PartitionOf(topic, 3)}, Headers: []ingest.Header{{Key: RequestHeader, Value: []byte(part)}}}
		r.Seen(&m)
	}
	see(0, "a")
	see(1, "b")
	r.Processed(1)
	see(1, "c")
	if n := len(r.Saved()); n != 1 {
		t.Errorf("%d of 3 are saved, of which one is processed", n)
	}
	r.Processed(0)
	r.Processed(1)
	if n := len(r.Saved()); n != 3 {
		t.Errorf("%d of 3 are saved, all of which are processed", n)
	}
}
