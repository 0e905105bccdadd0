// Package receive accepts telemetry records from clients, and writes them to a topic or a local log. From there, they
// are read like any other telemetry.
package receive

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/kafkalog"
)

// The limits of a batch, and of all batches that are being received.
const (
	MaxBody     = 16 << 20  // of a batch after decompression, in bytes
	MaxRecord   = 512 << 10 // of one record, in bytes
	maxInFlight = 64 << 20
	maxOfTenant = maxInFlight / 2 // or one tenant that sends slowly could keep the others from sending
	maxMessage  = 256 << 10       // of one message in bytes, unless it contains one larger record
	maxWindow   = 8 << 20         // of zstd
	maxUnpacked = 4               // batches that are decompressed at the same time
	MaxRefused  = 100             // maximum number of refused records that a response lists
)

// The errors of Receive, for errors.Is. After ErrBusy and ErrUnavailable, the client may send the same batch again.
var (
	ErrBadBatch    = errors.New("cannot read the batch")
	ErrTooLarge    = errors.New("the batch is too large")
	ErrBusy        = errors.New("too many concurrent telemetry requests")
	ErrUnavailable = errors.New("cannot write the telemetry")
)

// RequestHeader is the message header that identifies a batch and one part of it. When a batch is sent again, the
// headers are the same, so its messages are recognized.
const RequestHeader = "rewardwatch-request"

// SenderHeader is the message header with Batch.Sender. It is only set if the batch also has an ID.
const SenderHeader = "rewardwatch-sender"

// Topic is the destination of batches.
type Topic interface {
	// Partitions returns the number of partitions.
	Partitions(ctx context.Context) (int, error)
	// Append writes records to a partition in order. It returns once they are durable, which means that all in-sync
	// replicas have them. The error is ErrBusy if it cannot accept more records for now.
	Append(ctx context.Context, partition int, records ...kafkalog.Record) error
}

// Batch is the content of one request: JSON objects, one per line or in one array.
type Batch struct {
	ID       string // makes it safe to send the batch again; "" if there is none
	Sender   string // sender whose batch IDs are remembered separately; "" if they are not
	Tenant   string // tenant of the sender, which shares a limit with its other senders; "" for the platform
	Encoding string // of the body: "", gzip or zstd
	Body     io.Reader

	Takes func(policy string) bool // reports whether the sender may send events of a policy; nil for all policies
}

// Result describes the outcome of a batch.
type Result struct {
	Accepted int       // number of records written
	Refused  int       // number of records that are not telemetry
	Refusals []Refusal // the first refused records
}

// Refusal is a record that is not telemetry.
type Refusal struct {
	Index int // index of the record in its batch, from 0
	Error ingest.RecordError
}

// Receiver writes batches to a topic. Its methods are safe for concurrent use.
type Receiver struct {
	topic    Topic
	format   ingest.Format
	key      func(e *ingest.Event) string
	metrics  *Metrics
	inFlight *inFlight     // shared by all receivers
	unpacks  chan struct{} // batches that are being decompressed
}

// New returns a receiver for records in the given format, which must be a JSON format. Records with the same key are
// written to the same partition.
func New(topic Topic, format ingest.Format, key func(e *ingest.Event) string, m *Metrics) *Receiver {
	return &Receiver{topic: topic, format: format, key: key, metrics: m, inFlight: &inFlight{of: map[string]int64{}}, unpacks: make(chan struct{}, maxUnpacked)}
}

// To returns a receiver that writes records in another format to another topic. Both share the limit for batches that
// are being received.
func (r *Receiver) To(topic Topic, format ingest.Format) *Receiver {
	other := *r
	other.topic, other.format = topic, format
	return &other
}

