package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

func unitAt(partition int32, offset, ts int64, agent string) *ingest.Unit {
	return &ingest.Unit{Agent: agent, EndTS: ts, Pos: ingest.Position{Partition: partition, Offset: offset}}
}

func TestWatermarksWaitForEveryPartition(t *testing.T) {
	now := time.Unix(1000, 0)
	w := newWatermarks()
	w.assign(0, 0)
	if got := w.low(now); got != math.MaxInt64 {
		t.Errorf("a single partition waits until %d", got)
	}
	w.assign(1, 0)
	w.advance(0, 500e9, false)
	if got := w.low(now); got != 0 {
		t.Errorf("low is %d before partition 1 was read", got)
	}
	w.advance(1, 400e9, false)
	if got := w.low(now); got != 400e9 {
		t.Errorf("low is %d, want what partition 1 was read up to", got)
	}
	w.advance(1, 400e9, true)
	if got := w.low(now); got != 500e9 {
		t.Errorf("low is %d, want what partition 0 was read up to, as partition 1 is at its end", got)
	}
	w.advance(0, 500e9, true)
	if got, want := w.low(now), now.Add(-watermarkDelay).UnixNano(); got != want || !w.idle() {
		t.Errorf("low is %d with all at their ends, want %d", got, want)
	}
}

// Units of a partition that was revoked are forgotten: those of the others must not overtake them.
func TestRevokedPartitionHoldsTheOthersUntilTheNextGeneration(t *testing.T) {
	now := time.Unix(1000, 0)
	w := newWatermarks()
	w.assign(0, 100e9)
	w.assign(1, 100e9)
	w.advance(1, 300e9, true)
	w.revoke(0)
	if got := w.low(now); got != 100e9 {
		t.Errorf("low is %d after a partition was revoked, want %d", got, int64(100e9))
	}
	w.revoke(1)
	w.assign(1, 300e9)
	if got := w.low(now); got != math.MaxInt64 {
		t.Errorf("low is %d in a generation of one partition", got)
	}
}

// However the partitions are read, the units come in the order of (end time, agent), each partition's own order kept.
func TestMergeDoesNotDependOnWhoReadWhen(t *testing.T) {
	queues := make([][]*ingest.Unit, 3)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range int64(300) {
		p := rng.IntN(3)
		queues[p] = append(queues[p], unitAt(int32(p), i, i/2, string(rune('a'+p))))
	}
	merge := func(seed uint64) (order []int64) {
		rng := rand.New(rand.NewPCG(seed, 2))
		m := newMerger()
		next := make([]int, 3)
		take := func(low int64) {
			for u := m.release(low); u != nil; u = m.release(low) {
				order = append(order, u.Pos.Offset)
			}
		}
		for slices.ContainsFunc([]int{0, 1, 2}, func(p int) bool { return next[p] < len(queues[p]) }) {
			if p := rng.IntN(3); next[p] < len(queues[p]) {
				m.add(queues[p][next[p]])
				next[p]++
			}
			low := int64(math.MaxInt64)
			for p := range queues {
				if next[p] < len(queues[p]) {
					low = min(low, queues[p][next[p]].EndTS)
				}
			}
			take(low)
		}
		take(math.MaxInt64)
		if late := m.takeLate(); late > 0 || m.waiting() > 0 {
			t.Errorf("%d late, %d waiting", late, m.waiting())
		}
		return order
	}
	want := merge(1)
	if len(want) != 300 {
		t.Fatalf("%d units, want 300", len(want))
	}
	for seed := range uint64(20) {
		if got := merge(seed + 2); !slices.Equal(got, want) {
			t.Fatalf("order with seed %d differs", seed)
		}
	}
}

func TestLateUnitsAreCountedAndAppended(t *testing.T) {
	m := newMerger()
	m.add(unitAt(0, 1, 100, ""))
	released := 0
	if m.release(200) != nil {
		released++
	}
	m.add(unitAt(1, 1, 50, ""))
	m.add(unitAt(1, 2, 0, "")) // without a clock
	for m.release(200) != nil {
		released++
	}
	if late := m.takeLate(); released != 3 || late != 1 {
		t.Errorf("%d units released and %d of them late, want 3 and 1", released, late)
	}
}
