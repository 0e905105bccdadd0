package protobuf

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/protobuf/telemetrypb"
	"google.golang.org/protobuf/proto"
)

// slowly reads a record without quick, and returns the event or the reason for refusing it.
func slowly(rec []byte) string {
	d := V1{}.NewDecoder(ingest.DecoderOptions{MaxRecord: ingest.DefaultMaxRecord}).(*decoder)
	events, ev := ingest.NextEvent(nil, ingest.Position{})
	d.rec = rec
	for d.at < len(rec) {
		if !d.field(ev) {
			return fmt.Sprint(d.fault)
		}
	}
	if !d.complete(ev) {
		return fmt.Sprint(d.fault)
	}
	return said(events[0], d.asRecorded(ev))
}

// said formats an event and its members as recorded.
func said(e ingest.Event, r *ingest.AsRecorded) string {
	return fmt.Sprintf("%s %s %s %s %s", same(e), r.Action, r.ActionProb, r.Observation, r.NextObservation)
}

// quickly reads records with one decoder.
type quickly struct {
	d      *decoder
	events []ingest.Event
}

func newQuickly() *quickly {
	o := ingest.DecoderOptions{MaxRecord: ingest.DefaultMaxRecord, AsRecorded: true}
	return &quickly{d: V1{}.NewDecoder(o).(*decoder)}
}

// check fails the test if a record is read differently than by slowly. It reports whether the record is an event.
func (q *quickly) check(t *testing.T, rec []byte) bool {
	t.Helper()
	got := ""
	q.d.Reset()
	q.events = q.d.decodeRecord(q.events[:0], rec, ingest.Position{}, func(e *ingest.RecordError, _ []byte) {
		got = fmt.Sprint(fault{e.Reason, e.Column - 1, e.Msg})
	})
	if len(q.events) > 0 {
		got = said(q.events[0], q.events[0].AsRecorded)
	}
	if want := slowly(rec); got != want {
		t.Fatalf("%x\n got %s\nwant %s", rec, got, want)
	}
	return len(q.events) > 0
}

// damage changes a record in one to three places. It may also repeat fields, and thereby merge records.
func damage(r *rand.Rand, rec, other []byte) []byte {
	rec = bytes.Clone(rec)
	for range 1 + r.IntN(3) {
		if len(rec) == 0 {
			return rec
		}
		at, to := r.IntN(len(rec)), r.IntN(len(rec))
		switch r.IntN(6) {
		case 0:
			rec[at] ^= 1 << r.IntN(8)
		case 1:
			rec = rec[:at]
		case 2:
			rec = slices.Delete(rec, at, min(len(rec), at+1+r.IntN(8)))
		case 3:
			rec = append(rec, rec[min(at, to):max(at, to)]...)
		case 4:
			rec = append(rec, other...)
		default:
			rec = slices.Insert(rec, at, []byte("\x00\xc3\xa9\x80\xff\x0a")[r.IntN(6)])
		}
	}
	return rec
}

// Records of many shapes, intact and damaged, must result in the same events or refusals with and without quick,
// regardless of the previous records.
func TestSimQuickAgreesWithSlow(t *testing.T) {
	const rounds = 30_000
	r := rand.New(rand.NewPCG(4, 4))
	var records [][]byte
	for _, e := range variants() {
		for range 4 { // in different orders of the entries of maps
			if rec, err := proto.Marshal(e); err != nil {
				t.Fatal(err)
			} else if len(rec) < 1<<12 {
				records = append(records, rec)
			}
		}
	}
	for i := range 64 {
		records = append(records, marshal(t, vary(r, i, example())), marshal(t, vary(r, i, short())))
	}
	slices.SortFunc(records, bytes.Compare)
	q, accepted := newQuickly(), 0
	for range rounds {
		rec := records[r.IntN(len(records))]
		if r.IntN(2) == 0 {
			rec = damage(r, rec, records[r.IntN(len(records))])
		}
		if q.check(t, rec) {
			accepted++
		}
	}
	if accepted < rounds/2 || rounds-accepted < rounds/10 {
		t.Errorf("%d of %d records accepted", accepted, rounds)
	}
}

// entry returns an entry of a map from names to numbers.
func entry(num int, name string, x byte) []byte {
	tag := []byte{byte(num<<3&0x7f | 2 | 0x80), 1, byte(len(name) + 11), 10, byte(len(name))}
	return append(append(tag, name...), 17, 0, 0, 0, 0, 0, 0, x, 0x40)
}

func label(name, value string) []byte {
	tag := []byte{fieldLabels<<3&0x7f | 2 | 0x80, 1, byte(len(name) + len(value) + 4), 10, byte(len(name))}
	return append(append(append(tag, name...), 18, byte(len(value))), value...)
}

// The entries of a map may be in another order than in the previous record, repeated, added or missing.
func TestMapsDifferFromTheRecordBefore(t *testing.T) {
	q := newQuickly()
	for i, names := range strings.Fields("a ab ba a ab aa aab ba bb ba bab é éa aé abc cba abc abcabc abc") {
		rec := []byte{2<<3 | 2, 1, 'p', 7<<3 | 1, 0, 0, 0, 0, 0, 0, 0, 0}
		for k, name := range strings.Split(names, "") {
			rec = append(append(rec, entry(fieldOutcomes, name, byte(16*k))...), label(name, strings.Repeat("v", k))...)
		}
		if !q.check(t, rec) {
			t.Errorf("record %d, %q, is refused", i, names)
		}
	}
}

// A map that follows an array is refused, even if its entries are the same as in the previous record.
func TestMapsAfterArrays(t *testing.T) {
	q := newQuickly()
	for num, array := range map[int]*telemetrypb.Event{
		fieldObservation: {Policy: "p", Reward: proto.Float64(1), ObservationArray: []float64{1}},
		fieldNext:        {Policy: "p", Reward: proto.Float64(1), NextObservationArray: []float64{1}},
	} {
		names := slices.Concat(marshal(t, &telemetrypb.Event{Policy: "p", Reward: proto.Float64(1)}), entry(num, "a", 0), entry(num, "b", 0))
		if !q.check(t, names) || q.check(t, append(marshal(t, array), entry(num, "b", 0)...)) {
			t.Errorf("%v and a map are accepted", array)
		}
	}
}

func TestPlain(t *testing.T) {
	for length := range 20 {
		text := bytes.Repeat([]byte{1}, length)
		if !plain(text) || length > 0 && !plain(bytes.Repeat([]byte{0x7f}, length)) {
			t.Errorf("%d bytes of ASCII are not plain", length)
		}
		for i := range text {
			for _, c := range []byte{0, 0x80, 0xff} {
				text[i] = c
				if plain(text) {
					t.Errorf("%x is plain", text)
				}
			}
			text[i] = 1
		}
	}
}

// FuzzQuick reads records in sequence, with and without quick.
func FuzzQuick(f *testing.F) {
	for _, e := range variants() {
		if rec := marshal(f, e); len(rec) < 1<<12 {
			f.Add(rec, marshal(f, example()), uint64(len(rec)))
		}
	}
	f.Fuzz(func(t *testing.T, first, second []byte, seed uint64) {
		q, r := newQuickly(), rand.New(rand.NewPCG(seed, 0))
		for _, rec := range [][]byte{first, second, first, damage(r, second, first), damage(r, first, second), second} {
			q.check(t, rec)
		}
	})
}
