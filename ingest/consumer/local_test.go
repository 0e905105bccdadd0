package consumer_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/consumer"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
	"github.com/rewardwatch/rewardwatch/ingest/locallog"
	"github.com/rewardwatch/rewardwatch/ingest/telemetry"
)

// localBench is a local log with the state that its consumers share.
type localBench struct {
	t         testing.TB
	directory string
	store     *ingesttest.Store
	letters   *ingesttest.Letters
	written   int
	metrics   *prometheus.Registry // of the last run
}

func newLocalBench(t testing.TB) *localBench {
	return &localBench{t: t, directory: t.TempDir(), store: ingesttest.NewStore(), letters: &ingesttest.Letters{}}
}

func (b *localBench) open() *locallog.Log {
	b.t.Helper()
	l, err := locallog.Open(locallog.Options{
		Name: "telemetry", Directory: b.directory, MaxSize: 64 << 10, SegmentSize: 4 << 10, Log: zerolog.Nop(), Registerer: prometheus.NewRegistry(),
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = l.Close() }) // the test has closed it or has failed
	return l
}

// append appends the next messages.
func (b *localBench) append(l *locallog.Log, messages int) {
	b.t.Helper()
	for range messages {
		if _, err := l.Append(b.t.Context(), locallog.Record{Value: value(b.written)}); err != nil {
			b.t.Fatal(err)
		}
		b.written++
	}
}

// run reads the log until stop is called.
func (b *localBench) run(l *locallog.Log, h ingest.Handler, every time.Duration) (c *consumer.Consumer, stop func() error) {
	b.t.Helper()
	b.metrics = prometheus.NewPedanticRegistry()
	c, err := consumer.NewLocal(l, consumer.Options{
		Stores: b.store, CheckpointEvery: every, Topics: []ingest.Topic{{Name: "http", Format: telemetry.V1{}}},
		DeadLetters: b.letters, Handler: h, Log: zerolog.Nop(), Registerer: b.metrics,
	})
	if err != nil {
		b.t.Fatal(err)
	}
	c.SetMaxWait(20 * time.Millisecond)
	ctx, end := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- c.Run(ctx) }()
	return c, func() error {
		end()
		return <-ran
	}
}

func offsets(seen []ingesttest.Seen) (out []int64) {
	for _, s := range seen {
		out = append(out, s.Pos.Offset)
	}
	return out
}

// Each record of a log is in the state exactly once, even across restarts, and if only an earlier checkpoint remains.
func TestLocalLogIsReadOnce(t *testing.T) {
	b := newLocalBench(t)
	var early ingest.Parts
	for life := range 4 {
		l, h := b.open(), ingesttest.NewRecorder()
		b.append(l, 50)
		c, stop := b.run(l, h, time.Hour)
		b.append(l, 50)
		if err := h.Await(waitContext(t), func() bool { return len(h.Events(0)) == b.written && h.Idle(0) > 0 }); err != nil {
			t.Fatalf("life %d: %d events of %d: %v", life, len(h.Events(0)), b.written, err)
		}
		if err := c.Ready(); err != nil {
			t.Errorf("not ready: %v", err)
		}
		for name, want := range map[string]int{ingest.MetricNextOffset: 1, ingest.MetricHeadroom: 0} { // unread records are never removed
			if n, err := testutil.GatherAndCount(b.metrics, name); n != want || err != nil {
				t.Errorf("%d series of %s, %v; want %d", n, name, err, want)
			}
		}
		want := make([]int64, b.written)
		for i := range want {
			want[i] = int64(i)
		}
		if got := offsets(h.Events(0)); !slices.Equal(got, want) {
			t.Fatalf("life %d: %v", life, got)
		}
		if err := errors.Join(stop(), l.Close()); err != nil {
			t.Fatal(err)
		}
		name := consumer.PartitionCheckpoint("http", 0)
		switch life {
		case 1:
			saved, err := b.store.Load(name)
			if err != nil {
				t.Fatal(err)
			}
			early = saved
		case 2:
			b.store.Put(name, early) // the later save is damaged
		}
	}
}

