package repartition

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

func from(source string, reading, offset int64, number int32) *ingest.Message {
	return &ingest.Message{Headers: []ingest.Header{
		{Key: "other", Value: []byte("1")}, sourceHeader(source, place{reading, offset, number}),
	}}
}

// Events that a writer writes again are recognized, also after a restart. Events of a later reading are not duplicates.
func TestEventsThatAreWrittenAgainAreSeen(t *testing.T) {
	f := new(Follower)
	for i, step := range []struct {
		m    *ingest.Message
		seen bool
	}{
		{from("clicks/0", 5, 10, 0), false},
		{from("clicks/0", 5, 10, 1), false},
		{from("clicks/0", 5, 12, 0), false}, // 11 went to another partition
		{from("clicks/1", 5, 3, 0), false},
		{from("decisions/0", 5, 3, 0), false},
		{from("clicks/0", 5, 10, 0), true}, // a crash
		{from("clicks/0", 5, 10, 1), true},
		{from("clicks/0", 5, 12, 0), true},
		{from("clicks/0", 5, 12, 1), false},
		{&ingest.Message{}, false}, // of another writer
		{&ingest.Message{}, false},
		{from("clicks/0", 9, 2, 0), false}, // the topic was made again
		{from("clicks/0", 5, 13, 0), true}, // a writer that was paused
		{from("clicks/0", 9, 3, 0), false},
	} {
		if f.Seen(step.m) != step.seen {
			t.Errorf("step %d: seen %t", i, !step.seen)
		}
		again := new(Follower)
		again.Restore(f.Saved())
		if !slices.Equal(again.Saved(), f.Saved()) {
			t.Fatalf("step %d: restored %v, want %v", i, again.Saved(), f.Saved())
		}
		f = again
	}
}

func TestMarksNeverGoBack(t *testing.T) {
	f := new(Follower)
	if !f.ReadTo().IsZero() {
		t.Errorf("without a mark %s", f.ReadTo())
	}
	at := time.Unix(1_800_000_000, 5)
	for _, mark := range []time.Time{at, at.Add(-time.Second)} {
		if f.Seen(&ingest.Message{Headers: []ingest.Header{markHeader(mark)}}) {
			t.Error("a mark is not an event that was seen")
		}
	}
	f.Seen(&ingest.Message{Headers: []ingest.Header{{Key: MarkHeader, Value: []byte("soon")}}})
	if !f.ReadTo().Equal(at) {
		t.Errorf("read to %s, want %s", f.ReadTo(), at)
	}
}

// Marks are not records. Everything else is telemetry version 1.
func TestFormatLeavesOutMarks(t *testing.T) {
	refused := 0
	decode := func(m *ingest.Message) int {
		return len(Format{}.NewDecoder(ingest.DecoderOptions{MaxRecord: 1000}).Decode(nil, m, func(*ingest.RecordError, []byte) { refused++ }))
	}
	if n := decode(&ingest.Message{Value: []byte("mark"), Headers: []ingest.Header{markHeader(time.Now())}}); n != 0 || refused != 0 {
		t.Errorf("a mark is %d events and %d refusals", n, refused)
	}
	if n := decode(&ingest.Message{Value: []byte(`{"policy":"p","reward":1}`)}); n != 1 {
		t.Errorf("an event is %d events", n)
	}
	if decode(&ingest.Message{Value: []byte("mark")}); refused != 1 {
		t.Error("what is neither is not refused")
	}
}

// An event must be sent to the same partition as by earlier builds.
func TestPartitionsOfKeysStay(t *testing.T) {
	var got []int
	for i := range 8 {
		got = append(got, partitionOf("shop", fmt.Sprint("impression-", i), 12))
	}
	if want := []int{8, 7, 6, 9, 0, 11, 10, 5}; !slices.Equal(got, want) {
		t.Errorf("partitions %v, want %v", got, want)
	}
	hits := make([]int, 7)
	for i := range 70_000 {
		hits[partitionOf("shop", fmt.Sprint(i), len(hits))]++
	}
	for k, n := range hits { // the standard error is 93
		if n < 10_000-500 || n > 10_000+500 {
			t.Errorf("partition %d has %d of 70,000 keys", k, n)
		}
	}
}

func FuzzSourceHeader(f *testing.F) {
	f.Add([]byte("clicks/3/1800000000000000000/17/2"))
	f.Add([]byte("////"))
	f.Fuzz(func(t *testing.T, value []byte) {
		source, at, ok := parseSource(value)
		if !ok {
			return
		}
		again, p, ok := parseSource(sourceHeader(string(source), at).Value)
		if !ok || p != at || string(again) != string(source) {
			t.Errorf("%q is read as %q %+v, and then as %q %+v", value, source, at, again, p)
		}
	})
}
