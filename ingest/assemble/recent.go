package assemble

import (
	"hash/fnv"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// remembered is how many ended episodes an assembler recognizes: the newest of all groups.
const remembered = 4096

// ended is an episode that ended recently.
type ended struct {
	Key    uint64 // hash of its key
	Step   int64  // its last step, -1 without one
	Came   arrived
	TS     int64 // of its last event, 0 without one
	Owed   bool  // it ended without a summary, which may still follow
	Summed bool  // its summary came in a separate event: another summary is a repetition
	Gone   bool  // it is no longer recognized
}

// has reports whether a step that is not newer than the end belongs to the episode: its number is not above the last
// one, or its clock is earlier.
func (was *ended) has(e *ingest.Event) bool {
	return e.Step <= was.Step || was.Step >= 0 && e.TS != 0 && was.TS != 0
}

// memory recognizes ended episodes. The newest one replaces the oldest.
type memory struct {
	ring   []ended
	next   int
	places places // of those in ring that are not gone
}

func newMemory() *memory { return &memory{} }

func hash(key []byte) uint64 {
	h := fnv.New64a()
	h.Write(key) // never fails
	return h.Sum64()
}

func (m *memory) find(key uint64) *ended {
	if slot := m.slotOf(key); slot >= 0 {
		return &m.ring[m.places[slot]-1]
	}
	return nil
}

func (m *memory) forget(key uint64) {
	if slot := m.slotOf(key); slot >= 0 {
		m.ring[m.places[slot]-1].Gone = true
		m.free(slot)
	}
}

func (m *memory) add(e ended) {
	m.forget(e.Key)
	if len(m.ring) < remembered {
		m.ring = append(m.ring, ended{Gone: true})
	}
	if old := &m.ring[m.next]; !old.Gone {
		m.free(m.slotOf(old.Key))
	}
	m.ring[m.next] = e
	m.occupy(m.next)
	m.next = (m.next + 1) % remembered
}

// places is a hash table of the places in a ring, plus one, by the keys there, with linear probing. It takes a fraction of
// the time of a map: keys are hashes already, and most that are looked for are not there.
type places []int16

const placesBits = 14 // of an index: the table is a quarter full

// slot returns where the search for a key begins.
func (places) slot(key uint64) int { return int(key * ingest.MixStep >> (64 - placesBits)) }

// after returns the next slot of a search.
func (p places) after(slot int) int { return (slot + 1) & (len(p) - 1) }

// slotOf returns the slot of a key, or -1.
func (m *memory) slotOf(key uint64) int {
	if m.places == nil {
		return -1
	}
	for slot := m.places.slot(key); m.places[slot] != 0; slot = m.places.after(slot) {
		if m.ring[m.places[slot]-1].Key == key {
			return slot
		}
	}
	return -1
}

// occupy adds a place of the ring, whose key has none.
func (m *memory) occupy(place int) {
	if m.places == nil {
		m.places = make(places, 1<<placesBits)
	}
	slot := m.places.slot(m.ring[place].Key)
	for m.places[slot] != 0 {
		slot = m.places.after(slot)
	}
	m.places[slot] = int16(place + 1)
}

// free empties a slot. It moves back the places behind it that a search would no longer reach.
func (m *memory) free(slot int) {
	p := m.places
	for at := p.after(slot); p[at] != 0; at = p.after(at) {
		from := p.slot(m.ring[p[at]-1].Key)
		if (at-from)&(len(p)-1) >= (at-slot)&(len(p)-1) { // the search for it passes the empty slot
			p[slot], slot = p[at], at
		}
	}
	p[slot] = 0
}

// oldestFirst returns the remembered episodes, oldest first.
func (m *memory) oldestFirst() []ended {
	var out []ended
	for i := range m.ring {
		at := i
		if len(m.ring) == remembered {
			at = (m.next + i) % remembered
		}
		if !m.ring[at].Gone {
			out = append(out, m.ring[at])
		}
	}
	return out
}
