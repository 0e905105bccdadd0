package checkpoint

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/rewardwatch/rewardwatch/ingest/kafkalog"
)

// folded is the state that results from the records of a scope.
type folded struct {
	scope   string
	epoch   uint64 // the highest epoch
	owner   uint64 // number of the claim that began the epoch
	records map[string]*foldedRecord
	damaged []string                     // keys of damaged records, for the log
	foreign func(kafkalog.Record, error) // called with records that are not checkpoint records
}

// foldedRecord is a record that has no tombstone.
type foldedRecord struct {
	record
	key    []byte
	offset int64
	counts bool   // whether its epoch was current when it was written
	size   int    // of the value, in bytes
	value  []byte // nil if the record does not count
}

func newFolded(scope string) *folded {
	return &folded{scope: scope, records: map[string]*foldedRecord{}, foreign: func(kafkalog.Record, error) {}}
}

// fold adds one record of the partition; records arrive in offset order. Records that are not checkpoint records are
// skipped. A record after one of a higher epoch does not count, because its writer had lost the scope. It never counts
// later, because old claims get tombstones only after all records that they invalidate.
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

// holding is the state of a scope as its owner keeps it.
type holding struct {
	segments map[string]map[uint64]*segment // finished segments, by name and generation
	notes    map[string]note                // by key
	dead     [][]byte                       // keys that need tombstones, in order
	damaged  []string                       // damaged records, for the log
}

// segment describes one segment.
type segment struct {
	epoch       uint64
	chunks      []uint64 // numbers of its chunks
	size        int
	sum         uint32
	err         error    // why it cannot be read: damage or errOtherVersion
	keys        [][]byte // of its records, manifest first, so that no manifest remains without its chunks
	first, last int64    // range of offsets that contains its chunks
	pieces      []piece  // its chunks, up to the first missing one
	held        [][]byte // values of its chunks, from opening until they are read or the name is written
}

// piece locates a chunk.
type piece struct {
	key    []byte
	offset int64 // of the record
	start  int   // in the segment
	size   int
}

// over returns the chunks that overlap a range of the segment. whole is false if one of them is missing.
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
	text []byte // empty if the note only deletes older ones
}

// settle returns the state of the scope. It is called once the reader owns the scope.
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
	for _, r := range records { // chunks of unfinished or replaced segments
		if left := chunks[[2]uint64{r.epoch, r.number}]; left == r {
			h.dead = append(h.dead, r.key)
		}
	}
	h.dead = append(h.dead, claims...) // last, because they invalidate the others until then
	if len(h.damaged) > 0 {
		h.dead = nil // records that look superfluous may be needed to repair the damage
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

// finished adds the segment of a manifest. The last manifest for a name and generation counts, even if it is damaged.
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

// noted adds a note. The last note for a key counts. If it is damaged, no note counts, because the previous one may say
// the opposite.
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

// forget marks the note of a key for removal if it is empty.
func (h *holding) forget(key string) {
	if n, any := h.notes[key]; any && len(n.text) == 0 {
		h.dead = append(h.dead, n.key)
		delete(h.notes, key)
	}
}

// gather collects the chunks of the segment, and removes them from chunks.
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

// join concatenates chunks. whole is false if the result does not match the manifest.
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
