package protobuf

import (
	"bytes"
	"slices"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/protobuf/telemetrypb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// FuzzDecode compares the decoder with the generated code, whose events are read as JSON.
func FuzzDecode(f *testing.F) {
	for _, e := range variants() {
		if value := marshal(f, e); len(value) < 1<<12 {
			f.Add(value)
		}
	}
	f.Add(marshal(f, &telemetrypb.Events{Events: []*telemetrypb.Event{example(), {}}}))
	f.Fuzz(func(t *testing.T, value []byte) {
		original := bytes.Clone(value)
		events, refused := decode(V1{}, value)
		if !bytes.Equal(value, original) {
			t.Fatal("the message was changed")
		}
		for _, e := range refused {
			if _ = e.Error(); !slices.Contains(ingest.Reasons(), e.Reason) || e.Column < 0 || e.Column > int(e.Size)+1 {
				t.Errorf("refused with %+v", e)
			}
		}
		if len(value) > 0 && value[0] == batchTag {
			return
		}
		if len(events)+len(refused) != 1 {
			t.Fatalf("%d events and %d refusals of a record", len(events), len(refused))
		}
		checkBatched(t, value, events)
		var e telemetrypb.Event
		// The generated code treats a known field with another wire type as unknown. The decoder refuses it.
		if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(value, &e); err != nil {
			if len(events) > 0 {
				t.Fatalf("accepted %x, which is not Protobuf: %v", value, err)
			}
			return
		}
		checkAgainstJSON(t, &e, events)
	})
}

// checkBatched checks that a record is read in a batch as it is read alone.
func checkBatched(t *testing.T, value []byte, alone []ingest.Event) {
	t.Helper()
	batch := protowire.AppendBytes([]byte{batchTag}, value)
	batch = protowire.AppendBytes(append(batch, batchTag), value)
	events, refused := decode(V1{}, batch)
	if len(events) != 2*len(alone) || len(events)+len(refused) != 2 {
		t.Fatalf("%d events and %d refusals of a batch, %d events of its record", len(events), len(refused), len(alone))
	}
	for i := range events {
		if same(events[i]) != same(alone[0]) {
			t.Errorf("in a batch %+v, alone %+v", events[i], alone[0])
		}
	}
}

// lastSecond is the last whole second that int64 nanoseconds can represent. RFC 3339 cannot express it.
const lastSecond = 9223372036e9

func checkAgainstJSON(t *testing.T, e *telemetrypb.Event, events []ingest.Event) {
	t.Helper()
	// Fields may be repeated on the wire, and the last one counts. The decoder may refuse an earlier one. The canonical
	// form repeats no field.
	canonical, refused := decode(V1{}, marshal(t, e))
	both := len(e.Observation) > 0 && len(e.ObservationArray) > 0 || len(e.NextObservation) > 0 && len(e.NextObservationArray) > 0
	if both || e.Ts >= lastSecond || proto.Size(e) == 0 {
		return
	}
	want, reason := viaJSON(e)
	if (reason == "") != (len(canonical) == 1) {
		t.Fatalf("%s: refused with %v, its JSON with %q", asJSON(e), refused, reason)
	}
	for _, got := range slices.Concat(canonical, events) {
		if same(got) != want {
			t.Errorf("%s\n got %s\nwant %s", asJSON(e), same(got), want)
		}
	}
}
