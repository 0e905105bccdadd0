package ingest

import (
	"context"
	"errors"
	"fmt"
)

const (
	// flushEvents is how many events or messages are gathered for the state.
	flushEvents = 256
	// keptEvents is how many are kept for reuse: one message may hold many thousand events, and the next ones hold one.
	keptEvents = 4096
)

// intake gathers what the messages of a partition hold, and hands it to the state in batches. Its errors are those for
// which the partition may not be read on.
type intake interface {
	// add takes in a message, whose memory it does not keep.
	add(value []byte, at Position) error
	empty() bool
	// full reports whether the batch is to be handed on before anything is added.
	full() bool
	// flush hands the batch on.
	flush(ctx context.Context) error
}

var errNoDeadLetters = errors.New("its state takes events, and the consumer has no dead letters for those that are refused")

// newIntake makes the intake that the state of a partition wants.
func newIntake(p *partition) (intake, error) {
	switch state := p.state.(type) {
	case Processor:
		if p.c.events == nil {
			return nil, errNoDeadLetters
		}
		return newEventIntake(p, state), nil
	case MessageProcessor:
		return &messageIntake{processor: state, limit: p.c.cfg.MaxMessage}, nil
	}
	return nil, fmt.Errorf("its state takes neither events nor messages: %T", p.state)
}

type messageKind uint8

const (
	messageTelemetry messageKind = iota
	messageTombstone
	messageControl
	messageTooLarge
)

// classify tells telemetry from the rest. The marker of a transaction has a value of version 0 and the coordinator's
// epoch, six bytes, of which no JSON begins with the first; its key, which would say so plainly, is not seen.
func classify(value []byte, limit int) messageKind {
	switch {
	case len(value) == 0:
		return messageTombstone
	case len(value) == 6 && value[0] == 0 && value[1] == 0:
		return messageControl
	case len(value) > limit:
		return messageTooLarge
	}
	return messageTelemetry
}
