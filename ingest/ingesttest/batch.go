package ingesttest

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/segmentio/kafka-go/compress"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Piece is a part of the records of a batch. It is repeated Times times without taking more memory.
type Piece struct {
	Text  []byte
	Times int
}

// size returns the total size of all pieces in bytes.
func size(pieces []Piece) (n int64) {
	for _, p := range pieces {
		n += int64(len(p.Text)) * int64(p.Times)
	}
	return n
}

// Zeros returns a piece of zeros with the given size, which must be a multiple of 64 KiB.
func Zeros(size int) Piece { return Piece{Text: make([]byte, 1<<16), Times: size >> 16} }

// Record returns a record whose value consists of pieces. Its offset is that of the batch plus delta.
func Record(delta int64, value ...Piece) []Piece {
	length := size(value)
	var head []byte
	head = append(head, 0)                  // attributes
	head = binary.AppendVarint(head, 0)     // timestamp
	head = binary.AppendVarint(head, delta) // offset
	head = binary.AppendVarint(head, -1)    // no key
	head = binary.AppendVarint(head, length)
	head = append(binary.AppendVarint(nil, int64(len(head))+length+1), head...)
	return append(append([]Piece{{head, 1}}, value...), Piece{[]byte{0}, 1}) // no headers
}

// Whole returns a record with a small value.
func Whole(delta int64, value []byte) []Piece { return Record(delta, Piece{value, 1}) }

// Batch returns a record batch at offset 0, as a producer sends it. packed contains the given number of records,
// compressed with codec.
func Batch(codec compress.Compression, records int, packed []byte) []byte {
	b := make([]byte, 61, 61+len(packed))
	binary.BigEndian.PutUint32(b[8:], uint32(49+len(packed)))
	b[16] = 2
	b[22] = byte(codec)
	binary.BigEndian.PutUint32(b[23:], uint32(records-1))
	binary.BigEndian.PutUint64(b[43:], math.MaxUint64) // no producer
	binary.BigEndian.PutUint16(b[51:], math.MaxUint16) // no producer epoch
	binary.BigEndian.PutUint32(b[53:], math.MaxUint32) // no sequence
	binary.BigEndian.PutUint32(b[57:], uint32(records))
	b = append(b, packed...)
	binary.BigEndian.PutUint32(b[17:], ingest.Checksum(b[21:]))
	return b
}

// Pack compresses pieces with a codec of kafka-go.
func Pack(codec compress.Codec, pieces []Piece) ([]byte, error) {
	var out bytes.Buffer
	w := codec.NewWriter(&out)
	for _, p := range pieces {
		for range p.Times {
			if _, err := w.Write(p.Text); err != nil {
				return nil, err
			}
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// PackZstd builds a minimal zstd frame without an encoder. A single-segment frame requires memory for all of its
// content, other frames for a window of 1 MiB.
func PackZstd(pieces []Piece, single bool) []byte {
	frame := []byte{0x28, 0xb5, 0x2f, 0xfd}
	if single {
		frame = binary.LittleEndian.AppendUint64(append(frame, 0xe0), uint64(size(pieces)))
	} else {
		frame = append(frame, 0, 10<<3)
	}
	const raw, repeated = 0, 1
	block := func(kind, size int, content []byte) {
		head := binary.LittleEndian.AppendUint32(nil, uint32(size<<3|kind<<1))
		frame = append(append(frame, head[:3]...), content...)
	}
	for _, p := range pieces {
		for range p.Times {
			if p.Times > 1 { // all of its bytes are equal
				block(repeated, len(p.Text), p.Text[:1])
			} else {
				block(raw, len(p.Text), p.Text)
			}
		}
	}
	return append(frame, 1, 0, 0) // empty last block
}

// PackSnappy builds one snappy block without an encoder, because kafka-go's cannot stream one.
func PackSnappy(pieces []Piece) []byte {
	block := binary.AppendUvarint(nil, uint64(size(pieces)))
	for _, p := range pieces {
		literal := p.Text[:min(len(p.Text), 1<<15)]
		block = binary.LittleEndian.AppendUint16(append(block, 61<<2), uint16(len(literal)-1))
		block = append(block, literal...)
		if p.Times == 1 {
			continue
		}
		for left := size([]Piece{p}) - 1<<15; left > 0; left -= 64 {
			block = append(block, 63<<2|2, 64, 0) // copies 64 bytes from 64 bytes before
		}
	}
	return block
}
