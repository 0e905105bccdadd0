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
	"github.com/rewardwatch/rewardwatch/ingest/kafkalog"
)

const (
	// topicTakeOver is the timeout for taking over a scope. It must be far shorter than the retention of tombstones,
	// because a tombstone may apply to a record that the take-over has already read.
	topicTakeOver = 10 * time.Minute
	// topicWrite is the timeout for one request of a write, including all attempts. It does not limit the size of a
	// checkpoint, which takes as many requests as needed.
	topicWrite = 30 * time.Second
	// topicRead is the timeout for reading one segment.
	topicRead = time.Minute
	// maxGiveUp leaves room in a request for a chunk and a manifest.
	maxGiveUp = 128 << 10
)

// recordLog is the part of Kafka that a lease needs; *kafkalog.Log implements it.
type recordLog interface {
	Read(ctx context.Context, partition int, from, to int64, visit func(kafkalog.Record) error) error
	ReadOn(ctx context.Context, partition int, from, least int64, visit func(kafkalog.Record) error) (end int64, err error)
	AppendFresh(ctx context.Context, partition int, fresh func() []kafkalog.Record) ([]kafkalog.Record, error)
}

var (
	_ Backend     = (*lease)(nil)
	_ pieceReader = (*lease)(nil)
)

// lease represents ownership of a scope. It is a backend and a journal, which no one else writes to while the lease
// lasts. A write counts if no record of a later owner precedes it in the log. The lease reads the log up to the write
// before it confirms the write. So a lease ends with the claim of the next owner, whether or not the current owner has
// noticed.
//
// A record gets a tombstone only after something confirmed makes it superfluous forever. Therefore, a tombstone does no
// harm even if it arrives late and the scope has another owner by then. Tombstones wait for the next write and are sent
// in its requests.
type lease struct {
	log       recordLog
	topic     string
	partition int // of the topic
	scope     string
	chunk     int // maximum bytes of a chunk
	giveUp    int // approximate bytes of keys that get tombstones in one request
	epoch     uint64
	foreign   func(kafkalog.Record, error) // called with records that are not checkpoint records

	mu     sync.Mutex
	number uint64 // of the last record
	holding
	tried   map[string][][]byte // keys of failed writes, by kind and name; the records may exist and count
	doubt   bool                // a response was missed, so a failed write may still appear, even after its tombstone
	sending bool                // tombstones are being written
	next    int64               // no record before this offset belongs to another owner
	written map[int64]int64     // writes of this lease from next on: first offset to the offset after the last
	end     int64               // the offset after the last record written
	lost    bool                // a later owner has written a record

	reading sync.Mutex // held while reading the log: one goroutine reads for all that wait
}

// newLease returns a lease that does not own its scope yet.
func newLease(log recordLog, topic string, partition int, scope string) *lease {
	return &lease{
		log: log, topic: topic, partition: partition, scope: scope, chunk: kafkalog.MaxRecord, giveUp: maxGiveUp,
		foreign: func(kafkalog.Record, error) {},
		tried:   map[string][][]byte{}, written: map[int64]int64{},
	}
}

// begin takes over the scope. owner must return an error unless the scope belongs to the caller.
//
// The claim counts if no other claim was written since the previous epoch was read, and owner is called in between. So
// a former owner cannot take the scope from the next one, even if it was suspended for a long time before its claim.
func (t *lease) begin(ctx context.Context, owner func() error) error {
	ctx, cancel := context.WithTimeout(ctx, topicTakeOver)
	defer cancel()
	f := newFolded(t.scope)
	f.foreign = t.foreign
	if err := t.foldOn(ctx, f, 0); err != nil {
		return err
	}
	for {
		if err := owner(); err != nil {
			return fmt.Errorf("another instance may own the partition: %w", err)
		}
		claim, offset, err := t.claim(ctx, f.epoch+1)
		if err != nil {
			return err
		}
		if err := t.foldOn(ctx, f, offset+1); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("timed out: %w", ctx.Err())
		}
		if f.epoch == claim.epoch && f.owner == claim.number {
			t.epoch, t.holding = f.epoch, *f.settle()
			return nil
		}
	}
}

// foldOn folds the records written since the last call.
func (t *lease) foldOn(ctx context.Context, f *folded, least int64) (err error) {
	t.next, err = t.log.ReadOn(ctx, t.partition, t.next, least, f.fold)
	return err
}

// claim writes a claim. Each attempt has its own number, because a lost response can lead to two claims.
func (t *lease) claim(ctx context.Context, epoch uint64) (claim record, offset int64, err error) {
	written, err := t.log.AppendFresh(ctx, t.partition, func() []kafkalog.Record {
		claim = record{epoch: epoch, number: random(), kind: kindClaim}
		return []kafkalog.Record{{Key: claim.key(t.scope), Value: seal(time.Now().UTC().AppendFormat(nil, time.RFC3339))}}
	})
	if err != nil {
		return record{}, 0, err
	}
	return claim, written[0].Offset, nil
}

func random() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:]) | 1
}

// writing is a write of one or more requests. It counts once the last request is written.
type writing struct {
	*lease
	of      string // kind and name of the record; a confirmed write makes failed ones of the same kind and name superfluous
	records []*foldedRecord
	stale   [][]byte // keys of attempts without a response
}

