package fetch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/segmentio/kafka-go/compress"
)

const (
	// maxUnpackMemory is the maximum memory for decompression: the window of zstd, or a block of snappy. Kafka's own
	// producers need less than half of it for record batches of the default maximum size.
	maxUnpackMemory = 64 << 20
	// keptUnpackMemory is the maximum memory that is kept for the next record batch.
	keptUnpackMemory = 1 << 20
	// keptWindow is the largest zstd window whose memory is kept. Producers only use larger ones at explicitly configured
	// levels.
	keptWindow = 8 << 20
)

// errWindow means that decompressing a record batch would exceed the memory limit.
var errWindow = errors.New("decompressing it requires more than 64 MiB of memory")

// unpacker decompresses record batches as streams. Its memory does not depend on the decompressed size.
type unpacker struct {
	zstd   *zstd.Decoder // for windows up to keptWindow; nil before the first use
	snappy snappyReader
	lz4    lz4Reader
	other  buffered
	open   io.Closer // current stream; nil if it does not have to be closed
}

// stream returns the decompressed pieces of raw, which begins with head. They are valid until close.
func (u *unpacker) stream(codec compress.Compression, head []byte, raw *rawBytes) (pieces, error) {
	switch codec {
	case compress.None:
		return raw, nil
	case compress.Zstd:
		decoder, err := u.zstandard(head, raw)
		u.other.reset(decoder)
		return &u.other, err
	case compress.Snappy:
		u.snappy.reset(raw)
		return &u.snappy, nil
	case compress.Lz4:
		u.lz4.reset(raw)
		return &u.lz4, nil
	case compress.Gzip: // its format limits the window
		stream := codec.Codec().NewReader(raw)
		u.open = stream
		u.other.reset(stream)
		return &u.other, nil
	}
	return nil, fmt.Errorf("unknown compression code %d", codec)
}

// zstandard reuses the decoder, unless the stream begins with a large window. Streams whose window only becomes large
// in a later frame, which no producer writes, are refused.
func (u *unpacker) zstandard(head []byte, r io.Reader) (_ io.Reader, err error) {
	if windowOf(head) > keptWindow {
		wide, err := newZstd(maxUnpackMemory)
		if err != nil {
			return nil, err
		}
		u.open = wide.IOReadCloser()
		return wide, wide.Reset(r)
	}
	if u.zstd == nil {
		if u.zstd, err = newZstd(keptWindow); err != nil {
			return nil, err
		}
	}
	return u.zstd, u.zstd.Reset(r)
}

func newZstd(window uint64) (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(window))
}

// windowOf returns the memory that a zstd frame requires, or 0 if its header is invalid.
func windowOf(head []byte) uint64 {
	var frame zstd.Header
	switch err := frame.Decode(head); {
	case err != nil:
		return 0
	case frame.SingleSegment:
		return frame.FrameContentSize
	}
	return frame.WindowSize
}

// close ends the current stream.
func (u *unpacker) close() {
	if u.open != nil {
		u.open.Close() // everything that was read remains valid
		u.open = nil
	}
	u.snappy.reset(nil)
	u.lz4.close()
	u.other.from = nil // a decoder for a large window
}

// xerialMagic begins a stream of length-prefixed snappy blocks. Two versions of 4 bytes each follow it. A stream
// without it is a single block.
var xerialMagic = []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0}

const xerialHeader = 16

// snappyReader decompresses snappy one block at a time, with or without xerial framing.
type snappyReader struct {
	r       io.Reader
	begun   bool
	framed  bool
	block   bytes.Buffer // compressed
	decoded []byte       // memory for a decompressed block
}

func (s *snappyReader) reset(r io.Reader) {
	s.r, s.begun = r, false
	s.block.Reset()
	if s.block.Cap() > keptUnpackMemory {
		s.block = bytes.Buffer{}
	}
	if cap(s.decoded) > keptUnpackMemory {
		s.decoded = nil
	}
}

// next implements pieces. Each is a block.
func (s *snappyReader) next() ([]byte, error) {
	for {
		b, err := s.decode()
		if len(b) > 0 || err != nil {
			return b, err
		}
	}
}

// decode decompresses the next block. After the last one, it returns io.EOF.
func (s *snappyReader) decode() ([]byte, error) {
	s.block.Reset()
	if err := s.load(); err != nil {
		return nil, err
	}
	if s.block.Len() == 0 {
		return nil, io.EOF
	}
	size, err := snappy.DecodedLen(s.block.Bytes())
	switch {
	case err != nil:
		return nil, fmt.Errorf("decompress snappy: %w", err)
	case size > maxUnpackMemory:
		return nil, errWindow
	}
	decoded, err := snappy.Decode(s.decoded[:cap(s.decoded)], s.block.Bytes())
	if err != nil {
		return nil, fmt.Errorf("decompress snappy: %w", err)
	}
	s.decoded = decoded
	return decoded, nil
}

// load reads the next block into s.block, which is empty after the last one.
func (s *snappyReader) load() error {
	if !s.begun {
		s.begun = true
		if err := s.take(xerialHeader); err != nil {
			return err
		}
		if s.framed = bytes.HasPrefix(s.block.Bytes(), xerialMagic); !s.framed {
			return s.take(maxUnpackMemory)
		}
		s.block.Reset()
	}
	if !s.framed {
		return nil
	}
	if err := s.take(4); err != nil || s.block.Len() == 0 {
		return err
	}
	if s.block.Len() < 4 {
		return io.ErrUnexpectedEOF
	}
	size := int64(binary.BigEndian.Uint32(s.block.Bytes()))
	s.block.Reset()
	if size > maxUnpackMemory {
		return errWindow
	}
	if err := s.take(size); err != nil {
		return err
	}
	if int64(s.block.Len()) < size {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// take appends up to n bytes to s.block. It allocates memory only for bytes that exist.
func (s *snappyReader) take(n int64) error {
	_, err := s.block.ReadFrom(io.LimitReader(s.r, n))
	return err
}
