package fetch

import (
	"bufio"
	"io"
)

// pieces is a stream that is read in pieces, without copying them.
type pieces interface {
	// next returns the next bytes of the stream, which are valid until the next call. It returns none only with an error,
	// which is io.EOF at the end, and is not called again after that.
	next() ([]byte, error)
}

// rawBytes is the part of a record batch after its header, as received.
type rawBytes struct {
	in   *bufio.Reader
	left int64 // number of unread bytes
}

// next implements pieces.
func (r *rawBytes) next() ([]byte, error) {
	if r.left == 0 {
		return nil, io.EOF
	}
	if _, err := r.in.Peek(1); err != nil {
		return nil, unexpected(err)
	}
	b, _ := r.in.Peek(int(min(r.left, int64(r.in.Buffered())))) // does not read, so there is no error
	_, _ = r.in.Discard(len(b))                                 // b remains valid until the next read
	r.left -= int64(len(b))
	return b, nil
}

// Read implements io.Reader.
func (r *rawBytes) Read(b []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n, err := r.in.Read(b[:min(int64(len(b)), r.left)])
	r.left -= int64(n)
	return n, err
}

// bufferSize is the size of the buffer for streams that are not read in pieces.
const bufferSize = 64 << 10

// buffered makes pieces of what it reads from an io.Reader.
type buffered struct {
	from io.Reader
	b    []byte
	err  error // of the last read
}

func (s *buffered) reset(from io.Reader) {
	if s.from, s.err = from, nil; s.b == nil {
		s.b = make([]byte, bufferSize)
	}
}

// next implements pieces.
func (s *buffered) next() ([]byte, error) {
	for s.err == nil {
		var n int
		if n, s.err = s.from.Read(s.b); n > 0 {
			return s.b[:n], nil
		}
	}
	return nil, s.err
}

// window reads fields from pieces. It copies only bytes that are spread over several pieces.
type window struct {
	from   pieces
	rest   []byte // unread bytes of the last piece
	joined []byte // memory for bytes of several pieces
}

func (w *window) reset(from pieces) {
	if w.from, w.rest = from, nil; cap(w.joined) > keptUnpackMemory {
		w.joined = nil
	}
}

// fill reads the next piece if there are no unread bytes.
func (w *window) fill() (err error) {
	if len(w.rest) == 0 {
		w.rest, err = w.from.next()
	}
	return err
}

// ReadByte implements io.ByteReader.
func (w *window) ReadByte() (byte, error) {
	if err := w.fill(); err != nil {
		return 0, err
	}
	b := w.rest[0]
	w.rest = w.rest[1:]
	return b, nil
}

// take returns the next n bytes. They are valid until the next read. The error is io.EOF only if there are none at all.
func (w *window) take(n int) ([]byte, error) {
	if n <= len(w.rest) {
		b := w.rest[:n:n]
		w.rest = w.rest[n:]
		return b, nil
	}
	if n > cap(w.joined) {
		w.joined = make([]byte, n)
	}
	b := w.joined[:n]
	for got := 0; got < n; {
		if err := w.fill(); err != nil && got > 0 {
			return nil, unexpected(err)
		} else if err != nil {
			return nil, err
		}
		copied := copy(b[got:], w.rest)
		w.rest, got = w.rest[copied:], got+copied
	}
	return b, nil
}

// drop skips n bytes. If the stream ends too early, the error is not io.EOF.
func (w *window) drop(n int64) error {
	for n > 0 {
		if err := w.fill(); err != nil {
			return unexpected(err)
		}
		skipped := min(n, int64(len(w.rest)))
		w.rest, n = w.rest[skipped:], n-skipped
	}
	return nil
}
