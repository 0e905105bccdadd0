package repartition

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/deadletter"
	"github.com/rewardwatch/rewardwatch/ingest/kafkalog"
	"github.com/rewardwatch/rewardwatch/ingest/receive"
	"github.com/rewardwatch/rewardwatch/ingest/saved"
	"github.com/rewardwatch/rewardwatch/ingest/telemetry"
)

// source is the state of the partitions with one number in all telemetry topics.
type source struct {
	writer   *Writer
	number   int32
	over     <-chan struct{} // closed when the generation ends
	names    []string        // names in headers, by index of the topic
	put      []int64         // number of the last record in each queue
	reading  int64           // when reading without a checkpoint began
	received receive.Recent
	failed   error     // why a write failed; nothing may be written after that
	renewed  bool      // whether the restored snapshot must be replaced before anything is forwarded
	whole    bool      // whether the last snapshot says that nothing follows it
	cleared  bool      // whether the state from before the partition was repartitioned has been removed
	ended    time.Time // time up to which the partitions were last read to their ends; guarded by the Writer
}

// Process implements ingest.Processor.
func (s *source) Process(_ context.Context, batch []ingest.Event) error {
	at := place{reading: s.reading, offset: -1}
	for i := range batch {
		e := &batch[i]
		if at.number++; e.Pos.Offset != at.offset {
			at.offset, at.number = e.Pos.Offset, 0
		}
		if err := s.send(e, at); err != nil {
			return err
		}
	}
	if len(batch) > 0 {
		s.received.Processed(batch[0].Pos.Partition.Topic())
	}
	return nil
}

// send forwards an event. An event that is too large for the topic becomes a dead letter.
func (s *source) send(e *ingest.Event, at place) error {
	w := s.writer
	value := telemetry.AppendEvent(nil, e)
	if limit := int(w.Kafka.MaxMessage) + room/2; len(value) > limit {
		w.refuse(w.Sources[e.Pos.Partition.Topic()], ingest.TooLarge(e.Pos, int64(len(value)), limit), value)
		return nil
	}
	k, count := int(e.Pos.Partition.Number())%len(w.queues), w.others
	if key := w.Key(e); key != "" {
		k, count = partitionOf(e.Policy, key, len(w.queues)), w.byKey
	}
	count.Inc()
	return s.append(k, kafkalog.Record{Value: value, Headers: []ingest.Header{sourceHeader(s.names[e.Pos.Partition.Topic()], at)}})
}

// partitionOf returns the partition for a key of a policy. It must be the same in every build, because an event that is
// written twice must be in the same partition both times. The hash is FNV-1a.
func partitionOf(policy, key string, partitions int) int {
	const basis, prime = 14695981039346656037, 1099511628211
	h := uint64(basis)
	for _, text := range [...]string{policy, "\x00", key} {
		for i := range len(text) {
			h = (h ^ uint64(text[i])) * prime
		}
	}
	return int((h ^ h>>32) % uint64(partitions))
}

// refuse stores an event that cannot be forwarded as a dead letter.
func (w *Writer) refuse(topic string, e *ingest.RecordError, raw []byte) {
	w.refusal.Warn().Err(e).Str("topic", topic).Msg("an event is too large to repartition")
	if err := w.DeadLetters.Keep(context.Background(), deadletter.New(topic, e, raw, time.Now())); err != nil {
		w.refusal.Error().Err(err).Str("topic", topic).Msg("failed to store a dead letter; it is lost")
	}
}

// append adds a record to a queue. If the generation ends while there is no room, neither this record nor a later one
// is written, and the partition is not saved. Its next reader then writes them.
func (s *source) append(k int, r kafkalog.Record) error {
	if s.failed != nil {
		return nil
	}
	number, err := s.writer.queues[k].Put(s.writer.ctx, s.over, r)
	if errors.Is(err, kafkalog.ErrNotWritten) {
		s.failed = err
		return nil
	}
	if err != nil {
		return err
	}
	s.put[k] = number
	return nil
}

// Seen implements ingest.Recognizer.
func (s *source) Seen(m *ingest.Message) bool { return s.received.Seen(m) }

// Idle implements ingest.State.
func (s *source) Idle(_ context.Context, at time.Time) error {
	if s.failed != nil {
		return nil
	}
	return s.writer.reached(s, at)
}

