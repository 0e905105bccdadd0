package checkpoint

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

const (
	// topicTakeOver is how long it may take to take a scope over: far less than tombstones are kept, of which one may give
	// up a record that was read before.
	topicTakeOver = 10 * time.Minute
	// topicWrite is how long the topic may take over one request of a write, all attempts together: however large a
	// checkpoint is, it is written as long as it gets on.
	topicWrite = 30 * time.Second
	// topicRead is how long it may take over reading a segment.
	topicRead = time.Minute
	// maxGiveUp leaves room in a request for a chunk and a manifest.
	maxGiveUp = 128 << 10
)

// recordLog is what a tenure needs of Kafka; *ingest.Log is one.
type recordLog interface {
	Read(ctx context.Context, partition int, from, to int64, visit func(ingest.LogRecord) error) error
	ReadOn(ctx context.Context, partition int, from, least int64, visit func(ingest.LogRecord) error) (end int64, err error)
	AppendFresh(ctx context.Context, partition int, fresh func() []ingest.LogRecord) ([]ingest.LogRecord, error)
}

var (
	_ Backend     = (*tenure)(nil)
	_ pieceReader = (*tenure)(nil)
)

// tenure is the time of one owner of a scope: a backend, and a journal, which nobody else writes to as long as it lasts.
// A write counts if the log holds none of a later owner before it, which is read before the write is taken for done. So a
// tenure ends with the claim of the next one, whether its owner knows it or not.
//
// Nothing is given up before something confirmed makes it superfluous for all time; then a tombstone does no harm, however
// late it comes, and whoever owns the scope by then. Tombstones wait for the next write, and travel with it.
type tenure struct {
	log       recordLog
	topic     string
	partition int // of the topic
	scope     string
	chunk     int // bytes of a chunk, at most
	giveUp    int // bytes of keys that are given up with one write, about
	epoch     uint64
	foreign   func(ingest.LogRecord, error) // told of records that are none of ours

	mu     sync.Mutex
	number uint64 // of the last record
	holding
	tried   map[string][][]byte // by kind and name, keys of writes that failed: they may be there, and count
	doubt   bool                // an answer was missed: what was written in vain may appear yet, also behind its tombstone
	sending bool                // tombstones are on their way
	next    int64               // no record before it is of another owner
	written map[int64]int64     // what this tenure wrote beyond next: the offset of the first record to that behind the last
	end     int64               // behind the last record written
	lost    bool                // there is a record of a later owner

	reading sync.Mutex // held while reading on: one reads for all that wait
}

// newTenure makes a tenure that has not begun.
func newTenure(log recordLog, topic string, partition int, scope string) *tenure {
	return &tenure{
		log: log, topic: topic, partition: partition, scope: scope, chunk: ingest.MaxLogRecord, giveUp: maxGiveUp,
		foreign: func(ingest.LogRecord, error) {},
		tried:   map[string][][]byte{}, written: map[int64]int64{},
	}
}

// begin takes the scope over. owner must prove that it is the caller's.
//
// The claim counts if no other one was written since the epoch before was read, and owner was asked in between: so whoever
// has lost the scope by then cannot take it from the next owner, however long it slept before its claim.
func (t *tenure) begin(ctx context.Context, owner func() error) error {
	ctx, cancel := context.WithTimeout(ctx, topicTakeOver)
	defer cancel()
	f := newFolded(t.scope)
	f.foreign = t.foreign
	if err := t.foldOn(ctx, f, 0); err != nil {
		return err
	}
	for {
		if err := owner(); err != nil {
			return fmt.Errorf("the partition may have another owner by now: %w", err)
		}
		claim, offset, err := t.claim(ctx, f.epoch+1)
		if err != nil {
			return err
		}
		if err := t.foldOn(ctx, f, offset+1); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("it took too long: %w", ctx.Err())
		}
		if f.epoch == claim.epoch && f.owner == claim.number {
			t.epoch, t.holding = f.epoch, *f.settle()
			return nil
		}
	}
}

// foldOn folds what has been written since the last time.
func (t *tenure) foldOn(ctx context.Context, f *folded, least int64) (err error) {
	t.next, err = t.log.ReadOn(ctx, t.partition, t.next, least, f.fold)
	return err
}

