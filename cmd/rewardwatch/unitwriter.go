package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// How often a partition of the telemetry says in the units topic how far it has been read: where it has got on, at most so
// often, else so seldom; and how long the end of a generation waits for the brokers to take what has been handed on.
const (
	markEvery    = 250 * time.Millisecond
	aliveEvery   = time.Second
	ackedForSave = 5 * time.Second
)

// unitLog is what a unitWriter needs of the units topic; *ingest.Log is one.
type unitLog interface {
	Append(ctx context.Context, partition int, records ...ingest.LogRecord) error
	End(ctx context.Context, partition int) (int64, error)
	ReadOn(ctx context.Context, partition int, from, least int64, visit func(ingest.LogRecord) error) (end int64, err error)
}

// unitWriter is the outlet to the units topic. For each partition of the telemetry that is read here it writes units, and
// marks behind them; the units of a policy go to one partition of the units topic, the marks to all.
type unitWriter struct {
	pipeline *pipeline
	records  *ingest.UnitRecords
	log      unitLog
	queues   []*unitQueue // by partition of the units topic
	follower *markFollower

	ctx   context.Context // of the queues
	abort context.CancelFunc
	wg    sync.WaitGroup

	mu         sync.Mutex
	partitions int           // of the telemetry topic, in this generation
	over       chan struct{} // closed when the generation ends
}

func newUnitWriter(p *pipeline, records *ingest.UnitRecords, log unitLog) *unitWriter {
	w := &unitWriter{pipeline: p, records: records, log: log, follower: newMarkFollower(records, log), over: make(chan struct{})}
	w.ctx, w.abort = context.WithCancel(context.WithoutCancel(p.ctx))
	return w
}

// start writes to a topic of so many partitions, until close. It comes before the first partition of the telemetry.
func (w *unitWriter) start(partitions int) {
	for k := range partitions {
		q := newUnitQueue()
		w.queues = append(w.queues, q)
		w.wg.Go(func() {
			err := q.run(w.ctx, func(ctx context.Context, records ...ingest.LogRecord) error { return w.log.Append(ctx, k, records...) })
			if err != nil {
				w.pipeline.failed(err)
			}
		})
	}
	w.wg.Go(func() { w.follower.run(w.ctx, rand.N(partitions), w.pipeline.log) })
}

// low is the moment before which, as far as is known in this process, no unit of any partition is missing.
func (w *unitWriter) low() moment {
	if known := w.pipeline.furthest(); known != nil {
		return known.low()
	}
	return w.follower.low()
}

// width is how many partitions the units topic has.
func (w *unitWriter) width() int { return len(w.queues) }

// close gives up what has not been written; who handed it on has not saved it.
func (w *unitWriter) close() {
	w.abort()
	w.wg.Wait()
}

// unitPartition gives the partition of the units topic that a policy lies in.
func unitPartition(policy string, partitions int) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(policy)) // never fails
	return int(h.Sum32() % uint32(partitions))
}

func (w *unitWriter) begin(partitions int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.partitions, w.over = partitions, make(chan struct{})
}

func (w *unitWriter) ending() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.over)
}

func (w *unitWriter) assign(partition int32) partitionOutlet {
	w.mu.Lock()
	defer w.mu.Unlock()
	begin := ingest.UnitMark{Partition: partition, Partitions: int32(w.partitions)}
	return &writtenPartition{writer: w, over: w.over, put: make([]int64, len(w.queues)), told: begin, read: begin}
}

// writtenPartition writes the units and marks of one partition of the telemetry.
type writtenPartition struct {
	writer *unitWriter
	over   <-chan struct{} // closed when the generation ends
	put    []int64         // number of the last record in each queue
	told   ingest.UnitMark // the last one that was written
	read   ingest.UnitMark // how far the partition has been read; At is not valid
	failed error           // something was not written: nothing may come after it
	ahead  []moment        // units written that may wait for other partitions, the oldest first; at most feedBacklog
}

