package checkpoint

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/rewardwatch/rewardwatch/ingest/kafkalog"
)

// folded is the state that the records of a scope amount to.
type folded struct {
	scope   string
	epoch   uint64 // the highest epoch
	owner   uint64 // the number of the claim that began it
	records map[string]*foldedRecord
	damaged []string                     // keys, for the log
	foreign func(kafkalog.Record, error) // called with records that are not checkpoint records
}

// foldedRecord is a record without a tombstone.
type foldedRecord struct {
	record
	key    []byte
	offset int64
	counts bool   // its epoch had not ended when it was written
	size   int    // of the value
	value  []byte // nil if it does not count
}

func newFolded(scope string) *folded {
	return &folded{scope: scope, records: map[string]*foldedRecord{}, foreign: func(kafkalog.Record, error) {}}
}

// fold adds one record of the partition; records arrive in offset order. Records that are not checkpoint records are
// skipped. A record after one of a higher epoch does not count, as its writer had lost the scope. This holds forever:
// old claims get tombstones only after every record that they invalidate.
func (f *folded) fold(r kafkalog.Record) error {
	scope, at, err := parseKey(r.Key)
	if err != nil {
		f.foreign(r, err)
		if wasOurs(r.Key) {
			f.damaged = append(f.damaged, fmt.Sprintf("key at offset %d", r.Offset))
		}
		return nil
	}
	if scope != f.scope {
		return nil
	}
	if len(r.Value) == 0 {
		delete(f.records, string(r.Key))
		return nil
	}
	if at.epoch > f.epoch {
		f.epoch, f.owner = at.epoch, 0
		if at.kind == kindClaim {
			f.owner = at.number
		}
	}
	held := &foldedRecord{record: at, key: r.Key, offset: r.Offset, size: len(r.Value), counts: at.epoch == f.epoch}
	if held.counts {
		held.value = r.Value
	}
	f.records[string(r.Key)] = held
	return nil
}

// holding is the state of a scope, for its owner.
type holding struct {
	segments map[string]map[uint64]*segment // finished ones, by name and generation
	notes    map[string]note                // by key
	dead     [][]byte                       // keys that need tombstones, in this order
	damaged  []string                       // damaged records, for the log
}

// segment describes one segment.
type segment struct {
	epoch       uint64
	chunks      []uint64 // their numbers
	size        int
	sum         uint32
	err         error    // why it cannot be read: damage, or errOtherVersion
	keys        [][]byte // of its records, the manifest first: no manifest may remain without its chunks
	first, last int64    // offsets: its chunks lie between them
	pieces      []piece  // its chunks, up to the first missing one
	held        [][]byte // its chunks, from opening until they are read or the name is written
}

// piece is the place of a chunk.
type piece struct {
	key    []byte
	offset int64 // of the record
	start  int   // in the segment
	size   int
}

// over returns the chunks that a range of the segment lies in. whole is false if one of them is missing.
func (s *segment) over(offset, length uint64) (pieces []piece, whole bool) {
	end := uint64(0)
	for _, p := range s.pieces {
		begin := uint64(p.start)
		if end = begin + uint64(p.size); end > offset && begin < offset+length {
			pieces = append(pieces, p)
		}
	}
	return pieces, offset+length >= offset && end >= offset+length
}

// note is an entry of the journal.
type note struct {
	record
	key  []byte // of the record
	text []byte // empty to forget the key, when the note only invalidates older ones
}

