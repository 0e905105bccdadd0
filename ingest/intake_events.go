package ingest

import "context"

// eventIntake decodes telemetry. What is none becomes a dead letter.
type eventIntake struct {
	c         *Consumer
	processor Processor
	progress  *progress
	decoder   *Decoder
	batch     []Event
	refuse    func(*RecordError, []byte)
}

func newEventIntake(p *partition, processor Processor) *eventIntake {
	i := &eventIntake{c: p.c, processor: processor, progress: p.progress, decoder: NewDecoder(int(p.c.cfg.MaxMessage))}
	i.refuse = i.refused
	return i
}

func (i *eventIntake) empty() bool { return len(i.batch) == 0 }
func (i *eventIntake) full() bool  { return len(i.batch) >= flushEvents }

func (i *eventIntake) add(value []byte, at Position) error {
	limit := int(i.c.cfg.MaxMessage)
	switch classify(value, limit) {
	case messageTombstone:
		i.c.events.tombstone.Inc()
	case messageControl:
		i.c.events.control.Inc()
	case messageTooLarge:
		i.refuse(tooLarge(at, int64(len(value)), limit), value)
	case messageTelemetry:
		i.batch = i.decoder.Decode(i.batch, value, at, i.refuse)
	}
	return nil
}

// refused counts a record that is no telemetry and keeps it as a dead letter.
func (i *eventIntake) refused(e *RecordError, raw []byte) {
	c := i.c
	c.events.refused.Inc()
	c.events.deadLetters.WithLabelValues(string(e.Reason)).Inc()
	c.refusals.Warn().Err(e).Str("topic", c.cfg.Topic).Msg("Refused a record")
	letter := NewDeadLetter(c.cfg.Topic, e, raw, c.board.now())
	if err := c.opts.DeadLetters.Keep(context.Background(), letter); err != nil {
		c.events.lost.Add(1)
		c.refusals.Error().Err(err).Str("topic", c.cfg.Topic).Msg("Lost a dead letter")
	}
}

func (i *eventIntake) flush(ctx context.Context) error {
	if err := i.processor.Process(ctx, i.batch); err != nil {
		return err
	}
	i.c.events.accepted.Add(float64(len(i.batch)))
	if ts := lastTime(i.batch); ts != 0 {
		i.progress.eventTS.Store(ts)
	}
	i.decoder.Reset()
	if i.batch = i.batch[:0]; cap(i.batch) > keptEvents {
		i.batch = nil
	}
	return nil
}

func lastTime(batch []Event) int64 {
	for i := len(batch) - 1; i >= 0; i-- {
		if batch[i].TS != 0 {
			return batch[i].TS
		}
	}
	return 0
}
