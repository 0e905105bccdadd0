package trail

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// A trail has its own encoding, since it has many small units: each number is a varint, each text follows its length.

// packed is the first number of a trail in the current form. Earlier builds wrote each unit separately, and began
// with the ordinal of the next unit.
const packed = -1

// MarshalBinary writes the trail: its packs, and the older units.
func (t Trail) MarshalBinary() ([]byte, error) {
	size := 64 * (1 + len(t.older))
	for _, pack := range t.packs {
		size += len(pack) + 2
	}
	b := appendInts(make([]byte, 0, size), packed, t.next, int64(len(t.packs)), int64(len(t.older)))
	for _, pack := range t.packs {
		b = append(binary.AppendUvarint(b, uint64(len(pack))), pack...)
	}
	for i := range t.older {
		b = appendRef(b, &t.older[i])
	}
	return b, nil
}

func appendInts(b []byte, values ...int64) []byte {
	for _, x := range values {
		b = binary.AppendVarint(b, x)
	}
	return b
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

func appendRef(b []byte, r *finding.UnitRef) []byte {
	b = appendInts(b, r.Ordinal, r.TS)
	for _, p := range []ingest.Position{r.Pos, r.First} {
		b = appendInts(b, int64(p.Partition), p.Offset, int64(p.Record))
	}
	return appendText(appendText(b, r.Agent), r.Episode)
}

// appendUnit packs a unit, as its difference from the previous one.
func appendUnit(b []byte, before, u *unit) []byte {
	b = appendInts(b, u.Ordinal-before.Ordinal, u.TS-before.TS,
		int64(u.Pos.Partition-before.Pos.Partition), u.Pos.Offset-before.Pos.Offset, int64(u.Pos.Record-before.Pos.Record),
		int64(u.First.Partition-u.Pos.Partition), u.First.Offset-u.Pos.Offset, int64(u.First.Record-u.Pos.Record),
		u.Last-u.Pos.Offset)
	b = appendChange(b, before.Agent, u.Agent)
	return appendChange(b, before.Episode, u.Episode)
}

// appendChange packs a text: the length of the beginning that it shares with before, and the rest.
func appendChange(b []byte, before, text string) []byte {
	same := 0
	for same < min(len(before), len(text)) && before[same] == text[same] {
		same++
	}
	return appendText(binary.AppendUvarint(b, uint64(same)), text[same:])
}

// unpacked lists the units of a pack whose ordinals are wanted. Only their names become strings, and a name that
// repeats becomes a string once.
func unpacked(pack []byte, wanted func(ordinal int64) bool) func(yield func(unit) bool) {
	return func(yield func(unit) bool) {
		r, u := reader{left: pack}, unit{}
		var agent, episode []byte
		for len(r.left) > 0 {
			u.Ordinal += r.int()
			u.TS += r.int()
			u.Pos = plus(u.Pos, r.position())
			u.First = plus(u.Pos, r.position())
			u.Last = u.Pos.Offset + r.int()
			agent = r.change(agent)
			episode = r.change(episode)
			if !wanted(u.Ordinal) {
				continue
			}
			u.Agent, u.Episode = textOf(agent, u.Agent), textOf(episode, u.Episode)
			if !yield(u) {
				return
			}
		}
	}
}

// textOf returns text as a string. If same is equal, it returns same, which saves memory.
func textOf(text []byte, same string) string {
	if string(text) == same {
		return same
	}
	return string(text)
}

func plus(p, q ingest.Position) ingest.Position {
	return ingest.Position{Partition: p.Partition + q.Partition, Offset: p.Offset + q.Offset, Record: p.Record + q.Record}
}

var errNoTrail = errors.New("not a trail of units")

// UnmarshalBinary reads what MarshalBinary wrote, in this build or an earlier one.
func (t *Trail) UnmarshalBinary(b []byte) error {
	r := reader{left: b}
	*t = Trail{}
	read := t.readUnits
	if t.next = r.int(); t.next == packed {
		t.next, read = r.int(), t.readPacks
	} else {
		r.int()
	}
	n, older := r.int(), r.int()
	if n < 0 || older < 0 || n > int64(len(b)) || older > int64(len(b)) { // each takes several bytes
		return errNoTrail
	}
	if !read(&r, n) {
		return errNoTrail
	}
	for range older {
		t.older = append(t.older, r.unit())
	}
	if r.short || len(r.left) > 0 {
		return errNoTrail
	}
	t.pruned = t.begun()
	return nil
}

// readPacks reads n packs, and reports whether the last one ends at the next unit.
func (t *Trail) readPacks(r *reader, n int64) bool {
	for range n {
		t.packs = append(t.packs, slices.Clone(r.bytes()))
	}
	if n == 0 || r.short {
		return !r.short && t.next == 0
	}
	for u := range unpacked(t.packs[n-1], func(int64) bool { return true }) {
		t.last = u
	}
	return t.last.Ordinal == t.next-1
}

// readUnits reads n units in the order of their ordinals modulo n.
func (t *Trail) readUnits(r *reader, n int64) bool {
	last := make([]unit, 0, n)
	for range n {
		last = append(last, unit{r.unit(), r.int()})
	}
	next := t.next
	if r.short || next < n {
		return false
	}
	for i := range n {
		u := last[(next%n+i)%n]
		u.Ordinal = next - n + i
		t.add(u)
	}
	t.next = next
	return true
}

// reader reads values from the front of the remaining bytes. Once it runs out of bytes it returns zeros.
type reader struct {
	left  []byte
	short bool
	names *knownNames // of actions
}

// knownNames caches the last names of actions. Few names differ, so each becomes a string only once.
type knownNames struct {
	names [16]string
	next  int
	text  []byte
}

// of returns a name that consists of begin and rest.
func (k *knownNames) of(begin string, rest []byte) string {
	k.text = append(append(k.text[:0], begin...), rest...)
	for _, name := range k.names {
		if name == string(k.text) {
			return name
		}
	}
	name := string(k.text)
	k.names[k.next], k.next = name, (k.next+1)%len(k.names)
	return name
}

// name reads a name that appendChange has packed.
func (r *reader) name(before string) string {
	same := r.length(len(before))
	rest := r.bytes()
	if same == len(before) && len(rest) == 0 {
		return before
	}
	return r.names.of(before[:same], rest)
}

func (r *reader) int() int64 {
	x, n := binary.Varint(r.left)
	r.skip(n)
	return x
}

func (r *reader) float() float64 {
	if len(r.left) < 8 {
		r.short, r.left = true, nil
		return 0
	}
	x := math.Float64frombits(binary.LittleEndian.Uint64(r.left))
	r.left = r.left[8:]
	return x
}

func (r *reader) skip(n int) {
	if n <= 0 {
		r.short, r.left = true, nil
		return
	}
	r.left = r.left[n:]
}

// length reads a length; more than most is an error.
func (r *reader) length(most int) int {
	size, n := binary.Uvarint(r.left)
	r.skip(n)
	if size > uint64(most) {
		r.short, r.left = true, nil
		return 0
	}
	return int(size)
}

func (r *reader) text() string { return string(r.bytes()) }

// bytes returns a text that shares the memory of the input.
func (r *reader) bytes() []byte {
	size := r.length(len(r.left))
	if size > len(r.left) {
		r.short = true
		return nil
	}
	text := r.left[:size]
	r.left = r.left[size:]
	return text
}

// change reads what appendChange has packed. It reuses the memory of before.
func (r *reader) change(before []byte) []byte {
	same := r.length(len(before))
	return append(before[:same], r.bytes()...)
}

func (r *reader) position() ingest.Position {
	return ingest.Position{Partition: ingest.Partition(r.int()), Offset: r.int(), Record: int32(r.int())}
}

func (r *reader) unit() finding.UnitRef {
	return finding.UnitRef{Ordinal: r.int(), TS: r.int(), Pos: r.position(), First: r.position(), Agent: r.text(), Episode: r.text()}
}
