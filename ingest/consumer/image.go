package consumer

import (
	"fmt"
	"io"
	"sync"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// imageBlock is the size in bytes of the parts of a partition's saved state.
const imageBlock = 1 << 20

// image is the state of a partition while it is being written. It is a list of blocks, so it is never copied as a
// whole. Only one large state is written at a time.
type image struct {
	blocks [][]byte
	turn   sync.Locker // held from the second block on
}

// Write implements io.Writer. It never fails.
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

// done unlocks turn for the next large state.
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

// imagePart returns the name of the n-th part of a partition's state.
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

// imageReader reads the parts of a saved state in order. It frees each part when it begins to read it.
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