// claim writes a claim. Each attempt has a number of its own, as two may be written where an answer is lost.
func (t *tenure) claim(ctx context.Context, epoch uint64) (claim record, offset int64, err error) {
	written, err := t.log.AppendFresh(ctx, t.partition, func() []ingest.LogRecord {
		claim = record{epoch: epoch, number: random(), kind: kindClaim}
		return []ingest.LogRecord{{Key: claim.key(t.scope), Value: seal(time.Now().UTC().AppendFormat(nil, time.RFC3339))}}
	})
	if err != nil {
		return record{}, 0, err
	}
	return claim, written[0].Offset, nil
}

func random() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it cannot fail
	return binary.LittleEndian.Uint64(b[:]) | 1
}

// writing is a write of one or more requests, of which the last one makes it count.
type writing struct {
	*tenure
	of      string // what it is a write of: one that is confirmed makes those superfluous that failed
	records []*foldedRecord
	stale   [][]byte // keys of attempts of which no answer came
}

// append makes one request of what fresh gives, and of tombstones that wait. Each attempt has keys of its own, as one that
// seems to have failed may be written even after the next one.
func (w *writing) append(ctx context.Context, fresh func() []*foldedRecord) error {
	ctx, cancel := context.WithTimeout(ctx, topicWrite)
	defer cancel()
	dead := w.takeDead()
	var attempt []*foldedRecord
	written, err := w.log.AppendFresh(ctx, w.partition, func() []ingest.LogRecord {
		w.stale = appendKeys(w.stale, attempt)
		attempt = fresh()
		var records []ingest.LogRecord
		for _, r := range attempt {
			records = append(records, ingest.LogRecord{Key: r.key, Value: r.value})
		}
		for _, key := range dead {
			records = append(records, ingest.LogRecord{Key: key})
		}
		return records
	})
	w.releaseDead(len(dead), err == nil)
	if err != nil {
		w.stale = appendKeys(w.stale, attempt)
		return err
	}
	for i, r := range attempt {
		r.offset = written[i].Offset
		if r.kind == kindChunk {
			r.value = nil // the receiver of the write has it, or the log
		}
	}
	w.records = append(w.records, attempt...)
	w.wrote(written[0].Offset, len(written))
	return nil
}

func appendKeys(keys [][]byte, records []*foldedRecord) [][]byte {
	for _, r := range records {
		keys = append(keys, r.key)
	}
	return keys
}

// finish returns when it is known whether the write counts, and tells settle of it if it does. err is that of append.
func (w *writing) finish(ctx context.Context, err error, settle func()) error {
	ctx, cancel := context.WithTimeout(ctx, topicWrite)
	defer cancel()
	if err == nil {
		err = w.confirm(ctx, w.records[len(w.records)-1].offset)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.doubt = w.doubt || len(w.stale) > 0
	if err != nil {
		w.tried[w.of] = append(appendKeys(w.tried[w.of], w.records), w.stale...)
		return err
	}
	w.dead = append(append(w.dead, w.tried[w.of]...), w.stale...)
	delete(w.tried, w.of)
	settle()
	return nil
}

// fresh makes a record with a key that was never used.
func (t *tenure) fresh(r record, value []byte) *foldedRecord {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.number++
	r.epoch, r.number = t.epoch, t.number
	return &foldedRecord{record: r, key: r.key(t.scope), size: len(value), value: value}
}

// takeDead gives keys for the tombstones of a request; none while others are on their way, since they go in order.
func (t *tenure) takeDead() [][]byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sending || len(t.dead) == 0 {
		return nil
	}
	t.sending = true
	n, size := 0, 0
	for n < len(t.dead) && size < t.giveUp {
		size += len(t.dead[n])
		n++
	}
	return t.dead[:n:n]
}

func (t *tenure) releaseDead(n int, sent bool) {
	if n == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sending = false
	if sent {
		t.dead = t.dead[n:]
	}
}

// Put implements Backend. The error is ingest.ErrFenced once the scope has another owner.
func (t *tenure) Put(name string, generation uint64, data []byte) error {
	if t.isLost() {
		return ingest.ErrFenced
	}
	t.release(name)
	ctx, w := context.Background(), &writing{tenure: t, of: kindManifest + name}
	err := w.segment(ctx, record{kind: kindManifest, name: name, generation: generation}, data)
	return w.finish(ctx, err, func() {
		s := t.finished(w.records[len(w.records)-1])
		chunks := map[[2]uint64]*foldedRecord{}
		for _, r := range w.records[:len(w.records)-1] {
			chunks[[2]uint64{r.epoch, r.number}] = r
		}
		s.gather(t.scope, chunks)
		s.held = nil
	})
}

