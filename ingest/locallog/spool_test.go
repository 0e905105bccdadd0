package locallog

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// spooled appends records to a spool and returns the offset of the first one.
func spooled(t *testing.T, s *Spool, records ...string) (first int64) {
	t.Helper()
	for i, r := range records {
		at, err := s.Append([]byte(r))
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = at
		} else if at != first+int64(i) {
			t.Fatalf("record %d has offset %d, the first one %d", i, at, first)
		}
	}
	return first
}

// inSpool returns the records in a range of offsets.
func inSpool(s *Spool, from, to int64) (records []string, err error) {
	err = s.Read(from, to, func(offset int64, value []byte) error {
		if offset != from+int64(len(records)) {
			return fmt.Errorf("offset %d after %d records", offset, len(records))
		}
		records = append(records, string(value))
		return nil
	})
	return records, err
}

// from returns a function that needs the records from the given offset on.
func from(first int64) func(from, to int64) bool {
	return func(_, to int64) bool { return to > first }
}

func someRecords(prefix string, n int) (records []string) {
	for i := range n {
		records = append(records, fmt.Sprintf("%s-%0*d", prefix, 1+i%7, i))
	}
	return records
}

// Records that a process has flushed are read by the next process, which appends after everything the first one has
// written, flushed or not.
func TestASpoolOutlivesItsProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "units")
	for _, segmentSize := range []int64{1, 100, 1 << 20} {
		one, another := NewSpool(dir, segmentSize), NewSpool(dir, segmentSize)
		records := someRecords("first", 40)
		var first int64
		for n := 0; n < len(records); n += 8 {
			at := spooled(t, one, records[n:n+8]...)
			if n == 0 {
				first = at
			}
			if err := one.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		spooled(t, one, "never flushed")
		if err := one.Close(); err != nil {
			t.Fatal(err)
		}
		for _, r := range [][2]int{{0, 40}, {3, 4}, {17, 33}, {8, 8}} {
			got, err := inSpool(another, first+int64(r[0]), first+int64(r[1]))
			if err != nil || !slices.Equal(got, records[r[0]:r[1]]) {
				t.Errorf("%v of segments of %d bytes: %q, %v", r, segmentSize, got, err)
			}
		}
		next := spooled(t, another, "behind")
		if next <= first+40 {
			t.Errorf("an offset is used twice: %d after %d", next, first+40)
		}
		if _, err := inSpool(another, first, first+41); !errors.Is(err, ErrDamaged) {
			t.Errorf("a record that was not flushed is read: %v", err)
		}
		if err := errors.Join(another.Flush(), another.Remove(from(next)), another.Close()); err != nil {
			t.Fatal(err)
		}
		if got, err := inSpool(another, first, first+40); !errors.Is(err, ErrDamaged) {
			t.Errorf("what was removed is read: %q, %v", got, err)
		}
	}
}

// spoolOfTen returns a spool with the records 0 to 9, each in its own segment, and its directory and first offset.
func spoolOfTen(t *testing.T) (s *Spool, dir string, first int64) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "units")
	s = NewSpool(dir, 1)
	for i := range int64(10) {
		first = spooled(t, s, fmt.Sprint(i)) - i
		if err := s.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	return s, dir, first
}

func TestASpoolRemovesWhatIsBeforeAnOffset(t *testing.T) {
	s, dir, first := spoolOfTen(t)
	whole := s.Size()
	for _, c := range []struct {
		before int64
		left   int
	}{{first, 10}, {first + 3, 7}, {first + 3, 7}, {first + 9, 1}, {first + 10, 0}} {
		if err := s.Remove(from(c.before)); err != nil {
			t.Fatal(err)
		}
		files, err := list(dir)
		if err != nil || len(files) != c.left || s.Size() != whole*int64(c.left)/10 {
			t.Errorf("before %d: %d files of %d bytes are left, want %d: %v", c.before-first, len(files), s.Size(), c.left, err)
		}
		if got, err := inSpool(s, first+10-int64(c.left), first+10); err != nil || len(got) != c.left {
			t.Errorf("before %d: %q are left, %v", c.before-first, got, err)
		}
	}
	held := spooled(t, s, "held")
	if err := errors.Join(s.Remove(from(held)), s.Flush(), s.Remove(from(held))); err != nil {
		t.Fatal(err)
	}
	if got, err := inSpool(s, held, held+1); err != nil || got[0] != "held" {
		t.Errorf("got %q, %v", got, err)
	}
}

// Unneeded segments between needed ones are removed.
func TestASpoolRemovesWhatIsBetween(t *testing.T) {
	s, dir, first := spoolOfTen(t)
	whole := s.Size()
	kept := []int64{first + 2, first + 6}
	needed := func(from, to int64) bool {
		return slices.ContainsFunc(kept, func(offset int64) bool { return offset >= from && offset < to })
	}
	for range 2 {
		if err := s.Remove(needed); err != nil {
			t.Fatal(err)
		}
	}
	if files, err := list(dir); err != nil || len(files) != 2 || s.Size() != whole/5 {
		t.Errorf("files %v, %d bytes of %d, %v", files, s.Size(), whole, err)
	}
	kept = append(kept, spooled(t, s, "behind"))
	if err := errors.Join(s.Flush(), s.Remove(needed), s.Close()); err != nil {
		t.Fatal(err)
	}
	for _, spool := range []*Spool{s, NewSpool(dir, 1)} {
		for i, want := range []string{"2", "6", "behind"} {
			if got, err := inSpool(spool, kept[i], kept[i]+1); err != nil || got[0] != want {
				t.Errorf("%q, want %s, %v", got, want, err)
			}
		}
		if _, err := inSpool(spool, kept[0], kept[1]); !errors.Is(err, ErrDamaged) {
			t.Errorf("what was removed is read: %v", err)
		}
	}
}

