package consumer

import (
	"context"
	"errors"
	"fmt"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/fetch"
)

const (
	// flushEvents is how many events or messages form a batch.
	flushEvents = 256
	// keptBatch is the largest batch kept for reuse: one message may hold many thousand events, and the next ones one
	// each.
	keptBatch = 4096
)

// intake collects the contents of a partition's messages and passes them to the state in batches. After an error the
// partition may not be read on.
type intake interface {
	// prepare returns nil once f can be added. An error means that something else is out of reach, and that f must be read
	// again.
	prepare(ctx context.Context, f *fetch.Found, at ingest.Position) error
	// add adds what f holds. It does not retain f's memory.
	add(f *fetch.Found, at ingest.Position) error
	empty() bool
	// full reports whether the batch must be flushed before the next add.
	full() bool
	// Flush passes the batch on.
	Flush(ctx context.Context) error
}

var (
	errNoDeadLetters = errors.New("its state requires events, but the consumer has no dead letters for refused records")
	errNoFormat      = errors.New("its state requires events, but the consumer does not know their format")
)

// newIntake returns the intake that fits the state of a partition.
func newIntake(p *reader) (intake, error) {
	switch state := p.state.(type) {
	case ingest.Processor:
		switch {
		case p.c.events == nil:
			return nil, errNoDeadLetters
		case p.topic.Format == nil:
			return nil, errNoFormat
		}
		return newEventIntake(p, state), nil
	case ingest.MessageProcessor:
		return &messageIntake{processor: state, limit: p.c.cfg.MaxMessage, topic: p.topic.Name}, nil
	}
	return nil, fmt.Errorf("its state accepts neither events nor messages: %T", p.state)
}