// append sends one request with the records that fresh returns and pending tombstones. Each attempt has its own keys,
// because an attempt that seems to have failed may be written even after the next one.
func (w *writing) append(ctx context.Context, fresh func() []*foldedRecord) error {
	ctx, cancel := context.WithTimeout(ctx, topicWrite)
	defer cancel()
	dead := w.takeDead()
	var attempt []*foldedRecord
	written, err := w.log.AppendFresh(ctx, w.partition, func() []kafkalog.Record {
		w.stale = appendKeys(w.stale, attempt)
		attempt = fresh()
		var records []kafkalog.Record
		for _, r := range attempt {
			records = append(records, kafkalog.Record{Key: r.key, Value: r.value})
		}
		for _, key := range dead {
			records = append(records, kafkalog.Record{Key: key})
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
			r.value = nil // the caller or the log has it
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

// finish waits until it is known whether the write counts, and calls settle if it does. err is the error from append.
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

// fresh returns a record with a new key.
func (t *lease) fresh(r record, value []byte) *foldedRecord {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.number++
	r.epoch, r.number = t.epoch, t.number
	return &foldedRecord{record: r, key: r.key(t.scope), size: len(value), value: value}
}

// takeDead returns keys for the tombstones of a request. It returns nil while other tombstones are being written,
// because they must be written in order.
func (t *lease) takeDead() [][]byte {
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

func (t *lease) releaseDead(n int, sent bool) {
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
func (t *lease) Put(name string, generation uint64, data []byte) error {
	if t.isLost() {
		return ingest.ErrFenced
	}
	t.release(name)
	ctx, w := context.Background(), &writing{lease: t, of: kindManifest + name}
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

// segment writes the chunks. The manifest is in the same request as the last chunk.
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

// release frees the chunks of a name. Its writer has already read the ones that it needed.
func (t *lease) release(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.segments[name] {
		s.held = nil
	}
}

// note replaces the note for a key. An empty value removes it.
func (t *lease) note(ctx context.Context, key string, value []byte) error {
	if t.isLost() {
		return ingest.ErrFenced
	}
	w := &writing{lease: t, of: kindNote + key}
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

// readNotes calls visit for all notes in the order in which they were written.
func (t *lease) readNotes(visit func(key string, value []byte)) {
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

// wrote records the offsets that this lease wrote.
func (t *lease) wrote(offset int64, records int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.written[offset] = offset + int64(records)
	t.end = max(t.end, offset+int64(records))
	t.advance()
}

// advance skips the records that this lease wrote. If the partition has no other writers, nothing is ever read back.
func (t *lease) advance() {
	for behind, ours := t.written[t.next]; ours; behind, ours = t.written[t.next] {
		delete(t.written, t.next)
		t.next = behind
	}
}

// confirm returns once it is known whether a record before the offset belongs to another owner. If so, the error is
// ingest.ErrFenced.
func (t *lease) confirm(ctx context.Context, offset int64) error {
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

func (t *lease) known(offset int64) (bool, error) {
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

func (t *lease) isLost() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lost
}

// readOn looks for records of another owner in everything written so far. Compaction may have removed the next owner's
// claim, but then a later claim remains. The caller must hold t.reading.
func (t *lease) readOn(ctx context.Context) error {
	t.mu.Lock()
	next, least := t.next, t.end
	t.mu.Unlock()
	lost := false
	end, err := t.log.ReadOn(ctx, t.partition, next, least, func(r kafkalog.Record) error {
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

// Get implements Backend. It frees the chunks that were kept when the lease began.
func (t *lease) Get(name string, generation uint64) ([]byte, error) {
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

// GetPiece implements pieceReader. It reads only the chunks that contain the piece.
func (t *lease) GetPiece(name string, generation, offset, length uint64) ([]byte, error) {
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
	err = t.log.Read(ctx, t.partition, left[0].offset, left[len(left)-1].offset+1, func(r kafkalog.Record) error {
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

// segment returns a segment whose manifest is readable. The errors are those of Get.
func (t *lease) segment(name string, generation uint64) (*segment, error) {
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
func (t *lease) fetch(ctx context.Context, s *segment) ([][]byte, error) {
	found := map[string][]byte{}
	err := t.log.Read(ctx, t.partition, s.first, s.last, func(r kafkalog.Record) error {
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

// missing returns the error for chunks that do not match the manifest. It is a *DamagedError, unless the next owner has
// removed chunks that it no longer needs.
func (t *lease) missing(ctx context.Context, name string, generation uint64) error {
	t.reading.Lock()
	defer t.reading.Unlock()
	if err := t.readOn(ctx); err != nil {
		return err
	}
	if t.isLost() {
		return ingest.ErrFenced
	}
	return &DamagedError{Where: t.Where(name, generation), Topic: t.topic, Why: "its chunks do not match its manifest"}
}

// Where implements Backend.
func (t *lease) Where(name string, generation uint64) string {
	return fmt.Sprintf("%[2]q, generation %[1]d, in partition %[3]d of topic %[4]s", generation, name, t.partition, t.topic)
}

// Generations implements Backend. It omits unfinished segments.
func (t *lease) Generations(name string) ([]uint64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.segments[name])), nil
}

// Remove implements Backend. The tombstones of the segment are sent with the next writes.
func (t *lease) Remove(name string, generation uint64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.segments[name][generation]; s != nil {
		t.dead = append(t.dead, s.keys...)
		delete(t.segments[name], generation)
	}
	return nil
}

// Names implements Backend.
func (t *lease) Names(prefix string) ([]string, error) {
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
