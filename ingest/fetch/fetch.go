// Package fetch reads Kafka partitions without kafka-go's reader. It uses secured connections with timeouts, streams
// record batches in bounded memory, and can read sections of partitions without a consumer group.
package fetch

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/fetch"
)

const (
	// fetchVersion is the first version with which brokers send zstd batches. Brokers since Kafka 2.1 support it.
	fetchVersion = 10
	// readCommitted makes brokers report aborted transactions, and withhold open ones.
	readCommitted = 1
	// wireBuffer is the size of the buffer for received bytes.
	wireBuffer = 64 << 10
	// maxAborted is the maximum number of aborted transactions in a response.
	maxAborted = 1 << 20
)

const (
	// fetchMessages is the number of messages of the maximum size that fit in a response.
	fetchMessages = 4
	// maxFetch is the maximum size to request.
	maxFetch = 1 << 30
	// MaxLarger is the maximum number of doublings of the size, enough to reach maxFetch.
	MaxLarger = 30
	// MaxWait is how long a broker may delay an empty response.
	MaxWait = 250 * time.Millisecond
)

// Size returns the number of bytes to request after the given number of doublings.
func Size(maxMessage ingest.ByteSize, larger int) int {
	return int(min(fetchMessages*int64(maxMessage)<<larger, maxFetch))
}

// errAnswer means that the response of a broker violates the protocol.
var errAnswer = errors.New("the broker's response is malformed")

// Leader is a connection to the leader of a partition. Its fetches bypass kafka-go, which reads a whole record batch
// into memory before it checks the size of a record, and does not report which records belong to aborted transactions.
type Leader struct {
	*kafka.Conn
	wire    net.Conn // connection of Conn, which is idle during a fetch
	in      *bufio.Reader
	client  string // client ID
	request fetch.Request
	calls   int32
	wait    time.Duration // timeout for the next bytes
	set     Batches       // of the last response; kept to reuse its memory
}

func newLeader(conn *kafka.Conn, wire net.Conn, client, topic string, partition int) *Leader {
	l := &Leader{Conn: conn, wire: wire, client: client}
	l.in = bufio.NewReaderSize(patient{l}, wireBuffer)
	l.request = fetch.Request{
		ReplicaID: -1, MinBytes: 1, IsolationLevel: readCommitted, SessionEpoch: -1, // no session
		Topics: []fetch.RequestTopic{{Topic: topic, Partitions: []fetch.RequestPartition{{
			Partition: int32(partition), CurrentLeaderEpoch: -1, LogStartOffset: -1,
		}}}},
	}
	return l
}

// patient reads from the connection with a timeout for each read rather than for all of them, because processing the
// records may take a long time.
type patient struct{ l *Leader }

// Read implements io.Reader.
func (p patient) Read(b []byte) (int, error) {
	if err := p.l.wire.SetReadDeadline(time.Now().Add(p.l.wait)); err != nil {
		return 0, err
	}
	return p.l.wire.Read(b)
}

// Answer is a response for a partition. It must be read to its end or closed before the next fetch.
type Answer struct {
	HighWater int64 // offset of the next record to be written
	End       int64 // offset of the first record of an open transaction, or HighWater
	Steps
}

// Steps iterates over a response.
type Steps interface {
	// Step advances to the next step, which is valid until the one after it. At the end of the response, the error is
	// io.EOF.
	Step() (*Found, error)
}

// Fetch requests about size bytes of records, starting at the offset from. Values longer than limit are returned
// truncated.
func (l *Leader) Fetch(from int64, size int, limit ingest.ByteSize, wait time.Duration) (*Answer, error) {
	l.wait = wait + OperationTimeout
	if err := l.ask(from, size, wait); err != nil {
		return nil, fmt.Errorf("fetch from offset %d: %w", from, err)
	}
	a, err := l.receive(int64(limit))
	if err != nil {
		return nil, fmt.Errorf("fetch from offset %d: %w", from, err)
	}
	return a, nil
}

