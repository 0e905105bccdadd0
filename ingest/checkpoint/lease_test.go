package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/kafkalog"
)

// memoryLog is one partition of a compacted topic in memory.
type memoryLog struct {
	records []kafkalog.Record
	end     int64
	fail    int // requests that still succeed; negative for all
	reads   int // number of records that were read back
}

var errLogFull = errors.New("the topic takes no more")

func newMemoryLog() *memoryLog { return &memoryLog{fail: -1} }

func (l *memoryLog) ReadOn(ctx context.Context, partition int, from, _ int64, visit func(kafkalog.Record) error) (int64, error) {
	end := l.end
	return end, l.Read(ctx, partition, from, end, visit)
}

func (l *memoryLog) Read(_ context.Context, _ int, from, to int64, visit func(kafkalog.Record) error) error {
	for _, r := range l.records {
		if r.Offset < from || r.Offset >= to {
			continue
		}
		l.reads++
		if err := visit(kafkalog.Record{Key: bytes.Clone(r.Key), Value: bytes.Clone(r.Value), Offset: r.Offset}); err != nil {
			return err
		}
	}
	return nil
}

func (l *memoryLog) AppendFresh(_ context.Context, _ int, fresh func() []kafkalog.Record) ([]kafkalog.Record, error) {
	records := fresh()
	if l.fail == 0 {
		return nil, errLogFull
	}
	l.fail--
	l.write(records)
	return records, nil
}

// write appends records, and sets their offsets.
func (l *memoryLog) write(records []kafkalog.Record) {
	for i := range records {
		records[i].Offset = l.end
		l.end++
		l.records = append(l.records, kafkalog.Record{
			Key: bytes.Clone(records[i].Key), Value: bytes.Clone(records[i].Value), Offset: records[i].Offset,
		})
	}
}

// compact keeps the last record of every key before an offset, and those tombstones for which keep returns true.
func (l *memoryLog) compact(before int64, keep func() bool) {
	last := map[string]int64{}
	for _, r := range l.records {
		if r.Offset < before {
			last[string(r.Key)] = r.Offset
		}
	}
	l.records = slices.DeleteFunc(l.records, func(r kafkalog.Record) bool {
		return r.Offset < before && (last[string(r.Key)] != r.Offset || len(r.Value) == 0 && !keep())
	})
}

func never() bool { return false }

// copied returns a copy of the log.
func (l *memoryLog) copied() *memoryLog {
	return &memoryLog{records: slices.Clone(l.records), end: l.end, fail: -1}
}

const scope = "agent-telemetry/3"

// testChunk is small, so that small segments have several chunks.
const testChunk = 64

// open takes over the scope.
func open(t testing.TB, l recordLog) *lease {
	t.Helper()
	held, err := tryOpen(l)
	if err != nil {
		t.Fatal(err)
	}
	return held
}

func tryOpen(l recordLog) (*lease, error) {
	held := newLease(l, "state", 0, scope)
	held.chunk = testChunk
	return held, held.begin(context.Background(), func() error { return nil })
}

func randomBytes(n int) []byte {
	out := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(n), byte(n >> 8), byte(n >> 16)}).Read(out) // never fails
	return out
}

func (t *lease) noteTexts() map[string]string {
	out := map[string]string{}
	t.readNotes(func(key string, value []byte) { out[key] = string(value) })
	return out
}

// The writer and all later owners read what was written, before and after compaction.
func TestLeaseGivesBackSegments(t *testing.T) {
	l := newMemoryLog()
	writer := open(t, l)
	l.reads = 0
	sizes := []int{0, 1, testChunk, 2*testChunk + 3}
	name := func(i int) string { return fmt.Sprint("bank-\x00-", i) }
	for i, size := range sizes {
		for g := range uint64(3) {
			mustPut(t, writer, name(i), g+1, randomBytes(size+int(g)))
		}
		if err := writer.Remove(name(i), 1); err != nil {
			t.Fatal(err)
		}
	}
	check := func(reader *lease) {
		t.Helper()
		for i, size := range sizes {
			if got, err := reader.Generations(name(i)); err != nil || !slices.Equal(got, []uint64{2, 3}) {
				t.Fatalf("generations %v, %v", got, err)
			}
			for g := uint64(2); g <= 3; g++ {
				for range 2 { // from the records kept since opening, and from the topic
					if got, err := reader.Get(name(i), g); err != nil || !bytes.Equal(got, randomBytes(size+int(g)-1)) {
						t.Errorf("%q, generation %d: %d bytes, %v", name(i), g, len(got), err)
					}
				}
			}
			if _, err := reader.Get(name(i), 1); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a removed generation gives %v", err)
			}
		}
		if got, err := reader.Names("bank-"); err != nil || len(got) != len(sizes) {
			t.Errorf("names %v, %v", got, err)
		}
	}
	mustPut(t, writer, "last", 1, nil) // the tombstones are sent along
	if l.reads > 0 {
		t.Errorf("the only writer has read %d records back", l.reads)
	}
	check(writer)
	check(open(t, l))
	before := len(l.records)
	l.compact(l.end, never)
	if len(l.records) >= before {
		t.Fatal("compaction has removed nothing")
	}
	check(open(t, l))
}

