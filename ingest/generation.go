package ingest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// generation is one generation of the group: the partitions that this member reads until the next one begins.
type generation struct {
	c          *Consumer
	existing   int // partitions of the topic
	partitions []*partition
	end        context.CancelFunc // lets go of all partitions
	fenced     atomic.Bool        // it was ended by a later owner of a partition
	told       chan struct{}      // closed once the Handler knows that the generation ends
}

// run reads the partitions until ctx ends, or returns earlier where only joining the group anew helps.
func (g *generation) run(ctx context.Context) {
	reading, end := context.WithCancel(ctx)
	defer end()
	g.end = end
	g.open(reading)
	if reading.Err() == nil {
		g.read(reading)
	}
	if !g.fenced.Load() {
		g.c.fences = 0
		return
	}
	// The rebalance that made the later owner ends ctx soon. Without one, the group gives the partition to this member
	// again, which then is the later owner: two that are at odds must not drive each other on.
	g.c.fences++
	sleep(ctx, g.c.timing.backoff(g.c.fences))
}

// open gets the stores of all partitions, unless ctx ends before.
func (g *generation) open(ctx context.Context) {
	var opening sync.WaitGroup
	for _, p := range g.partitions {
		opening.Go(func() { g.ended(p, p.open(ctx)) })
	}
	opening.Wait()
}

// read has the partitions read until ctx ends.
func (g *generation) read(ctx context.Context) {
	g.assign()
	context.AfterFunc(ctx, func() {
		defer close(g.told)
		g.c.opts.Handler.Ending()
	})
	var reading sync.WaitGroup
	for _, p := range g.partitions {
		reading.Go(func() {
			g.ended(p, p.run(ctx))
			<-g.told
			g.c.opts.Handler.Revoke(p.id)
		})
	}
	g.c.watch(ctx, g.partitions)
	g.end()
	reading.Wait()
	<-g.told // or the next generation could begin before
}

// assign has the Handler make the states of all partitions before one is read, or it would judge that one as if there were
// no others to wait for.
func (g *generation) assign() {
	g.c.opts.Handler.Begin(g.existing)
	for i, p := range g.partitions {
		if err := p.assign(); err != nil {
			g.ended(p, err)
			g.partitions = g.partitions[:i]
			break
		}
		g.c.board.add(p.id, p.progress)
	}
	g.c.metrics.assigned.Set(float64(len(g.partitions)))
	g.c.board.join()
}

// ended takes in why a partition is not read any longer: nil where the generation ended. A later owner ends the generation,
// what else there is the consumer.
func (g *generation) ended(p *partition, err error) {
	switch {
	case errors.Is(err, ErrFenced):
		p.log.Warn().Err(err).Msg("Letting go of a partition that has a later owner, joining the group anew")
		g.fenced.Store(true)
		g.end()
	case err != nil:
		g.c.fail(fmt.Errorf("partition %d of %s: %w", p.id, g.c.cfg.Topic, err))
	}
}
