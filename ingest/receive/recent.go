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
	new  map[int][]uint64 // of messages that are not processed yet, by index of their topic
}

// Seen reports whether a message of the same batch, with the same part of it, was seen before, and remembers it. A
// message without the header RequestHeader was not.
func (r *Recent) Seen(m *ingest.Message) bool {
	for i := range m.Headers {
		if m.Headers[i].Key == RequestHeader {
			h := fnv.New64a()
			_, _ = h.Write(m.Headers[i].Value) // never fails
			hash := h.Sum64()
			if !r.add(hash) {
				return true
			}
			if r.new == nil {
				r.new = map[int][]uint64{}
			}
			topic := m.Pos.Partition.Topic()
			waiting := append(r.new[topic], hash)
			r.new[topic] = waiting[max(0, len(waiting)-Remembered):] // those before are forgotten
			return false
		}
	}
	return false
}

// Processed means that the messages of a topic have been processed that were seen until now. Before that they are not
// saved: a partition of another topic may be saved in between, and after a crash they would be left out.
func (r *Recent) Processed(topic int) { delete(r.new, topic) }

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
func (r *Recent) Saved() (saved []uint64) {
	waiting := map[uint64]bool{}
	for _, hashes := range r.new {
		for _, hash := range hashes {
			waiting[hash] = true
		}
	}
	for _, part := range [...][]uint64{r.ring[r.next:], r.ring[:r.next]} {
		for _, hash := range part {
			if !waiting[hash] {
				saved = append(saved, hash)
			}
		}
	}
	return saved
}

// Restore replaces what is remembered.
func (r *Recent) Restore(saved []uint64) {
	*r = Recent{}
	for _, hash := range saved {
		r.add(hash)
	}
}
