package consumer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/fetch"
)

// keptMessages is the number of message bytes in a batch, and the size of the memory that is kept for reuse.
const keptMessages = 1 << 20

// messageIntake collects whole messages.
type messageIntake struct {
	processor ingest.MessageProcessor
	limit     ingest.ByteSize
	batch     []ingest.Message
	topic     string
	memory    []byte // the message bytes of the batch
}

func (i *messageIntake) empty() bool { return len(i.batch) == 0 }
func (i *messageIntake) full() bool {
	return len(i.batch) >= flushEvents || len(i.memory) >= keptMessages
}

func (i *messageIntake) prepare(context.Context, *fetch.Found, ingest.Position) error { return nil }

func (i *messageIntake) add(f *fetch.Found, at ingest.Position) error {
	switch f.Classify(i.limit) {
	case fetch.Telemetry:
		i.batch = append(i.batch, i.kept(f.Message(i.topic, at)))
	case fetch.TooLarge:
		return fmt.Errorf("%w: %w", ErrProcessor, f.TooLarge(at, i.limit))
	case fetch.Tombstone, fetch.Control, fetch.Aborted:
	}
	return nil
}

// kept returns a copy of the message whose key and values are in the batch's memory.
func (i *messageIntake) kept(m ingest.Message) ingest.Message {
	m.Key, m.Value = i.copy(m.Key), i.copy(m.Value)
	m.Headers = slices.Clone(m.Headers)
	for n, h := range m.Headers {
		m.Headers[n] = ingest.Header{Key: strings.Clone(h.Key), Value: i.copy(h.Value)}
	}
	return m
}

// copy copies b into the batch's memory. It returns nil if b is nil.
func (i *messageIntake) copy(b []byte) []byte {
	if b == nil {
		return nil
	}
	from := len(i.memory)
	i.memory = append(i.memory, b...) // earlier copies keep the old memory when this grows
	return i.memory[from:len(i.memory):len(i.memory)]
}

func (i *messageIntake) Flush(ctx context.Context) error {
	if err := i.processor.ProcessMessages(ctx, i.batch); err != nil {
		return err
	}
	clear(i.batch) // otherwise, it would retain the old memory of earlier batches
	i.batch = i.batch[:0]
	if i.memory = i.memory[:0]; cap(i.memory) > 2*keptMessages {
		i.memory = nil
	}
	return nil
}
