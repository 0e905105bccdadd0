package cluster

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/kafkalog"
	"github.com/rewardwatch/rewardwatch/ingest/order"
)

// markEvery is how often, at most, a partition of the telemetry writes to the units topic how far it has been read,
// while it makes progress; aliveEvery is how often it does otherwise. ackedForSave is how long the end of a generation
// waits for the brokers to accept the records that have been passed on.
const (
	markEvery    = 250 * time.Millisecond
	aliveEvery   = time.Second
	ackedForSave = 5 * time.Second
)

// unitLog is the part of the units topic that a unitWriter needs; *kafkalog.Log implements it.
type unitLog interface {
	Append(ctx context.Context, partition int, records ...kafkalog.Record) error
	End(ctx context.Context, partition int) (int64, error)
	ReadOn(ctx context.Context, partition int, from, least int64, visit func(kafkalog.Record) error) (end int64, err error)
}

// unitWriter is the outlet to the units topic. For each partition of the telemetry that is read here, it writes units
// and, after them, marks. The units of a policy go to one partition of the units topic, and marks to all.
type unitWriter struct {
	pipeline *engine.Pipeline
	records  *ingest.UnitRecords
	log      unitLog
	queues   []*kafkalog.Queue // by partition of the units topic
	follower *markFollower

	ctx   context.Context // of the queues
	abort context.CancelFunc
	wg    sync.WaitGroup

	mu         sync.Mutex
	partitions int           // of the telemetry topic, in this generation
	over       chan struct{} // closed when the generation ends
	limit      order.Moment  // as in watermarks: no mark goes beyond it
	latest     int64         // latest event time that any partition has reached
}

func newUnitWriter(p *engine.Pipeline, records *ingest.UnitRecords, log unitLog) *unitWriter {
	w := &unitWriter{pipeline: p, records: records, log: log, follower: newMarkFollower(records, log), over: make(chan struct{}), limit: order.EndOfTime}
	w.ctx, w.abort = context.WithCancel(context.WithoutCancel(p.Ctx))
	return w
}

// start begins to write to a topic with the given number of partitions, until close. Call it before the first partition
// of the telemetry is assigned.
func (w *unitWriter) start(partitions int) {
	queues := make([]*kafkalog.Queue, partitions)
	for k := range queues {
		queues[k] = kafkalog.NewQueue()
	}
	w.mu.Lock()
	w.queues = queues
	w.mu.Unlock()
	for k, q := range queues {
		w.wg.Go(func() {
			err := q.Run(w.ctx, func(ctx context.Context, records ...kafkalog.Record) error { return w.log.Append(ctx, k, records...) })
			if err != nil {
				w.pipeline.Fail(err)
			}
		})
	}
	w.wg.Go(func() { w.follower.run(w.ctx, rand.N(partitions), w.pipeline.Log) })
}

// low returns the moment before which, as far as this process knows, no unit of any partition is missing.
func (w *unitWriter) low() order.Moment {
	if known := w.pipeline.Furthest(); known != nil {
		return known.Low()
	}
	return w.follower.low()
}

// width returns the number of partitions of the units topic, or 0 before start.
func (w *unitWriter) width() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.queues)
}

// close drops records that have not been written. The partitions that they came from have not been saved.
func (w *unitWriter) close() {
	w.abort()
	w.wg.Wait()
}

// unitPartition returns the partition of the units topic in which a policy is judged.
func unitPartition(policy string, partitions int) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(policy)) // never fails
	return int(h.Sum32() % uint32(partitions))
}

// ErrUnitsAway is returned if an order could not be written.
var ErrUnitsAway = errors.New("the command could not be written to the units topic: try again")

// forget writes an order to all partitions of the units topic, and returns once all have accepted it. ctx limits the
// wait. After an error, some partitions may have the order.
func (w *unitWriter) forget(ctx context.Context, o ingest.ForgetOrder) error {
	value, err := w.records.Forget(o)
	if err != nil {
		return err
	}
	w.mu.Lock()
	queues := w.queues
	w.mu.Unlock()
	if len(queues) == 0 {
		return ErrUnitsAway
	}
	numbers := make([]int64, len(queues))
	for k, q := range queues {
		if numbers[k], err = q.Put(w.ctx, ctx.Done(), kafkalog.Record{Key: []byte(o.Policy), Value: value}); err != nil {
			return fmt.Errorf("%w: %w", ErrUnitsAway, err)
		}
	}
	for k, q := range queues {
		if err := q.Await(w.ctx, ctx.Done(), 0, numbers[k]); err != nil {
			return fmt.Errorf("%w: partition %d: %w", ErrUnitsAway, k, err)
		}
	}
	return nil
}

func (w *unitWriter) Begin(partitions int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.partitions, w.over = partitions, make(chan struct{})
}

func (w *unitWriter) Confirm(at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.limit = order.ConfirmedLimit(w.limit, at, w.latest)
}

