package locallog

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// frailDisk fails on demand, and can lose unsynced data like a power cut.
type frailDisk struct {
	mu      sync.Mutex
	room    int64 // number of bytes that can still be written; negative for no limit
	fail    map[string]error
	durable map[string]int64 // synced sizes by path
}

func newFrailDisk() *frailDisk {
	return &frailDisk{room: -1, fail: map[string]error{}, durable: map[string]int64{}}
}

// failing returns the error with which an operation should fail.
func (d *frailDisk) failing(operation string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.fail[operation]
}

func (d *frailDisk) set(room int64, fail map[string]error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.room, d.fail = room, fail
}

func (d *frailDisk) open(path string) (file, error) {
	if err := d.failing("open"); err != nil {
		return nil, err
	}
	f, err := osDisk{}.open(path)
	if err != nil {
		return nil, err
	}
	return &frailFile{f.(*os.File), d}, nil
}

type frailFile struct {
	*os.File
	disk *frailDisk
}

func (f *frailFile) Write(b []byte) (int, error) {
	f.disk.mu.Lock()
	fits := len(b)
	if room := f.disk.room; room >= 0 {
		fits = int(min(room, int64(len(b))))
		f.disk.room -= int64(fits)
	}
	f.disk.mu.Unlock()
	n, err := f.File.Write(b[:fits])
	if err == nil && fits < len(b) {
		err = syscall.ENOSPC
	}
	return n, err
}

func (f *frailFile) Sync() error {
	if err := f.disk.failing("sync"); err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	f.disk.durable[f.Name()] = info.Size()
	return nil
}

