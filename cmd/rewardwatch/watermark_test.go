package main

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// A topic whose records all have the same ts is busy and never read to its end: its units get on all the same, in one order,
// whoever reads which partition when.
func TestUnitsOfOneTimeGetOn(t *testing.T) {
	const partitions, records = 3, 9 * runLength
	merge := func(seed uint64) (order []string, waited int) {
		rng := rand.New(rand.NewPCG(seed, 1))
		w, m, from := marksOf(partitions), newMerger(), &way{from: &delivery{}}
		var clocks [partitions]eventClock
		var read [partitions]int64
		release := func() {
			for u := m.release(w.low()); u != nil; u = m.release(w.low()) {
				order = append(order, u.Episode)
			}
		}
		now := time.Unix(1000, 0)
		for left := int64(partitions * records); left > 0; {
			p := rng.IntN(partitions)
			for range rng.IntN(700) {
				if read[p] == records {
					break
				}
				clocks[p].read(100e9, now.UnixNano())
				if read[p]++; read[p]%20 == 0 {
					u := &ingest.Unit{
						Agent: fmt.Sprint((read[p] + int64(p)) % 7), Episode: fmt.Sprint(p, "/", read[p]), EndTS: 100e9, Run: clocks[p].run(100e9),
						Pos: ingest.Position{Partition: int32(p), Offset: read[p]},
					}
					m.add(newWaitingUnit(u, from, now))
				}
				left--
			}
			w.advance(int32(p), clocks[p].now(), time.Time{}, now)
			release()
		}
		waited = m.waiting()
		for u := m.release(endOfTime); u != nil; u = m.release(endOfTime) {
			order = append(order, u.Episode)
		}
		if late := m.takeLate(); late > 0 {
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

// An episode that ends with the step after its last is known when its time is over.
func TestRunOfAUnitThatIsKnownLater(t *testing.T) {
	var c eventClock
	for range 2 * runLength {
		c.read(5, 100)
	}
	if c.now() != (moment{5, 1}) || c.run(5) != 1 {
		t.Errorf("after %d records: %+v", 2*runLength, c)
	}
	c.read(7, 100)
	if c.run(5) != 1 || c.run(7) != 0 || c.run(3) != 0 {
		t.Errorf("after a later record: %d, %d, %d", c.run(5), c.run(7), c.run(3))
	}
	if c.read(101, 100) || c.now() != (moment{TS: 7}) {
		t.Errorf("a time of the future is believed: %+v", c)
	}
}

// Nothing is released beyond what was known when the generation ended: units that were left out would be overtaken.
func TestMarkStaysWhenTheGenerationEnds(t *testing.T) {
	w, now := marksOf(2), time.Unix(1000, 0)
	w.advance(0, timeOf(100), time.Time{}, now)
	w.advance(1, timeOf(200), time.Time{}, now)
	w.end()
	w.end()
	w.advance(0, timeOf(300), time.Time{}, now)
	if got := w.low(); got != timeOf(100) || !w.ending() || w.current(now) {
		t.Errorf("low is %v after the end", got)
	}
	<-w.ended()
	w.begin(2)
	if w.low() != (moment{}) || w.ending() {
		t.Errorf("low is %v in a new generation", w.low())
	}
}

// What is known of the telemetry from its marks is the same after a restart, patience included.
func TestMarksOfTheUnitsTopic(t *testing.T) {
	w := newWatermarks()
	if got := w.low(); got != (moment{}) {
		t.Errorf("low is %v before the first mark", got)
	}
	mark := func(p int32, ts int64, at time.Duration) {
		w.take(&ingest.UnitMark{Partition: p, Partitions: 3, TS: ts, At: time.Unix(1000, 0).Add(at).UnixNano()})
	}
	mark(0, 100, 0)
	mark(1, 300, 0)
	mark(2, 200, 0)
	if got := w.low(); got != timeOf(100) {
		t.Errorf("low is %v, want that of the slowest", got)
	}
	for s := range time.Duration(29) {
		mark(1, 300, s*time.Second)
		mark(2, 200, (s-9)*time.Second) // whose clock is behind
	}
	again := newWatermarks()
	var b bytes.Buffer
	var s marksState
	if err := gob.NewEncoder(&b).Encode(w.state()); err != nil {
		t.Fatal(err)
	}
	if err := gob.NewDecoder(&b).Decode(&s); err != nil {
		t.Fatal(err)
	}
	again.restore(s)
	for _, w = range []*watermarks{w, again} {
		if got := w.low(); got != timeOf(100) {
			t.Errorf("low is %v after 28 seconds without partition 0", got)
		}
		for s := range time.Duration(4) {
			mark(1, 300, (29+s)*time.Second)
			mark(2, 200, (29+s)*time.Second)
		}
		if got := w.low(); got != timeOf(200) {
			t.Errorf("low is %v, want that of the others once nothing was heard of partition 0 for so long", got)
		}
	}
}
