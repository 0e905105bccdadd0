package ingest

import (
	"context"
	"fmt"
)

// keptMessages is how many bytes of messages are gathered for the state, and how many are kept for reuse.
const keptMessages = 1 << 20

// messageIntake gathers whole messages.
type messageIntake struct {
	processor MessageProcessor
	limit     ByteSize
	batch     []Message
	memory    []byte // the values of the batch
}

func (i *messageIntake) empty() bool { return len(i.batch) == 0 }
func (i *messageIntake) full() bool {
	return len(i.batch) >= flushEvents || len(i.memory) >= keptMessages
}

func (i *messageIntake) add(value []byte, at Position) error {
	switch classify(value, int(i.limit)) {
	case messageTelemetry:
		from := len(i.memory)
		i.memory = append(i.memory, value...)
		i.batch = append(i.batch, Message{Pos: at, Value: i.memory[from:len(i.memory):len(i.memory)]})
	case messageTooLarge:
		return fmt.Errorf("%w: the message at %s has %d bytes, and the limit is %s", ErrProcessor, at, len(value), i.limit)
	case messageTombstone, messageControl:
	}
	return nil
}

func (i *messageIntake) flush(ctx context.Context) error {
	if err := i.processor.ProcessMessages(ctx, i.batch); err != nil {
		return err
	}
	clear(i.batch) // or it would keep the memory that a growing batch has left
	i.batch = i.batch[:0]
	if i.memory = i.memory[:0]; cap(i.memory) > 2*keptMessages {
		i.memory = nil
	}
	return nil
}