// segment writes chunks, and with the last one the manifest.
func (w *writing) segment(ctx context.Context, at record, data []byte) error {
	m := manifest{Format: topicFormat, Size: len(data), Sum: checksum(data)}
	for ; len(data) > w.chunk; data = data[w.chunk:] {
		err := w.append(ctx, func() []*foldedRecord {
			return []*foldedRecord{w.fresh(record{kind: kindChunk}, data[:w.chunk])}
		})
		if err != nil {
			return err
		}
		m.Chunks = append(m.Chunks, w.records[len(w.records)-1].number)
	}
	return w.append(ctx, func() (records []*foldedRecord) {
		whole := m
		if len(data) > 0 {
			chunk := w.fresh(record{kind: kindChunk}, data)
			whole.Chunks = append(slices.Clip(m.Chunks), chunk.number)
			records = append(records, chunk)
		}
		return append(records, w.fresh(at, whole.value()))
	})
}

// release lets go of the chunks of a name: who writes has read what there was.
func (t *tenure) release(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.segments[name] {
		s.held = nil
	}
}

// note takes the place of the note of a key, or has it forgotten.
func (t *tenure) note(ctx context.Context, key string, value []byte) error {
	if t.isLost() {
		return ingest.ErrFenced
	}
	w := &writing{tenure: t, of: kindNote + key}
	err := w.append(ctx, func() []*foldedRecord {
		return []*foldedRecord{w.fresh(record{kind: kindNote, name: key}, seal(value))}
	})
	return w.finish(ctx, err, func() {
		t.noted(w.records[0])
		if !t.doubt {
			t.forget(key)
		}
	})
}

// readNotes gives the notes in the order in which they were written.
func (t *tenure) readNotes(visit func(key string, value []byte)) {
	t.mu.Lock()
	notes := slices.Collect(maps.Values(t.notes))
	t.mu.Unlock()
	slices.SortFunc(notes, func(a, b note) int { return a.compare(b.record) })
	for _, n := range notes {
		if len(n.text) > 0 {
			visit(n.name, n.text)
		}
	}
}

// wrote takes in where records of this tenure stand.
func (t *tenure) wrote(offset int64, records int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.written[offset] = offset + int64(records)
	t.end = max(t.end, offset+int64(records))
	t.advance()
}

// advance passes over what this tenure wrote itself: where nobody else writes to the partition, nothing is ever read back.
func (t *tenure) advance() {
	for behind, ours := t.written[t.next]; ours; behind, ours = t.written[t.next] {
		delete(t.written, t.next)
		t.next = behind
	}
}

// confirm returns when it is known that no record before an offset is of another owner. The error is ingest.ErrFenced where
// there is one.
func (t *tenure) confirm(ctx context.Context, offset int64) error {
	if known, err := t.known(offset); known {
		return err
	}
	t.reading.Lock()
	defer t.reading.Unlock()
	if known, err := t.known(offset); known {
		return err
	}
	if err := t.readOn(ctx); err != nil {
		return err
	}
	_, err := t.known(offset)
	return err
}

func (t *tenure) known(offset int64) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case offset < t.next:
		return true, nil
	case t.lost:
		return true, ingest.ErrFenced
	}
	return false, nil
}

func (t *tenure) isLost() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lost
}

// readOn looks for another owner in all that was written up to now: compaction may have removed the claim of the next one,
// but then there is that of a later one. The caller holds reading.
func (t *tenure) readOn(ctx context.Context) error {
	t.mu.Lock()
	next, least := t.next, t.end
	t.mu.Unlock()
	lost := false
	end, err := t.log.ReadOn(ctx, t.partition, next, least, func(r ingest.LogRecord) error {
		scope, at, err := parseKey(r.Key)
		if err != nil {
			t.foreign(r, err)
			return nil
		}
		lost = lost || scope == t.scope && at.epoch > t.epoch
		return nil
	})
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lost = t.lost || lost; t.lost {
		return nil
	}
	t.next = max(t.next, end)
	maps.DeleteFunc(t.written, func(_, behind int64) bool { return behind <= end })
	t.advance()
	return nil
}

