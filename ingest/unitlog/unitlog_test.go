package unitlog

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/order"
)

// oneBatch is a segment size that fits one batch.
const oneBatch = 1

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Units with as many names as allowed, of the maximum length, can be read again.
func TestUnitsWithLongNamesAreReadAgain(t *testing.T) {
	const units = 300
	dir := t.TempDir()
	l := New(dir, Segment, Limit)
	for n := range int64(units) {
		u := &ingest.Unit{Pos: ingest.Position{Offset: n}}
		for i := range 256 {
			u.Actions = append(u.Actions, ingest.Count{Name: fmt.Sprintf("%0*d", ingest.MaxString, i), N: 1})
		}
		addUnit(l, u)
	}
	state, err := l.Save()
	must(t, err)
	must(t, l.Close())
	again, read := New(dir, Segment, Limit), int64(0)
	must(t, again.Resume(state, func(u *ingest.Unit) error {
		if u.Pos.Offset != read || len(u.Actions) != 256 {
			t.Fatalf("unit %d has offset %d and %d actions", read, u.Pos.Offset, len(u.Actions))
		}
		read++
		return nil
	}, func(order.Moment) error { return nil }))
	must(t, again.Close())
	if read != units {
		t.Errorf("%d units are read again, want %d", read, units)
	}
}

// While the disk cannot be written to, no checkpoint is made, units stay in memory up to a limit, and then reading
// waits. All units are in the log once it can be written again.
func TestReadingWaitsForADiskThatTakesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "no directory")
	must(t, os.WriteFile(dir, nil, 0o600))
	l, unsafe := New(dir, Segment, Limit), func(End) bool { return false }
	long := ingest.Unit{Group: ingest.NewGroup("ranker")}
	for i := range 256 {
		long.Actions = append(long.Actions, ingest.Count{Name: fmt.Sprintf("%0*d", ingest.MaxString, i), N: 1})
	}
	added := 0
	for ; !l.IsFull(unsafe); added++ {
		if held := l.Memory() + int64(l.Unwritten()); held >= mostUnwritten {
			t.Fatalf("reading does not wait for %d bytes", held)
		}
		u := long
		u.Pos.Offset = int64(added)
		addUnit(l, &u)
	}
	if held := l.Memory() + int64(l.Unwritten()); held < mostUnwritten {
		t.Errorf("reading waits for %d bytes", held)
	}
	if _, err := l.Save(); err == nil {
		t.Error("a checkpoint was made without its units")
	}
	must(t, os.Remove(dir))
	if l.IsFull(unsafe) {
		t.Error("reading waits for a disk that works")
	}
	s, err := l.Save()
	must(t, err)
	must(t, l.Close())
	if got := logged(t, dir, s); got["ranker"] != added {
		t.Errorf("%v units are read again, want %d", got, added)
	}
}

// A log with as many bytes as allowed is full until its units are safe, and policies are saved early before that.
func TestALogIsFullAtItsLimit(t *testing.T) {
	unsafe := func(End) bool { return false }
	l := New(t.TempDir(), Segment, Limit)
	batched(t, l, 0, "ranker")
	one := l.Needed()
	must(t, l.Close())
	l = New(t.TempDir(), Segment, 3*one)
	for i, want := range []struct{ half, full bool }{{false, false}, {true, false}, {true, true}} {
		batched(t, l, int64(i), "ranker")
		if half, full := l.HalfFull(), l.IsFull(unsafe); half != want.half || full != want.full {
			t.Errorf("%d batches: half full %t, full %t, want %v", i+1, half, full, want)
		}
	}
	if l.IsFull(func(End) bool { return true }) || l.HalfFull() {
		t.Error("it is full of units that are saved twice")
	}
	must(t, l.Close())
}

// A policy that cannot be saved keeps its own units in the log, but no others: neither their share of the limit nor
// their files.
func TestAPolicyThatIsNotSavedHoldsNoOthers(t *testing.T) {
	dir := t.TempDir()
	l := New(dir, oneBatch, Limit)
	batched(t, l, 0, "stuck", "fine")
	one := l.Needed()
	for i := range int64(9) {
		batched(t, l, 1+i, "fine", "fine")
	}
	batched(t, l, 10, "fine", "stuck")
	stuck := func(e End) bool { return e.Policy != "stuck" }
	var s State
	for range 2 {
		l.Trim(stuck)
		var err error
		s, err = l.Save()
		must(t, err)
		must(t, l.Saved())
	}
	if needed := l.Needed(); needed > 3*one {
		t.Errorf("%d bytes are needed, one batch has %d", needed, one)
	}
	if files, err := filepath.Glob(filepath.Join(dir, "*.log")); err != nil || len(files) != 2 {
		t.Errorf("files %v, %v", files, err)
	}
	must(t, l.Close())
	if got := logged(t, dir, s); got["stuck"] != 2 {
		t.Errorf("%v units are read again", got)
	}
}

