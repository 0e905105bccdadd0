package order

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// A busy topic whose records all have the same ts is never read to its end. Its units are released nevertheless, in the
// same order regardless of who reads which partition when.
func TestUnitsOfOneTimeGetOn(t *testing.T) {
	const partitions, records = 3, 9 * runLength
	merge := func(seed uint64) (order []string, waited int) {
		rng := rand.New(rand.NewPCG(seed, 1))
		w, m, from := marksOf(partitions), NewMerger(&Batches{}), &countedSource{}
		var clocks [partitions]EventClock
		var read [partitions]int64
		release := func() {
			for u := m.Release(w.Low()); u != nil; u = m.Release(w.Low()) {
				order = append(order, u.Unit.Episode)
			}
		}
		now := time.Unix(1000, 0)
		for left := int64(partitions * records); left > 0; {
			p := rng.IntN(partitions)
			for range rng.IntN(700) {
				if read[p] == records {
					break
				}
				clocks[p].Read(100e9, now.UnixNano())
				if read[p]++; read[p]%20 == 0 {
					u := &ingest.Unit{
						Agent: fmt.Sprint((read[p] + int64(p)) % 7), Episode: fmt.Sprint(p, "/", read[p]), EndTS: 100e9, Run: clocks[p].Run(100e9),
						Pos: ingest.Position{Partition: ingest.Partition(p), Offset: read[p]},
					}
					unit := NewWaitingUnit(u)
					unit.Enter(from, now)
					m.Add([]WaitingUnit{unit})
				}
				left--
			}
			w.Advance(int32(p), clocks[p].Now(), time.Time{}, now)
			release()
		}
		waited = m.Waiting()
		for u := m.Release(EndOfTime); u != nil; u = m.Release(EndOfTime) {
			order = append(order, u.Unit.Episode)
		}
		if late := m.TakeLate(); late > 0 {
			t.Errorf("%d units are late", late)
		}
		return order, waited
	}
	want, waited := merge(0)
	if len(want) != partitions*records/20 || waited > 2*partitions*runLength/20 {
		t.Errorf("%d units, of which %d wait at the end", len(want), waited)
	}
	for seed := range uint64(10) {
		if got, _ := merge(seed + 1); !slices.Equal(got, want) {
			t.Errorf("with seed %d the order is another", seed+1)
		}
	}
}

// An episode that ends with the step after its last one becomes known only when its time is over, so the run of that
// time must still be known.
func TestRunOfAUnitThatIsKnownLater(t *testing.T) {
	var c EventClock
	for range 2 * runLength {
		c.Read(5, 100)
	}
	if c.Now() != (Moment{TS: 5, Run: 1}) || c.Run(5) != 1 {
		t.Errorf("after %d records: %+v", 2*runLength, c)
	}
	c.Read(7, 100)
	if c.Run(5) != 1 || c.Run(7) != 0 || c.Run(3) != 0 {
		t.Errorf("after a later record: %d, %d, %d", c.Run(5), c.Run(7), c.Run(3))
	}
	if c.Read(101, 100) || c.Now() != (Moment{TS: 7}) {
		t.Errorf("a time of the future is believed: %+v", c)
	}
}

// Nothing is released beyond what was known at the end of the generation. Otherwise, units that were left out would be
// overtaken.
func TestMarkStaysWhenTheGenerationEnds(t *testing.T) {
	w, now := marksOf(2), time.Unix(1000, 0)
	w.Advance(0, timeOf(100), time.Time{}, now)
	w.Advance(1, timeOf(200), time.Time{}, now)
	w.End()
	w.End()
	w.Advance(0, timeOf(300), time.Time{}, now)
	if got := w.Low(); got != timeOf(100) || !w.Ending() || w.Current(now) {
		t.Errorf("low is %v after the end", got)
	}
	<-w.Ended()
	w.Begin(2)
	if w.Low() != (Moment{}) || w.Ending() {
		t.Errorf("low is %v in a new generation", w.Low())
	}
}

