package telemetry

import "hash/maphash"

// The interning table holds at most internSets*internWays strings, each at most MaxString bytes.
const (
	internSets = 2048 // a power of two
	internWays = 4
)

// internTable returns the same string for the same bytes without allocating. It never grows: a new string replaces the
// oldest of its set. So telemetry with endless names costs one allocation each and no additional memory.
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
