package engine

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/detectors/capacity"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/checkpoint"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

// The policies of a small fleet, and their groups.
const (
	smallPolicies = 6
	smallGroups   = 5
)

// newFleetWorker returns a worker of groups with baselines that have all seen the same.
func newFleetWorker(t *testing.T) *Worker {
	t.Helper()
	d := NewWorker("policy", watch.DefaultConfig(), capacity.NewStreamLimit(1000), newMemory())
	for g := range smallGroups {
		rng := rand.New(rand.NewPCG(1, 1))
		for n := range int64(benchUnits) {
			if err := d.Observe(t.Context(), ingesttest.Unit("policy", g, n, rng), time.Time{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return d
}

func changesOf(t *testing.T, d *Worker) ingest.Parts {
	t.Helper()
	d.lost()
	parts, _, err := d.Changes()
	if err != nil {
		t.Fatal(err)
	}
	return parts
}

// inOrder returns a part with sorted maps.
func inOrder(t *testing.T, part []byte) []byte {
	t.Helper()
	var content any
	if err := cbor.Unmarshal(part[1:], &content); err != nil {
		t.Fatal(err)
	}
	mode, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		t.Fatal(err)
	}
	ordered, err := mode.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	return ordered
}

// A restart restores exactly what was saved, and does not refer to the memory of the checkpoint, which is reused for
// the next one.
func TestARestoreKeepsNoMemoryOfTheCheckpoint(t *testing.T) {
	if testing.Short() {
		t.Skip("calibrates a baseline")
	}
	saved := changesOf(t, newFleetWorker(t))

	lent := ingest.Parts{}
	for name, part := range saved {
		lent[name] = bytes.Clone(part)
	}
	restored := NewWorker("policy", watch.DefaultConfig(), capacity.NewStreamLimit(1000), newMemory())
	if err := restored.restore(lent, time.Time{}); err != nil {
		t.Fatal(err)
	}
	for _, part := range lent {
		for i := range part {
			part[i] = 0xff
		}
	}
	again := changesOf(t, restored)
	if len(again) != len(saved) {
		t.Errorf("parts %q, want %q", slices.Sorted(maps.Keys(again)), slices.Sorted(maps.Keys(saved)))
	}
	for name, part := range again {
		if got, want := inOrder(t, part), inOrder(t, saved[name]); !bytes.Equal(got, want) {
			t.Errorf("part %s is not what it was", name)
		}
	}
}

// The number of allocations per group is limited, so that a fleet of 10,000 groups is restored within seconds.
func TestWorkOfARestore(t *testing.T) {
	if testing.Short() {
		t.Skip("calibrates a baseline")
	}
	saved := changesOf(t, newFleetWorker(t))
	directory, err := checkpoint.NewDirectory(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer directory.Close()
	store := checkpoint.NewStore(directory, zerolog.Nop(), prometheus.NewRegistry())
	var names []string
	for i := range smallPolicies {
		names = append(names, fmt.Sprint(BankPrefix, "policy-", i))
		if err := store.Save(names[i], saved, nil); err != nil {
			t.Fatal(err)
		}
	}
	restore := func() {
		cfg := DefaultSettings()
		p := newAlone(t.Context(), &cfg, store, newMemory(), prometheus.NewRegistry())
		if err := p.workers.Restore(t.Context(), names); err != nil {
			t.Fatal(err)
		}
		p.workers.Abandon(ErrGivenUp)
		_ = p.Stop()
	}
	restore() // allocates what is only allocated once
	// The counts are those of the process. Its other work only adds to them, so the minimum over several restores
	// counts.
	const groups = smallPolicies * smallGroups
	allocations, kilobytes := uint64(math.MaxUint64), uint64(math.MaxUint64)
	for range 5 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		restore()
		runtime.ReadMemStats(&after)
		allocations = min(allocations, (after.Mallocs-before.Mallocs)/groups)
		kilobytes = min(kilobytes, (after.TotalAlloc-before.TotalAlloc)/groups>>10)
	}
	t.Logf("a group of 11 streams took %d allocations and %d KiB", allocations, kilobytes)
	if allocations > 1600 || kilobytes > 800 {
		t.Errorf("a group of 11 streams took %d allocations and %d KiB, want 1,600 and 800 at most", allocations, kilobytes)
	}
}