// The writer and all later owners can read a part of a segment without reading the rest.
func TestLeaseGivesPieces(t *testing.T) {
	l := newMemoryLog()
	held := open(t, l)
	data := randomBytes(5*testChunk + 7)
	mustPut(t, held, "bank-a", 1, data)
	for _, who := range []string{"the writer", "the next owner"} {
		for from := uint64(0); from <= uint64(len(data)); from += 9 {
			for _, length := range []uint64{0, 1, 9, testChunk, 3 * testChunk} {
				l.reads = 0
				got, err := held.GetPiece("bank-a", 1, from, length)
				if from+length > uint64(len(data)) {
					if !isDamage(err) {
						t.Errorf("%s: a piece behind the end gives %v", who, err)
					}
					continue
				}
				if err != nil || !bytes.Equal(got, data[from:from+length]) {
					t.Fatalf("%s: %d bytes from %d: %d bytes, %v", who, length, from, len(got), err)
				}
				if most := int(length+testChunk-2)/testChunk + 1; l.reads > most {
					t.Errorf("%s: %d bytes from %d: %d chunks are read", who, length, from, l.reads)
				}
			}
		}
		if _, err := held.GetPiece("bank-a", 1, 1<<63, 1<<63); !isDamage(err) {
			t.Errorf("%s: an impossible piece gives %v", who, err)
		}
		if _, err := held.GetPiece("bank-a", 2, 0, 1); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: a piece of nothing gives %v", who, err)
		}
		held = open(t, l)
	}
	l.records = slices.Delete(l.records, 2, 3) // the second chunk
	for _, who := range []string{"who has seen all", "the next owner"} {
		if _, err := held.GetPiece("bank-a", 1, 0, 3*testChunk); !isDamage(err) {
			t.Errorf("%s: without a chunk %v", who, err)
		}
		if got, err := held.GetPiece("bank-a", 1, 0, testChunk); err != nil || !bytes.Equal(got, data[:testChunk]) {
			t.Errorf("%s: what is whole is %d bytes, %v", who, len(got), err)
		}
		held = open(t, l)
	}
}

// If a write is interrupted at any point, the previous segment remains. The next owner removes the remains of the
// write.
func TestLeaseWriteThatIsCutShort(t *testing.T) {
	segment := randomBytes(3 * testChunk)
	for taken := range 3 { // two chunks, and one with the manifest
		l := newMemoryLog()
		writer := open(t, l)
		mustPut(t, writer, "bank-a", 1, []byte("good"))
		l.fail = taken
		if err := writer.Put("bank-a", 2, segment); !errors.Is(err, errLogFull) {
			t.Fatal(err)
		}
		l.fail = -1
		reader := open(t, l)
		if got, err := reader.Generations("bank-a"); err != nil || !slices.Equal(got, []uint64{1}) {
			t.Fatalf("after %d requests: generations %v, %v", taken, got, err)
		}
		mustPut(t, reader, "bank-a", 2, []byte("next"))
		l.compact(l.end, never)
		if got := len(l.records); got != 5 { // one claim, and generations 1 and 2 with a chunk and a manifest each
			t.Errorf("after %d requests: %d are left", taken, got)
		}
	}
}

// A writer that retries removes the records of failed attempts once it is known that they failed.
func TestLeaseGivesUpWhatItWroteInVain(t *testing.T) {
	l := newMemoryLog()
	writer := open(t, l)
	l.fail = 2
	if err := writer.Put("bank-a", 1, randomBytes(3*testChunk)); !errors.Is(err, errLogFull) {
		t.Fatal(err)
	}
	l.fail = -1
	mustPut(t, writer, "bank-a", 1, []byte("good"))
	mustPut(t, writer, "bank-b", 1, []byte("good"))
	l.compact(l.end, never)
	if got := len(l.records); got != 5 {
		t.Errorf("%d records are left, want a claim, two chunks and two manifests", got)
	}
}