func (f *frailFile) Truncate(size int64) error {
	if err := f.disk.failing("truncate"); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

// cutPower loses a random part of the unsynced data and corrupts another part.
func (d *frailDisk) cutPower(t *testing.T, rng *rand.Rand, directory string) {
	t.Helper()
	segments, err := list(directory)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range segments {
		left := d.durable[s.path] + rng.Int64N(s.size-d.durable[s.path]+1)
		b, err := os.ReadFile(s.path)
		if err != nil {
			t.Fatal(err)
		}
		b = b[:left]
		if unsynced := b[d.durable[s.path]:]; len(unsynced) > 0 && rng.IntN(2) == 0 {
			clear(unsynced[rng.IntN(len(unsynced)):])
		}
		if err := os.WriteFile(s.path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFailedWritesLeaveNothing(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		room int64
		fail map[string]error
		want error
	}{
		"no room":                    {0, nil, syscall.ENOSPC},
		"room for half":              {40, nil, syscall.ENOSPC},
		"sync fails":                 {-1, map[string]error{"sync": broken}, broken},
		"sync and truncate fail":     {-1, map[string]error{"sync": broken, "truncate": broken}, broken},
		"half, and it stays":         {40, map[string]error{"truncate": broken}, syscall.ENOSPC},
		"the next cannot be made":    {-1, map[string]error{"open": broken}, broken},
		"half, and no next segment ": {40, map[string]error{"open": broken}, broken},
	} {
		t.Run(name, func(t *testing.T) {
			o, d := options(t.TempDir()), newFrailDisk()
			o.SegmentSize, o.disk = 150, d
			l := openLog(t, o)
			want := []string{"first", "second"}
			add(t, l, want...)
			if c.fail["open"] != nil { // the next append needs a segment
				want = append(want, strings.Repeat("x", 150))
				add(t, l, want[2])
			}
			d.set(c.room, c.fail)
			for range 3 {
				if _, err := l.Append(t.Context(), texts("lost", strings.Repeat("lost ", 10))...); !errors.Is(err, c.want) && !errors.Is(err, broken) {
					t.Errorf("the error is %v, want %v", err, c.want)
				}
			}
			checkRead(t, l.NewReader(0), numbered(want, 0))
			if got := testutil.ToFloat64(l.metrics.disk); got != 3 {
				t.Errorf("%v failures are counted", got)
			}
			d.set(-1, nil)
			for i := range 5 {
				want = append(want, fmt.Sprint("after ", i))
				add(t, l, want[len(want)-1])
			}
			checkRead(t, l.NewReader(0), numbered(want, 0))
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			o.Registerer = prometheus.NewRegistry()
			checkRead(t, openLog(t, o).NewReader(0), numbered(want, 0))
		})
	}
}

// After a crash at any time that loses any part of the unsynced data, a log has every confirmed record once, in order.
// Of the other appends, each is either complete or absent.
func TestConfirmedRecordsSurviveCrashes(t *testing.T) {
	o, rng := options(t.TempDir()), rand.New(rand.NewPCG(14, 3))
	confirmed := map[string]bool{}
	sent := 0
	for life := range 30 {
		d := newFrailDisk()
		o.disk, o.Registerer, o.SegmentSize = d, prometheus.NewRegistry(), 3000
		if segments, err := list(o.Directory); err == nil {
			for _, s := range segments {
				d.durable[s.path] = s.size
			}
		}
		l := openLog(t, o)
		var mu sync.Mutex
		var clients sync.WaitGroup
		for range 4 {
			sent += 100
			from, stop := sent, 1+rng.IntN(40)
			clients.Go(func() {
				for i := range 50 {
					if i == stop { // from here on nothing reaches the disk
						d.set(-1, map[string]error{"sync": syscall.EIO, "truncate": syscall.EIO})
					}
					id := fmt.Sprint(from + i)
					if _, err := l.Append(t.Context(), texts(id+"/a", id+"/b")...); err != nil {
						return
					}
					mu.Lock()
					confirmed[id] = true
					mu.Unlock()
				}
			})
		}
		clients.Wait()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		d.cutPower(t, rng, o.Directory)
		v, err := OpenView(o.Directory)
		if err != nil {
			t.Fatal(err)
		}
		got, err := read(v.NewReader(0))
		if err != nil {
			t.Fatal(err)
		}
		checkHistory(t, life, got, confirmed)
	}
	if len(confirmed) < 500 {
		t.Errorf("only %d appends were confirmed", len(confirmed))
	}
}

func checkHistory(t *testing.T, life int, got []string, confirmed map[string]bool) {
	t.Helper()
	seen := map[string]bool{}
	for pair := range slices.Chunk(got, 2) {
		at := len(seen) * 2
		id, first := strings.CutSuffix(strings.TrimPrefix(pair[0], fmt.Sprint(at, ":")), "/a")
		if !first || len(pair) < 2 || pair[1] != fmt.Sprint(at+1, ":", id, "/b") || seen[id] {
			t.Fatalf("life %d: %q stands at %d, seen before: %v", life, pair, at, seen[id])
		}
		seen[id] = true
	}
	for id := range confirmed {
		if !seen[id] {
			t.Fatalf("life %d: %s was confirmed and is lost", life, id)
		}
	}
}

func TestQueueIsBounded(t *testing.T) {
	d := &heldDisk{syncing: make(chan struct{}), goOn: make(chan struct{})}
	o := options(t.TempDir())
	o.disk, o.MaxSize = d, 1<<30
	l := openLog(t, o)
	var appends sync.WaitGroup
	appends.Go(func() { add(t, l, "first") })
	<-d.syncing
	value := make([]byte, MaxAppend/2)
	results := make(chan error)
	const many = maxQueued/(MaxAppend/2) + 3
	for range many {
		appends.Go(func() {
			_, err := l.Append(t.Context(), Record{Value: value})
			results <- err
		})
	}
	refused := 0
	for range many - maxQueued/(MaxAppend/2) { // those that have room wait
		if err := <-results; errors.Is(err, ErrQueue) {
			refused++
		}
	}
	close(d.goOn)
	for range maxQueued / (MaxAppend / 2) {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	appends.Wait()
	if refused != 3 || testutil.ToFloat64(l.metrics.queue) != 3 {
		t.Errorf("%d appends were refused, want 3", refused)
	}
}

// FuzzSegment opens a segment of arbitrary bytes. It must be read up to the first incomplete frame, or refused.
func FuzzSegment(f *testing.F) {
	one := appendFrame(nil, 0, 1, 2, (&Record{Value: []byte("a")}).append((&Record{Key: []byte("k")}).append(nil)))
	two := appendFrame(nil, 2, 1, 1, (&Record{Value: []byte("b")}).append(nil))
	f.Add([]byte{})
	f.Add(one)
	f.Add(append(slices.Clone(one), two...))
	f.Add(append(append(slices.Clone(one), 0), two...))
	f.Add(append(slices.Clone(one), two[:20]...))
	f.Add(appendFrame(nil, 0, 0, 5, []byte{0, 200, 1, 1, 1, 1, 1}))
	f.Fuzz(func(t *testing.T, b []byte) {
		o := options(t.TempDir())
		if err := os.WriteFile(segmentPath(o.Directory, 0), b, 0o600); err != nil {
			t.Fatal(err)
		}
		v, err := OpenView(o.Directory)
		if err != nil {
			t.Fatal(err)
		}
		before, readable := read(v.NewReader(0))
		if readable == nil && int64(len(before)) != v.next || readable != nil && !errors.Is(readable, ErrDamaged) {
			t.Fatalf("%d records of %d: %v", len(before), v.next, readable)
		}
		o.disk = newFrailDisk() // which syncs nothing
		l, err := Open(o)
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Fatal(err)
			}
			return
		}
		defer l.Close()
		at := add(t, l, "next")
		if at != v.next {
			t.Fatalf("offset %d, want %d", at, v.next)
		}
		after, err := read(l.NewReader(0))
		if readable == nil && (err != nil || len(after) != len(before)+1) {
			t.Fatalf("%d records, %v; there were %d", len(after), err, len(before))
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	for _, clients := range []int{1, 16} {
		b.Run(fmt.Sprint(clients, " clients"), func(b *testing.B) {
			o := options(b.TempDir())
			o.MaxSize, o.SegmentSize = 1<<40, 64<<20
			l, err := Open(o)
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			value := make([]byte, 25<<10)
			b.SetBytes(int64(len(value)))
			todo := make(chan struct{})
			var working sync.WaitGroup
			for range clients {
				working.Go(func() {
					for range todo {
						if _, err := l.Append(b.Context(), Record{Value: value}); err != nil {
							b.Error(err)
						}
					}
				})
			}
			for b.Loop() {
				todo <- struct{}{}
			}
			close(todo)
			working.Wait()
		})
	}
}

// FuzzBody reads arbitrary bytes as the body of an intact frame.
func FuzzBody(f *testing.F) {
	whole := (&Record{Key: []byte("k"), Headers: []ingest.Header{{Key: "h", Value: []byte("v")}}, Value: []byte("value")}).append(nil)
	f.Add(1, whole)
	f.Add(2, append(slices.Clone(whole), whole...))
	f.Add(1, []byte{0, 200, 200, 1, 1})
	f.Fuzz(func(t *testing.T, records int, body []byte) {
		frame := appendFrame(nil, 7, 1, records, body)
		var memory []byte
		h, err := readFrame(bytes.NewReader(frame), &memory, 7)
		if err != nil {
			if records > 0 && records <= len(body) {
				t.Fatal(err)
			}
			return
		}
		got, err := h.decode(nil, memory[frameHead:])
		if err != nil {
			return
		}
		var again []byte
		for i := range got {
			again = got[i].append(again)
		}
		if len(got) != records || len(again) > len(body) { // a number can be written longer than it needs to be
			t.Fatalf("%d records of %d, %d bytes of %d", len(got), records, len(again), len(body))
		}
	})
}
