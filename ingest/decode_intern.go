package ingest

import "hash/maphash"

// The interning table holds at most internSets*internWays strings, each at most MaxString bytes.
const (
	internSets = 2048 // a power of two
	internWays = 4
)

// internTable gives the same bytes the same string without allocating. It never grows: a string that is new takes the
// place of the oldest of its set, so that telemetry with endless names costs an allocation each and no memory.
type internTable struct {
	seed maphash.Seed
	sets [][internWays]string
}

func newInternTable() internTable {
	return internTable{seed: maphash.MakeSeed(), sets: make([][internWays]string, internSets)}
}

func (t *internTable) get(text []byte) string {
	if len(text) == 0 {
		return ""
	}
	set := &t.sets[maphash.Bytes(t.seed, text)%internSets]
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
