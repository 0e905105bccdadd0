package trail

import (
	"encoding/binary"

	"github.com/rewardwatch/rewardwatch/detectors/stream"
)

// totals sums packed actions by name. Most units repeat the names of the previous unit in the same places, so that
// few names are looked up. It reads packs by index, because writing a pointer for each number would take longer
// than reading the number.
type totals struct {
	names  []string
	index  map[string]int // of names
	counts []int64        // -1 for a name that is not counted yet
	places []int          // of the last unit: the index of the name in each place
	text   []byte
}

// Totals returns how often each action was taken in the recorded units.
func (a *Actions) Totals() map[string]int64 {
	number := a.first
	t := totals{index: map[string]int{}}
	for _, pack := range a.packs {
		t.places = t.places[:0]
		for at := 0; at < len(pack); number++ {
			at = t.add(pack, at, number >= a.n-stream.CurrentUnits)
		}
	}
	out := make(map[string]int64, len(t.names))
	for i, name := range t.names {
		if t.counts[i] >= 0 {
			out[name] = t.counts[i]
		}
	}
	return out
}

// add reads the actions of the unit at an index of a pack, and counts them if they are recent. It returns the index
// after them.
func (t *totals) add(pack []byte, at int, recent bool) int {
	_, at = uvarint(pack, at)
	size, at := uvarint(pack, at)
	n, known := int(size>>1), len(t.places) // zigzag encoded
	for i := range n {
		if i >= known {
			t.places = append(t.places, -1)
		}
		place := t.places[i]
		if place, at = t.place(pack, at, place); at >= len(pack) {
			return len(pack)
		}
		t.places[i] = place
		var times uint64
		times, at = uvarint(pack, at)
		if at += 8; recent { // after the reward
			t.counts[place] = max(0, t.counts[place]) + int64(times>>1)
		}
	}
	t.places = t.places[:min(n, len(t.places))]
	return at
}

// place reads a name, which may be a difference from the name with index before, and returns its index.
func (t *totals) place(pack []byte, at, before int) (place, behind int) {
	begin := ""
	if before >= 0 {
		begin = t.names[before]
	}
	same, at := uvarint(pack, at)
	size, at := uvarint(pack, at)
	if same > uint64(len(begin)) || size > uint64(len(pack)-at) {
		return 0, len(pack)
	}
	if before >= 0 && size == 0 && int(same) == len(begin) {
		return before, at
	}
	behind = at + int(size)
	t.text = append(append(t.text[:0], begin[:same]...), pack[at:behind]...)
	i, known := t.index[string(t.text)]
	if !known {
		i = len(t.names)
		t.names, t.counts = append(t.names, string(t.text)), append(t.counts, -1)
		t.index[t.names[i]] = i
	}
	return i, behind
}

// uvarint reads a number, and returns the index after it, or the length of b if the number is incomplete.
func uvarint(b []byte, at int) (x uint64, behind int) {
	if at < len(b) && b[at] < 0x80 {
		return uint64(b[at]), at + 1
	}
	x, n := binary.Uvarint(b[min(at, len(b)):])
	if n <= 0 {
		return 0, len(b)
	}
	return x, at + n
}