// within truncates a mark at the limit, so that no reader goes beyond it, and records how far its partition has been
// read.
func (w *unitWriter) within(m ingest.UnitMark) ingest.UnitMark {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.latest = max(w.latest, m.TS)
	if at := (order.Moment{TS: m.TS, Run: m.Run}); w.limit.Before(at) {
		m.TS, m.Run = w.limit.TS, w.limit.Run
	}
	if m.End != 0 && w.limit != order.EndOfTime {
		m.End = min(m.End, w.limit.TS+order.WatermarkDelay.Nanoseconds())
	}
	return m
}

func (w *unitWriter) Ending() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.over)
}

func (w *unitWriter) Assign(partition int32) engine.PartitionOutlet {
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
	told   ingest.UnitMark // the last mark written
	read   ingest.UnitMark // how far the partition has been read; At is not valid
	failed error           // why a write failed: nothing may be written after it
	ahead  []order.Moment  // units written that may wait for other partitions, oldest first; at most FeedBacklog
}

func (p *writtenPartition) HandDecision(ctx context.Context, d *ingest.Decision) error {
	return p.Hand(ctx, d.Unit())
}

func (p *writtenPartition) Hand(ctx context.Context, u *ingest.Unit) error {
	if _, watched := p.writer.pipeline.Cfg.Policy(u.Group.Policy); !watched {
		p.writer.pipeline.Metrics.Dropped.WithLabelValues(engine.ErrUnmatched.Error()).Inc()
		return nil
	}
	if p.told.At == 0 { // readers use the clock of the marks
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
	return p.append(ctx, k, kafkalog.Record{Key: []byte(u.Group.Policy), Value: value})
}

// append puts a record into a queue. If the generation ends before there is room, neither this record nor a later one
// is written, and the partition is not saved: its next reader writes them.
func (p *writtenPartition) append(ctx context.Context, k int, r kafkalog.Record) error {
	if p.failed != nil {
		return nil
	}
	number, err := p.writer.queues[k].Put(ctx, p.over, r)
	if errors.Is(err, kafkalog.ErrNotWritten) {
		p.failed = err
		return nil
	}
	if err != nil {
		return err
	}
	p.put[k] = number
	return nil
}

// room waits while many units of this partition wait, at any workers, for partitions that are further behind. What it
// knows of those partitions may be out of date. This is what limits the units that wait at workers: their readers
// cannot stop, since what the units wait for is written behind them. Before it waits, room writes how far this
// partition has been read; otherwise all partitions could wait for it.
func (p *writtenPartition) room(ctx context.Context, u *ingest.Unit) error {
	for {
		known := p.writer.within(p.read)
		read := order.Watermark{At: order.Moment{TS: known.TS, Run: known.Run}, End: order.FromUnixNano(known.End)}.Read()
		low := p.writer.low()
		for len(p.ahead) > 0 && p.ahead[0].Before(low) {
			p.ahead = p.ahead[1:]
		}
		if len(p.ahead) < engine.FeedBacklog {
			if u.EndTS <= order.Believed(time.Now()) {
				p.ahead = append(p.ahead, order.Moment{TS: u.EndTS, Run: u.Run})
			}
			return nil
		}
		if !low.Before(read) {
			return nil
		}
		if now := time.Now(); p.untold() || now.UnixNano()-p.told.At >= aliveEvery.Nanoseconds() {
			if err := p.write(ctx, p.read, now); err != nil {
				return err
			}
		}
		select {
		case <-time.After(engine.MergePulse):
		case <-p.over:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (p *writtenPartition) Mark(ctx context.Context, at order.Moment, end, now time.Time) error {
	p.read.TS, p.read.Run, p.read.End = at.TS, at.Run, order.UnixNano(end)
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
	known := p.writer.within(p.read)
	return known.TS != p.told.TS || known.Run != p.told.Run || (known.End == 0) != (p.told.End == 0)
}

// write writes a mark to all partitions of the units topic.
func (p *writtenPartition) write(ctx context.Context, m ingest.UnitMark, now time.Time) error {
	m = p.writer.within(m)
	m.At = now.UnixNano()
	value, err := p.writer.records.Mark(m)
	if err != nil {
		return err
	}
	for k := range p.put {
		if err := p.append(ctx, k, kafkalog.Record{Value: value}); err != nil {
			return err
		}
	}
	p.told = m
	return nil
}

// Keep waits until everything is in the units topic. After that there is nothing to keep.
func (p *writtenPartition) Keep() (engine.Kept, error) {
	if p.failed != nil {
		return engine.Kept{}, p.failed
	}
	for k, q := range p.writer.queues {
		if err := q.Await(p.writer.ctx, p.over, ackedForSave, p.put[k]); err != nil {
			return engine.Kept{}, fmt.Errorf("partition %d of the units topic: %w", k, err)
		}
	}
	return engine.Kept{}, nil
}

func (p *writtenPartition) Saved() {}

func (p *writtenPartition) Resume(kept engine.Kept, at order.Moment) error {
	for _, u := range kept.Units {
		if err := p.Hand(p.writer.ctx, u); err != nil {
			return err
		}
	}
	p.told.TS, p.told.Run = at.TS, at.Run
	p.read.TS, p.read.Run = at.TS, at.Run
	return nil
}

func (p *writtenPartition) KeepsLess() bool { return false }

func (p *writtenPartition) Revoke() {}
