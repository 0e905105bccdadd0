package ingest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// unknown stands for an offset that is not known yet: 0 is one.
const unknown = -1

// progress is how far a partition has been read. Its own goroutine writes it, the watchdog raises the end, and
// scrapes read it.
type progress struct {
	next    atomic.Int64 // next offset to read
	first   atomic.Int64 // start of the log: retention has removed everything before it
	end     atomic.Int64 // high-water mark: the offset of the next message to be written
	eventTS atomic.Int64 // Unix nanoseconds of the last event that had a time, 0 where none had
	saved   atomic.Int64 // Unix nanoseconds at which the checkpoint was last known to hold everything before next
	busy    atomic.Bool  // in the hands of the processor or of the store, and so not stalled
}

func newProgress(now time.Time) *progress {
	p := &progress{}
	p.next.Store(unknown)
	p.first.Store(unknown)
	p.end.Store(unknown)
	p.saved.Store(now.UnixNano())
	return p
}

// raise takes in an end that was seen. A lower one comes from a broker that is behind.
func (p *progress) raise(end int64) {
	for seen := p.end.Load(); end > seen && !p.end.CompareAndSwap(seen, end); {
		seen = p.end.Load()
	}
}

// lag gives how many records are there and have not been read.
func (p *progress) lag() (records int64, known bool) {
	next, end := p.next.Load(), p.end.Load()
	if next == unknown || end == unknown {
		return 0, false
	}
	return max(0, end-next), true
}

// headroom gives how many records retention has yet to remove until it reaches those that have not been read.
func (p *progress) headroom() (records int64, known bool) {
	next, first := p.next.Load(), p.first.Load()
	if next == unknown || first == unknown {
		return 0, false
	}
	return max(0, next-first), true
}

// lagSeconds gives how old the last event is, 0 where there is none behind it.
func (p *progress) lagSeconds(now time.Time) (seconds float64, known bool) {
	records, known := p.lag()
	ts := p.eventTS.Load()
	switch {
	case !known || ts == 0:
		return 0, false
	case records == 0:
		return 0, true
	}
	return max(0, time.Duration(now.UnixNano()-ts).Seconds()), true
}

// board shows the partitions that are assigned to this process: to scrapes, and to those who ask whether it is ready.
type board struct {
	now func() time.Time

	mu         sync.Mutex
	joined     bool
	waitingFor string // why not
	partitions map[int32]*progress
}

var errNotJoined = errors.New("the consumer group is not joined")

func newBoard(now func() time.Time) *board {
	return &board{now: now, waitingFor: "it has not started", partitions: map[int32]*progress{}}
}

func (b *board) join() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.joined = true
}

func (b *board) leave(why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.joined, b.waitingFor = false, why
}

func (b *board) add(partition int32, p *progress) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.partitions[partition] = p
}

func (b *board) remove(partition int32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.partitions, partition)
}

// shown gives the assigned partitions in order, and how far each is.
func (b *board) shown() (partitions []int32, progresses []*progress) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for n := range b.partitions {
		partitions = append(partitions, n)
	}
	slices.Sort(partitions)
	for _, n := range partitions {
		progresses = append(progresses, b.partitions[n])
	}
	return partitions, progresses
}

// ready gives nil when the group is joined and no assigned partition is further behind than so many records.
func (b *board) ready(target int64) error {
	b.mu.Lock()
	joined, why := b.joined, b.waitingFor
	b.mu.Unlock()
	if !joined {
		return fmt.Errorf("%w: %s", errNotJoined, why)
	}
	partitions, progresses := b.shown()
	for i, n := range partitions {
		switch lag, known := progresses[i].lag(); {
		case !known:
			return fmt.Errorf("the lag of partition %d is not known yet", n)
		case lag > target:
			return fmt.Errorf("partition %d is %d records behind, and %d are allowed", n, lag, target)
		}
	}
	return nil
}

// collector makes the metrics of the partitions anew for each scrape: lags grow while nothing is read, and a partition
// that was taken away must not be shown any longer.
type collector struct {
	board *board

	lagRecords, lagSeconds, lastEvent, nextOffset, headroom, checkpointAge *prometheus.Desc
}

func newCollector(b *board) *collector {
	partition := []string{"partition"}
	return &collector{
		board: b,
		lagRecords: prometheus.NewDesc(MetricLagRecords,
			"Records that are in the partition and have not been read.", partition, nil),
		lagSeconds: prometheus.NewDesc(MetricLagSeconds,
			"Age of the last event read, 0 when all has been read; absent for telemetry without ts.", partition, nil),
		lastEvent: prometheus.NewDesc(MetricLastEvent,
			"Time of the last event read; absent for telemetry without ts.", partition, nil),
		nextOffset: prometheus.NewDesc(MetricNextOffset,
			"Next offset to read, -1 before it is known.", partition, nil),
		headroom: prometheus.NewDesc(MetricHeadroom,
			"Records that retention has yet to remove before it reaches those that have not been read.", partition, nil),
		checkpointAge: prometheus.NewDesc(MetricCheckpointAge,
			"Time since the checkpoint of the assigned partition that waits longest held all that was read.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.lagRecords, c.lagSeconds, c.lastEvent, c.nextOffset, c.headroom, c.checkpointAge} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	now := c.board.now()
	oldest := int64(math.MaxInt64)
	partitions, progresses := c.board.shown()
	for i, p := range progresses {
		gauge := func(d *prometheus.Desc, x float64) {
			out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, x, strconv.Itoa(int(partitions[i])))
		}
		gauge(c.nextOffset, float64(p.next.Load()))
		if records, known := p.lag(); known {
			gauge(c.lagRecords, float64(records))
		}
		if records, known := p.headroom(); known {
			gauge(c.headroom, float64(records))
		}
		if seconds, known := p.lagSeconds(now); known {
			gauge(c.lagSeconds, seconds)
		}
		if ts := p.eventTS.Load(); ts != 0 {
			gauge(c.lastEvent, float64(ts)/1e9)
		}
		oldest = min(oldest, p.saved.Load())
	}
	if len(progresses) > 0 {
		age := time.Duration(now.UnixNano() - oldest).Seconds()
		out <- prometheus.MustNewConstMetric(c.checkpointAge, prometheus.GaugeValue, age)
	}
}
