package assemble

import "github.com/rewardwatch/rewardwatch/ingest"

// remembered is the number of ended episodes that an assembler recognizes, which are the most recent ones of all
// groups.
const remembered = 4096

// ended is an episode that ended recently.
type ended struct {
	Key    uint64 // hash of its key
	Step   int64  // last step, or -1 if it has none
	Came   arrived
	TS     int64 // time of its last event, or 0 if it has none
	Owed   bool  // whether it ended without a summary, which may still follow
	Summed bool  // whether its summary was a separate event, so another summary is a repetition
	Gone   bool  // whether it is no longer recognized
}

// has reports whether a step that is not newer than the end of the episode belongs to it: its number is not greater
// than that of the last step, or its time is earlier.
func (was *ended) has(e *ingest.Event) bool {
	return e.Step <= was.Step || was.Step >= 0 && e.TS != 0 && was.TS != 0
}

// memory recognizes the most recently ended episodes. When it is full, a new one replaces the oldest.
type memory struct {
	ring   []ended
	keys   []uint64 // of ring; apart, so that they stay in the caches of a core
	next   int
	places places // of the episodes in ring that are not Gone
}

func newMemory() *memory { return &memory{} }

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
		m.ring, m.keys = append(m.ring, ended{Gone: true}), append(m.keys, 0)
	}
	if old := &m.ring[m.next]; !old.Gone {
		m.free(m.slotOf(old.Key))
	}
	m.ring[m.next], m.keys[m.next] = e, e.Key
	m.occupy(m.next)
	m.next = (m.next + 1) % remembered
}

// places is a hash table from keys to indices into the ring, stored plus one, with linear probing. It is several times
// faster than a map, because keys are already hashes, and most lookups find nothing.
type places []int16

const placesBits = 14 // of an index; at most a quarter of the slots are used

// slot returns the slot at which the search for a key begins.
func (places) slot(key uint64) int { return int(key * ingest.MixStep >> (64 - placesBits)) }

// after returns the next slot of a search.
func (p places) after(slot int) int { return (slot + 1) & (len(p) - 1) }

// slotOf returns the slot of a key, or -1.
func (m *memory) slotOf(key uint64) int {
	if m.places == nil {
		return -1
	}
	for slot := m.places.slot(key); m.places[slot] != 0; slot = m.places.after(slot) {
		if m.keys[m.places[slot]-1] == key {
			return slot
		}
	}
	return -1
}

// occupy adds the ring index place. Its key must not be in the table.
func (m *memory) occupy(place int) {
	if m.places == nil {
		m.places = make(places, 1<<placesBits)
	}
	slot := m.places.slot(m.keys[place])
	for m.places[slot] != 0 {
		slot = m.places.after(slot)
	}
	m.places[slot] = int16(place + 1)
}

// free empties a slot. It moves back the following entries that a search would otherwise no longer reach.
func (m *memory) free(slot int) {
	p := m.places
	for at := p.after(slot); p[at] != 0; at = p.after(at) {
		from := p.slot(m.keys[p[at]-1])
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
