package consumer

import (
	"context"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/deadletter"
	"github.com/rewardwatch/rewardwatch/ingest/fetch"
)

// eventIntake decodes events. Records that are not events become dead letters.
type eventIntake struct {
	c         *Consumer
	topic     string
	processor ingest.Processor
	progress  *progress
	seen      ingest.Recognizer // nil if the processor does not recognize redelivered messages
	decoder   ingest.Decoder
	preparer  ingest.Preparer // the decoder, or nil if it needs no preparation
	message   ingest.Message  // message that is being decoded
	batch     []ingest.Event
	refuse    func(*ingest.RecordError, []byte)
}

func newEventIntake(p *reader, processor ingest.Processor) *eventIntake {
	i := &eventIntake{
		c: p.c, topic: p.topic.Name, processor: processor, progress: p.progress,
		decoder: p.topic.Format.NewDecoder(ingest.DecoderOptions{
			MaxRecord: int(p.c.cfg.MaxMessage), AsRecorded: p.c.opts.AsRecorded, LeftOut: func(ingest.Position) { p.c.events.notTaken.Inc() },
		}),
	}
	i.preparer, _ = i.decoder.(ingest.Preparer)
	i.refuse = i.refused
	i.seen, _ = processor.(ingest.Recognizer)
	return i
}

func (i *eventIntake) empty() bool { return len(i.batch) == 0 }
func (i *eventIntake) full() bool  { return len(i.batch) >= flushEvents }

func (i *eventIntake) prepare(ctx context.Context, f *fetch.Found, at ingest.Position) error {
	if i.preparer == nil || f.Classify(i.c.cfg.MaxMessage) != fetch.Telemetry {
		return nil
	}
	i.message = f.Message(i.topic, at)
	i.progress.busy.Store(true) // waiting for external data is not a stall
	defer i.progress.busy.Store(false)
	return i.preparer.Prepare(ctx, &i.message)
}

func (i *eventIntake) add(f *fetch.Found, at ingest.Position) error {
	limit := i.c.cfg.MaxMessage
	switch f.Classify(limit) {
	case fetch.Tombstone:
		i.c.events.tombstone.Inc()
	case fetch.Control:
		i.c.events.control.Inc()
	case fetch.Aborted:
		i.c.events.aborted.Add(float64(f.Records))
	case fetch.TooLarge:
		e := f.TooLarge(at, limit)
		i.count(e)
		i.keep(e, f.Value)
	case fetch.Telemetry:
		i.message = f.Message(i.topic, at)
		if i.seen != nil && i.seen.Seen(&i.message) {
			i.c.events.repeated.Inc()
			return nil
		}
		i.batch = i.decoder.Decode(i.batch, &i.message, i.refuse)
	}
	return nil
}

// refused counts a record that is not telemetry. It stores the record as a dead letter, unless its message already has
// the maximum number of them.
func (i *eventIntake) refused(e *ingest.RecordError, raw []byte) {
	i.count(e)
	if raw == nil {
		i.c.events.notKept.Inc()
		return
	}
	i.keep(e, raw)
}

func (i *eventIntake) count(e *ingest.RecordError) {
	i.c.events.refused.Inc()
	i.c.events.deadLetters.WithLabelValues(string(e.Reason)).Inc()
}

// keep stores a dead letter with the available bytes. There are none if the batch cannot be decompressed.
func (i *eventIntake) keep(e *ingest.RecordError, raw []byte) {
	c := i.c
	c.refusals.Warn().Err(e).Str("topic", i.topic).Msg("rejected a record")
	letter := deadletter.New(i.topic, e, raw, c.now())
	if err := c.opts.DeadLetters.Keep(context.Background(), letter); err != nil {
		c.events.lost.Add(1)
		c.refusals.Error().Err(err).Str("topic", i.topic).Msg("failed to store a dead letter; it is lost")
	}
}

func (i *eventIntake) Flush(ctx context.Context) error {
	if err := i.processor.Process(ctx, i.batch); err != nil {
		return err
	}
	i.c.events.accepted.Add(float64(len(i.batch)))
	if ts := lastTime(i.batch); ts != 0 {
		i.progress.eventTS.Store(ts)
	}
	i.decoder.Reset()
	if i.batch = i.batch[:0]; cap(i.batch) > keptBatch {
		i.batch = nil
	}
	return nil
}

func lastTime(batch []ingest.Event) int64 {
	for i := len(batch) - 1; i >= 0; i-- {
		if batch[i].TS != 0 {
			return batch[i].TS
		}
	}
	return 0
}
