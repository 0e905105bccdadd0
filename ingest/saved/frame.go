package saved

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// A large state is written as a sequence of frames. Each frame is a separate length-prefixed part, so at most one frame
// is in memory in addition to the state itself.

// WriteFrame writes a part, preceded by its length.
func (f Format[Wire]) WriteFrame(w io.Writer, wire *Wire) error {
	part, err := f.Encode(wire)
	if err != nil {
		return err
	}
	if _, err := w.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(part)))); err != nil {
		return err
	}
	_, err = w.Write(part)
	return err
}

// ReadFrame reads a part that WriteFrame wrote.
func (f Format[Wire]) ReadFrame(r io.Reader) (*Wire, error) {
	frame, err := readRaw(r)
	if err != nil {
		return nil, err
	}
	return f.Decode(frame[4:])
}

// Packer writes compressed frames, and reuses its memory for each. The zero value is ready to use.
type Packer struct {
	part   bytes.Buffer
	packed []byte
}

// WritePacked writes a compressed part, preceded by its length.
func (f Format[Wire]) WritePacked(w io.Writer, p *Packer, wire *Wire) error {
	p.part.Reset()
	p.part.WriteByte(f.Version)
	if err := encodeMode.MarshalToBuffer(wire, &p.part); err != nil {
		return err
	}
	p.packed = zstdWriter.EncodeAll(p.part.Bytes(), append(p.packed[:0], 0, 0, 0, 0))
	binary.LittleEndian.PutUint32(p.packed, uint32(len(p.packed)-4))
	_, err := w.Write(p.packed)
	return err
}

// ReadPacked reads a part that WritePacked wrote.
func (f Format[Wire]) ReadPacked(r io.Reader) (*Wire, error) {
	packed, err := readRaw(r)
	if err != nil {
		return nil, err
	}
	part, err := zstdReader.DecodeAll(packed[4:], nil)
	if err != nil {
		return nil, fmt.Errorf("it cannot be decompressed: %w", err)
	}
	return f.Decode(part)
}

// readRaw returns a frame as it was written, including its length.
func readRaw(r io.Reader) ([]byte, error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, fmt.Errorf("it is truncated: %w", err)
	}
	size := int64(binary.LittleEndian.Uint32(head))
	frame, err := io.ReadAll(io.MultiReader(bytes.NewReader(head), io.LimitReader(r, size)))
	if err == nil && int64(len(frame)) != 4+size {
		err = fmt.Errorf("it is truncated: %w", io.ErrUnexpectedEOF)
	}
	return frame, err
}

// mostUnpacked is the maximum decompressed size of a frame. It limits the memory that a damaged frame can take.
const mostUnpacked = 64 << 20

// Both are safe for concurrent use. Creating them cannot fail, because the options are valid.
var (
	zstdWriter, _ = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
	zstdReader, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(mostUnpacked))
)
