package consumer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/fetch"
)

// generation is one generation of the group: the partitions that this member reads until the next one begins.
type generation struct {
	c          *Consumer
	existing   int       // number of partitions of the largest topic
	counted    time.Time // when existing was counted
	known      []int     // number of partitions of each topic before joining; more may be assigned
	partitions []*partition
	end        context.CancelFunc // stops reading all partitions
	fenced     atomic.Bool        // whether a later owner of a partition ended the generation
	told       chan struct{}      // closed once Handler.Ending has returned
}

// run reads the partitions until ctx ends. It returns earlier if the group must be rejoined.
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
	// The rebalance that caused the later owner soon ends ctx. Otherwise, the group assigns the partition to this member
	// again, which then becomes the later owner. The delay keeps two competing members from repeatedly taking the
	// partition from each other.
	g.c.fences++
	fetch.Sleep(ctx, g.c.timing.backoff(g.c.fences))
}

// open opens the stores of all partitions, unless ctx ends first.
func (g *generation) open(ctx context.Context) {
	var opening sync.WaitGroup
	for _, p := range g.partitions {
		opening.Go(func() { g.ended(p, p.open(ctx)) })
	}
	opening.Wait()
}

// read reads the partitions until ctx ends.
func (g *generation) read(ctx context.Context) {
	g.assign()
	context.AfterFunc(ctx, func() {
		defer close(g.told)
		g.c.opts.Handler.Ending()
	})
	var reading sync.WaitGroup
	for _, p := range g.partitions {
		reading.Go(func() {
			g.ended(p, p.run(ctx, g.told))
			<-g.told
			g.c.opts.Handler.Revoke(p.id)
		})
	}
	reading.Go(func() {
		if g.c.source.watchPartitions(ctx, g.known) {
			g.end()
		}
	})
	g.c.watch(ctx, g.partitions)
	g.end()
	reading.Wait()
	<-g.told // otherwise, the next generation could begin first
}

// assign lets the Handler create the states of all partitions before any partition is read. Otherwise, the first
// partition would be processed as if there were no others to wait for.
func (g *generation) assign() {
	g.c.opts.Handler.Begin(g.existing)
	g.c.opts.Handler.Confirm(g.counted)
	for i, p := range g.partitions {
		if err := p.assign(); err != nil {
			g.ended(p, err)
			g.partitions = g.partitions[:i]
			break
		}
		for _, r := range p.readers {
			r.topic.board.add(p.id, r.progress)
		}
	}
	for _, t := range g.c.topics {
		t.metrics.assigned.Set(float64(t.board.size()))
	}
	g.c.joined()
}

// ended handles the end of reading a partition. err is nil if the generation ended. ErrFenced ends the generation, any
// other error the consumer.
func (g *generation) ended(p *partition, err error) {
	switch {
	case errors.Is(err, ingest.ErrFenced):
		p.log.Warn().Err(err).Msg("another instance now owns the partition: dropping it and rejoining the group")
		g.fenced.Store(true)
		g.end()
	case err != nil:
		g.c.fail(fmt.Errorf("partition %d of %s: %w", p.id, strings.Join(g.c.names(), " and "), err))
	}
}
