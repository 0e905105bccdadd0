package saved

import (
	"encoding/binary"
	"fmt"
	"io"
)

// A large state is written as a sequence of frames, each a length-prefixed part of its own, so that at most one frame
// is in memory in addition to its content.

// WriteFrame writes a part after its length.
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

// ReadFrame reads what WriteFrame wrote.
func (f Format[Wire]) ReadFrame(r io.Reader) (*Wire, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, fmt.Errorf("it is cut short: %w", err)
	}
	part, err := io.ReadAll(io.LimitReader(r, int64(binary.LittleEndian.Uint32(head[:]))))
	if err != nil {
		return nil, err
	}
	return f.Decode(part)
}
