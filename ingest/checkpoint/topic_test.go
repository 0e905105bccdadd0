package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// memoryLog is a compacted topic in memory.
type memoryLog struct {
	partitions [][]ingest.LogRecord
	offset     int64
	fail       int // records that are still taken; negative for all
}

var errLogFull = errors.New("the topic takes no more")

func newMemoryLog(partitions int) *memoryLog {
	return &memoryLog{partitions: make([][]ingest.LogRecord, partitions), fail: -1}
}

func (l *memoryLog) Partitions(context.Context) (int, error) { return len(l.partitions), nil }

func (l *memoryLog) Read(_ context.Context, partition int, visit func(ingest.LogRecord) error) error {
	for _, r := range l.partitions[partition] {
		if err := visit(r); err != nil {
			return err
		}
	}
	return nil
}

func (l *memoryLog) Append(_ context.Context, partition int, records ...ingest.LogRecord) error {
	for _, r := range records {
		if l.fail == 0 {
			return errLogFull
		}
		l.fail--
		r.Key, r.Value, r.Offset = bytes.Clone(r.Key), bytes.Clone(r.Value), l.offset
		l.offset++
		l.partitions[partition] = append(l.partitions[partition], r)
	}
	return nil
}

// compact keeps the last record of every key, and no tombstones.
func (l *memoryLog) compact() {
	for i, records := range l.partitions {
		last := map[string]int64{}
		for _, r := range records {
			last[string(r.Key)] = r.Offset
		}
		l.partitions[i] = slices.DeleteFunc(records, func(r ingest.LogRecord) bool {
			return last[string(r.Key)] != r.Offset || len(r.Value) == 0
		})
	}
}

func (l *memoryLog) records() (n int) {
	for _, p := range l.partitions {
		n += len(p)
	}
	return n
}

func randomBytes(n int) []byte {
	out := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(n), byte(n >> 8), byte(n >> 16)}).Read(out) // it cannot fail
	return out
}

// What is read is what was written, by the writer and by whoever comes after it, before and after compaction.
func TestTopicGivesBackSegments(t *testing.T) {
	l := newMemoryLog(3)
	writer := &topic{log: l}
	sizes := []int{0, 1, ingest.MaxLogRecord, 2*ingest.MaxLogRecord + 3}
	name := func(i int) string { return fmt.Sprint("partition-agent-telemetry-", i) }
	for i, size := range sizes {
		for g := range uint64(3) {
			if err := writer.Put(name(i), g+1, randomBytes(size+int(g))); err != nil {
				t.Fatal(err)
			}
		}
		if err := writer.Remove(name(i), 1); err != nil {
			t.Fatal(err)
		}
	}
	check := func(reader *topic) {
		t.Helper()
		for i, size := range sizes {
			if got, err := reader.Generations(name(i)); err != nil || !slices.Equal(got, []uint64{2, 3}) {
				t.Fatalf("generations %v, %v", got, err)
			}
			for g := uint64(2); g <= 3; g++ {
				if got, err := reader.Get(name(i), g); err != nil || !bytes.Equal(got, randomBytes(size+int(g)-1)) {
					t.Errorf("%s, generation %d: %d bytes, %v", name(i), g, len(got), err)
				}
			}
			if _, err := reader.Get(name(i), 1); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a removed generation gives %v", err)
			}
		}
		if got, err := reader.Names("partition-"); err != nil || len(got) != len(sizes) {
			t.Errorf("names %v, %v", got, err)
		}
	}
	check(writer)
	check(&topic{log: l})
	before := l.records()
	l.compact()
	if l.records() >= before {
		t.Fatal("compaction has removed nothing")
	}
	check(&topic{log: l})
	check(writer)
}

// The state of a telemetry partition is in the partition of the same number, for the instance that gets it.
func TestTopicPartitions(t *testing.T) {
	for partition := range 7 {
		if got := partitionOf(ingest.PartitionCheckpoint("agent-telemetry", int32(partition)), 7); got != partition {
			t.Errorf("partition %d is kept in %d", partition, got)
		}
	}
	for _, name := range []string{"bank-ranker", "partition-x", "partition-x--3"} {
		if got := partitionOf(name, 7); got < 0 || got >= 7 {
			t.Errorf("%s is kept in %d", name, got)
		}
	}
}