func (p *writtenPartition) hand(ctx context.Context, u *ingest.Unit) error {
	if _, watched := p.writer.pipeline.cfg.policy(u.Group.Policy); !watched {
		p.writer.pipeline.metrics.dropped.WithLabelValues(errUnmatched.Error()).Inc()
		return nil
	}
	if p.told.At == 0 { // readers go by the clock of the marks
		if err := p.write(ctx, p.told, time.Now()); err != nil {
			return err
		}
	}
	if err := p.room(ctx, u); err != nil {
		return err
	}
	value, err := p.writer.records.Unit(u)
	if err != nil {
		return err
	}
	k := unitPartition(u.Group.Policy, len(p.put))
	return p.append(ctx, k, ingest.LogRecord{Key: []byte(u.Group.Policy), Value: value})
}

// append puts a record into a queue. Where the generation ends while there is no room, neither this record nor a later one
// is written, and the partition not saved: who reads it next writes them.
func (p *writtenPartition) append(ctx context.Context, k int, r ingest.LogRecord) error {
	if p.failed != nil {
		return nil
	}
	number, err := p.writer.queues[k].put(ctx, p.over, r)
	if errors.Is(err, errNotWritten) {
		p.failed = err
		return nil
	}
	if err != nil {
		return err
	}
	p.put[k] = number
	return nil
}

// room waits while many units of this partition wait, at whatever desks, for those of partitions that have been read less
// far; what is known of those may be of a while ago. It is what bounds the units that wait at desks: who reads them cannot
// stop, as what they wait for is written behind them. Before it waits it tells how far this one has been read, or all could wait
// for it.
func (p *writtenPartition) room(ctx context.Context, u *ingest.Unit) error {
	read := watermark{at: moment{p.read.TS, p.read.Run}, end: fromUnixNano(p.read.End)}.read()
	for {
		low := p.writer.low()
		for len(p.ahead) > 0 && p.ahead[0].before(low) {
			p.ahead = p.ahead[1:]
		}
		if len(p.ahead) < feedBacklog {
			if u.EndTS <= time.Now().Add(clockTolerance).UnixNano() {
				p.ahead = append(p.ahead, moment{u.EndTS, u.Run})
			}
			return nil
		}
		if !low.before(read) {
			return nil
		}
		if now := time.Now(); p.untold() || now.UnixNano()-p.told.At >= aliveEvery.Nanoseconds() {
			if err := p.write(ctx, p.read, now); err != nil {
				return err
			}
		}
		select {
		case <-time.After(mergePulse):
		case <-p.over:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (p *writtenPartition) mark(ctx context.Context, at moment, end, now time.Time) error {
	p.read.TS, p.read.Run, p.read.End = at.TS, at.Run, unixNano(end)
	every := aliveEvery
	if p.untold() {
		every = markEvery
	}
	if now.UnixNano()-p.told.At < every.Nanoseconds() {
		return nil
	}
	return p.write(ctx, p.read, now)
}

// untold reports whether the partition has been read further than the last mark says.
func (p *writtenPartition) untold() bool {
	return p.read.TS != p.told.TS || p.read.Run != p.told.Run || (p.read.End == 0) != (p.told.End == 0)
}

// write writes a mark to all partitions of the units topic.
func (p *writtenPartition) write(ctx context.Context, m ingest.UnitMark, now time.Time) error {
	m.At = now.UnixNano()
	value, err := p.writer.records.Mark(m)
	if err != nil {
		return err
	}
	for k := range p.put {
		if err := p.append(ctx, k, ingest.LogRecord{Value: value}); err != nil {
			return err
		}
	}
	p.told = m
	return nil
}

// keep waits until everything is in the units topic. There is nothing to keep then.
func (p *writtenPartition) keep() ([]*ingest.Unit, error) {
	if p.failed != nil {
		return nil, p.failed
	}
	for k, q := range p.writer.queues {
		if err := q.await(p.writer.ctx, p.over, ackedForSave, p.put[k]); err != nil {
			return nil, fmt.Errorf("partition %d of the units topic: %w", k, err)
		}
	}
	return nil, nil
}

func (p *writtenPartition) resume(kept []*ingest.Unit, at moment) error {
	for _, u := range kept {
		if err := p.hand(p.writer.ctx, u); err != nil {
			return err
		}
	}
	p.told.TS, p.told.Run = at.TS, at.Run
	p.read.TS, p.read.Run = at.TS, at.Run
	return nil
}

func (p *writtenPartition) revoke() {}