// Get implements Backend. Chunks that are held since the opening are held no longer.
func (t *tenure) Get(name string, generation uint64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), topicRead)
	defer cancel()
	s, err := t.segment(name, generation)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	chunks := s.held
	s.held = nil
	t.mu.Unlock()
	if data, whole := s.join(chunks); whole {
		return data, nil
	}
	if chunks, err = t.fetch(ctx, s); err != nil {
		return nil, err
	}
	if data, whole := s.join(chunks); whole {
		return data, nil
	}
	return nil, t.missing(ctx, name, generation)
}

// GetPiece implements pieceReader: it reads nothing but the chunks that hold the piece.
func (t *tenure) GetPiece(name string, generation, offset, length uint64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), topicRead)
	defer cancel()
	s, err := t.segment(name, generation)
	if err != nil {
		return nil, err
	}
	pieces, whole := s.over(offset, length)
	if !whole {
		return nil, t.missing(ctx, name, generation)
	}
	if len(pieces) == 0 {
		return nil, nil
	}
	data := make([]byte, 0, length)
	left := pieces
	err = t.log.Read(ctx, t.partition, left[0].offset, left[len(left)-1].offset+1, func(r ingest.LogRecord) error {
		if len(left) > 0 && r.Offset == left[0].offset && string(r.Key) == string(left[0].key) && len(r.Value) == left[0].size {
			from, to := max(0, int(offset)-left[0].start), min(left[0].size, int(offset+length)-left[0].start)
			data, left = append(data, r.Value[from:to]...), left[1:]
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(left) > 0 {
		return nil, t.missing(ctx, name, generation)
	}
	return data, nil
}

// segment finds a segment whose manifest can be read. The errors are those of Get.
func (t *tenure) segment(name string, generation uint64) (*segment, error) {
	t.mu.Lock()
	s := t.segments[name][generation]
	t.mu.Unlock()
	switch {
	case s == nil:
		return nil, fs.ErrNotExist
	case errors.Is(s.err, errOtherVersion):
		return nil, &VersionError{Where: t.Where(name, generation), Topic: t.topic, Why: s.err.Error()}
	case s.err != nil:
		return nil, &DamagedError{Where: t.Where(name, generation), Topic: t.topic, Why: s.err.Error()}
	}
	return s, nil
}

// fetch reads the chunks of a segment.
func (t *tenure) fetch(ctx context.Context, s *segment) ([][]byte, error) {
	found := map[string][]byte{}
	err := t.log.Read(ctx, t.partition, s.first, s.last, func(r ingest.LogRecord) error {
		if len(r.Value) > 0 && slices.ContainsFunc(s.keys, func(key []byte) bool { return string(key) == string(r.Key) }) {
			found[string(r.Key)] = r.Value
		}
		return nil
	})
	var chunks [][]byte
	for _, key := range s.keys[1:] {
		chunks = append(chunks, found[string(key)])
	}
	return chunks, err
}

// missing gives the error for chunks that are not what the manifest says: damage, unless the next owner has given up what
// it does not need any more.
func (t *tenure) missing(ctx context.Context, name string, generation uint64) error {
	t.reading.Lock()
	defer t.reading.Unlock()
	if err := t.readOn(ctx); err != nil {
		return err
	}
	if t.isLost() {
		return ingest.ErrFenced
	}
	return &DamagedError{Where: t.Where(name, generation), Topic: t.topic, Why: "its chunks are not what its manifest says"}
}

// Where implements Backend.
func (t *tenure) Where(name string, generation uint64) string {
	return fmt.Sprintf("generation %d of %q in partition %d of the topic %s", generation, name, t.partition, t.topic)
}

// Generations implements Backend. Those that were never finished are left out.
func (t *tenure) Generations(name string) ([]uint64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.segments[name])), nil
}

// Remove implements Backend. The segment goes with the next write.
func (t *tenure) Remove(name string, generation uint64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.segments[name][generation]; s != nil {
		t.dead = append(t.dead, s.keys...)
		delete(t.segments[name], generation)
	}
	return nil
}

// Names implements Backend.
func (t *tenure) Names(prefix string) ([]string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var names []string
	for name, segments := range t.segments {
		if strings.HasPrefix(name, prefix) && len(segments) > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}