// slowLog is slow to respond to every request.
type slowLog struct {
	*memoryLog
	takes time.Duration
}

func (l *slowLog) AppendFresh(ctx context.Context, partition int, fresh func() []kafkalog.Record) ([]kafkalog.Record, error) {
	select {
	case <-time.After(l.takes):
		return l.memoryLog.AppendFresh(ctx, partition, fresh)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// A checkpoint is written regardless of how long this takes, as long as there is progress.
func TestLeaseWritesAsLongAsItGetsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &slowLog{newMemoryLog(), topicWrite - time.Second}
		writer := open(t, l)
		mustPut(t, writer, "bank-a", 1, randomBytes(10*testChunk))
		mustPut(t, writer, "bank-a", 2, nil)
		if err := writer.Remove("bank-a", 1); err != nil {
			t.Fatal(err)
		}
		l.takes = topicWrite + time.Second
		if err := writer.Put("bank-a", 3, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("without an answer it gives %v", err)
		}
		l.takes = 0
		mustPut(t, writer, "bank-a", 3, nil)
		l.compact(l.end, never)
		if got := len(l.records); got != 3 { // one claim and two manifests
			t.Errorf("%d records are left", got)
		}
	})
}

// An owner that has lost the scope learns of this with its next write. The write does not count, and does no harm.
func TestLeaseOfAnOwnerOfOld(t *testing.T) {
	l := newMemoryLog()
	old := open(t, l)
	mustPut(t, old, "bank-a", 1, []byte("one"))
	mustPut(t, old, "bank-a", 2, []byte("two"))
	if err := old.note(t.Context(), "k", []byte("told")); err != nil {
		t.Fatal(err)
	}
	present := open(t, l)
	if err := old.Remove("bank-a", 1); err != nil { // as in the store after its last save
		t.Fatal(err)
	}
	if err := old.note(t.Context(), "k", nil); !errors.Is(err, ingest.ErrFenced) {
		t.Errorf("a note of an owner of old: %v", err)
	}
	if err := old.Put("bank-a", 3, []byte("old three")); !errors.Is(err, ingest.ErrFenced) {
		t.Errorf("a segment of an owner of old: %v", err)
	}
	mustPut(t, present, "bank-a", 3, []byte("three"))
	l.compact(l.end, never)
	for range 3 {
		reader := open(t, l)
		for generation, want := range map[uint64]string{2: "two", 3: "three"} {
			if got, err := reader.Get("bank-a", generation); err != nil || string(got) != want {
				t.Errorf("generation %d holds %q, %v", generation, got, err)
			}
		}
		if got := reader.noteTexts(); !maps.Equal(got, map[string]string{"k": "told"}) {
			t.Errorf("notes %v", got)
		}
		mustPut(t, reader, "bank-b", 1, nil)
		l.compact(l.end, never)
	}
}

// An owner that cannot prove ownership of the scope does not claim it, and one that was suspended before its claim is
// too late.
func TestLeaseNeedsAnOwner(t *testing.T) {
	l := newMemoryLog()
	first := open(t, l)
	lost := errors.New("another generation has begun")
	claims := l.end
	if err := newLease(l, "state", 0, scope).begin(t.Context(), func() error { return lost }); !errors.Is(err, lost) || l.end != claims {
		t.Fatalf("%v, %d claims", err, l.end)
	}
	asked := 0
	late := newLease(l, "state", 0, scope)
	err := late.begin(t.Context(), func() error {
		if asked++; asked == 1 {
			first = open(t, l) // the next owner, while the late one is suspended
			return nil
		}
		return lost
	})
	if !errors.Is(err, lost) {
		t.Errorf("the late claim gives %v", err)
	}
	mustPut(t, first, "bank-a", 1, nil)
}

