package ingest

import (
	"context"
	"sync"
)

// generation is one generation of the group: the partitions that this member reads until the next one begins.
type generation struct {
	c          *Consumer
	existing   int // partitions of the topic
	partitions []*partition
	told       chan struct{} // closed once the Handler knows that the generation ends
}

// run reads the partitions until ctx ends. It ends the generation itself where only joining the group anew helps.
func (g *generation) run(ctx context.Context) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	g.open(ctx)
	if ctx.Err() != nil {
		return
	}
	g.assign()
	context.AfterFunc(ctx, func() {
		defer close(g.told)
		g.c.opts.Handler.Ending()
	})
	var reading sync.WaitGroup
	for _, p := range g.partitions {
		reading.Go(func() {
			p.run(ctx)
			<-g.told
			g.c.opts.Handler.Revoke(p.id)
		})
	}
	g.c.watch(ctx, g.partitions)
	end()
	reading.Wait()
	<-g.told // or the next generation could begin before
}

// open gets the stores of all partitions, unless ctx ends before.
func (g *generation) open(ctx context.Context) {
	var opening sync.WaitGroup
	for _, p := range g.partitions {
		opening.Go(func() { p.open(ctx) })
	}
	opening.Wait()
}

// assign has the Handler make the states of all partitions before one is read, or it would judge that one as if there were
// no others to wait for.
func (g *generation) assign() {
	g.c.opts.Handler.Begin(g.existing)
	for i, p := range g.partitions {
		if err := p.assign(); err != nil {
			g.c.fail(err)
			g.partitions = g.partitions[:i]
			break
		}
		g.c.board.add(p.id, p.progress)
	}
	g.c.metrics.assigned.Set(float64(len(g.partitions)))
	g.c.board.join()
}
