package consumer_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
	"github.com/rewardwatch/rewardwatch/ingest/recording"
)

// schemed is a format in which every message is an event. Messages "late" need a schema that is unavailable at first.
type schemed struct {
	within atomic.Bool   // whether the schema is available
	asked  chan struct{} // receives each time that it is not available
}

func (s *schemed) NewDecoder(ingest.DecoderOptions) ingest.Decoder { return s }

var errOutage = errors.New("the registry is down")

func (s *schemed) Prepare(ctx context.Context, m *ingest.Message) error {
	if string(m.Value) != "late" || s.within.Load() {
		return nil
	}
	select {
	case s.asked <- struct{}{}:
		return errOutage
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *schemed) Decode(dst []ingest.Event, m *ingest.Message, _ func(*ingest.RecordError, []byte)) []ingest.Event {
	return append(dst, ingest.Event{Pos: m.Pos, Policy: string(m.Value)})
}

func (s *schemed) Reset() {}

// A record whose schema is unavailable stops its partition. Nothing is lost or read twice, even across a restart.
func TestARecordWaitsForItsSchema(t *testing.T) {
	b := newBench(t, 2)
	b.produceValues(0, []byte("a"), []byte("late"), []byte("b"))
	b.produceValues(1, []byte("c"), []byte("d"))
	format := &schemed{asked: make(chan struct{})}
	b.format = format
	recorder := ingesttest.NewRecorder()
	m := b.joinAs(recorder, b.letters, prometheus.NewPedanticRegistry())
	<-format.asked
	<-format.asked // it was tried again
	m.await("what needs no schema", func() bool { return m.Count() == 3 })
	if n := reconnects(m, "schema"); n == 0 {
		t.Error("no metric tells that the partition waits")
	}
	m.stop() // while it waits

	later := b.joinAs(recorder, b.letters, prometheus.NewPedanticRegistry())
	<-format.asked
	format.within.Store(true)
	later.await("all events", func() bool { return later.Count() == 5 })
	later.stop()
	var offsets []int64
	for _, e := range recorder.Events(0) {
		offsets = append(offsets, e.Pos.Offset)
	}
	if !slices.Equal(offsets, []int64{0, 1, 2}) || len(b.letters.Kept()) > 0 {
		t.Errorf("read the offsets %v, with %d dead letters", offsets, len(b.letters.Kept()))
	}
}

// Readers without a group retry a few times, and then return an error.
func TestReadTopicTriesAgainForASchema(t *testing.T) {
	b := newBench(t, 1)
	b.produceValues(0, []byte("a"), []byte("late"))
	format := &schemed{asked: make(chan struct{})}
	go func() {
		<-format.asked
		format.within.Store(true)
	}()
	counts, err := recording.ReadTopic(waitContext(t), recording.TopicConfig{Place: recording.Place{Kafka: b.cfg}, Format: format}, ignoring{})
	if err != nil || counts.Accepted != 2 {
		t.Errorf("%+v %v", counts, err)
	}
}