// The watermarks that marks result in are the same after a restart, including the time to wait for a silent partition.
func TestMarksOfTheUnitsTopic(t *testing.T) {
	w := NewWatermarks()
	if got := w.Low(); got != (Moment{}) {
		t.Errorf("low is %v before the first mark", got)
	}
	mark := func(p int32, ts int64, at time.Duration) {
		w.Take(&ingest.UnitMark{Partition: p, Partitions: 3, TS: ts, At: time.Unix(1000, 0).Add(at).UnixNano()})
	}
	mark(0, 100, 0)
	mark(1, 300, 0)
	mark(2, 200, 0)
	if got := w.Low(); got != timeOf(100) {
		t.Errorf("low is %v, want that of the slowest", got)
	}
	for s := range time.Duration(29) {
		mark(1, 300, s*time.Second)
		mark(2, 200, (s-9)*time.Second) // whose clock is behind
	}
	again := NewWatermarks()
	var b bytes.Buffer
	var s MarksState
	if err := gob.NewEncoder(&b).Encode(w.State()); err != nil {
		t.Fatal(err)
	}
	if err := gob.NewDecoder(&b).Decode(&s); err != nil {
		t.Fatal(err)
	}
	again.Restore(s)
	for _, w = range []*Watermarks{w, again} {
		if got := w.Low(); got != timeOf(100) {
			t.Errorf("low is %v after 28 seconds without partition 0", got)
		}
		for s := range time.Duration(4) {
			mark(1, 300, (29+s)*time.Second)
			mark(2, 200, (29+s)*time.Second)
		}
		if got := w.Low(); got != timeOf(200) {
			t.Errorf("low is %v, want that of the others once nothing was heard of partition 0 for so long", got)
		}
	}
}

// A unit waits until it is known that no added partition may contain a unit that ended earlier.
func TestUnitsWaitForPartitionsThatMayHaveBeenAdded(t *testing.T) {
	start := time.Unix(1_000_000, 0)
	for _, partitions := range []int{1, 3} {
		w := NewWatermarks()
		w.Begin(partitions)
		w.Confirm(start)
		for p := range int32(partitions) {
			w.Assign(p, Moment{})
			w.Advance(p, Moment{TS: start.Add(-time.Second).UnixNano()}, start.Add(time.Hour), start)
		}
		if got, want := w.Low().TS, start.Add(-SendDelay).UnixNano(); got != want {
			t.Errorf("%d partitions: low is %d, want %d", partitions, got, want)
		}
		if w.WaitsForOthers(0) {
			t.Errorf("%d partitions: one that is not behind waits for others", partitions)
		}
		w.Confirm(start.Add(time.Second))
		if got, want := w.Low().TS, start.Add(time.Second-SendDelay).UnixNano(); got != want {
			t.Errorf("%d partitions: low is %d after a second, want %d", partitions, got, want)
		}
		w.Confirm(start) // an answer that came late
		if got, want := w.Low().TS, start.Add(time.Second-SendDelay).UnixNano(); got != want {
			t.Errorf("%d partitions: low goes back to %d", partitions, got)
		}
	}
}

// Units of agents whose clocks are ahead do not wait until that time is reached.
func TestClocksThatAreAheadDoNotWaitForThePresent(t *testing.T) {
	start := time.Unix(1_000_000, 0)
	ahead := start.Add(50 * time.Second)
	w := NewWatermarks()
	w.Begin(2)
	for p := range int32(2) {
		w.Assign(p, Moment{})
		w.Advance(p, Moment{TS: ahead.UnixNano()}, time.Time{}, start)
	}
	w.Confirm(start)
	if got, want := w.Low().TS, ahead.Add(-WatermarkDelay).UnixNano(); got != want {
		t.Errorf("low is %d, want %d", got, want)
	}
}

// Goroutines that wait for the end of the generation find that it has ended. There are many, so that the first ones
// continue while the others are still being woken.
func TestGenerationHasEndedForThoseThatWaitForIt(t *testing.T) {
	const waiting = 2000
	synctest.Test(t, func(t *testing.T) {
		w := NewWatermarks()
		over := w.Ended()
		var early atomic.Int64
		for range 20 {
			var all sync.WaitGroup
			for range waiting {
				all.Go(func() {
					<-over
					if !w.Ending() {
						early.Add(1)
					}
				})
			}
			synctest.Wait()
			w.End()
			all.Wait()
			w.Begin(1)
			over = w.Ended()
		}
		if n := early.Load(); n > 0 {
			t.Errorf("%d of %d goroutines continue before the generation has ended", n, 20*waiting)
		}
	})
}
