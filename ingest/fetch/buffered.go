package fetch

import "encoding/binary"

// bufferedRecord reads the next record like nextRecord, but without a call for each of its bytes. It returns false
// without having read anything if the record is not in one piece of the stream, or is not a plain one that nextRecord
// accepts.
func (s *Batches) bufferedRecord() bool {
	if s.batch.left == 0 || s.record != 0 {
		return false
	}
	b := s.body.rest
	size, n := binary.Varint(b)
	if n <= 0 || size < 1 || size > min(s.limit, int64(len(b)-n)) {
		return false
	}
	end := n + int(size)
	r := bufferedFields{b: b[n+1 : end]} // after the attributes
	ts, offset := r.varint()+s.batch.ts, r.varint()+s.batch.first
	key, value := r.bytes(), r.bytes()
	if r.failed || offset < s.next || offset > s.batch.last || !s.bufferedHeaders(r.b) {
		return false
	}
	if s.batch.attributes&attributeAppendTime != 0 {
		ts = s.batch.newest
	}
	s.found = Found{
		Offset: offset, Next: offset + 1, Records: 1, ts: ts,
		Key: key, Value: value, headers: s.headers, Size: int64(len(value)), Final: s.batch.left == 1,
	}
	s.next = offset + 1
	s.batch.left--
	s.body.rest = b[end:]
	return true
}

// bufferedHeaders parses the headers of a record. It returns false if they are too large or malformed.
func (s *Batches) bufferedHeaders(b []byte) (ok bool) {
	s.headers = s.headers[:0]
	if len(b) == 1 && b[0] == 0 {
		return true
	}
	if len(b) > maxHeaders {
		return false
	}
	var err error
	s.headers, err = appendHeaders(s.headers, b)
	return err == nil
}

// bufferedFields reads the fields of a record until the first malformed one.
type bufferedFields struct {
	b      []byte // rest
	failed bool
}

func (r *bufferedFields) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.failed = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

// bytes reads a length and that many bytes. A null field, which has the length -1, is nil.
func (r *bufferedFields) bytes() []byte {
	n := r.varint()
	if n < 0 || r.failed {
		return nil
	}
	if n > int64(len(r.b)) {
		r.failed = true
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}
