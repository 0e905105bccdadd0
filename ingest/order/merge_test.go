package order

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// unitAt returns a unit, or a decision at an odd offset.
func unitAt(from source, partition int32, offset, ts int64, agent string) WaitingUnit {
	at := ingest.Position{Partition: ingest.Partition(partition), Offset: offset}
	w := NewWaitingUnit(&ingest.Unit{Agent: agent, EndTS: ts, Pos: at})
	if offset%2 == 1 {
		w = NewWaitingDecision(&ingest.Decision{Agent: agent, TS: ts, Pos: at})
	}
	w.Enter(from, time.Unix(1000, 0))
	return w
}

// timeOf returns a Moment with only a time.
func timeOf(ts int64) Moment { return Moment{TS: ts} }

// marksOf returns the watermarks of a generation to which every partition is assigned.
func marksOf(partitions int) *Watermarks {
	w := NewWatermarks()
	w.Begin(partitions)
	for p := range int32(partitions) {
		w.Assign(p, timeOf(0))
	}
	return w
}

func TestWatermarksWaitForEveryPartition(t *testing.T) {
	now, more := time.Unix(1000, 0), time.Time{}
	if got := marksOf(1).Low().TS; got != math.MaxInt64 {
		t.Errorf("a single partition waits until %d", got)
	}
	w := marksOf(2)
	w.Advance(0, timeOf(500e9), more, now)
	if got := w.Low().TS; got != 0 {
		t.Errorf("low is %d before partition 1 was read", got)
	}
	w.Advance(1, timeOf(400e9), more, now)
	if got := w.Low().TS; got != 400e9 || w.Current(now) {
		t.Errorf("low is %d, want what partition 1 was read up to", got)
	}
	w.Advance(1, timeOf(400e9), now, now)
	if got := w.Low().TS; got != 500e9 {
		t.Errorf("low is %d, want what partition 0 was read up to, as partition 1 is at its end", got)
	}
	w.Advance(0, timeOf(500e9), now, now)
	if got, want := w.Low().TS, now.Add(-WatermarkDelay).UnixNano(); got != want || !w.Current(now) {
		t.Errorf("low is %d with all at their ends, want %d", got, want)
	}
}

// A partition that was at its end may have new records since. While its connection is lost or the process is stopped,
// the units of other partitions wait for them.
func TestWhatWasAtItsEndIsNotSoForEver(t *testing.T) {
	now := time.Unix(1000, 0)
	w := marksOf(2)
	w.Advance(0, timeOf(900e9), now, now)
	w.Advance(1, timeOf(900e9), now, now)
	later := now.Add(20 * time.Second)
	w.Advance(0, timeOf(1019e9), later, later)
	if got, want := w.Low().TS, now.Add(-WatermarkDelay).UnixNano(); got != want {
		t.Errorf("low is %d with a partition that was last seen at its end at %d", got, want)
	}
}

// After an outage of an hour, the broker returns one partition first. The others must not be given up because of that.
func TestAnOutageOfAllGivesUpNone(t *testing.T) {
	now := time.Unix(1000, 0)
	w := marksOf(3)
	for p := range int32(3) {
		w.Advance(p, timeOf(900e9), now, now)
	}
	back := now.Add(time.Hour)
	w.Advance(0, timeOf(1001e9), time.Time{}, back)
	if got, want := w.Low().TS, now.Add(-WatermarkDelay).UnixNano(); got != want {
		t.Errorf("low is %d, want %d", got, want)
	}
}

// Units wait for partitions without an owner, for partitions of a dead member, and for partitions whose own units still
// have to wait.
func TestUnitsWaitForWhatIsNotReadYet(t *testing.T) {
	now := time.Unix(1000, 0)
	w := NewWatermarks()
	w.Begin(2)
	w.Assign(0, timeOf(0))
	for range 4 * int(markPatience/time.Second) / 5 {
		now = now.Add(time.Second)
		w.Advance(0, timeOf(now.UnixNano()), now, now)
	}
	if got := w.Low().TS; got != 0 {
		t.Errorf("low is %d before the group has given partition 1 to anybody", got)
	}
	w.Begin(2)
	w.Assign(0, timeOf(1000e9))
	w.Assign(1, timeOf(900e9))
	for range 2 * markPatience / time.Second {
		now = now.Add(time.Second)
		w.Advance(0, timeOf(now.UnixNano()), now, now)
		w.Alive(1, now)
	}
	if got := w.Low().TS; got != 900e9 {
		t.Errorf("low is %d, want what partition 1 was read up to", got)
	}
}

