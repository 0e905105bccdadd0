package alerts

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
)

// snapshotVersion leads every snapshot. It changes with the meaning of what follows.
const snapshotVersion = 1

// errSnapshotVersion says that a snapshot was written by another version of the program.
var errSnapshotVersion = errors.New("unknown version of the snapshot of alarms")

// Snapshot writes everything that the book knows: one byte of version, the length as eight bytes big endian, and gob.
func (b *Book) Snapshot(w io.Writer) error {
	var body bytes.Buffer
	if err := gob.NewEncoder(&body).Encode(b.order); err != nil {
		return fmt.Errorf("encoding alarms: %w", err)
	}
	head := binary.BigEndian.AppendUint64([]byte{snapshotVersion}, uint64(body.Len()))
	if _, err := w.Write(append(head, body.Bytes()...)); err != nil {
		return fmt.Errorf("writing alarms: %w", err)
	}
	return nil
}

// Restore replaces what the book knows by a snapshot, and reads no further than its end. After an error the book is
// what it was before.
func (b *Book) Restore(r io.Reader) error {
	var head [9]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return fmt.Errorf("reading alarms: %w", err)
	}
	if head[0] != snapshotVersion {
		return fmt.Errorf("%w: %d", errSnapshotVersion, head[0])
	}
	body := &io.LimitedReader{R: r, N: int64(min(binary.BigEndian.Uint64(head[1:]), 1<<62))}
	var groups []*groupBook
	if err := gob.NewDecoder(body).Decode(&groups); err != nil {
		return fmt.Errorf("decoding alarms: %w", err)
	}
	if _, err := io.Copy(io.Discard, body); err != nil {
		return fmt.Errorf("reading alarms: %w", err)
	}
	*b = *NewBook()
	for _, g := range groups {
		b.add(g)
	}
	return nil
}
