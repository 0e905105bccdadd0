package recording

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Source reads a recording, and passes its events to p in batches. A batch is valid until Process returns.
type Source func(ctx context.Context, p ingest.Processor) (Counts, error)

// Merge reads several recordings in parallel, and passes their events to p as if they were one recording. Events are
// ordered by partition number, and then by the latest time so far in their recording. Events without a time remain
// after the events before them. Merge returns the total counts, and all errors.
func Merge(ctx context.Context, sources []Source, p ingest.Processor) (Counts, error) {
	sum := Counts{Refused: map[ingest.Reason]int64{}}
	if len(sources) == 1 {
		return sources[0](ctx, p)
	}
	sides := make([]*side, len(sources))
	for i, source := range sources {
		sides[i] = &side{}
		next, stop := iter.Pull(sides[i].batches(ctx, source, p))
		sides[i].next = next
		defer stop()
		sides[i].fill()
	}
	var failed error
	for s, then := first(sides); s != nil && failed == nil; s, then = first(sides) {
		failed = s.pass(ctx, then, p)
	}
	for _, s := range sides {
		failed = errors.Join(failed, s.err)
		sum.add(s.counts)
	}
	return sum, failed
}

func (c *Counts) add(other Counts) {
	c.Read += other.Read
	c.LeftOut += other.LeftOut
	c.Accepted += other.Accepted
	for reason, n := range other.Refused {
		c.Refused[reason] += n
	}
}

// side is one of several recordings. The events in batch starting at index at have not been passed on.
type side struct {
	next   func() ([]ingest.Event, bool)
	batch  []ingest.Event
	at     int
	place  mergePlace // of the event at index at
	done   bool
	counts Counts
	err    error
}

// mergePlace is the position of an event in the merged order.
type mergePlace struct {
	partition int32
	ts        int64 // latest time so far
}

func (a mergePlace) before(b mergePlace) bool {
	return a.partition < b.partition || a.partition == b.partition && a.ts < b.ts
}

// errStopped ends a source whose events are no longer needed.
var errStopped = errors.New("stopped")

// batches returns an iterator over the batches of a source.
func (s *side) batches(ctx context.Context, source Source, p ingest.Processor) iter.Seq[[]ingest.Event] {
	return func(yield func([]ingest.Event) bool) {
		s.counts, s.err = source(ctx, yielding{p, yield})
		if errors.Is(s.err, errStopped) {
			s.err = nil
		}
	}
}

// fill makes sure that there is an event at index at, unless there are no more.
func (s *side) fill() {
	for s.at == len(s.batch) && !s.done {
		s.at = 0
		var more bool
		if s.batch, more = s.next(); !more {
			s.batch, s.done = nil, true
		}
	}
	if !s.done {
		s.meet(&s.batch[s.at])
	}
}

// farAhead is the maximum time by which an event may be ahead of this machine's clock. Later times are ignored.
const farAhead = 24 * time.Hour

// meet updates the place for an event.
func (s *side) meet(e *ingest.Event) {
	if number := e.Pos.Partition.Number(); number != s.place.partition {
		s.place = mergePlace{partition: number}
	}
	if e.TS < time.Now().Add(farAhead).UnixNano() {
		s.place.ts = max(s.place.ts, e.TS)
	}
}

// first returns the side whose event comes first, and the place of the next side. It returns nil if there are no more
// events.
func first(sides []*side) (s *side, then *mergePlace) {
	for _, other := range sides {
		switch {
		case other.done:
		case s == nil:
			s = other
		case other.place.before(s.place):
			s, then = other, &s.place
		case then == nil || other.place.before(*then):
			then = &other.place
		}
	}
	return s, then
}

// pass passes on events up to the place then, at most to the end of the batch.
func (s *side) pass(ctx context.Context, then *mergePlace, p ingest.Processor) error {
	from := s.at
	for s.at++; s.at < len(s.batch); s.at++ {
		if s.meet(&s.batch[s.at]); then != nil && then.before(s.place) {
			break
		}
	}
	err := p.Process(ctx, s.batch[from:s.at])
	s.fill()
	return err
}

// yielding is a Processor that passes batches to an iterator's loop.
type yielding struct {
	ingest.Processor
	yield func([]ingest.Event) bool
}

// Process implements ingest.Processor.
func (y yielding) Process(_ context.Context, batch []ingest.Event) error {
	if !y.yield(batch) {
		return errStopped
	}
	return nil
}
