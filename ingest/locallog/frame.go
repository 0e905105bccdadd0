package locallog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// A segment is a sequence of frames. A frame contains the records of one write. Because each write is durable before
// the next one begins, only the last frame of a log can be incomplete. Integers are little endian:
//
//	magic (4) | length of the body (4) | CRC-32C of all that follows (4) | offset of the first record (8) |
//	time of the write in Unix milliseconds (8) | number of records (4) | body
//
// The body contains, for each record: key, number of headers, name and value of each header, value. Numbers and lengths
// are uvarints, and each text is preceded by its length.
const (
	magic      = "rwl1"
	frameHead  = 4 + 4 + 4 + 8 + 8 + 4
	checked    = 4 + 4 + 4 // start of the bytes that the checksum covers
	maxBody    = MaxAppend + groupBytes
	keptMemory = 1 << 20 // of a buffer that is reused
)

// Record is a record of a log. An empty key or value is read as nil.
type Record struct {
	Offset  int64 // set when a record is read
	Time    int64 // set when a record is read: time of its append in Unix milliseconds; never decreases
	Key     []byte
	Headers []ingest.Header
	Value   []byte
}

// append appends the encoding of the record.
func (r *Record) append(b []byte) []byte {
	b = appendText(b, r.Key)
	b = binary.AppendUvarint(b, uint64(len(r.Headers)))
	for _, h := range r.Headers {
		b = binary.AppendUvarint(b, uint64(len(h.Key)))
		b = append(b, h.Key...)
		b = appendText(b, h.Value)
	}
	return appendText(b, r.Value)
}

func appendText(b, text []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(text)))
	return append(b, text...)
}

var errFrame = errors.New("the frame is damaged")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// head is the header of a frame.
type head struct {
	length  int // of the body
	sum     uint32
	first   int64
	time    int64
	records int
}

func (h *head) next() int64 { return h.first + int64(h.records) }

// size returns the size of the whole frame in bytes.
func (h *head) size() int64 { return frameHead + int64(h.length) }

// appendFrame appends a frame whose body consists of the encoded records of several appends.
func appendFrame(b []byte, first, time int64, records int, bodies ...[]byte) []byte {
	from, length := len(b), 0
	for _, body := range bodies {
		length += len(body)
	}
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint32(b, uint32(length))
	b = append(b, 0, 0, 0, 0) // the checksum
	b = binary.LittleEndian.AppendUint64(b, uint64(first))
	b = binary.LittleEndian.AppendUint64(b, uint64(time))
	b = binary.LittleEndian.AppendUint32(b, uint32(records))
	for _, body := range bodies {
		b = append(b, body...)
	}
	binary.LittleEndian.PutUint32(b[from+8:], crc32.Checksum(b[from+checked:], castagnoli))
	return b
}

// readHead decodes the first frameHead bytes of a frame. It does not verify the checksum.
func readHead(b []byte) (head, error) {
	if !bytes.HasPrefix(b, []byte(magic)) {
		return head{}, fmt.Errorf("%w: its header is invalid", errFrame)
	}
	h := head{
		length: int(binary.LittleEndian.Uint32(b[4:])), sum: binary.LittleEndian.Uint32(b[8:]),
		first: int64(binary.LittleEndian.Uint64(b[12:])), time: int64(binary.LittleEndian.Uint64(b[20:])),
		records: int(binary.LittleEndian.Uint32(b[28:])),
	}
	if h.length > maxBody || h.records > h.length || h.records == 0 || h.first < 0 || h.next() < h.first {
		return head{}, fmt.Errorf("%w: its header claims %d records in %d bytes from offset %d", errFrame, h.records, h.length, h.first)
	}
	return h, nil
}

// intact returns errFrame if a complete frame does not match the checksum in its header.
func (h *head) intact(frame []byte) error {
	if sum := crc32.Checksum(frame[checked:], castagnoli); sum != h.sum {
		return fmt.Errorf("%w: its checksum is %08x instead of %08x", errFrame, sum, h.sum)
	}
	return nil
}

// decode appends the records of a frame to dst. They share the memory of body.
func (h *head) decode(dst []Record, body []byte) ([]Record, error) {
	for i := range h.records {
		r := Record{Offset: h.first + int64(i), Time: h.time}
		var err error
		if body, err = r.cut(body); err != nil {
			return dst, fmt.Errorf("%w: record %d: %w", errFrame, i, err)
		}
		dst = append(dst, r)
	}
	if len(body) > 0 {
		return dst, fmt.Errorf("%w: %d bytes follow its records", errFrame, len(body))
	}
	return dst, nil
}

var errShort = errors.New("it is truncated")

// cut decodes the record at the beginning of a body, and returns the rest.
func (r *Record) cut(body []byte) (rest []byte, err error) {
	if r.Key, body, err = cutText(body); err != nil {
		return nil, err
	}
	headers, n := binary.Uvarint(body)
	if n <= 0 || headers > uint64(len(body)) { // each header takes at least two bytes
		return nil, errShort
	}
	body = body[n:]
	for range headers {
		var key, value []byte
		if key, body, err = cutText(body); err == nil {
			value, body, err = cutText(body)
		}
		if err != nil {
			return nil, err
		}
		r.Headers = append(r.Headers, ingest.Header{Key: string(key), Value: value})
	}
	r.Value, body, err = cutText(body)
	return body, err
}

// cutText decodes the text at the beginning of a body, and returns the rest. An empty text is nil.
func cutText(body []byte) (text, rest []byte, err error) {
	length, n := binary.Uvarint(body)
	if n <= 0 || length > uint64(len(body)-n) {
		return nil, nil, errShort
	}
	if length == 0 {
		return nil, body[n:], nil
	}
	end := n + int(length)
	return body[n:end:end], body[end:], nil
}