// Receive writes the telemetry records of a batch, and returns once they are durable. Records with the same key keep
// their order. After an error, some records may have been written.
func (r *Receiver) Receive(ctx context.Context, b Batch) (Result, error) {
	begun := time.Now()
	result, err := r.receive(ctx, b)
	switch {
	case err == nil:
		r.metrics.records.WithLabelValues("accepted").Add(float64(result.Accepted))
		r.metrics.records.WithLabelValues("refused").Add(float64(result.Refused))
		r.metrics.duration.Observe(time.Since(begun).Seconds())
		r.metrics.batches.WithLabelValues("written").Inc()
	case errors.Is(err, ErrBusy):
		r.metrics.batches.WithLabelValues("busy").Inc()
	case errors.Is(err, ErrUnavailable):
		r.metrics.batches.WithLabelValues("unavailable").Inc()
	default:
		r.metrics.batches.WithLabelValues("refused").Inc()
	}
	return result, err
}

func (r *Receiver) receive(ctx context.Context, b Batch) (Result, error) {
	if !slices.Contains([]string{"", "identity", "gzip", "zstd"}, b.Encoding) {
		return Result{}, fmt.Errorf("%w: its encoding must be gzip or zstd, not %q", ErrBadBatch, b.Encoding)
	}
	taken := reservation{in: r.inFlight, tenant: b.Tenant}
	defer taken.release()
	body, err := readAll(b.Body, &taken)
	if err == nil {
		body, err = r.decompressed(ctx, b.Encoding, body, &taken)
	}
	if err != nil {
		return Result{}, err
	}
	partitions, err := r.topic.Partitions(ctx)
	if err != nil {
		return Result{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	s := sorting{r: r, decoder: r.format.NewDecoder(ingest.DecoderOptions{MaxRecord: MaxRecord}), parts: make([]part, partitions), id: b.ID, sender: b.Sender, takes: b.Takes}
	if err := eachRecord(body, s.add); err != nil {
		return Result{}, err
	}
	if s.index == 0 {
		return Result{}, fmt.Errorf("%w: it contains no record", ErrBadBatch)
	}
	return s.result, s.write(ctx)
}

// inFlight counts the bytes of all batches that are being received.
type inFlight struct {
	mu  sync.Mutex
	all int64
	of  map[string]int64 // by tenant
}

// add reports whether the limits are kept.
func (f *inFlight) add(tenant string, n int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all += n
	if f.of[tenant] += n; f.of[tenant] == 0 {
		delete(f.of, tenant)
	}
	return f.all <= maxInFlight && (tenant == "" || f.of[tenant] <= maxOfTenant)
}

// reservation is the share of one batch in the bytes of all batches being received.
type reservation struct {
	in     *inFlight
	tenant string
	n      int64
}

func (v *reservation) take(n int) error {
	v.n += int64(n)
	if !v.in.add(v.tenant, int64(n)) {
		return ErrBusy
	}
	return nil
}

func (v *reservation) release() { v.in.add(v.tenant, -v.n) }

// decompressed decompresses a whole body, whose encoding is known. It begins only when all of the body has arrived, and
// does not do so for many bodies at once: a decoder may need maxWindow bytes, which a client that sends the rest slowly
// would otherwise occupy with a few bytes.
func (r *Receiver) decompressed(ctx context.Context, encoding string, body []byte, taken *reservation) ([]byte, error) {
	if encoding == "" || encoding == "identity" {
		return body, nil
	}
	select {
	case r.unpacks <- struct{}{}:
		defer func() { <-r.unpacks }()
	case <-ctx.Done():
		return nil, ErrBusy
	}
	var source io.Reader = bytes.NewReader(body)
	if encoding == "gzip" {
		z, err := gzip.NewReader(source)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrBadBatch, err)
		}
		source = z
	} else {
		z, err := zstd.NewReader(source, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrBadBatch, err)
		}
		defer z.Close()
		source = z
	}
	return readAll(source, taken)
}

// readAll reads up to MaxBody bytes, and reserves memory for them while it reads.
func readAll(source io.Reader, taken *reservation) ([]byte, error) {
	var body bytes.Buffer
	in := bufio.NewReaderSize(source, 64<<10)
	for {
		n, err := io.CopyN(&body, in, 256<<10)
		switch full := taken.take(int(n)); {
		case full != nil:
			return nil, full
		case body.Len() > MaxBody:
			return nil, fmt.Errorf("%w: it exceeds %d bytes", ErrTooLarge, MaxBody)
		case errors.Is(err, io.EOF):
			return body.Bytes(), nil
		case err != nil:
			return nil, fmt.Errorf("%w: %w", ErrBadBatch, err)
		}
	}
}

