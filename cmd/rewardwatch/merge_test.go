package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

func unitAt(source *delivery, partition int32, offset, ts int64, agent string) waitingUnit {
	u := &ingest.Unit{Agent: agent, EndTS: ts, Pos: ingest.Position{Partition: partition, Offset: offset}}
	return newWaitingUnit(u, &way{from: source}, time.Unix(1000, 0))
}

// timeOf is a moment of which only the time matters.
func timeOf(ts int64) moment { return moment{TS: ts} }

// marksOf gives the watermarks of a generation that assigns every partition.
func marksOf(partitions int) *watermarks {
	w := newWatermarks()
	w.begin(partitions)
	for p := range int32(partitions) {
		w.assign(p, timeOf(0))
	}
	return w
}

func TestWatermarksWaitForEveryPartition(t *testing.T) {
	now, more := time.Unix(1000, 0), time.Time{}
	if got := marksOf(1).low().TS; got != math.MaxInt64 {
		t.Errorf("a single partition waits until %d", got)
	}
	w := marksOf(2)
	w.advance(0, timeOf(500e9), more, now)
	if got := w.low().TS; got != 0 {
		t.Errorf("low is %d before partition 1 was read", got)
	}
	w.advance(1, timeOf(400e9), more, now)
	if got := w.low().TS; got != 400e9 || w.current(now) {
		t.Errorf("low is %d, want what partition 1 was read up to", got)
	}
	w.advance(1, timeOf(400e9), now, now)
	if got := w.low().TS; got != 500e9 {
		t.Errorf("low is %d, want what partition 0 was read up to, as partition 1 is at its end", got)
	}
	w.advance(0, timeOf(500e9), now, now)
	if got, want := w.low().TS, now.Add(-watermarkDelay).UnixNano(); got != want || !w.current(now) {
		t.Errorf("low is %d with all at their ends, want %d", got, want)
	}
}

// That a partition had no more to give says nothing of what has been written since: while its connection is lost, or
// the process is stopped, the units of the others wait for what it may hold.
func TestWhatWasAtItsEndIsNotSoForEver(t *testing.T) {
	now := time.Unix(1000, 0)
	w := marksOf(2)
	w.advance(0, timeOf(900e9), now, now)
	w.advance(1, timeOf(900e9), now, now)
	later := now.Add(20 * time.Second)
	w.advance(0, timeOf(1019e9), later, later)
	if got, want := w.low().TS, now.Add(-watermarkDelay).UnixNano(); got != want {
		t.Errorf("low is %d with a partition that was last seen at its end at %d", got, want)
	}
}

// A broker that comes back after an hour gives one partition first: the others are not given up for that.
func TestAnOutageOfAllGivesUpNone(t *testing.T) {
	now := time.Unix(1000, 0)
	w := marksOf(3)
	for p := range int32(3) {
		w.advance(p, timeOf(900e9), now, now)
	}
	back := now.Add(time.Hour)
	w.advance(0, timeOf(1001e9), time.Time{}, back)
	if got, want := w.low().TS, now.Add(-watermarkDelay).UnixNano(); got != want {
		t.Errorf("low is %d, want %d", got, want)
	}
}

// Units wait for partitions that are assigned to nobody, or to a member that has died, and for those that wait
// themselves until their units may be handed on.
func TestUnitsWaitForWhatIsNotReadYet(t *testing.T) {
	now := time.Unix(1000, 0)
	w := newWatermarks()
	w.begin(2)
	w.assign(0, timeOf(0))
	for range 4 * int(markPatience/time.Second) / 5 {
		now = now.Add(time.Second)
		w.advance(0, timeOf(now.UnixNano()), now, now)
	}
	if got := w.low().TS; got != 0 {
		t.Errorf("low is %d before the group has given partition 1 to anybody", got)
	}
	w.begin(2)
	w.assign(0, timeOf(1000e9))
	w.assign(1, timeOf(900e9))
	for range 2 * markPatience / time.Second {
		now = now.Add(time.Second)
		w.advance(0, timeOf(now.UnixNano()), now, now)
		w.alive(1, now)
	}
	if got := w.low().TS; got != 900e9 {
		t.Errorf("low is %d, want what partition 1 was read up to", got)
	}
}

