package receive

import (
	"hash/fnv"
	"maps"
	"slices"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Remembered is how many messages of batches with an id a partition recognizes, of each sender: the last ones.
const Remembered = 4096

// Recent recognizes messages of batches that were sent again. The zero value has seen none. It is not safe for
// concurrent use.
type Recent struct {
	// Senders reports whether a sender is remembered apart from the others, so that these cannot displace its messages. nil
	// for none.
	Senders func(name string) bool

	rest  ring
	apart map[string]*ring
}

// Sent are the last messages of a sender. Field numbers are never reused.
type Sent struct {
	Sender string   `cbor:"1,keyasint"`
	Seen   []uint64 `cbor:"2,keyasint"`
}

// Seen reports whether a message of the same batch, with the same part of it, was seen before, and remembers it. A
// message without the header RequestHeader was not.
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

// of returns the ring of a sender.
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

// Processed means that the messages of a topic have been processed that were seen until now. Before that they are not
// saved: a partition of another topic may be saved in between, and after a crash they would be left out.
func (r *Recent) Processed(topic int) {
	delete(r.rest.new, topic)
	for _, a := range r.apart {
		delete(a.new, topic)
	}
}

// Saved returns what Restore needs, the oldest first.
func (r *Recent) Saved() []uint64 { return r.rest.saved() }

// SavedApart returns what Restore needs of senders that are remembered apart.
func (r *Recent) SavedApart() (out []Sent) {
	for _, name := range slices.Sorted(maps.Keys(r.apart)) {
		out = append(out, Sent{name, r.apart[name].saved()})
	}
	return out
}

// Restore replaces what is remembered. Senders that are no longer remembered apart are among the others then.
func (r *Recent) Restore(saved []uint64, apart ...Sent) {
	r.rest, r.apart = ring{}, nil
	for _, s := range append([]Sent{{Seen: saved}}, apart...) {
		to := r.of(s.Sender)
		for _, hash := range s.Seen {
			to.add(hash)
		}
	}
}

// ring remembers the last messages.
type ring struct {
	last []uint64 // hashes, the next one to be replaced at next
	next int
	has  map[uint64]bool
	new  map[int][]uint64 // of messages that are not processed yet, by index of their topic
}

func (r *ring) seen(topic int, hash uint64) bool {
	if !r.add(hash) {
		return true
	}
	if r.new == nil {
		r.new = map[int][]uint64{}
	}
	waiting := append(r.new[topic], hash)
	r.new[topic] = waiting[max(0, len(waiting)-Remembered):] // those before are forgotten
	return false
}

// add reports whether a hash is new.
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

// saved returns the hashes of what has been processed, the oldest first.
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
