package fetch

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"unsafe"

	"github.com/klauspost/compress/zstd"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/segmentio/kafka-go/compress"
)

// The header of a record batch. Integers are big endian.
//
//	first offset (8) | length of what follows (4) | epoch of the leader (4) | format (1) | checksum (4) | attributes (2) |
//	offset of the last record from the first (4) | times (8, 8) | producer (8) | its epoch (2) | sequence (4) | records (4)
const (
	batchPrefix = 8 + 4
	batchHeader = batchPrefix + 4 + 1 + 4 + 2 + 4 + 8 + 8 + 8 + 2 + 4 + 4

	attributeCodec         = 0x07
	attributeAppendTime    = 0x08 // the broker has set the timestamp, which is the same for all records
	attributeTransactional = 0x10
	attributeControl       = 0x20
)

// maxDiscard is the maximum number of bytes of oversized records that are decompressed to reach later records of the
// same record batch. Beyond it, the rest of the record batch is refused.
const maxDiscard = 1 << 30

// maxHeaders is the maximum size of a record's headers in bytes. Larger headers are ignored.
const maxHeaders = 64 << 10

var errHeaders = errors.New("its headers are truncated")

var (
	// ErrCut means that a response ended before the end of its first record batch.
	ErrCut   = errors.New("the response ends inside its first record batch")
	errBatch = errors.New("the record batch is malformed")
	// errDiscard means that oversized records exceed maxDiscard.
	errDiscard = errors.New("its oversized records exceed 1 GiB when decompressed")
)

// Batches reads the record batches of a response as a stream, one record at a time. Its memory is one value up to the
// limit, buffers of a fixed size, and the window of a decompressor.
type Batches struct {
	in       *bufio.Reader
	limit    int64
	left     int64 // bytes of the response after the current record batch
	whole    bool  // whether the response contained a complete record batch
	aborted  []abortedTransaction
	aborting map[int64]bool // producers with an aborted transaction in progress

	batch   recordBatch
	open    bool     // whether the records of batch are being read
	raw     rawBytes // rest of the batch as received
	body    window   // rest of its records, decompressed
	unpack  unpacker
	next    int64 // offset after the last step
	record  int64 // unread bytes of the current record
	discard int64 // bytes of oversized records that may still be discarded
	key     []byte
	headers []ingest.Header
	found   Found // last step
}

type recordBatch struct {
	first, last int64
	attributes  int16
	ts, newest  int64 // base timestamp of the records, and the latest timestamp, in Unix milliseconds
	producer    int64
	left        int64 // number of unread records
}

// begin starts the next response, which has size bytes.
func (s *Batches) begin(in *bufio.Reader, size, limit int64, aborted []abortedTransaction) {
	s.in, s.left, s.limit, s.aborted, s.aborting = in, size, limit, aborted, map[int64]bool{}
	s.batch, s.open, s.raw, s.whole = recordBatch{}, false, rawBytes{in: in}, false
}

// close skips the unread part of the response.
func (s *Batches) close() error {
	s.endStream()
	rest := s.raw.left + s.left
	s.raw.left, s.left, s.open, s.batch.left = 0, 0, false, 0
	return drop(s.in, rest)
}

// Step implements Steps.
func (s *Batches) Step() (*Found, error) {
	if s.bufferedRecord() {
		return &s.found, nil
	}
	for {
		f, err := s.advance()
		if err != nil || f.Next > f.Offset {
			s.found = f
			return &s.found, err
		}
	}
}

// advance is like Step, but may return a Found without offsets.
func (s *Batches) advance() (f Found, err error) {
	switch {
	case s.batch.left > 0:
		f, err = s.nextRecord()
	case s.open:
		f, err = s.endBatch()
	default:
		return s.nextBatch()
	}
	switch {
	case err == nil:
		return f, nil
	case unbounded(err):
		return s.pass(KindRefused, err)
	}
	return f, fmt.Errorf("%w: after offset %d: %w", errBatch, s.next-1, unexpected(err))
}

// unbounded reports whether an error means that decompressing a record batch exceeds the limits, so a retry does not
// help.
func unbounded(err error) bool {
	return errors.Is(err, errWindow) || errors.Is(err, errDiscard) ||
		errors.Is(err, zstd.ErrDecoderSizeExceeded) || errors.Is(err, zstd.ErrWindowSizeExceeded)
}

