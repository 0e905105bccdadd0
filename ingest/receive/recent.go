package receive

import (
	"hash/fnv"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Remembered is how many messages of batches with an id a partition recognizes: the last ones.
const Remembered = 4096

// Recent recognizes messages of batches that were sent again. The zero value has seen none. It is not safe for
// concurrent use.
type Recent struct {
	ring []uint64 // hashes, the next one to be replaced at next
	next int
	has  map[uint64]bool
}

// Seen reports whether a message of the same batch, with the same part of it, was seen before, and remembers it. A
// message without the header RequestHeader was not.
func (r *Recent) Seen(m *ingest.Message) bool {
	for i := range m.Headers {
		if m.Headers[i].Key == RequestHeader {
			h := fnv.New64a()
			_, _ = h.Write(m.Headers[i].Value) // never fails
			return !r.add(h.Sum64())
		}
	}
	return false
}

// add reports whether a hash is new.
func (r *Recent) add(hash uint64) bool {
	if r.has[hash] {
		return false
	}
	if r.has == nil {
		r.has = map[uint64]bool{}
	}
	if len(r.ring) < Remembered {
		r.ring = append(r.ring, hash)
	} else {
		delete(r.has, r.ring[r.next])
		r.ring[r.next] = hash
		r.next = (r.next + 1) % Remembered
	}
	r.has[hash] = true
	return true
}

// Saved returns what Restore needs, the oldest first.
func (r *Recent) Saved() []uint64 {
	if len(r.ring) == 0 {
		return nil
	}
	return append(append(make([]uint64, 0, len(r.ring)), r.ring[r.next:]...), r.ring[:r.next]...)
}

// Restore replaces what is remembered.
func (r *Recent) Restore(saved []uint64) {
	*r = Recent{}
	for _, hash := range saved {
		r.add(hash)
	}
}
