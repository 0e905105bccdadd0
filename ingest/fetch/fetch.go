// Package fetch reads Kafka partitions without the reader of kafka-go: over secured and bounded connections, with
// record batches as streams in bounded memory, and by sections without a consumer group.
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
	// fetchVersion is the first version with which brokers send zstd. Brokers of Kafka 2.1 and later support it.
	fetchVersion = 10
	// readCommitted makes the broker report aborted transactions and hold back open ones.
	readCommitted = 1
	// wireBuffer is the buffer for received, unread bytes.
	wireBuffer = 64 << 10
	// maxAborted is the maximum number of aborted transactions in one answer.
	maxAborted = 1 << 20
)

const (
	// fetchMessages is how many messages of the largest size one answer of the broker may hold.
	fetchMessages = 4
	// maxFetch is the maximum size to request.
	maxFetch = 1 << 30
	// MaxLarger is how many doublings of the size reach maxFetch.
	MaxLarger = 30
	// MaxWait is how long a broker holds back an empty answer.
	MaxWait = 250 * time.Millisecond
)

// Size returns how many bytes to request.
func Size(maxMessage ingest.ByteSize, larger int) int {
	return int(min(fetchMessages*int64(maxMessage)<<larger, maxFetch))
}

// errAnswer means that an answer of a broker does not follow the protocol.
var errAnswer = errors.New("the broker's response is malformed")

// Leader is a connection to the leader of a partition. Its fetches bypass kafka-go, which holds a whole record batch in
// memory before it checks the size of a record, and does not report which records belong to aborted transactions.
type Leader struct {
	*kafka.Conn
	wire    net.Conn // of Conn, which is idle during a fetch
	in      *bufio.Reader
	client  string // its name
	request fetch.Request
	calls   int32
	wait    time.Duration // for the next bytes
	set     Batches       // of the last answer, kept to reuse its memory
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

// patient reads from the connection. It bounds each wait rather than their sum, as the records may take a long time to
// process.
type patient struct{ l *Leader }

// Read implements io.Reader.
func (p patient) Read(b []byte) (int, error) {
	if err := p.l.wire.SetReadDeadline(time.Now().Add(p.l.wait)); err != nil {
		return 0, err
	}
	return p.l.wire.Read(b)
}

// Answer is an answer for a partition. It must be read to its end, or closed, before the next fetch.
type Answer struct {
	HighWater int64 // the offset of the next record to be written
	End       int64 // the offset of the first record of an open transaction, else HighWater
	Steps
}

// Steps are the steps through an answer.
type Steps interface {
	// Step advances to the next step. At the end of the answer the error is io.EOF.
	Step() (Found, error)
}

// Fetch requests records from an offset on, up to about size bytes. Values longer than limit are returned truncated.
func (l *Leader) Fetch(from int64, size int, limit ingest.ByteSize, wait time.Duration) (*Answer, error) {
	l.wait = wait + OperationTimeout
	if err := l.ask(from, size, wait); err != nil {
		return nil, fmt.Errorf("fetching from offset %d: %w", from, err)
	}
	a, err := l.receive(int64(limit))
	if err != nil {
		return nil, fmt.Errorf("fetching from offset %d: %w", from, err)
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

// receive reads an answer up to its record batches.
func (l *Leader) receive(limit int64) (*Answer, error) {
	f := &fields{in: l.in, left: 4}
	f.left = int64(f.int32())
	correlation := f.int32()
	f.int32() // how long a quota has delayed the answer
	failed := f.int16()
	f.int32() // the session: none
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
	f.skip(int64(f.int16())) // the topic
	if partitions := f.int32(); f.err == nil && partitions != 1 {
		return nil, fmt.Errorf("%w: expected 1 partition, found %d", errAnswer, partitions)
	}
	f.int32() // the partition
	failed = f.int16()
	a := &Answer{HighWater: f.int64(), Steps: &l.set}
	stable := f.int64()
	f.int64() // the start of the log
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

// abortedTransaction is an aborted transaction of a producer, from its first offset to its marker.
type abortedTransaction struct{ producer, first int64 }

// fields reads the fields of an answer, until the first error.
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

// aborted reads the aborted transactions that the record batches belong to, in order of their first offsets.
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

// unexpected distinguishes the end of the connection from io.EOF, which is the end of an answer.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
