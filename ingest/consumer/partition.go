package consumer

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/fetch"
	"github.com/rs/zerolog"
)

// partition is the state of the partitions with one number during one generation. Each topic that has a partition with
// this number feeds it through a separate reader.
type partition struct {
	c          *Consumer
	generation committer
	id         int32  // number of the partition
	name       string // of the checkpoint
	log        zerolog.Logger
	readers    []*reader // in the order of the topics
	store      ingest.CheckpointStore
	state      ingest.State
	failures   int // consecutive failures to open the store

	// turn is held while the state is used. It guards the following fields and the positions of the readers, which are
	// saved together with the state.
	turn   *turns
	broken bool       // if set, nothing may be processed or saved any more
	tried  time.Time  // time of the last attempt to save a checkpoint
	twice  bool       // save the next checkpoint twice, so that the last one does not remain as the previous one, because it is large or must be replaced
	parts  int        // number of parts of the checkpoint
	away   []position // restored positions by index of the topic; those of topics without a reader are saved again
}

func newPartition(c *Consumer, g committer, id int32, turn *turns) *partition {
	first := c.topics[0].Name // topics may be added after the first one without losing the checkpoint
	p := &partition{
		c: c, generation: g, id: id, turn: turn, name: PartitionCheckpoint(first, id), tried: c.now(),
		log: c.opts.Log.With().Strs("topics", c.names()).Int32("partition", id).Logger(),
	}
	if len(c.topics) == 1 {
		p.log = c.opts.Log.With().Str("topic", first).Int32("partition", id).Logger()
	}
	return p
}

// add adds a reader for the partition of a topic.
func (p *partition) add(t *topic, committed int64) {
	r := newReader(p, t, committed)
	p.readers, p.turn.readers = append(p.readers, r), append(p.turn.readers, r)
}

// run reads the partition until ctx ends, and reconnects as often as needed. It saves the last checkpoint once told is
// closed. After an error, the partition must not be read any further.
func (p *partition) run(ctx context.Context, told <-chan struct{}) error {
	defer func() {
		for _, r := range p.readers {
			r.topic.board.remove(p.id)
		}
	}()
	if ctx.Err() != nil {
		return nil
	}
	if err := p.restore(ctx); err != nil {
		return err
	}
	if err := p.read(ctx); err != nil || p.c.failed.Load() {
		return err
	}
	<-told
	return p.checkpoint()
}

// read runs the readers until ctx ends or one of them fails.
func (p *partition) read(ctx context.Context) error {
	if len(p.turn.readers) == 1 {
		return p.readers[0].run(ctx)
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(ctx, p.wake)()
	var reading sync.WaitGroup
	errs := make([]error, len(p.readers))
	for i, r := range p.readers {
		reading.Go(func() {
			if errs[i] = r.run(ctx); errs[i] != nil {
				end()
			}
		})
	}
	reading.Wait()
	return errors.Join(errs...)
}

// open opens the store. It retries until ctx ends. The only error is ErrFenced.
func (p *partition) open(ctx context.Context) (err error) {
	p.store, err = p.openFor(ctx, p.c.topics[0].Name)
	return err
}

// openFor opens the store of the partition under the name of a topic, like open. It returns nil if ctx ends first.
func (p *partition) openFor(ctx context.Context, topic string) (ingest.CheckpointStore, error) {
	for ctx.Err() == nil {
		store, err := p.c.opts.Stores.Open(ctx, topic, p.id, func() error { return p.own(ctx) })
		switch {
		case err == nil:
			p.failures = 0
			return store, nil
		case errors.Is(err, ingest.ErrFenced):
			return nil, err
		}
		p.failures++
		p.c.left(fmt.Sprintf("open the checkpoints of partition %d: %v", p.id, err))
		p.c.outages.Warn().Err(err).Str("topic", topic).Int32("partition", p.id).
			Msg("failed to open the checkpoints for a partition, retrying")
		fetch.Sleep(ctx, p.c.timing.backoff(p.failures))
	}
	return nil, nil
}

// own returns nil if the partition is still assigned to this member. Brokers refuse the commits of a generation once
// the next one has begun.
func (p *partition) own(ctx context.Context) error {
	r := p.readers[0]
	next := r.committed
	if next < 0 {
		start, err := r.logStart(ctx)
		if err != nil {
			return err
		}
		next = start
	}
	err := p.generation.CommitOffsets(map[string]map[int]int64{r.topic.Name: {int(p.id): next}})
	if err != nil {
		return fmt.Errorf("commit the offset to confirm that the partition is still assigned: %w", err)
	}
	return nil
}

// assign creates the state and the intakes of its readers.
func (p *partition) assign() error {
	state, err := p.c.opts.Handler.Assign(p.id, p.store)
	if err == nil {
		p.state = state
		if s, ok := state.(ingest.Several); ok {
			s.From(p.topics())
		}
		for _, r := range p.readers {
			if r.intake, err = newIntake(r); err != nil {
				break
			}
		}
	}
	if err != nil {
		return fmt.Errorf("%w: assign the partition: %w", ErrProcessor, err)
	}
	return nil
}

// topics returns the indexes of the topics that feed the state.
func (p *partition) topics() []int {
	topics := make([]int, len(p.readers))
	for i, r := range p.readers {
		topics[i] = r.topic.index
	}
	return topics
}

// guarded turns a panic of the state into an error that stops the consumer in an orderly way: other partitions stop,
// the stack trace is logged, and nothing is saved.
func (p *partition) guarded(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			p.log.Error().Any("panic", r).Str("stack", string(debug.Stack())).Msg("the processor panicked")
			err = fmt.Errorf("%w: panic: %v", ErrProcessor, r)
		}
	}()
	return f()
}