// However a write is cut short, the segment before is what there is; what was left behind goes with the next removal.
func TestTopicWriteThatIsCutShort(t *testing.T) {
	segment := randomBytes(3 * ingest.MaxLogRecord)
	for taken := range 4 { // three chunks and a manifest
		l := newMemoryLog(1)
		writer := &topic{log: l}
		if err := writer.Put("bank-a", 1, []byte("good")); err != nil {
			t.Fatal(err)
		}
		l.fail = taken
		if err := writer.Put("bank-a", 2, segment); !errors.Is(err, errLogFull) {
			t.Fatal(err)
		}
		l.fail = -1
		reader := &topic{log: l}
		if got, err := reader.Generations("bank-a"); err != nil || !slices.Equal(got, []uint64{1}) {
			t.Fatalf("after %d records: generations %v, %v", taken, got, err)
		}
		if err := reader.Put("bank-a", 3, []byte("next")); err != nil {
			t.Fatal(err)
		}
		if err := reader.Remove("bank-a", 2); err != nil {
			t.Fatal(err)
		}
		l.compact()
		if got := l.records(); got != 4 { // generations 1 and 3, each a chunk and a manifest
			t.Errorf("after %d records: %d are left", taken, got)
		}
	}
}

// Whatever byte of a segment is changed or missing, it is refused.
func TestTopicDamage(t *testing.T) {
	segment := randomBytes(ingest.MaxLogRecord + 100)
	whole := newMemoryLog(1)
	if err := (&topic{log: whole}).Put("bank-a", 1, segment); err != nil {
		t.Fatal(err)
	}
	refused := func(what string, change func(records []ingest.LogRecord) []ingest.LogRecord) {
		t.Helper()
		var records []ingest.LogRecord
		for _, r := range whole.partitions[0] {
			r.Key, r.Value = bytes.Clone(r.Key), bytes.Clone(r.Value)
			records = append(records, r)
		}
		damaged := &topic{log: &memoryLog{partitions: [][]ingest.LogRecord{change(records)}}}
		if got, err := damaged.Get("bank-a", 1); err == nil {
			t.Errorf("%s goes unseen: %d bytes", what, len(got))
		}
	}
	for i := range whole.partitions[0] {
		refused(fmt.Sprint("without record ", i), func(r []ingest.LogRecord) []ingest.LogRecord { return slices.Delete(r, i, i+1) })
	}
	for i, r := range whole.partitions[0] {
		for at := 0; at < len(r.Value); at += max(1, len(r.Value)/97) {
			refused(fmt.Sprintf("byte %d of record %d", at, i), func(records []ingest.LogRecord) []ingest.LogRecord {
				records[i].Value[at] ^= 0x10
				return records
			})
		}
	}
	if err := (&topic{log: &memoryLog{partitions: [][]ingest.LogRecord{{{Key: []byte("stranger"), Value: []byte("x")}}}}}).Put("bank-a", 1, nil); err == nil {
		t.Error("a topic of other things is taken")
	}
}

// An owner of old that still writes neither wins nor damages what the new owner has written.
func TestTopicOfAnOwnerOfOld(t *testing.T) {
	l := newMemoryLog(1)
	old, present := &topic{log: l}, &topic{log: l}
	steps := []struct {
		by         *topic
		generation uint64
	}{{old, 1<<28 + 1}, {present, 2<<28 + 1}, {old, 1<<28 + 2}, {present, 2<<28 + 2}, {old, 1<<28 + 3}}
	for _, s := range steps {
		if err := s.by.Put("bank-a", s.generation, fmt.Appendf(nil, "%x", s.generation)); err != nil {
			t.Fatal(err)
		}
	}
	if err := old.Remove("bank-a", 1<<28+1); err != nil {
		t.Fatal(err)
	}
	l.compact()
	reader := &topic{log: l}
	held, err := reader.Generations("bank-a")
	if err != nil || len(held) == 0 || held[len(held)-1] != 2<<28+2 {
		t.Fatalf("generations %x, %v", held, err)
	}
	if got, err := reader.Get("bank-a", 2<<28+2); err != nil || string(got) != fmt.Sprintf("%x", 2<<28+2) {
		t.Errorf("the newest holds %q, %v", got, err)
	}
}

// A store over a topic is what it is over a directory: a map that outlives full disks, compaction and new owners.
func TestStoreOverATopic(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 5 {
		l := newMemoryLog(2)
		s := openStore(&topic{log: l})
		want := ingest.Parts{}
		for range 40 {
			changed := ingest.Parts{}
			for range 1 + rng.IntN(3) {
				changed[fmt.Sprint("part/", rng.IntN(6))] = randomBytes(rng.IntN(ingest.MaxLogRecord))
			}
			if rng.IntN(6) == 0 {
				l.fail = rng.IntN(4)
				if err := s.Save("bank-a", changed, nil); err != nil && !errors.Is(err, errLogFull) {
					t.Fatal(err)
				}
				l.fail = -1
			}
			mustSave(t, s, "bank-a", changed)
			for part, data := range changed {
				want[part] = data
			}
			if rng.IntN(6) == 0 {
				l.compact()
			}
			if rng.IntN(6) == 0 {
				s = openStore(&topic{log: l})
				wantLoad(t, s, "bank-a", want)
			}
		}
	}
}