// nextBatch reads the header of the next record batch. It skips batches that contain no telemetry.
func (s *Batches) nextBatch() (Found, error) {
	if err := s.header(); err != nil {
		return Found{}, err
	}
	b := &s.batch
	s.next = b.first
	for len(s.aborted) > 0 && s.aborted[0].first <= b.last {
		s.aborting[s.aborted[0].producer] = true
		s.aborted = s.aborted[1:]
	}
	switch {
	case b.attributes&attributeControl != 0:
		delete(s.aborting, b.producer) // the marker ends the transaction
		return s.pass(KindControl, nil)
	case b.attributes&attributeTransactional != 0 && s.aborting[b.producer]:
		return s.pass(KindAborted, nil)
	}
	head, err := s.in.Peek(int(min(s.raw.left, zstd.HeaderMaxSize)))
	if err != nil {
		return Found{}, unexpected(err)
	}
	stream, err := s.unpack.stream(compress.Compression(b.attributes&attributeCodec), head, &s.raw)
	if err != nil {
		return Found{}, fmt.Errorf("%w: %w", errBatch, err)
	}
	s.body.reset(stream)
	s.open, s.record, s.discard = true, 0, maxDiscard
	return Found{}, nil
}

// header reads the header of the next record batch. If the batch is incomplete, the response ends before it.
func (s *Batches) header() error {
	b, err := s.in.Peek(int(min(s.left, batchHeader)))
	switch {
	case err != nil:
		return unexpected(err)
	case len(b) == 0:
		return io.EOF
	case len(b) < batchHeader:
		return s.cut()
	}
	if format := b[16]; format != 2 {
		return fmt.Errorf("%w: its format is %d, but only format 2 (Kafka 0.11 and later) is supported", errBatch, format)
	}
	size := batchPrefix + int64(int32(binary.BigEndian.Uint32(b[8:])))
	if size > s.left {
		return s.cut()
	}
	first, count := int64(binary.BigEndian.Uint64(b)), int32(binary.BigEndian.Uint32(b[57:]))
	last := first + int64(int32(binary.BigEndian.Uint32(b[23:])))
	if size < batchHeader || first < 0 || last < first || last == math.MaxInt64 || count < 0 {
		return fmt.Errorf("%w: %d records at offsets %d to %d in %d bytes", errBatch, count, first, last, size)
	}
	s.batch = recordBatch{
		first: first, last: last, left: int64(count),
		attributes: int16(binary.BigEndian.Uint16(b[21:])), producer: int64(binary.BigEndian.Uint64(b[43:])),
		ts: int64(binary.BigEndian.Uint64(b[27:])), newest: int64(binary.BigEndian.Uint64(b[35:])),
	}
	s.whole = true
	s.left -= size
	s.raw.left = size - batchHeader
	_, err = s.in.Discard(batchHeader)
	return err
}

// cut skips an incomplete record batch.
func (s *Batches) cut() error {
	if err := s.close(); err != nil {
		return err
	}
	if !s.whole {
		return ErrCut
	}
	return io.EOF
}

// endBatch continues after the last record of a batch. If that is not the batch's last offset, compaction has removed
// records.
func (s *Batches) endBatch() (Found, error) {
	if err := s.skip(); err != nil {
		return Found{}, err
	}
	if err := s.body.fill(); err == nil {
		return Found{}, errors.New("it has more records than its header specifies")
	} else if !errors.Is(err, io.EOF) {
		return Found{}, err
	}
	return s.pass(KindNothing, nil)
}

// pass skips the rest of the current record batch.
func (s *Batches) pass(kind Kind, why error) (Found, error) {
	s.endStream()
	f := Found{Kind: kind, Offset: s.next, Next: s.batch.last + 1, Records: s.batch.left, Why: why}
	s.next = f.Next
	rest := s.raw.left
	s.raw.left, s.open, s.batch.left = 0, false, 0
	return f, drop(s.in, rest)
}

// endStream frees the memory of the decompressor.
func (s *Batches) endStream() {
	s.unpack.close()
	s.body.reset(nil)
}