func TestLocalLogRefusesRecordsThatAreNoTelemetry(t *testing.T) {
	b := newLocalBench(t)
	l, h := b.open(), ingesttest.NewRecorder()
	b.append(l, 1)
	if _, err := l.Append(t.Context(), locallog.Record{Value: []byte("{}\n")}); err != nil {
		t.Fatal(err)
	}
	b.append(l, 1)
	_, stop := b.run(l, h, time.Hour)
	if err := h.Await(waitContext(t), func() bool { return len(h.Events(0)) == 2 }); err != nil {
		t.Fatal(err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	kept := b.letters.Kept()
	if len(kept) != 1 || kept[0].Topic != "http" || kept[0].Pos.Offset != 1 || kept[0].Reason != ingest.ReasonMissingPolicy {
		t.Errorf("dead letters: %+v", kept)
	}
}

// Only records that are in two checkpoints may be removed.
func TestLocalLogIsReleasedByCheckpoints(t *testing.T) {
	b := newLocalBench(t)
	l, h := b.open(), ingesttest.NewRecorder()
	_, stop := b.run(l, h, 0) // with every batch
	for range 2000 {
		b.append(l, 1)
		if b.written%100 == 0 {
			if err := h.Await(waitContext(t), func() bool { return len(h.Events(0)) == b.written }); err != nil {
				t.Fatal(err)
			}
		}
	}
	first, next := l.Ends()
	if first == 0 || next != 2000 {
		t.Errorf("the log has %d to %d", first, next)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	// While nothing is saved, nothing is removed, and the log fills up.
	b.store.Fill()
	_, stop = b.run(l, ingesttest.NewRecorder(), 0)
	before, _ := l.Ends()
	var err error
	for err == nil {
		_, err = l.Append(t.Context(), locallog.Record{Value: value(b.written)})
	}
	if after, _ := l.Ends(); !errors.Is(err, locallog.ErrFull) || after > next {
		t.Errorf("%v; the log began at %d, and now at %d", err, before, after)
	}
	b.store.Free()
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestLocalLogThatDoesNotFitStopsTheConsumer(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, b *localBench)
		want  error
		says  string
	}{
		"damaged": {func(t *testing.T, b *localBench) {
			files, err := filepath.Glob(filepath.Join(b.directory, "*.log"))
			if err != nil || len(files) < 3 {
				t.Fatal(files, err)
			}
			text, err := os.ReadFile(files[1])
			if err != nil {
				t.Fatal(err)
			}
			text[100] ^= 1
			if err := os.WriteFile(files[1], text, 0o600); err != nil {
				t.Fatal(err)
			}
			b.store = ingesttest.NewStore() // so that it is read
			if err := os.Remove(filepath.Join(b.directory, "committed")); err != nil {
				t.Fatal(err)
			}
		}, locallog.ErrDamaged, ".log, from byte "},
		"gone": {func(_ *testing.T, b *localBench) { b.directory = t.TempDir() }, consumer.ErrOffsetPastEnd, "move its checkpoint partition-http-0 and "},
		"another": {func(t *testing.T, b *localBench) {
			b.directory, b.written = t.TempDir(), 1000
			l := b.open()
			b.append(l, 300)
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}, consumer.ErrTopicRecreated, "restore the missing segments of the log, or move its checkpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newLocalBench(t)
			l, h := b.open(), ingesttest.NewRecorder()
			b.append(l, 200)
			_, stop := b.run(l, h, time.Hour)
			if err := h.Await(waitContext(t), func() bool { return len(h.Events(0)) == 200 }); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(stop(), l.Close()); err != nil {
				t.Fatal(err)
			}
			c.spoil(t, b)
			l = b.open()
			again, err := consumer.NewLocal(l, consumer.Options{
				Stores: b.store, CheckpointEvery: time.Hour, Topics: []ingest.Topic{{Name: "http", Format: telemetry.V1{}}},
				DeadLetters: b.letters, Handler: ingesttest.NewRecorder(), Log: zerolog.Nop(), Registerer: prometheus.NewRegistry(),
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := again.Run(waitContext(t)); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
