package engine

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/detectors/capacity"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/checkpoint"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

// smallWorker returns a worker that has seen a few units.
func smallWorker(t testing.TB, units int64) *Worker {
	t.Helper()
	d := NewWorker("ranker", watch.DefaultConfig(), capacity.NewStreamLimit(100), newMemory())
	for i := range units {
		u := &ingest.Unit{
			Group: ingest.NewGroup("ranker"), Agent: "a", Episode: fmt.Sprint(i), Pos: ingest.Position{Offset: i}, Length: 3,
			HasReturn: true, Return: float64(i % 7), Events: 3,
		}
		if err := d.Observe(t.Context(), u, time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// feedImage returns the snapshot of a partition with an open episode and units that its workers may need again.
func feedImage(t testing.TB) []byte {
	t.Helper()
	cfg := DefaultSettings()
	p := newAlone(t.Context(), &cfg, newMemory(), newMemory(), prometheus.NewRegistry())
	f := p.Feed(0)
	for offset := range int64(8) {
		if err := f.Process(t.Context(), []ingest.Event{machineEvent(0, offset)}); err != nil {
			t.Fatal(err)
		}
	}
	var image bytes.Buffer
	if err := f.Snapshot(&image); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	return image.Bytes()
}

// With any byte of the latest save of a bank and of a partition flipped, and with the save cut to any length, exactly
// the content of the preceding save is restored.
func TestEveryDamageOfRealStateFallsBack(t *testing.T) {
	t.Parallel()
	saves := map[string][]ingest.Parts{"partition-telemetry-0": {{"state": feedImage(t)[:100]}, {"state": feedImage(t)}}}
	d := smallWorker(t, 12)
	for range 2 {
		parts, _, err := d.Changes()
		if err != nil {
			t.Fatal(err)
		}
		saves["bank-ranker"] = append(saves["bank-ranker"], parts)
		d.lost()
	}
	saves["bank-ranker"][0] = maps.Clone(saves["bank-ranker"][0])
	saves["bank-ranker"][0]["policy"] = []byte("another")
	for name, save := range saves {
		disk := ingesttest.NewSegments()
		store := checkpoint.NewStore(disk, zerolog.Nop(), prometheus.NewRegistry())
		for _, parts := range save {
			if err := store.Save(name, parts, nil); err != nil {
				t.Fatal(err)
			}
		}
		whole, err := disk.Get(name, 2)
		if err != nil {
			t.Fatal(err)
		}
		try := func(damaged []byte, what string, at int) {
			if err := disk.Put(name, 2, damaged); err != nil {
				t.Fatal(err)
			}
			got, err := store.Load(name)
			if err != nil || !maps.EqualFunc(got, save[0], bytes.Equal) {
				t.Fatalf("%s %s %d of %d: %v", name, what, at, len(whole), err)
			}
		}
		for i := range whole {
			damaged := slices.Clone(whole)
			damaged[i] ^= 1 << (i % 8)
			try(damaged, "flipped at", i)
			try(whole[:i], "cut to", i)
		}
	}
}

// FuzzFeedRestore looks for the state of a partition that makes it panic instead of returning an error.
func FuzzFeedRestore(f *testing.F) {
	f.Add(feedImage(f))
	f.Fuzz(func(t *testing.T, image []byte) {
		cfg := DefaultSettings()
		p := newAlone(t.Context(), &cfg, newMemory(), newMemory(), prometheus.NewRegistry())
		feed := p.Feed(0)
		_ = feed.Restore(bytes.NewReader(image))
		_ = p.Stop()
	})
}
