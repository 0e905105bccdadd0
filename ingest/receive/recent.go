package receive

import (
	"hash/fnv"
	"maps"
	"slices"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Remembered is the number of most recent messages that a partition recognizes, per sender. Only messages of batches
// with an ID count.
const Remembered = 4096

// Recent recognizes messages of batches that were sent again. The zero value is ready to use. It is not safe for
// concurrent use.
type Recent struct {
	// Senders reports whether the messages of a sender are remembered separately, so that other senders cannot displace
	// them. It may be nil.
	Senders func(name string) bool

	rest  ring
	apart map[string]*ring
}

// Sent contains the hashes of a sender's last messages. Field numbers are never reused.
type Sent struct {
	Sender string   `cbor:"1,keyasint"`
	Seen   []uint64 `cbor:"2,keyasint"`
}

// Seen reports whether a message with the same RequestHeader was seen before, and remembers it. It returns false for a
// message without this header.
func (r *Recent) Seen(m *ingest.Message) bool {
	var id, sender []byte
	for i := range m.Headers {
		switch h := &m.Headers[i]; {
		case h.Key == RequestHeader && id == nil:
			id = h.Value
		case h.Key == SenderHeader && sender == nil:
			sender = h.Value
		}
	}
	if id == nil {
		return false
	}
	h := fnv.New64a()
	_, _ = h.Write(id) // never fails
	return r.of(string(sender)).seen(m.Pos.Partition.Topic(), h.Sum64())
}

// of returns the ring for a sender.
func (r *Recent) of(sender string) *ring {
	if sender == "" || r.Senders == nil || !r.Senders(sender) {
		return &r.rest
	}
	if r.apart == nil {
		r.apart = map[string]*ring{}
	}
	if r.apart[sender] == nil {
		r.apart[sender] = &ring{}
	}
	return r.apart[sender]
}

// Processed reports that all messages of a topic that were seen so far have been processed. Messages are not saved
// before that. Otherwise, a checkpoint for another topic could include them, and they would be skipped after a crash.
func (r *Recent) Processed(topic int) {
	delete(r.rest.new, topic)
	for _, a := range r.apart {
		delete(a.new, topic)
	}
}

// Saved returns the state for Restore, oldest message first.
func (r *Recent) Saved() []uint64 { return r.rest.saved() }

// SavedApart returns the state for Restore of senders that are remembered separately.
func (r *Recent) SavedApart() (out []Sent) {
	for _, name := range slices.Sorted(maps.Keys(r.apart)) {
		out = append(out, Sent{name, r.apart[name].saved()})
	}
	return out
}

// Restore replaces the state. Senders that are no longer remembered separately are added to the others.
func (r *Recent) Restore(saved []uint64, apart ...Sent) {
	r.rest, r.apart = ring{}, nil
	for _, s := range append([]Sent{{Seen: saved}}, apart...) {
		to := r.of(s.Sender)
		for _, hash := range s.Seen {
			to.add(hash)
		}
	}
}

// ring remembers the hashes of the last messages.
type ring struct {
	last []uint64 // hashes; the one at next is replaced next
	next int
	has  map[uint64]bool
	new  map[int][]uint64 // hashes of messages that are not processed yet, by index of their topic
}

func (r *ring) seen(topic int, hash uint64) bool {
	if !r.add(hash) {
		return true
	}
	if r.new == nil {
		r.new = map[int][]uint64{}
	}
	waiting := append(r.new[topic], hash)
	r.new[topic] = waiting[max(0, len(waiting)-Remembered):] // older ones are forgotten
	return false
}

// add adds a hash. It returns false if the hash is already known.
func (r *ring) add(hash uint64) bool {
	if r.has[hash] {
		return false
	}
	if r.has == nil {
		r.has = map[uint64]bool{}
	}
	if len(r.last) < Remembered {
		r.last = append(r.last, hash)
	} else {
		delete(r.has, r.last[r.next])
		r.last[r.next] = hash
		r.next = (r.next + 1) % Remembered
	}
	r.has[hash] = true
	return true
}

// saved returns the hashes of processed messages, oldest first.
func (r *ring) saved() (saved []uint64) {
	waiting := map[uint64]bool{}
	for _, hashes := range r.new {
		for _, hash := range hashes {
			waiting[hash] = true
		}
	}
	for _, part := range [...][]uint64{r.last[r.next:], r.last[:r.next]} {
		for _, hash := range part {
			if !waiting[hash] {
				saved = append(saved, hash)
			}
		}
	}
	return saved
}
