package consumer

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
	"github.com/rewardwatch/rewardwatch/ingest"
)

// unknown is the value of an offset that is not known yet. 0 is a valid offset.
const unknown = -1

// progress describes how far a partition has been read. The partition's goroutine writes it, the watchdog raises end,
// and scrapes read it.
type progress struct {
	next      atomic.Int64 // next offset to read
	first     atomic.Int64 // start of the log; earlier records were removed by retention
	end       atomic.Int64 // end of the readable log: the high-water mark, or the first record of an open transaction
	highWater atomic.Int64 // offset of the next message to be written
	eventTS   atomic.Int64 // time of the last event that has one, in Unix nanoseconds; 0 before the first
	saved     atomic.Int64 // when the checkpoint last covered everything before next, in Unix nanoseconds
	busy      atomic.Bool  // whether the processor or the store is working, so the partition is not stalled
}

func newProgress(now time.Time) *progress {
	p := &progress{}
	p.next.Store(unknown)
	p.first.Store(unknown)
	p.end.Store(unknown)
	p.highWater.Store(unknown)
	p.saved.Store(now.UnixNano())
	return p
}

// raise raises end to an observed value. It ignores a lower value, which comes from a broker that is behind.
func (p *progress) raise(end int64) {
	for seen := p.end.Load(); end > seen && !p.end.CompareAndSwap(seen, end); {
		seen = p.end.Load()
	}
}

// lag returns the number of readable records that have not been read.
func (p *progress) lag() (records int64, known bool) {
	next, end := p.next.Load(), p.end.Load()
	if next == unknown || end == unknown {
		return 0, false
	}
	return max(0, end-next), true
}

// behind returns the number of existing records that have not been read, including those of open transactions.
func (p *progress) behind() (records int64, known bool) {
	records, known = p.lag()
	return max(records, p.highWater.Load()-p.next.Load()), known
}

// headroom returns the number of records that retention can remove before it reaches unread ones.
func (p *progress) headroom() (records int64, known bool) {
	next, first := p.next.Load(), p.first.Load()
	if next == unknown || first == unknown {
		return 0, false
	}
	return max(0, next-first), true
}

// lagSeconds returns the age of the last event, or 0 if there are no unread records.
func (p *progress) lagSeconds(now time.Time) (seconds float64, known bool) {
	records, known := p.behind()
	ts := p.eventTS.Load()
	switch {
	case !known || ts == 0:
		return 0, false
	case records == 0:
		return 0, true
	}
	return max(0, time.Duration(now.UnixNano()-ts).Seconds()), true
}

// board contains the progress of the assigned partitions, for scrapes and readiness checks.
type board struct {
	now  func() time.Time
	held bool // whether unread records are never removed

	mu         sync.Mutex
	joined     bool
	waitingFor string // why the group has not been joined
	partitions map[int32]*progress
}

var errNotJoined = errors.New("the consumer has not joined its group")

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

// size returns the number of assigned partitions.
func (b *board) size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.partitions)
}

// shown returns the assigned partitions in order, with their progress.
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

// ready returns nil if the group has been joined and no assigned partition is more than target records behind.
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
			return fmt.Errorf("the lag of partition %d is still unknown", n)
		case lag > target:
			return fmt.Errorf("partition %d is %d records behind; the limit is %d", n, lag, target)
		}
	}
	return nil
}

// collector computes the metrics of the partitions at each scrape, because lags increase while nothing is read, and
// revoked partitions must disappear.
type collector struct {
	board *board

	lagRecords, lagSeconds, lastEvent, nextOffset, headroom, checkpointAge *prometheus.Desc
}

func newCollector(b *board) *collector {
	partition := []string{"partition"}
	return &collector{
		board: b,
		lagRecords: prometheus.NewDesc(ingest.MetricLagRecords,
			"Unread records in the partition.", partition, nil),
		lagSeconds: prometheus.NewDesc(ingest.MetricLagSeconds,
			"Age of the last event read, or 0 if all events have been read. Absent for telemetry without ts.", partition, nil),
		lastEvent: prometheus.NewDesc(ingest.MetricLastEvent,
			"Time of the last event read. Absent for telemetry without ts.", partition, nil),
		nextOffset: prometheus.NewDesc(ingest.MetricNextOffset,
			"Next offset to read, or -1 if it is not known yet.", partition, nil),
		headroom: prometheus.NewDesc(ingest.MetricHeadroom,
			"Records that have been read, but not yet removed by retention.", partition, nil),
		checkpointAge: prometheus.NewDesc(ingest.MetricCheckpointAge,
			"Age of the oldest checkpoint of the assigned partitions.", nil, nil),
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
		if records, known := p.behind(); known {
			gauge(c.lagRecords, float64(records))
		}
		if records, known := p.headroom(); known && !c.board.held {
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
