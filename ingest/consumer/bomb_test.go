package consumer_test

import (
	"bytes"
	"context"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/segmentio/kafka-go/compress"
	"github.com/segmentio/kafka-go/compress/snappy"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/consumer"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
	"github.com/rewardwatch/rewardwatch/ingest/telemetry"
)

// around returns the records of a batch: one with size zeros between two small ones.
func around(size int) []ingesttest.Piece {
	return slices.Concat(ingesttest.Whole(0, value(0)), ingesttest.Record(1, ingesttest.Zeros(size)), ingesttest.Whole(2, value(2)))
}

// packed compresses pieces with a codec of kafka-go.
func packed(t *testing.T, codec compress.Codec, pieces []ingesttest.Piece) []byte {
	t.Helper()
	out, err := ingesttest.Pack(codec, pieces)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// watchHeap returns a function that returns the maximum growth of the heap in bytes until it is called.
func watchHeap() (stop func() uint64) {
	runtime.GC()
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	before, peak := now.HeapAlloc, now.HeapAlloc
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-ended:
				return
			case <-time.After(2 * time.Millisecond):
				runtime.ReadMemStats(&now)
				peak = max(peak, now.HeapAlloc)
			}
		}
	}()
	return func() uint64 {
		close(ended)
		<-done
		return peak - before
	}
}

// heldHeap returns the size of the heap in use, after memory in pools has been freed.
func heldHeap() int64 {
	runtime.GC()
	runtime.GC()
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	return int64(now.HeapAlloc)
}

// allocatedInAll returns the total allocated bytes, including freed ones.
func allocatedInAll() uint64 {
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	return now.TotalAlloc
}

// answerBelow makes the brokers respond to fetches below an offset with one record batch.
func answerBelow(b *bench, batch []byte, below int64) {
	b.broker.Cluster().ControlKey(int16(kmsg.Fetch), compactedFetch(b, batch, below))
}

const (
	bombSize  = 256 << 20
	bombLimit = 96 << 20 // of the heap; a snappy block or a zstd window may take 64 MiB
)

// A record that exceeds its limit when decompressed becomes a dead letter. The records around it are read, unless the
// batch can only be decompressed as a whole.
func TestSimDecompressionBombs(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	bomb := around(bombSize)
	for name, c := range map[string]struct {
		codec  compress.Compression
		packed []byte
		whole  bool // whether the whole batch is refused
	}{
		"gzip":                   {compress.Gzip, packed(t, compress.Gzip.Codec(), bomb), false},
		"lz4":                    {compress.Lz4, packed(t, compress.Lz4.Codec(), bomb), false},
		"zstd":                   {compress.Zstd, packed(t, compress.Zstd.Codec(), bomb), false},
		"xerial":                 {compress.Snappy, packed(t, &snappy.Codec{Framing: snappy.Framed}, bomb), false},
		"zstd by hand":           {compress.Zstd, ingesttest.PackZstd(bomb, false), false},
		"zstd in one segment":    {compress.Zstd, ingesttest.PackZstd(bomb, true), true},
		"snappy without framing": {compress.Snappy, ingesttest.PackSnappy(bomb), true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 1)
			b.produce(0, 4)
			answerBelow(b, ingesttest.Batch(c.codec, 3, c.packed), 3)
			stop := watchHeap()
			m := b.join()
			want := []int64{0, 2, 3}
			if c.whole {
				want = []int64{3}
			}
			m.await("the other records", func() bool { return m.Count() >= len(want) })
			b.awaitSaved(0, 4)
			m.stop()
			if grown := stop(); grown > bombLimit {
				t.Errorf("the heap grew by %d MiB, want at most %d", grown>>20, bombLimit>>20)
			}
			for i, e := range m.Events(0) {
				if e.Pos.Offset != want[i] {
					t.Errorf("event %d stands at %v, want offset %d", i, e.Pos, want[i])
				}
			}
			checkBombLetter(t, b, c.whole)
			if got := gathered(m, ingest.MetricOffsetGap, "0"); got != 0 {
				t.Errorf("%g records are missing, want none", got)
			}
		})
	}
}

func checkBombLetter(t *testing.T, b *bench, whole bool) {
	t.Helper()
	kept := b.letters.Kept()
	if len(kept) != 1 {
		t.Fatalf("%d dead letters, want 1", len(kept))
	}
	l := kept[0]
	switch {
	case l.Reason != ingest.ReasonTooLarge:
		t.Errorf("reason %s, want %s", l.Reason, ingest.ReasonTooLarge)
	case whole && (l.Pos.Offset != 0 || !strings.Contains(l.Msg, "3 records") || !strings.Contains(l.Msg, "offsets 0 to 2")):
		t.Errorf("dead letter of %v: %q, want one that names the records", l.Pos, l.Msg)
	case !whole && (l.Pos.Offset != 1 || l.Size != bombSize || len(l.Raw) != ingest.MaxDeadLetterRaw || !l.Truncated):
		t.Errorf("dead letter of %v with %d of %d bytes, want offset 1", l.Pos, len(l.Raw), l.Size)
	}
}

