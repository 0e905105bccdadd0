package consumer

import (
	"fmt"
	"io"
	"sync"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// imageBlock is the size in bytes of the parts in which a partition's state is saved.
const imageBlock = 1 << 20

// image is the state of a partition while it is written: a list of blocks, so that it is never copied as a whole. Only
// one large state is written at a time.
type image struct {
	blocks [][]byte
	turn   sync.Locker // held from the second block on
}

// Write implements io.Writer. It does not fail.
func (i *image) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		last := len(i.blocks) - 1
		if last < 0 || len(i.blocks[last]) == imageBlock {
			if last == 0 {
				i.turn.Lock()
			}
			i.blocks = append(i.blocks, nil)
			continue
		}
		n := min(len(rest), imageBlock-len(i.blocks[last]))
		i.blocks[last] = append(i.blocks[last], rest[:n]...)
		rest = rest[n:]
	}
	return len(b), nil
}

// done releases the turn for the next large state.
func (i *image) done() {
	if len(i.blocks) > 1 {
		i.turn.Unlock()
	}
}

// parts returns the blocks by name.
func (i *image) parts() ingest.Parts {
	parts := ingest.Parts{}
	for n, block := range i.blocks {
		parts[imagePart(n)] = block
	}
	return parts
}

// imagePart returns the name of a part of the state of a partition.
func imagePart(n int) string {
	if n == 0 {
		return statePart
	}
	return fmt.Sprintf("%s/%04d", statePart, n)
}

// imageParts returns the number of parts of a saved state.
func imageParts(saved ingest.Parts) (n int) {
	for saved[imagePart(n)] != nil {
		n++
	}
	return n
}

// imageReader reads the parts of a saved state in order, and releases each part once it is read.
type imageReader struct {
	parts ingest.Parts
	next  int
	left  []byte
}

// Read implements io.Reader.
func (r *imageReader) Read(b []byte) (int, error) {
	for len(r.left) == 0 {
		block, more := r.parts[imagePart(r.next)]
		if !more {
			return 0, io.EOF
		}
		delete(r.parts, imagePart(r.next))
		r.left = block
		r.next++
	}
	n := copy(b, r.left)
	r.left = r.left[n:]
	return n, nil
}