// Units of a partition that was revoked are forgotten: those of the others must not overtake them.
func TestRevokedPartitionHoldsTheOthersUntilTheNextGeneration(t *testing.T) {
	now := time.Unix(1000, 0)
	w := newWatermarks()
	w.begin(2)
	w.assign(0, timeOf(100e9))
	w.assign(1, timeOf(100e9))
	w.advance(1, timeOf(300e9), now, now)
	w.revoke(0)
	if got := w.low().TS; got != 100e9 {
		t.Errorf("low is %d after a partition was revoked, want %d", got, int64(100e9))
	}
	w.revoke(1)
	w.begin(1)
	w.assign(0, timeOf(300e9))
	if got := w.low().TS; got != math.MaxInt64 {
		t.Errorf("low is %d in a generation of one partition", got)
	}
}

// However the partitions are read, the units come in the order of (end time, agent), each partition's own order kept.
func TestMergeDoesNotDependOnWhoReadWhen(t *testing.T) {
	queues, source := make([][]waitingUnit, 3), &delivery{}
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range int64(300) {
		p := rng.IntN(3)
		queues[p] = append(queues[p], unitAt(source, int32(p), i, i/2, string(rune('a'+p))))
	}
	merge := func(seed uint64) (order []int64) {
		rng := rand.New(rand.NewPCG(seed, 2))
		m := newMerger()
		next := make([]int, 3)
		take := func(low int64) {
			for u := m.release(timeOf(low)); u != nil; u = m.release(timeOf(low)) {
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
					low = min(low, queues[p][next[p]].at.TS)
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

// Neither a partition without a clock, nor one that is not heard of, nor a unit from the future holds up the others for
// good.
func TestNothingHoldsUpTheOthersForGood(t *testing.T) {
	now := time.Unix(1000, 0)
	w := marksOf(2)
	w.advance(0, timeOf(999e9), time.Time{}, now)
	w.advance(1, timeOf(0), now, now) // it has no clock
	if got, want := w.low().TS, now.Add(-watermarkDelay).UnixNano(); got != want {
		t.Errorf("low is %d beside a partition without a clock, want %d", got, want)
	}
	w.advance(1, timeOf(10e9), time.Time{}, now)
	for range markPatience/time.Second + 1 {
		now = now.Add(time.Second)
		w.advance(0, timeOf(now.UnixNano()), time.Time{}, now)
	}
	if got, want := w.low().TS, now.UnixNano(); got != want {
		t.Errorf("low is %d beside a partition that nothing was heard of, want %d", got, want)
	}
	m, source := newMerger(), &delivery{}
	m.add(unitAt(source, 0, 1, 5000e9, "from the future"))
	m.add(unitAt(source, 0, 2, 900e9, ""))
	if a, b := m.release(timeOf(950e9)), m.release(timeOf(950e9)); a == nil || b == nil {
		t.Error("a unit from the future waits")
	}
}

func TestLateUnitsAreCountedAndAppended(t *testing.T) {
	m, source := newMerger(), &delivery{}
	m.add(unitAt(source, 0, 1, 100, ""))
	released := 0
	if m.release(timeOf(200)) != nil {
		released++
	}
	m.add(unitAt(source, 1, 1, 50, ""))
	m.add(unitAt(source, 1, 2, 0, "")) // without a clock
	for m.release(timeOf(200)) != nil {
		released++
	}
	if late := m.takeLate(); released != 3 || late != 1 {
		t.Errorf("%d units released and %d of them late, want 3 and 1", released, late)
	}
	again := &delivery{}
	m.add(unitAt(again, 0, 1, 100, "")) // read again after a rebalance
	m.add(unitAt(again, 1, 1, 50, ""))
	for m.release(timeOf(200)) != nil {
		released++
	}
	if late := m.takeLate(); released != 5 || late != 0 {
		t.Errorf("%d units released and %d of them late, want 5 and 0", released, late)
	}
}
