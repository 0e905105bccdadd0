package consumer

import (
	"context"
	"errors"
	"fmt"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/fetch"
)

const (
	// flushEvents is the number of events or messages in a batch.
	flushEvents = 256
	// keptBatch is the maximum size of a batch that is kept for reuse. One message may contain many thousand events while
	// most contain one.
	keptBatch = 4096
)

// intake collects the contents of a partition's messages and passes them to the state in batches. After an error, the
// partition must not be read any further.
type intake interface {
	// prepare returns nil once f can be added. An error means that something that f needs is unavailable, and that f must
	// be read again.
	prepare(ctx context.Context, f *fetch.Found, at ingest.Position) error
	// add adds the contents of f. It does not retain the memory of f.
	add(f *fetch.Found, at ingest.Position) error
	empty() bool
	// full reports whether the batch must be flushed before the next add.
	full() bool
	// Flush passes the batch to the state.
	Flush(ctx context.Context) error
}

var (
	errNoDeadLetters = errors.New("its state requires events, but the consumer has no dead letters for rejected records")
	errNoFormat      = errors.New("its state requires events, but the consumer does not know their format")
)

// newIntake returns an intake for the state of a partition.
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