// settle returns the state of the scope, once the reader owns it.
func (f *folded) settle() *holding {
	h := &holding{segments: map[string]map[uint64]*segment{}, notes: map[string]note{}, damaged: f.damaged}
	chunks := map[[2]uint64]*foldedRecord{}
	var claims [][]byte
	records := f.inOrder()
	for _, r := range records {
		switch {
		case r.kind == kindClaim:
			if r.epoch < f.epoch {
				claims = append(claims, r.key)
			}
		case !r.counts:
			h.dead = append(h.dead, r.key)
		case r.kind == kindChunk:
			chunks[[2]uint64{r.epoch, r.number}] = r
		case r.kind == kindManifest:
			h.finished(r)
		case r.kind == kindNote:
			h.noted(r)
		}
	}
	for key := range h.notes {
		h.forget(key)
	}
	for _, generations := range h.segments {
		for _, s := range generations {
			s.gather(f.scope, chunks)
		}
	}
	for _, r := range records { // chunks that were never finished, or that another write replaced
		if left := chunks[[2]uint64{r.epoch, r.number}]; left == r {
			h.dead = append(h.dead, r.key)
		}
	}
	h.dead = append(h.dead, claims...) // last: until then they invalidate the others
	if len(h.damaged) > 0 {
		h.dead = nil // what looks superfluous may be needed to repair the damage
	}
	return h
}

func (f *folded) inOrder() []*foldedRecord {
	records := make([]*foldedRecord, 0, len(f.records))
	for _, r := range f.records {
		records = append(records, r)
	}
	slices.SortFunc(records, func(a, b *foldedRecord) int {
		return cmp.Or(a.compare(b.record), bytes.Compare(a.key, b.key))
	})
	return records
}

// finished adds a manifest. The last manifest of a name and generation counts, even if it is damaged.
func (h *holding) finished(r *foldedRecord) *segment {
	if h.segments[r.name] == nil {
		h.segments[r.name] = map[uint64]*segment{}
	}
	if before := h.segments[r.name][r.generation]; before != nil {
		h.dead = append(h.dead, before.keys...)
	}
	m, err := parseManifest(r.value)
	if err != nil {
		h.damaged = append(h.damaged, fmt.Sprintf("checkpoint %[2]q, generation %[1]d: %[3]v", r.generation, r.name, err))
	}
	s := &segment{
		epoch: r.epoch, chunks: m.Chunks, size: m.Size, sum: m.Sum, err: err, keys: [][]byte{r.key}, first: r.offset, last: r.offset,
	}
	h.segments[r.name][r.generation] = s
	return s
}

// noted adds a note. The last note of a key counts. If that is damaged, none does: the one before may say the opposite.
func (h *holding) noted(r *foldedRecord) {
	before, any := h.notes[r.name]
	if any && before.compare(r.record) > 0 { // of two notes written at the same time
		h.dead = append(h.dead, r.key)
		return
	}
	if any {
		h.dead = append(h.dead, before.key)
		delete(h.notes, r.name)
	}
	text, whole := unseal(r.value)
	if !whole {
		h.damaged = append(h.damaged, fmt.Sprintf("note %q", r.name))
		return
	}
	h.notes[r.name] = note{record: r.record, key: r.key, text: text}
}

// forget marks an empty note for removal.
func (h *holding) forget(key string) {
	if n, any := h.notes[key]; any && len(n.text) == 0 {
		h.dead = append(h.dead, n.key)
		delete(h.notes, key)
	}
}

// gather collects the chunks of the segment.
func (s *segment) gather(scope string, chunks map[[2]uint64]*foldedRecord) {
	start := 0
	for i, number := range s.chunks {
		at := [2]uint64{s.epoch, number}
		s.keys = append(s.keys, record{epoch: at[0], number: number, kind: kindChunk}.key(scope))
		if r := chunks[at]; r != nil {
			if len(s.pieces) == i {
				s.pieces = append(s.pieces, piece{r.key, r.offset, start, r.size})
				start += r.size
			}
			s.held = append(s.held, r.value)
			s.first = min(s.first, r.offset)
			delete(chunks, at)
		}
	}
}

// join concatenates chunks. whole is false if they do not match the manifest.
func (s *segment) join(chunks [][]byte) (segment []byte, whole bool) {
	switch len(chunks) {
	case 0:
	case 1:
		segment = chunks[0]
	default:
		segment = slices.Concat(chunks...)
	}
	return segment, len(segment) == s.size && checksum(segment) == s.sum
}
