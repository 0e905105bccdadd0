package consumer

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/fetch"
	"github.com/rewardwatch/rewardwatch/ingest/locallog"
	"github.com/segmentio/kafka-go"
)

// local is the source of a Consumer that reads a log on this machine. The log has one partition, which no other process
// reads.
type local struct {
	*Consumer
	log *locallog.Log
}

// NewLocal returns a consumer of a local log. The log is partition 0 of the only topic in opts. Records that are part
// of a checkpoint are committed to the log.
func NewLocal(log *locallog.Log, opts Options) (*Consumer, error) {
	c, err := newConsumer(ingest.DefaultKafkaConfig(), opts)
	if err != nil {
		return nil, err
	}
	c.source, c.topics[0].board.held = &local{Consumer: c, log: log}, true
	return c, nil
}

// run implements source. This process is the only member, so a generation lasts until ctx ends or the reader stalls.
func (c *local) run(ctx context.Context) {
	for ctx.Err() == nil {
		p := newPartition(c.Consumer, c, 0, newTurns())
		committed, known := c.log.Committed()
		if !known {
			committed = unknown
		}
		p.add(c.topics[0], committed)
		own := &generation{
			c: c.Consumer, partitions: []*partition{p}, existing: 1, known: []int{1}, counted: time.Now(), told: make(chan struct{}),
		}
		c.topics[0].metrics.existing.Set(1)
		first, next := c.log.Ends()
		c.opts.Log.Info().Str("topic", c.topics[0].Name).Int64("first", first).Int64("end", next).Msg("reading the local log")
		own.run(ctx)
	}
}

// CommitOffsets implements committer.
func (c *local) CommitOffsets(offsets map[string]map[int]int64) error {
	return c.log.Commit(offsets[c.topics[0].Name][0])
}

// existing implements source.
func (c *local) existing(context.Context) ([]int, error) { return []int{1}, nil }

// ends implements source.
func (c *local) ends(context.Context, ...*reader) ([]kafka.PartitionOffsets, error) {
	first, next := c.log.Ends()
	return []kafka.PartitionOffsets{{FirstOffset: first, LastOffset: next}}, nil
}

// watchPartitions implements source. Partitions are never added.
func (c *local) watchPartitions(ctx context.Context, _ []int) (changed bool) {
	for fetch.Sleep(ctx, c.timing.watchPartitions) {
		c.opts.Handler.Confirm(time.Now())
	}
	return false
}

// check implements source.
func (c *local) check(context.Context) {}

// startOver implements source.
func (c *local) startOver(checkpoint string) string {
	return fmt.Sprintf("restore the missing segments of the log, or move its checkpoint %s and %s aside to read the log "+
		"from the beginning", checkpoint, c.log.CommitFile())
}

// connect implements source.
func (c *local) connect(context.Context, string, int32) (connection, error) {
	return &localConnection{log: c.log, closed: make(chan struct{})}, nil
}

// localConnection is a connection that reads a local log.
type localConnection struct {
	log    *locallog.Log
	closed chan struct{}

	mu      sync.Mutex
	reader  *locallog.Reader
	records []locallog.Record // remaining records of the last write that was read
	next    int64             // offset of the next step
	ended   bool
}

// SetDeadline implements connection. It does nothing, because no operation waits for another process.
func (*localConnection) SetDeadline(time.Time) error { return nil }

// ReadOffsets implements connection.
func (l *localConnection) ReadOffsets() (first, end int64, err error) {
	first, end = l.log.Ends()
	return first, end, nil
}

// Fetch implements connection.
func (l *localConnection) Fetch(from int64, size int, _ ingest.ByteSize, wait time.Duration) (*fetch.Answer, error) {
	patience := time.NewTimer(wait)
	defer patience.Stop()
	select {
	case <-l.log.Grown(from):
	case <-patience.C:
	case <-l.closed:
	}
	_, end := l.log.Ends()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return nil, os.ErrClosed
	}
	if l.reader == nil || l.next != from {
		if l.reader != nil {
			l.reader.Close() // it was only read
		}
		l.reader, l.records, l.next = l.log.NewReader(from), nil, from
	}
	return &fetch.Answer{HighWater: end, End: end, Steps: &localSteps{localConnection: l, left: size}}, nil
}

// Close implements connection.
func (l *localConnection) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return nil
	}
	l.ended = true
	close(l.closed)
	if l.reader == nil {
		return nil
	}
	return l.reader.Close()
}

// localSteps returns the next records of a local log until they exceed left bytes.
type localSteps struct {
	*localConnection
	left  int
	found fetch.Found
}

// Step implements fetch.Steps.
func (s *localSteps) Step() (*fetch.Found, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended:
		return nil, os.ErrClosed
	case s.left <= 0:
		return nil, io.EOF
	case len(s.records) == 0:
		var err error
		if s.records, err = s.reader.Next(); err != nil {
			return nil, err
		}
	}
	r := &s.records[0]
	s.records, s.next = s.records[1:], r.Offset+1
	s.left -= len(r.Value)
	s.found = fetch.FoundRecord(r.Offset, r.Time, r.Key, r.Headers, r.Value)
	return &s.found, nil
}