// nextRecord reads the next record of the current batch. Its format is:
//
//	length | attributes (1) | time | offset from the first | key | value | headers
//
// Numbers are varints. The key and the value are preceded by their lengths.
func (s *Batches) nextRecord() (Found, error) {
	if err := s.skip(); err != nil {
		return Found{}, err
	}
	s.record = binary.MaxVarintLen64 // for the length field
	size, err := s.varint()
	if err != nil {
		return Found{}, err
	}
	if size < 0 {
		return Found{}, fmt.Errorf("a record has a size of %d bytes", size)
	}
	if s.record = size; size > s.limit {
		if s.discard -= size - s.limit; s.discard < 0 {
			return Found{}, errDiscard
		}
	}
	if _, err := s.take(1); err != nil {
		return Found{}, err
	}
	ts, err := s.varint()
	if err != nil {
		return Found{}, err
	}
	if ts += s.batch.ts; s.batch.attributes&attributeAppendTime != 0 {
		ts = s.batch.newest
	}
	offset, err := s.varint()
	if err != nil {
		return Found{}, err
	}
	if offset += s.batch.first; offset < s.next || offset > s.batch.last {
		return Found{}, fmt.Errorf("a record has the invalid offset %d", offset)
	}
	f := Found{Offset: offset, Next: offset + 1, Records: 1, ts: ts, Final: s.batch.left == 1}
	if err := s.contents(&f, size); err != nil {
		return Found{}, err
	}
	s.next = f.Next
	s.batch.left--
	return f, nil
}

// contents reads the key, the value and the headers of a record of size bytes.
func (s *Batches) contents(f *Found, size int64) error {
	n, err := s.varint()
	if err != nil {
		return err
	}
	if n > s.limit && n <= s.record { // larger than any valid value
		f.Size = size
		return nil
	}
	if n >= 0 {
		key, err := s.take(n)
		if err != nil {
			return err
		}
		s.key = append(s.key[:0], key...) // reading the value overwrites key
		f.Key = s.key
	}
	if f.Size, err = s.varint(); err != nil {
		return err
	}
	f.Size = max(f.Size, 0) // a null value has the length -1
	if f.Size > s.limit {
		f.Value, err = s.take(min(f.Size, ingest.MaxDeadLetterRaw))
		return err
	}
	return s.valueAndHeaders(f)
}

// valueAndHeaders reads the rest of a record at once, because its parts share memory.
func (s *Batches) valueAndHeaders(f *Found) (err error) {
	if s.record-f.Size > maxHeaders {
		f.Value, err = s.take(f.Size)
		return err
	}
	rest, err := s.take(max(s.record, f.Size))
	if err != nil {
		return err
	}
	f.Value, rest = rest[:f.Size], rest[f.Size:]
	if s.headers, err = appendHeaders(s.headers[:0], rest); err != nil {
		f.Kind, f.Why = KindRefused, err
		return nil
	}
	f.headers = s.headers
	return nil
}

// appendHeaders parses the headers of a record: their number, and the length-prefixed key and value of each. They share
// the memory of b.
func appendHeaders(headers []ingest.Header, b []byte) ([]ingest.Header, error) {
	r := bufferedFields{b: b}
	for count := r.varint(); count > 0 && !r.failed; count-- {
		key, value := r.bytes(), r.bytes()
		headers = append(headers, ingest.Header{Key: unsafe.String(unsafe.SliceData(key), len(key)), Value: value})
	}
	if r.failed {
		return headers, errHeaders
	}
	return headers, nil
}

// skip skips the rest of the current record.
func (s *Batches) skip() error {
	rest := s.record
	s.record = 0
	return s.body.drop(rest)
}

// take reads n bytes of the current record. They are valid until the next read.
func (s *Batches) take(n int64) ([]byte, error) {
	if s.record -= n; s.record < 0 {
		return nil, errors.New("a record is longer than its length field")
	}
	return s.body.take(int(n))
}

func (s *Batches) varint() (int64, error) {
	var x uint64
	for shift := 0; shift < 64; shift += 7 {
		b, err := s.body.ReadByte()
		if err != nil {
			return 0, err
		}
		s.record--
		x |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return int64(x>>1) ^ -int64(x&1), nil
		}
	}
	return 0, errors.New("a number exceeds 64 bits")
}

// drop skips n bytes. If the stream ends too early, the error is not io.EOF.
func drop(r *bufio.Reader, n int64) error {
	for n > 0 {
		d, err := r.Discard(int(min(n, math.MaxInt32)))
		if n -= int64(d); err != nil {
			return unexpected(err)
		}
	}
	return nil
}