// Units of a revoked partition are forgotten. Units of other partitions must not overtake them.
func TestRevokedPartitionHoldsTheOthersUntilTheNextGeneration(t *testing.T) {
	now := time.Unix(1000, 0)
	w := NewWatermarks()
	w.Begin(2)
	w.Assign(0, timeOf(100e9))
	w.Assign(1, timeOf(100e9))
	w.Advance(1, timeOf(300e9), now, now)
	w.Revoke(0)
	if got := w.Low().TS; got != 100e9 {
		t.Errorf("low is %d after a partition was revoked, want %d", got, int64(100e9))
	}
	w.Revoke(1)
	w.Begin(1)
	w.Assign(0, timeOf(300e9))
	if got := w.Low().TS; got != math.MaxInt64 {
		t.Errorf("low is %d in a generation of one partition", got)
	}
}

// Units are ordered by (end time, agent), and each partition keeps its own order, regardless of the order in which the
// partitions are read.
func TestMergeDoesNotDependOnWhoReadWhen(t *testing.T) {
	queues, source := make([][]WaitingUnit, 3), &countedSource{}
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range int64(300) {
		p := rng.IntN(3)
		queues[p] = append(queues[p], unitAt(source, int32(p), i, i/2, string(rune('a'+p))))
	}
	merge := func(seed uint64) (order []int64) {
		rng := rand.New(rand.NewPCG(seed, 2))
		m := NewMerger(&Batches{})
		next := make([]int, 3)
		take := func(low int64) {
			for u := m.Release(timeOf(low)); u != nil; u = m.Release(timeOf(low)) {
				order = append(order, u.Decision.Pos.Offset)
			}
		}
		for slices.ContainsFunc([]int{0, 1, 2}, func(p int) bool { return next[p] < len(queues[p]) }) {
			if p := rng.IntN(3); next[p] < len(queues[p]) {
				m.Add([]WaitingUnit{queues[p][next[p]]})
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
		if late := m.TakeLate(); late > 0 || m.Waiting() > 0 {
			t.Errorf("%d late, %d waiting", late, m.Waiting())
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

// The next unit is always the first of the waiting ones, with any number of partitions and any changes in between.
func TestTheFirstUnitIsReleased(t *testing.T) {
	const partitions = 20
	rng, m := rand.New(rand.NewPCG(3, 3)), NewMerger(&Batches{})
	var sources [partitions]*countedSource
	var waiting [partitions][]WaitingUnit
	var read [partitions]int64
	for i := range sources {
		sources[i] = &countedSource{}
	}
	released := 0
	for range 20_000 {
		p := rng.IntN(partitions)
		if rng.IntN(50) == 0 { // it is assigned again, and read from another offset on
			sources[p], waiting[p] = &countedSource{}, nil
			read[p] += 10
		}
		var batch []WaitingUnit
		for range 1 + rng.IntN(3) {
			read[p]++
			batch = append(batch, unitAt(sources[p], int32(p), read[p], read[p]/4+rng.Int64N(2), string(rune('a'+rng.IntN(2)))))
		}
		waiting[p] = append(waiting[p], batch...)
		m.Add(slices.Clone(batch))
		for low := timeOf(rng.Int64N(600)); ; {
			var want *WaitingUnit
			for p := range waiting {
				if len(waiting[p]) > 0 && waiting[p][0].at.Before(low) && (want == nil || comesBefore(&waiting[p][0], want)) {
					want = &waiting[p][0]
				}
			}
			got := m.Release(low)
			if want == nil && got == nil {
				break
			}
			if want == nil || got == nil || got.Place() != want.Place() {
				t.Fatalf("%+v is released, want %+v", got, want)
			}
			released++
			of := want.Decision.Pos.Partition.Number()
			waiting[of] = waiting[of][1:]
		}
	}
	if released < 1000 {
		t.Errorf("only %d units were released", released)
	}
}

func comesBefore(a, b *WaitingUnit) bool {
	x, y := &a.Decision, &b.Decision
	return cmp.Or(a.at.compare(b.at), cmp.Compare(x.Agent, y.Agent), cmp.Compare(x.Episode, y.Episode), cmp.Compare(x.Pos.Partition, y.Pos.Partition)) < 0
}

// A partition without a clock, a silent partition, and a unit from the future delay the others only for a limited time.
func TestNothingHoldsUpTheOthersForGood(t *testing.T) {
	now := time.Unix(1000, 0)
	w := marksOf(2)
	w.Advance(0, timeOf(999e9), time.Time{}, now)
	w.Advance(1, timeOf(0), now, now) // it has no clock
	if got, want := w.Low().TS, now.Add(-WatermarkDelay).UnixNano(); got != want {
		t.Errorf("low is %d beside a partition without a clock, want %d", got, want)
	}
	w.Advance(1, timeOf(10e9), time.Time{}, now)
	for range markPatience/time.Second + 1 {
		now = now.Add(time.Second)
		w.Advance(0, timeOf(now.UnixNano()), time.Time{}, now)
	}
	if got, want := w.Low().TS, now.UnixNano(); got != want {
		t.Errorf("low is %d beside a partition that nothing was heard of, want %d", got, want)
	}
	m, source := NewMerger(&Batches{}), &countedSource{}
	m.Add([]WaitingUnit{unitAt(source, 0, 1, 5000e9, "from the future")})
	m.Add([]WaitingUnit{unitAt(source, 0, 2, 900e9, "")})
	if a, b := m.Release(timeOf(950e9)), m.Release(timeOf(950e9)); a == nil || b == nil {
		t.Error("a unit from the future waits")
	}
}

func TestLateUnitsAreCountedAndAppended(t *testing.T) {
	m, source := NewMerger(&Batches{}), &countedSource{}
	m.Add([]WaitingUnit{unitAt(source, 0, 1, 100, "")})
	released := 0
	if m.Release(timeOf(200)) != nil {
		released++
	}
	m.Add([]WaitingUnit{unitAt(source, 1, 1, 50, "")})
	m.Add([]WaitingUnit{unitAt(source, 1, 2, 0, "")}) // without a clock
	for m.Release(timeOf(200)) != nil {
		released++
	}
	if late := m.TakeLate(); released != 3 || late != 1 {
		t.Errorf("%d units released and %d of them late, want 3 and 1", released, late)
	}
	again := &countedSource{}
	m.Add([]WaitingUnit{unitAt(again, 0, 1, 100, "")}) // read again after a rebalance
	m.Add([]WaitingUnit{unitAt(again, 1, 1, 50, "")})
	m.Add([]WaitingUnit{unitAt(again, 1, 2, 0, "")})
	for m.Release(timeOf(200)) != nil {
		released++
	}
	if late := m.TakeLate(); released != 3 || late != 0 || m.Waiting() != 0 {
		t.Errorf("%d units released and %d of them late, want 3 and 0, as before", released, late)
	}
	m.Add([]WaitingUnit{unitAt(again, 2, 1, 60, "")}) // of a partition that was added
	if m.Release(timeOf(200)) == nil || m.TakeLate() != 1 {
		t.Error("a unit of a new partition that comes late is not counted")
	}
}

// countedSource is a source that does not belong to the service.
type countedSource struct {
	revoked bool
	waiting int
}

func (s *countedSource) Revoked() bool           { return s.revoked }
func (s *countedSource) Entered(int64)           { s.waiting++ }
func (s *countedSource) Left(units int, _ int64) { s.waiting -= units }