// The memory for a large window, or for a large block of snappy, is freed after the record batch.
func TestMemoryToDecompressIsGivenBack(t *testing.T) {
	const size = 48 << 20
	for name, c := range map[string]struct {
		codec  compress.Compression
		packed []byte
	}{
		"zstd":   {compress.Zstd, ingesttest.PackZstd(around(size), true)},
		"snappy": {compress.Snappy, ingesttest.PackSnappy(around(size))},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 1)
			b.produce(0, 4)
			answerBelow(b, ingesttest.Batch(c.codec, 3, c.packed), 3)
			before, allocated := heldHeap(), allocatedInAll()
			m := b.join()
			m.await("all but the large record", func() bool { return m.Count() >= 3 })
			b.awaitSaved(0, 4)
			m.await("idle", func() bool { return m.Idle(0) > 0 })
			if n := allocatedInAll() - allocated; n < size {
				t.Errorf("%d MiB were allocated: nothing was decompressed in memory", n>>20)
			}
			if kept := heldHeap() - before; kept > 16<<20 {
				t.Errorf("%d MiB are kept", kept>>20)
			}
			m.stop()
		})
	}
}

// A window that only becomes large after the first frame is refused, with the records in it.
func TestAFrameThatIsWiderThanTheFirst(t *testing.T) {
	b := newBench(t, 1)
	b.produce(0, 4)
	narrow := ingesttest.PackZstd(ingesttest.Whole(0, value(0)), true)
	wide := ingesttest.PackZstd(append(ingesttest.Record(1, ingesttest.Zeros(48<<20)), ingesttest.Whole(2, value(2))...), true)
	answerBelow(b, ingesttest.Batch(compress.Zstd, 3, append(narrow, wide...)), 3)
	stop := watchHeap()
	m := b.join()
	m.await("two events", func() bool { return m.Count() >= 2 })
	b.awaitSaved(0, 4)
	m.stop()
	if grown := stop(); grown > 24<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
	if e := m.Events(0); e[0].Pos.Offset != 0 || e[1].Pos.Offset != 3 {
		t.Errorf("events at %v and %v, want offsets 0 and 3", e[0].Pos, e[1].Pos)
	}
	if l := b.letters.Kept(); len(l) != 1 || !strings.Contains(l[0].Msg, "2 records at offsets 1 to 2 cannot be read") {
		t.Errorf("dead letters %+v, want one for the offsets 1 and 2", l)
	}
}

// If a record would take too long to skip, the records after it are refused with it.
func TestTheRestOfARecordBatchIsRefused(t *testing.T) {
	b := newBench(t, 1)
	b.produce(0, 4)
	pieces := around(5 << 30)
	answerBelow(b, ingesttest.Batch(compress.Zstd, 3, ingesttest.PackZstd(pieces, false)), 3)
	m := b.join()
	m.await("two events", func() bool { return m.Count() >= 2 })
	b.awaitSaved(0, 4)
	m.stop()
	if e := m.Events(0); e[0].Pos.Offset != 0 || e[1].Pos.Offset != 3 {
		t.Errorf("events at %v and %v, want offsets 0 and 3", e[0].Pos, e[1].Pos)
	}
	if l := b.letters.Kept(); len(l) != 1 || !strings.Contains(l[0].Msg, "2 records at offsets 1 to 2 cannot be read") {
		t.Errorf("dead letters %+v, want one for the offsets 1 and 2", l)
	}
}

// A large batch of small records is read as a stream.
func TestALargeBatchOfSmallRecords(t *testing.T) {
	const records = 300_000
	b := newBench(t, 1)
	var pieces []ingesttest.Piece
	padding := bytes.Repeat([]byte(" "), 100)[:100:100]
	for i := range records {
		pieces = append(pieces, ingesttest.Whole(int64(i), append(padding, value(i)...))...)
	}
	batch := ingesttest.Batch(compress.Zstd, records, packed(t, compress.Zstd.Codec(), pieces))
	size := 0
	for _, p := range pieces {
		size += len(p.Text)
	}
	answerBelow(b, batch, records)
	counts := &counting{want: records, reached: make(chan struct{})}
	stop := watchHeap()
	consumer, err := consumer.New(b.cfg, consumer.Options{
		Stores: b.store, CheckpointEvery: time.Second, Format: telemetry.V1{}, DeadLetters: b.letters, Handler: counts, Log: zerolog.Nop(),
		Registerer: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- consumer.Run(ctx) }()
	select {
	case <-counts.reached:
	case <-waitContext(t).Done():
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if grown := stop(); grown > 24<<20 {
		t.Errorf("the heap grew by %d MiB over a batch of %d MiB", grown>>20, size>>20)
	}
	if counts.events != records {
		t.Errorf("%d events, want %d", counts.events, records)
	}
}

// A bomb does not stop the reading of a recording either.
func TestReadTopicOverABomb(t *testing.T) {
	b := newBench(t, 1)
	b.produce(0, 4)
	pieces := around(bombSize)
	answerBelow(b, ingesttest.Batch(compress.Zstd, 3, ingesttest.PackZstd(pieces, false)), 3)
	stop := watchHeap()
	run, err := b.readTopic(0)
	if err != nil || run.counts.Accepted != 3 || len(run.refused) != 1 || run.refused[0].Size != bombSize {
		t.Errorf("counts %+v, refused %v, error %v", run.counts, run.refused, err)
	}
	if grown := stop(); grown > bombLimit {
		t.Errorf("the heap grew by %d MiB, want at most %d", grown>>20, bombLimit>>20)
	}
}
