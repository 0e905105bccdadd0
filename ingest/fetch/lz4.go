package fetch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/pierrec/lz4/v4"
)

// The LZ4 frame format, https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md. Integers are little endian.
//
//	magic (4) | flags (1) | block size (1) | size of the content (8)? | dictionary (4)? | checksum of the header (1)
//	{ size of the block (4) | block | checksum of the block (4)? } ... | 0 (4) | checksum of the content (4)?
const (
	lz4Magic = 0x184D2204

	lz4Version        = 1
	lz4Independent    = 0x20 // blocks do not refer to earlier ones
	lz4BlockChecksum  = 0x10
	lz4ContentSize    = 0x08
	lz4Dictionary     = 0x01
	lz4Stored         = 1 << 31 // flag in the size of a block that is not compressed
	lz4Window         = 64 << 10
	lz4LargestBlock   = 4 << 20
	lz4SmallestBlocks = 4 // code of blocks of 64 KiB; the next codes are for four times as much each
)

var errLz4 = errors.New("decompress lz4")

// lz4Blocks are buffers for the largest blocks. They are shared, because kafka-go announces such blocks even for record
// batches of a few kilobytes.
var lz4Blocks = sync.Pool{New: func() any {
	b := make([]byte, lz4Window+lz4LargestBlock)
	return &b
}}

// lz4Reader decompresses an LZ4 frame one block at a time. It ignores the checksums of the frame, as the records before
// them have been passed on by then. The Java client and librdkafka write none for blocks and contents.
type lz4Reader struct {
	raw    window
	begun  bool
	flags  byte
	most   int     // maximum size of a decompressed block
	small  []byte  // memory for small blocks, after the window
	large  *[]byte // memory for large blocks from lz4Blocks; nil if there is none
	window int     // if blocks refer to earlier ones, number of their bytes in memory, which end at lz4Window
	last   int     // size of the last of them, which follows the others until the next one is read
}

func (l *lz4Reader) reset(raw pieces) {
	l.close()
	l.raw.reset(raw)
	l.begun, l.window, l.last = false, 0, 0
}

// close returns large buffers to the pool.
func (l *lz4Reader) close() {
	if l.large != nil {
		lz4Blocks.Put(l.large)
		l.large = nil
	}
	l.raw.reset(nil)
}

// next implements pieces.
func (l *lz4Reader) next() ([]byte, error) {
	if !l.begun {
		if err := l.begin(); err != nil {
			return nil, err
		}
	}
	for {
		b, err := l.block()
		if len(b) > 0 || err != nil {
			return b, err
		}
	}
}

// begin reads the header of the frame. The error is io.EOF if there is no frame.
func (l *lz4Reader) begin() error {
	b, err := l.raw.take(6)
	if err != nil {
		return err
	}
	if magic := binary.LittleEndian.Uint32(b); magic != lz4Magic || b[4]>>6 != lz4Version {
		return fmt.Errorf("%w: it does not begin with the header of a frame, but with %x", errLz4, b)
	}
	l.flags = b[4]
	code := int(b[5] >> 4 & 7)
	if code < lz4SmallestBlocks {
		return fmt.Errorf("%w: its blocks have the unknown size %d", errLz4, code)
	}
	l.most = lz4Window << (2 * (code - lz4SmallestBlocks))
	rest := 1
	if l.flags&lz4ContentSize != 0 {
		rest += 8
	}
	if l.flags&lz4Dictionary != 0 {
		return fmt.Errorf("%w: it requires a dictionary", errLz4)
	}
	l.begun = true
	_, err = l.raw.take(rest)
	return unexpected(err)
}

// block decompresses the next block, which may be empty. After the last one, it returns io.EOF.
func (l *lz4Reader) block() ([]byte, error) {
	b, err := l.raw.take(4)
	if err != nil {
		return nil, unexpected(err)
	}
	size := binary.LittleEndian.Uint32(b)
	if size == 0 {
		return nil, io.EOF
	}
	stored := size&lz4Stored != 0
	size &^= lz4Stored
	if int64(size) > int64(l.most) {
		return nil, fmt.Errorf("%w: a block takes %d bytes, but at most %d are announced", errLz4, size, l.most)
	}
	all := int(size)
	if l.flags&lz4BlockChecksum != 0 {
		all += 4
	}
	if b, err = l.raw.take(all); err != nil {
		return nil, unexpected(err)
	}
	if b = b[:size]; stored && l.flags&lz4Independent != 0 {
		return b, nil
	}
	return l.decompress(b, stored)
}

// decompress decompresses a block into memory, where later blocks may refer to it.
func (l *lz4Reader) decompress(b []byte, stored bool) (_ []byte, err error) {
	memory := l.memory()
	if l.flags&lz4Independent == 0 {
		end := lz4Window + l.last
		l.window = min(lz4Window, l.window+l.last)
		copy(memory[lz4Window-l.window:lz4Window], memory[end-l.window:end])
	}
	to := memory[lz4Window:]
	if stored {
		l.last = copy(to, b)
	} else if l.last, err = lz4.UncompressBlockWithDict(b, to, memory[lz4Window-l.window:lz4Window]); err != nil {
		return nil, fmt.Errorf("%w: %w", errLz4, err)
	}
	return to[:l.last], nil
}

// memory returns the memory for the window and for one block.
func (l *lz4Reader) memory() []byte {
	size := lz4Window + l.most
	if l.most > keptUnpackMemory {
		if l.large == nil {
			l.large = lz4Blocks.Get().(*[]byte)
		}
		return (*l.large)[:size]
	}
	if len(l.small) < size {
		l.small = make([]byte, size)
	}
	return l.small[:size]
}