// eachRecord calls add for each record of a body, which is an element of an array or a line.
func eachRecord(body []byte, add func(record []byte)) error {
	body = bytes.TrimLeft(body, " \t\r\n")
	if len(body) > 0 && body[0] == '[' {
		return eachElement(body, add)
	}
	for line := range bytes.Lines(body) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			add(line)
		}
	}
	return nil
}

func eachElement(body []byte, add func(record []byte)) error {
	d := json.NewDecoder(bytes.NewReader(body))
	_, err := d.Token() // opening bracket
	var line bytes.Buffer
	for err == nil && d.More() {
		var element json.RawMessage
		if err = d.Decode(&element); err == nil {
			line.Reset()
			err = json.Compact(&line, element)
		}
		if err == nil {
			add(line.Bytes())
		}
	}
	if err == nil {
		_, err = d.Token()
	}
	if err != nil {
		return fmt.Errorf("%w: at byte %d: %w", ErrBadBatch, d.InputOffset(), err)
	}
	return nil
}

// part contains the messages of a batch for one partition.
type part struct {
	messages [][]byte
	open     []byte // message that is being filled
}

// sorting distributes the records of a batch to partitions.
type sorting struct {
	r       *Receiver
	decoder ingest.Decoder
	events  []ingest.Event
	message ingest.Message
	parts   []part
	id      string
	sender  string
	takes   func(policy string) bool
	index   int
	result  Result
}

// add adds the next record. All of its events are written to the partition of the first one.
func (s *sorting) add(record []byte) {
	at := s.index
	s.index++
	refused := false
	refuse := func(e *ingest.RecordError, _ []byte) {
		if refused {
			return
		}
		refused = true
		if s.result.Refused++; len(s.result.Refusals) < MaxRefused {
			s.result.Refusals = append(s.result.Refusals, Refusal{at, *e})
		}
	}
	s.message = ingest.Message{Value: record}
	s.events = s.decoder.Decode(s.events[:0], &s.message, refuse)
	defer s.decoder.Reset()
	for i := range s.events {
		if s.takes != nil && !s.takes(s.events[i].Policy) {
			refuse(&ingest.RecordError{Reason: ingest.ReasonOtherTenant, Size: int64(len(record)), Msg: "the policy does not belong to the tenant of the token"}, nil)
		}
	}
	if refused {
		return
	}
	s.result.Accepted++
	var key []byte
	if len(s.events) > 0 {
		key = []byte(s.r.key(&s.events[0]))
	}
	p := &s.parts[kafkalog.PartitionOf(key, len(s.parts))]
	if len(p.open) > 0 && len(p.open)+len(record) >= maxMessage {
		p.messages, p.open = append(p.messages, p.open), nil
	}
	p.open = append(append(p.open, record...), '\n')
}

// write writes all parts. The messages of a partition keep their order.
func (s *sorting) write(ctx context.Context) error {
	failed := make(chan error, len(s.parts))
	for partition := range s.parts {
		go func() { failed <- s.writePart(ctx, partition) }()
	}
	var errs []error
	for range s.parts {
		errs = append(errs, <-failed)
	}
	err := errors.Join(errs...)
	if err == nil || errors.Is(err, ErrBusy) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

func (s *sorting) writePart(ctx context.Context, partition int) error {
	p := &s.parts[partition]
	if len(p.open) == 0 {
		return nil
	}
	records := make([]kafkalog.Record, 0, len(p.messages)+1)
	for i, value := range append(p.messages, p.open) {
		record := kafkalog.Record{Value: value}
		if s.id != "" {
			record.Headers = []ingest.Header{{Key: RequestHeader, Value: []byte(s.id + "/" + strconv.Itoa(i))}}
			if s.sender != "" {
				record.Headers = append(record.Headers, ingest.Header{Key: SenderHeader, Value: []byte(s.sender)})
			}
		}
		records = append(records, record)
	}
	return s.r.topic.Append(ctx, partition, records...)
}