func (l *Leader) ask(from int64, size int, wait time.Duration) error {
	if err := l.wire.SetWriteDeadline(time.Now().Add(OperationTimeout)); err != nil {
		return err
	}
	l.calls++
	r := &l.request
	r.MaxWaitTime, r.MaxBytes = int32(wait.Milliseconds()), int32(size)
	p := &r.Topics[0].Partitions[0]
	p.FetchOffset, p.PartitionMaxBytes = from, int32(size)
	return protocol.WriteRequest(l.wire, fetchVersion, l.calls, l.client, r)
}

// receive reads a response up to its record batches.
func (l *Leader) receive(limit int64) (*Answer, error) {
	f := &fields{in: l.in, left: 4}
	f.left = int64(f.int32())
	correlation := f.int32()
	f.int32() // delay of the response by a quota
	failed := f.int16()
	f.int32() // session, which is not used
	if f.err == nil && correlation != l.calls {
		return nil, fmt.Errorf("%w: its correlation ID is %d instead of %d", errAnswer, correlation, l.calls)
	}
	if f.err == nil && failed != 0 {
		f.skip(f.left)
		return nil, errors.Join(kafka.Error(failed), f.err)
	}
	if topics := f.int32(); f.err == nil && topics != 1 {
		return nil, fmt.Errorf("%w: expected 1 topic, found %d", errAnswer, topics)
	}
	f.skip(int64(f.int16())) // topic
	if partitions := f.int32(); f.err == nil && partitions != 1 {
		return nil, fmt.Errorf("%w: expected 1 partition, found %d", errAnswer, partitions)
	}
	f.int32() // partition
	failed = f.int16()
	a := &Answer{HighWater: f.int64(), Steps: &l.set}
	stable := f.int64()
	f.int64() // start of the log
	aborted := f.aborted()
	size := int64(f.int32())
	switch {
	case f.err != nil:
		return nil, f.err
	case failed != 0:
		f.skip(f.left)
		return nil, errors.Join(kafka.Error(failed), f.err)
	case max(size, 0) != f.left:
		return nil, fmt.Errorf("%w: record batches of %d bytes, but %d bytes are left", errAnswer, size, f.left)
	}
	a.End = a.HighWater
	if stable >= 0 {
		a.End = min(a.End, stable)
	}
	l.set.begin(l.in, f.left, limit, aborted)
	return a, nil
}

// abortedTransaction is an aborted transaction of a producer. It extends from its first offset to its marker.
type abortedTransaction struct{ producer, first int64 }

// fields reads the fields of a response until the first error.
type fields struct {
	in   *bufio.Reader
	left int64
	err  error
}

func (f *fields) take(n int) []byte {
	if f.err == nil && f.left < int64(n) {
		f.err = fmt.Errorf("%w: it is truncated", errAnswer)
	}
	if f.err != nil {
		return make([]byte, n)
	}
	f.left -= int64(n)
	b := make([]byte, n)
	if _, err := io.ReadFull(f.in, b); err != nil {
		f.err = unexpected(err)
	}
	return b
}

func (f *fields) int16() int16 { return int16(binary.BigEndian.Uint16(f.take(2))) }
func (f *fields) int32() int32 { return int32(binary.BigEndian.Uint32(f.take(4))) }
func (f *fields) int64() int64 { return int64(binary.BigEndian.Uint64(f.take(8))) }

func (f *fields) skip(n int64) {
	if f.err == nil && (n < 0 || n > f.left) {
		f.err = fmt.Errorf("%w: it is truncated", errAnswer)
	}
	if f.err != nil {
		return
	}
	f.left -= n
	f.err = drop(f.in, n)
}

// aborted reads the aborted transactions that overlap the record batches. It returns them in order of their first
// offsets.
func (f *fields) aborted() []abortedTransaction {
	n := f.int32()
	if n > maxAborted {
		f.err = fmt.Errorf("%w: it lists %d aborted transactions", errAnswer, n)
		return nil
	}
	var all []abortedTransaction
	for range n {
		all = append(all, abortedTransaction{producer: f.int64(), first: f.int64()})
		if f.err != nil {
			return nil
		}
	}
	slices.SortFunc(all, func(a, b abortedTransaction) int { return int(max(-1, min(1, a.first-b.first))) })
	return all
}

// unexpected distinguishes the end of the connection from io.EOF, which means the end of a response.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
