package feedback

import (
	"container/heap"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"unsafe"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// decision is an open decision, or feedback that waits for its decision. It has no pointers, so a million decisions do
// not burden the garbage collector. Values that decisions share are numbers in the tables.
type decision struct {
	hash  uint64 // hash of policy and key
	seq   uint64 // increases with each decision
	ts    int64  // time of the decision, or of its first feedback while the decision is missing
	delay int64  // of the first feedback, in nanoseconds; negative if there is none

	first, last ingest.Position
	reward      float64 // sum of the rewards so far

	seen [seenRecords]uint32 // hashes of the last feedback records
	text place               // key, agent, raters, and the numbers described by layout

	records                                   uint32 // number of feedback records
	policy, group, versions, layout, category uint32
	keySize, agentSize                        uint16

	stage      uint8 // index of the next moment in rules.moments
	actionKind ingest.ActionKind
	flags      uint8
}

// seenRecords is the number of most recent feedback records of a decision that are recognized if they are delivered
// again.
const seenRecords = 4

const (
	flagDecided uint8 = 1 << iota // the decision itself has arrived
	flagReward                    // a record had a reward
	flagScalar                    // the action was a single number
)

func (d *decision) has(flag uint8) bool { return d.flags&flag != 0 }

// groupKey identifies the group of a decision.
type groupKey struct {
	group  ingest.Group
	shadow bool
	labels ingest.Group // from LabelsOf, without a policy
}

// groupOf is a group with the groups of its horizons, in the order of the configuration.
type groupOf struct {
	groupKey
	horizons []ingest.Group
	split    []ingest.Label // the labels in labels; must not be modified
}

// moment is a time at which a decision is due. It is void if its turn differs from that of the decision.
type moment struct {
	due  int64
	turn uint32 // low bits of the decision's seq
	slot uint32
}

// moments is a heap ordered by time.
type moments []moment

func (m moments) Len() int { return len(m) }
func (m moments) Less(i, k int) bool {
	return m[i].due < m[k].due || m[i].due == m[k].due && int32(m[i].turn-m[k].turn) < 0
}
func (m moments) Swap(i, k int) { m[i], m[k] = m[k], m[i] }
func (m *moments) Push(x any)   { *m = append(*m, x.(moment)) }
func (m *moments) Pop() any {
	last := len(*m) - 1
	x := (*m)[last]
	*m = (*m)[:last]
	return x
}

// slab is the number of decisions that are allocated at a time.
const slab = 1024

// store contains the open decisions of a partition.
type store struct {
	slabs  [][]decision
	free   []uint32
	places places
	due    moments
	texts  texts
	seq    uint64
	n      int

	groups     *table[groupKey, groupOf]
	versions   *table[ingest.Versions, ingest.Versions]
	layouts    *table[string, []field]
	categories *table[string, string]
	name       []byte // of a layout; reused
	hash       func(policy uint32, key []byte) uint64
	when       func(*decision) int64 // returns the next moment of a decision
}

func newStore(group func(groupKey) groupOf, hash func(policy uint32, key []byte) uint64, when func(*decision) int64) *store {
	s := &store{
		hash: hash, when: when,
		groups:   newTable(itself[groupKey], group), // a Group shares no memory with records
		versions: newTable(cloned, itself[ingest.Versions]),
		layouts:  newTable(itself[string], fieldsOf), categories: newTable(strings.Clone, itself[string]),
	}
	s.places.hash = func(slot uint32) uint64 { return s.at(slot).hash }
	return s
}

func itself[T any](x T) T { return x }

func cloned(v ingest.Versions) ingest.Versions {
	return ingest.Versions{Policy: strings.Clone(v.Policy), Env: strings.Clone(v.Env), Reward: strings.Clone(v.Reward)}
}

// bytes returns the memory of the decisions, including unused capacity.
func (s *store) bytes() int64 {
	const decisions, moments = slab * int64(unsafe.Sizeof(decision{})), int64(unsafe.Sizeof(moment{}))
	return int64(len(s.slabs))*decisions + int64(cap(s.due))*moments + 4*int64(len(s.places.cells)+cap(s.free)) + s.texts.bytes
}

func (s *store) at(slot uint32) *decision { return &s.slabs[slot/slab][slot%slab] }

// find returns the decision of a policy with a key, or nil and a free hash. If two keys have the same hash, the one
// that arrives second gets the next free hash.
func (s *store) find(policy uint32, hash uint64, key []byte) (d *decision, free uint64) {
	for {
		slot, taken := s.places.find(hash)
		if !taken {
			return nil, hash
		}
		if d := s.at(slot); d.policy == policy && string(s.key(d)) == string(key) {
			return d, hash
		}
		hash++
	}
}

// add opens a decision, and returns it with only its hash, seq and delay set.
func (s *store) add(hash uint64) (d *decision, slot uint32) {
	if len(s.free) == 0 {
		s.grow()
	}
	last := len(s.free) - 1
	slot, s.free = s.free[last], s.free[:last]
	s.seq++
	s.n++
	d = s.at(slot)
	*d = decision{hash: hash, seq: s.seq, delay: -1}
	s.places.put(hash, slot)
	return d, slot
}

func (s *store) grow() {
	base := uint32(len(s.slabs) * slab)
	s.slabs = append(s.slabs, make([]decision, slab))
	for i := range uint32(slab) {
		s.free = append(s.free, base+slab-1-i)
	}
}

// remove closes a decision.
func (s *store) remove(d *decision, slot uint32) {
	s.unplace(d.hash)
	s.texts.drop(d.text)
	s.layouts.give(d.layout)
	if d.has(flagDecided) {
		s.groups.give(d.group)
		s.versions.give(d.versions)
		s.categories.give(d.category)
	}
	d.seq = 0 // invalidates its moments
	s.free = append(s.free, slot)
	s.n--
}

// unplace removes a hash, and moves back the following ones that it had displaced.
func (s *store) unplace(hash uint64) {
	s.places.remove(hash)
	for next := hash + 1; ; next++ {
		slot, taken := s.places.find(next)
		if !taken {
			return
		}
		s.places.remove(next)
		d := s.at(slot)
		_, d.hash = s.find(d.policy, s.hash(d.policy, s.key(d)), s.key(d))
		s.places.put(d.hash, slot)
	}
}

// schedule adds the next moment of a decision.
func (s *store) schedule(d *decision, slot uint32) {
	if len(s.due) >= 2*s.n+slab {
		s.dropVoid()
	}
	heap.Push(&s.due, moment{s.when(d), uint32(d.seq), slot})
}

// dropVoid removes void moments.
func (s *store) dropVoid() {
	s.due = slices.DeleteFunc(s.due, func(m moment) bool { return !s.valid(m) })
	heap.Init(&s.due)
}

// valid reports whether a moment is not void.
func (s *store) valid(m moment) bool {
	d := s.at(m.slot)
	return d.seq != 0 && uint32(d.seq) == m.turn
}

// reschedule voids the moment of a decision, and adds its new one.
func (s *store) reschedule(d *decision, slot uint32) {
	s.seq++
	d.seq = s.seq
	s.schedule(d, slot)
}

// next returns the decision that is due first, and its due time. It returns nil if there is none.
func (s *store) next() (d *decision, slot uint32, due int64) {
	for len(s.due) > 0 {
		m := s.due[0]
		if s.valid(m) {
			return s.at(m.slot), m.slot, m.due
		}
		heap.Pop(&s.due)
	}
	return nil, 0, 0
}

// again moves the decision that is due first to its next moment.
func (s *store) again(d *decision) {
	s.due[0].due = s.when(d)
	heap.Fix(&s.due, 0)
}

// write stores the texts and numbers of a decision. The caller must drop the previous ones.
func (s *store) write(d *decision, key, agent []byte, values []value, scratch []byte) []byte {
	scratch = append(append(scratch[:0], key...), agent...)
	for _, v := range values {
		scratch = append(scratch, v.who...)
	}
	for _, v := range values {
		scratch = binary.LittleEndian.AppendUint64(scratch, math.Float64bits(v.x))
	}
	d.keySize, d.agentSize = uint16(len(key)), uint16(len(agent))
	d.text = s.texts.hold(scratch)
	d.layout = s.layout(values)
	return scratch
}

// layout returns the number of the layout for values. It does not allocate if the layout is already in use.
func (s *store) layout(values []value) uint32 {
	s.name = s.name[:0]
	for _, v := range values {
		s.name = append(binary.AppendUvarint(append(s.name, byte(v.kind)), uint64(len(v.name))), v.name...)
	}
	if n, known := s.layouts.numbers[string(s.name)]; known {
		s.layouts.uses[n]++
		return n
	}
	return s.layouts.take(string(s.name))
}

func (s *store) key(d *decision) []byte { return s.texts.get(d.text)[:d.keySize] }

func (s *store) agent(d *decision) []byte {
	return s.texts.get(d.text)[d.keySize : d.keySize+d.agentSize]
}

// values appends the numbers of a decision to dst.
func (s *store) values(d *decision, dst []value) []value {
	fields, rest := s.layouts.values[d.layout], s.texts.get(d.text)[int(d.keySize)+int(d.agentSize):]
	numbers := rest[len(rest)-8*len(fields):]
	for i, f := range fields {
		v := value{field: f, x: numberAt(numbers, i)}
		if f.kind == rater {
			v.who, rest = string(rest[:int(v.x)]), rest[int(v.x):]
		}
		dst = append(dst, v)
	}
	return dst
}

func numberAt(numbers []byte, i int) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(numbers[8*i:]))
}

// fits reports whether the raters and numbers of a layout fill the text exactly.
func fits(layout string, text []byte) bool {
	fields := fieldsOf(layout)
	size := len(text) - 8*len(fields)
	for i, f := range fields {
		if size < 0 {
			return false
		}
		if f.kind != rater {
			continue
		}
		n := numberAt(text[len(text)-8*len(fields):], i)
		if !(n >= 0 && n <= float64(size)) || n != math.Trunc(n) {
			return false
		}
		size -= int(n)
	}
	return size == 0
}

// fieldsOf parses a layout: for each field, its kind, the length of its name, and the name. It stops at the first
// invalid field.
func fieldsOf(layout string) []field {
	var out []field
	for rest := []byte(layout); len(rest) > 1; {
		size, n := binary.Uvarint(rest[1:])
		if n <= 0 || size > uint64(len(rest)-1-n) {
			return out
		}
		end := 1 + n + int(size)
		out = append(out, field{kind(rest[0]), string(rest[1+n : end])})
		rest = rest[end:]
	}
	return out
}