// The scopes in a partition are independent.
func TestLeasesOfSeveralScopes(t *testing.T) {
	l := newMemoryLog()
	a := open(t, l)
	b := newLease(l, "state", 0, "agent-telemetry/7")
	if err := b.begin(t.Context(), func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	for g := range uint64(3) {
		mustPut(t, a, "bank-a", g+1, []byte("a"))
		mustPut(t, b, "bank-a", g+1, []byte("b"))
	}
	if got, err := open(t, l).Get("bank-a", 3); err != nil || string(got) != "a" {
		t.Errorf("%q, %v", got, err)
	}
	mustPut(t, b, "bank-a", 4, []byte("b"))
}

func TestJournal(t *testing.T) {
	l := newMemoryLog()
	j := open(t, l)
	for i := range 5 {
		for _, key := range []string{"x", "y\x00", "z"} {
			if err := j.note(t.Context(), key, fmt.Append(nil, i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := j.note(t.Context(), "z", nil); err != nil {
		t.Fatal(err)
	}
	if err := j.note(t.Context(), "x", []byte("5")); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"x": "5", "y\x00": "4"}
	for range 3 {
		if got := j.noteTexts(); !maps.Equal(got, want) {
			t.Errorf("holds %q", got)
		}
		mustPut(t, j, "bank-a", 1, nil) // the tombstones are sent along
		l.compact(l.end, never)
		j = open(t, l)
	}
	if len(l.records) != 2+2+2 { // claims and manifests that go with the next write, and the current ones
		t.Errorf("%d records are left", len(l.records))
	}
}

// Concurrently written notes and segments are ordered by their numbers.
func TestLeaseWritesAtTheSameTime(t *testing.T) {
	l := newMemoryLog()
	j := open(t, l)
	early := &writing{lease: j, of: kindNote + "k"}
	if err := early.append(t.Context(), func() []*foldedRecord {
		return []*foldedRecord{early.fresh(record{kind: kindNote, name: "k"}, seal([]byte("early")))}
	}); err != nil {
		t.Fatal(err)
	}
	if err := j.note(t.Context(), "k", []byte("late")); err != nil {
		t.Fatal(err)
	}
	if err := early.finish(t.Context(), nil, func() { j.noted(early.records[0]) }); err != nil {
		t.Fatal(err)
	}
	for _, j := range []*lease{j, open(t, l)} {
		if got := j.noteTexts()["k"]; got != "late" {
			t.Errorf("holds %q", got)
		}
	}
}

// twoOwners returns a log of a scope with two owners, the first of which continued to write after it had lost the
// scope. It also returns the content of the saves of the second owner, and the notes.
func twoOwners(t testing.TB) (l *memoryLog, before, newest ingest.Parts, notes map[string]string) {
	l = newMemoryLog()
	a := open(t, l)
	old := openStore(a)
	mustSave(t, old, "bank-a", parts("x", string(randomBytes(testChunk)), "y", "one"))
	mustSave(t, old, "bank-a", parts("y", "two"))
	if err := a.note(t.Context(), "k", []byte("first")); err != nil {
		t.Fatal(err)
	}
	b := open(t, l)
	s := openStore(b)
	if _, err := s.Load("bank-a"); err != nil {
		t.Fatal(err)
	}
	if err := old.Save("bank-a", parts("y", "zombie"), nil); !errors.Is(err, ingest.ErrFenced) {
		t.Fatal(err)
	}
	mustSave(t, s, "bank-a", parts("y", "three"))
	mustSave(t, s, "bank-a", parts("y", "four"))
	if err := b.note(t.Context(), "k", []byte("second")); err != nil {
		t.Fatal(err)
	}
	mustSave(t, s, "bank-a", parts("z", "five"))
	x := string(randomBytes(testChunk))
	return l, parts("x", x, "y", "four"), parts("x", x, "y", "four", "z", "five"), map[string]string{"k": "second"}
}

// If any byte of any record is changed, or any record is missing, the last save is loaded, the previous one, or an
// error is returned.
func TestLeaseDamage(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	whole, before, newest, notes := twoOwners(t)
	fallbacks, refused := 0, 0
	try := func(what string, records []kafkalog.Record) {
		t.Helper()
		l := whole.copied()
		l.records = records
		held, err := tryOpen(l)
		if err != nil {
			refused++
			return
		}
		s := openStore(held)
		got, err := s.Load("bank-a")
		switch {
		case err != nil:
			if !isDamage(err) {
				t.Errorf("%s: %v", what, err)
			}
			refused++
			return
		case maps.EqualFunc(got, before, samePart):
			fallbacks++
		case !maps.EqualFunc(got, newest, samePart):
			t.Errorf("%s: %q", what, got)
		}
		for key, text := range held.noteTexts() {
			if text != notes[key] && text != "first" {
				t.Errorf("%s: the note of %q is %q", what, key, text)
			}
		}
		mustSave(t, s, "bank-a", parts("y", "six"))
		got["y"] = []byte("six")
		wantLoad(t, openStore(open(t, l)), "bank-a", got)
	}
	try("nothing", whole.records)
	if fallbacks+refused > 0 {
		t.Fatal("an undamaged log is not read")
	}
	for i, r := range whole.records {
		try(fmt.Sprint("without record ", i), slices.Delete(slices.Clone(whole.records), i, i+1))
		flip := func(of string, b []byte, put func(r *kafkalog.Record, b []byte)) {
			for at := range b {
				records := slices.Clone(whole.records)
				flipped := bytes.Clone(b)
				flipped[at] ^= 1 << ((i + at) % 8)
				put(&records[i], flipped)
				try(fmt.Sprintf("byte %d of the %s of record %d", at, of, i), records)
			}
		}
		flip("key", r.Key, func(r *kafkalog.Record, b []byte) { r.Key = b })
		flip("value", r.Value, func(r *kafkalog.Record, b []byte) { r.Value = b })
	}
	if fallbacks == 0 {
		t.Error("it never goes back")
	}
}

// Unrelated records are reported when the scope is taken over and later.
func TestLeaseAmongForeignRecords(t *testing.T) {
	l := newMemoryLog()
	stranger := func() { l.write([]kafkalog.Record{{Key: []byte("stranger"), Value: []byte("x")}}) }
	stranger()
	told := 0
	held := newLease(l, "state", 0, scope)
	held.foreign = func(kafkalog.Record, error) { told++ }
	if err := held.begin(t.Context(), isOwner); err != nil {
		t.Fatal(err)
	}
	mustPut(t, held, "bank-a", 1, []byte("one"))
	stranger()
	mustPut(t, held, "bank-a", 2, []byte("two"))
	if told != 2 {
		t.Errorf("%d foreign records are told of", told)
	}
	if got, err := open(t, l).Get("bank-a", 2); err != nil || string(got) != "two" {
		t.Errorf("%q, %v", got, err)
	}
}

// A segment in a format that this build cannot read is distinguished from a damaged one, and does not cause a fallback.
func TestLeaseOfAnotherVersion(t *testing.T) {
	l := newMemoryLog()
	s := openStore(open(t, l))
	mustSave(t, s, "bank-a", parts("x", "one"))
	mustSave(t, s, "bank-a", parts("x", "two"))
	for i := range l.records {
		if text, whole := unseal(l.records[i].Value); whole && bytes.Contains(text, []byte(`"format":1`)) {
			l.records[i].Value = seal(bytes.Replace(text, []byte(`"format":1`), []byte(`"format":9`), 1))
		}
	}
	var version *VersionError
	if _, err := openStore(open(t, l)).Load("bank-a"); !errors.As(err, &version) || strings.Contains(err.Error(), "files") {
		t.Errorf("got %v", err)
	}
}

// An owner that restores slowly, while the next one has begun to remove records, learns that it has lost the scope
// rather than that its checkpoints are damaged.
func TestLeaseThatLosesWhatItReads(t *testing.T) {
	l := newMemoryLog()
	first := open(t, l)
	mustPut(t, first, "bank-a", 1, []byte("one"))
	slow := open(t, l)
	slow.release("bank-a")
	next := open(t, l)
	if err := next.Remove("bank-a", 1); err != nil {
		t.Fatal(err)
	}
	mustPut(t, next, "bank-a", 2, []byte("two"))
	l.compact(l.end, never)
	if _, err := slow.Get("bank-a", 1); !errors.Is(err, ingest.ErrFenced) {
		t.Errorf("got %v", err)
	}
}

// A store over a lease behaves like one over a directory: a map that survives outages, compaction and new owners.
func TestStoreOverALease(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		l := newMemoryLog()
		s := openStore(open(t, l))
		want := ingest.Parts{}
		for range 60 {
			changed := ingest.Parts{}
			for range 1 + rng.IntN(3) {
				changed[fmt.Sprint("part/", rng.IntN(6))] = randomBytes(rng.IntN(3 * testChunk))
			}
			if rng.IntN(6) == 0 {
				l.fail = rng.IntN(4)
				if err := s.Save("bank-a", changed, nil); err != nil && !errors.Is(err, errLogFull) {
					t.Fatal(err)
				}
				l.fail = -1
			}
			mustSave(t, s, "bank-a", changed)
			maps.Copy(want, changed)
			if rng.IntN(6) == 0 {
				l.compact(l.end, never)
			}
			if rng.IntN(6) == 0 {
				s = openStore(open(t, l))
				wantLoad(t, s, "bank-a", want)
			}
		}
	}
}