// feedVersions is the first version of sourceFormat. Lower versions belong to partitions whose events were processed
// without being forwarded.
const feedVersions = 64

// sourceFormat is the format of a saved source.
var sourceFormat = saved.Format[sourceState]{Version: feedVersions, Before: ofFeeds()}

// sourceState is the wire form of a source. Field numbers are never reused; see package saved for the rules.
type sourceState struct {
	Reading  int64          `cbor:"1,keyasint"`
	Received []uint64       `cbor:"2,keyasint,omitempty"`
	Way      way            `cbor:"3,keyasint,omitzero"`  // zero if an earlier build wrote it
	Whole    bool           `cbor:"4,keyasint,omitzero"`  // whether nothing has been forwarded after it
	Senders  []receive.Sent `cbor:"5,keyasint,omitempty"` // senders whose Received are kept separately
}

// way contains the settings that determine the partition of an event.
type way struct {
	Topic      string `cbor:"1,keyasint"`
	Partitions int    `cbor:"2,keyasint"`
	Keys       string `cbor:"3,keyasint"`
}

func (w way) String() string {
	return fmt.Sprintf("to %d partitions of %s by the keys %q", w.Partitions, w.Topic, w.Keys)
}

func ofFeeds() map[byte]saved.Migration[sourceState] {
	all := map[byte]saved.Migration[sourceState]{}
	for version := range byte(feedVersions) {
		all[version] = func([]byte) (*sourceState, error) { return &sourceState{}, nil }
	}
	return all
}

// Snapshot implements ingest.State. It waits until everything is in the topic. At the end of a generation, the snapshot
// also records that nothing is forwarded after it.
func (s *source) Snapshot(w io.Writer) error {
	if s.failed != nil {
		return s.failed
	}
	for k, q := range s.writer.queues {
		if err := q.Await(s.writer.ctx, s.over, s.writer.patience(), s.put[k]); err != nil {
			return fmt.Errorf("partition %d of topic %s: %w", k, s.writer.Topic, err)
		}
	}
	s.whole = s.isOver()
	state := sourceState{Reading: s.reading, Received: s.received.Saved(), Senders: s.received.SavedApart(), Way: s.writer.way(), Whole: s.whole}
	if err := sourceFormat.WriteFrame(w, &state); err != nil {
		return fmt.Errorf("write the state of a repartitioned partition: %w", err)
	}
	return nil
}

func (s *source) isOver() bool {
	select {
	case <-s.over:
		return true
	default:
		return false
	}
}

// Shrunk implements ingest.Shrinking. At the end of the generation, a snapshot also records that nothing follows it.
func (s *source) Shrunk() bool { return s.isOver() && !s.whole && s.failed == nil }

// Saved implements ingest.Durable.
func (s *source) Saved() {
	if s.cleared || s.writer.Clear == nil {
		return
	}
	if err := s.writer.Clear(s.number); err != nil {
		s.writer.Log.Warn().Err(err).Str("partition", s.names[0]).Msg("failed to remove units read before ingest.kafka.repartition_topic was set, retrying")
		return
	}
	s.cleared = true
}

// Restore implements ingest.State. If the partition was not repartitioned before, only its position counts.
func (s *source) Restore(r io.Reader) error {
	state, err := sourceFormat.ReadFrame(r)
	if err != nil {
		return fmt.Errorf("read the state of a repartitioned partition: %w", err)
	}
	if state.Reading == 0 {
		s.renewed = true // readers must not see a second reading of the events after it
		s.writer.Log.Warn().Str("partition", s.names[0]).
			Msg("telemetry is now repartitioned by key: open episodes and decisions in the original partition are dropped")
		return nil
	}
	s.reading = state.Reading
	s.received.Restore(state.Received, state.Senders...)
	now := s.writer.way()
	s.renewed = state.Whole || state.Way != now // it no longer says that nothing follows, and events are now forwarded this way
	if state.Way != now && state.Way != (way{}) && !state.Whole {
		s.renewed, s.failed = false, s.writer.refuseWay(s, state.Way)
	}
	return nil
}

// Renewed implements ingest.Renewing.
func (s *source) Renewed() bool { return s.renewed }