// TestEveryDamageOfASpoolIsNoticed flips every byte and tries every length of a segment whose end is in no checkpoint.
// Records that a checkpoint needs are read exactly as written, or reading returns ErrDamaged.
func TestEveryDamageOfASpoolIsNoticed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "units")
	s := NewSpool(dir, 1<<20)
	records := someRecords("r", 12)
	first := spooled(t, s, records...)
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	named := s.Size()
	spooled(t, s, someRecords("orphan", 5)...)
	if err := errors.Join(s.Flush(), s.Close()); err != nil {
		t.Fatal(err)
	}
	path := s.segments[0].path
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	try := func(bytes []byte, intact bool, what string, at int) {
		t.Helper()
		if err := os.WriteFile(path, bytes, 0o600); err != nil {
			t.Fatal(err)
		}
		again := NewSpool(dir, 1<<20)
		got, err := inSpool(again, first, first+12)
		switch {
		case intact && (err != nil || !slices.Equal(got, records)):
			t.Fatalf("%s %d: %q, %v", what, at, got, err)
		case !intact && !errors.Is(err, ErrDamaged):
			t.Fatalf("%s %d is not noticed: %q, %v", what, at, got, err)
		}
		if next := spooled(t, again, "next"); next <= first+17 {
			t.Fatalf("%s %d: offset %d is used again", what, at, next-first)
		}
	}
	for i := range whole {
		damaged := slices.Clone(whole)
		damaged[i] ^= 1 << (i % 8)
		try(damaged, int64(i) >= named, "flipped at", i)
		try(whole[:i], int64(i) >= named, "cut to", i)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := inSpool(NewSpool(dir, 1), first, first+12); !errors.Is(err, ErrDamaged) {
		t.Errorf("without the file: %v", err)
	}
}

// A failed write leaves nothing behind, and succeeds once the disk works again.
func TestASpoolOutlivesAFailingDisk(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		room int64
		fail map[string]error
		want error
	}{
		"no room":            {0, nil, syscall.ENOSPC},
		"room for half":      {20, nil, syscall.ENOSPC},
		"sync fails":         {-1, map[string]error{"sync": broken}, broken},
		"nothing can be cut": {20, map[string]error{"truncate": broken}, broken},
		"open fails":         {-1, map[string]error{"open": broken}, broken},
	} {
		t.Run(name, func(t *testing.T) {
			disk, dir := newFrailDisk(), filepath.Join(t.TempDir(), "units")
			s := NewSpool(dir, 1)
			s.disk = disk
			first := spooled(t, s, "one", "two")
			if err := s.Flush(); err != nil {
				t.Fatal(err)
			}
			spooled(t, s, "three")
			for range 3 {
				disk.set(c.room, c.fail)
				if err := s.Flush(); !errors.Is(err, c.want) {
					t.Fatalf("got %v, want %v", err, c.want)
				}
				spooled(t, s, "more")
			}
			disk.set(-1, nil)
			if err := s.Flush(); err != nil {
				t.Fatal(err)
			}
			if got, err := inSpool(NewSpool(dir, 1), first, first+6); err != nil || !slices.Equal(got, []string{"one", "two", "three", "more", "more", "more"}) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// With any sequence of appends, flushes and removals, full disks and power cuts, all records that were flushed and not
// removed remain.
func TestASpoolLosesNothingThatIsDurable(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 5))
		dir := filepath.Join(t.TempDir(), fmt.Sprint(seed))
		if err := os.Mkdir(dir, 0o750); err != nil {
			t.Fatal(err)
		}
		disk := newFrailDisk()
		var s *Spool
		start := func() {
			s = NewSpool(dir, rng.Int64N(200))
			s.disk = disk
			disk.set(-1, nil)
		}
		start()
		durable, waiting, least := map[int64]string{}, map[int64]string{}, int64(0)
		needed := func(from, to int64) bool {
			for _, records := range []map[int64]string{durable, waiting} {
				for offset := range records {
					if offset >= max(from, least) && offset < to {
						return true
					}
				}
			}
			return false
		}
		for n := range 200 {
			switch rng.IntN(12) {
			case 0:
				disk.set(rng.Int64N(100), nil)
			case 1:
				disk.set(-1, nil)
			case 2:
				if rng.IntN(2) == 0 {
					least = max(least, s.next-rng.Int64N(20))
				}
				if least < s.next && rng.IntN(2) == 0 {
					gone := least + rng.Int64N(s.next-least)
					delete(durable, gone)
					delete(waiting, gone)
				}
				if err := s.Remove(needed); err != nil {
					t.Fatal(err)
				}
			case 3:
				_ = s.Close()
				disk.cutPower(t, rng, dir)
				clear(waiting)
				start()
			case 4, 5, 6:
				if s.Flush() == nil {
					for offset, value := range waiting {
						durable[offset] = value
					}
					clear(waiting)
				}
			default:
				value := fmt.Sprint(seed, "-", n)
				waiting[spooled(t, s, value)] = value
			}
		}
		_ = s.Close()
		again := NewSpool(dir, 1)
		for offset, value := range durable {
			if offset < least {
				continue
			}
			if got, err := inSpool(again, offset, offset+1); err != nil || got[0] != value {
				t.Fatalf("seed %d, offset %d: %q, %v, want %q", seed, offset, got, err, value)
			}
		}
	}
}