// Units that share a file with units that cannot be saved count as long as the file exists.
func TestBatchesCountUntilTheirFileGoes(t *testing.T) {
	dir := t.TempDir()
	l := New(dir, Segment, Limit)
	for i, policy := range []string{"fine", "stuck", "fine", "fine"} {
		batched(t, l, int64(i), policy)
	}
	all, one := l.Needed(), l.batches[0].bytes
	l.Trim(func(e End) bool { return e.Policy == "fine" })
	if got := l.Needed(); got != all-one || len(l.batches) != 3 {
		t.Errorf("%d bytes of %d in %d batches are needed, want all but the first", got, all, len(l.batches))
	}
	l.Trim(func(End) bool { return true })
	if got := l.Needed(); got != 0 || len(l.batches) != 0 {
		t.Errorf("%d bytes in %d batches are needed", got, len(l.batches))
	}
	must(t, l.Close())
}

// Units that become safe after those of a policy that cannot be saved make the checkpoint smaller, and their file is
// removed once neither of two durable checkpoints refers to it.
func TestUnitsBehindThoseThatAreNotSavedGo(t *testing.T) {
	dir := t.TempDir()
	l := New(dir, oneBatch, Limit)
	batched(t, l, 0, "stuck")
	batched(t, l, 1, "fine")
	_, err := l.Save()
	must(t, err)
	must(t, l.Saved())
	if l.Trim(func(End) bool { return false }); l.NeedsLess() {
		t.Error("a checkpoint would be smaller of nothing")
	}
	if l.Trim(func(e End) bool { return e.Policy == "fine" }); !l.NeedsLess() {
		t.Error("a checkpoint would not be smaller")
	}
	for _, left := range []int{2, 1} {
		_, err := l.Save()
		must(t, err)
		must(t, l.Saved())
		if files, err := filepath.Glob(filepath.Join(dir, "*.log")); err != nil || len(files) != left || l.NeedsLess() {
			t.Errorf("files %v, want %d, less %t, %v", files, left, l.NeedsLess(), err)
		}
	}
	must(t, l.Close())
}

func addUnit(l *Log, u *ingest.Unit) {
	w := order.NewWaitingUnit(u)
	l.Add(&w)
}

// batched adds a batch with one unit of each policy.
func batched(t *testing.T, l *Log, offset int64, policies ...string) {
	t.Helper()
	for i, policy := range policies {
		addUnit(l, &ingest.Unit{Group: ingest.NewGroup(policy), Pos: ingest.Position{Offset: offset, Record: int32(i)}})
	}
	must(t, l.pack())
	must(t, l.write())
}

// logged returns the number of units of each policy that a log passes on.
func logged(t *testing.T, dir string, s State) map[string]int {
	t.Helper()
	l, units := New(dir, Segment, Limit), map[string]int{}
	must(t, l.Resume(s, func(u *ingest.Unit) error {
		units[u.Group.Policy]++
		addUnit(l, u)
		return nil
	}, func(order.Moment) error { return nil }))
	must(t, l.Close())
	return units
}

// The ends of a batch are those of its units in any order of sources, also after units of a policy are dropped.
func TestEndsOfABatchAreItsLastUnits(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 3))
	for range 200 {
		var b batch
		want := map[source]ingest.AppliedUnit{}
		inTurn, n := rng.IntN(2) == 0, 1+rng.IntN(6)
		for i := range 100 {
			which := i % n
			if !inTurn || rng.IntN(20) == 0 {
				which = rng.IntN(n)
			}
			u := &ingest.Unit{
				Group: ingest.NewGroup(fmt.Sprint("policy-", which/2)), Reading: int64(rng.IntN(2)),
				Pos: ingest.Position{Partition: ingest.Partition(which % 2), Offset: int64(i)},
			}
			w := order.NewWaitingUnit(u)
			b.add(&w)
			want[source{u.Group.Policy, u.Pos.Partition, u.Reading}] = w.Place()
			if rng.IntN(40) == 0 {
				b.drop(u.Group.Policy)
				maps.DeleteFunc(want, func(s source, _ ingest.AppliedUnit) bool { return s.policy == u.Group.Policy })
			}
		}
		got := map[source]ingest.AppliedUnit{}
		for _, e := range b.ends {
			got[source{e.Policy, e.Last.Pos.Partition, e.Last.Reading}] = e.Last
		}
		if len(b.ends) != len(want) || !maps.Equal(got, want) {
			t.Fatalf("ends %v, want %v", got, want)
		}
	}
}
