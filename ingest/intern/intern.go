// Package intern creates the strings of events without allocating each one.
package intern

import (
	"hash/maphash"
	"unsafe"
)

// The table of names contains at most sets*ways strings.
const (
	sets = 2048 // a power of two
	ways = 4
)

// Names returns the same string for the same bytes without allocating. It never grows: a new string replaces the oldest
// one in its set. With an unlimited number of different names, each takes one allocation, but no additional memory.
type Names struct {
	seed maphash.Seed
	sets [][ways]string
}

// NewNames returns an empty table.
func NewNames() Names {
	return Names{seed: maphash.MakeSeed(), sets: make([][ways]string, sets)}
}

// Get returns text as a string.
func (t *Names) Get(text []byte) string {
	if len(text) == 0 {
		return ""
	}
	set := &t.sets[maphash.Bytes(t.seed, text)%sets]
	for _, s := range set {
		if s == string(text) {
			return s
		}
	}
	s := string(text)
	copy(set[1:], set[:])
	set[0] = s
	return s
}

// maxArena is the maximum memory that an arena keeps between batches, in bytes.
const maxArena = 1 << 20

// Arena stores the strings of a batch that rarely repeat, such as IDs.
type Arena struct{ memory []byte }

// Hold returns text as a string that is valid until Reset.
func (a *Arena) Hold(text []byte) string {
	if len(text) == 0 {
		return ""
	}
	start := len(a.memory)
	a.memory = append(a.memory, text...) // earlier strings keep the old memory when this grows
	return unsafe.String(&a.memory[start], len(text))
}

// Reset ends a batch. It invalidates the strings of the batch.
func (a *Arena) Reset() {
	if a.memory = a.memory[:0]; cap(a.memory) > maxArena {
		a.memory = nil
	}
}
