package locallog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/datadir"
)

func options(directory string) Options {
	return Options{
		Name: "test", Directory: directory, MaxSize: 1 << 20, SegmentSize: 1 << 10,
		Log: zerolog.Nop(), Registerer: prometheus.NewRegistry(),
	}
}

func openLog(t *testing.T, o Options) *Log {
	t.Helper()
	l, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil && !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	})
	return l
}

func texts(values ...string) (records []Record) {
	for _, v := range values {
		records = append(records, Record{Value: []byte(v)})
	}
	return records
}

func add(t *testing.T, l *Log, values ...string) int64 {
	t.Helper()
	first, err := l.Append(t.Context(), texts(values...)...)
	if err != nil {
		t.Fatal(err)
	}
	return first
}

// read returns offset:value of every record of a reader up to its end.
func read(r *Reader) (out []string, err error) {
	for {
		records, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out, r.Close()
		}
		if err != nil {
			return out, errors.Join(err, r.Close())
		}
		for _, rec := range records {
			out = append(out, fmt.Sprint(rec.Offset, ":", string(rec.Value)))
		}
	}
}

func commit(t *testing.T, l *Log, next int64) {
	t.Helper()
	if err := l.Commit(next); err != nil {
		t.Fatal(err)
	}
}

func numbered(values []string, from int) (out []string) {
	for i := from; i < len(values); i++ {
		out = append(out, fmt.Sprint(i, ":", values[i]))
	}
	return out
}

func checkRead(t *testing.T, r *Reader, want []string) {
	t.Helper()
	if got, err := read(r); err != nil || !slices.Equal(got, want) {
		t.Fatalf("read %d records %.300q, %v; want %d: %.300q", len(got), got, err, len(want), want)
	}
}

func TestRecordsAreReadAsTheyWereAppended(t *testing.T) {
	l := openLog(t, options(t.TempDir()))
	want := []Record{
		{Key: []byte("k"), Value: []byte("v"), Headers: []ingest.Header{{Key: "a", Value: []byte{0, 255}}, {Key: "", Value: nil}}},
		{},
		{Value: bytes.Repeat([]byte("long "), 1000)},
	}
	before := time.Now().UnixMilli()
	if first, err := l.Append(t.Context(), want...); first != 0 || err != nil {
		t.Fatal(first, err)
	}
	r := l.NewReader(0)
	defer r.Close()
	got, err := r.Next()
	if err != nil || len(got) != len(want) {
		t.Fatal(got, err)
	}
	for i := range got {
		if got[i].Offset != int64(i) || got[i].Time < before || got[i].Time > time.Now().UnixMilli() {
			t.Errorf("record %d: offset %d, time %d", i, got[i].Offset, got[i].Time)
		}
		if fmt.Sprintf("%q", got[i].Headers) != fmt.Sprintf("%q", want[i].Headers) || !bytes.Equal(got[i].Key, want[i].Key) || !bytes.Equal(got[i].Value, want[i].Value) {
			t.Errorf("record %d: %.99q %.99q, want %.99q %.99q", i, got[i].Key, got[i].Value, want[i].Key, want[i].Value)
		}
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if _, err := l.Append(t.Context(), Record{Value: make([]byte, MaxAppend+1)}); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	if first, err := l.Append(t.Context()); first != 3 || err != nil {
		t.Error("nothing:", first, err)
	}
}

// A log continues where it ended, with any number of segments, from any offset, and also for readers in other
// processes.
func TestLogGoesOn(t *testing.T) {
	o := options(t.TempDir())
	var values []string
	for run := range 5 {
		o.Registerer = prometheus.NewRegistry()
		l := openLog(t, o)
		live := l.NewReader(int64(len(values)))
		for i := range 40 {
			v := []string{strings.Repeat("x", i*7), fmt.Sprint(run, "/", i)}
			if first := add(t, l, v...); first != int64(len(values)) {
				t.Fatalf("offset %d, want %d", first, len(values))
			}
			values = append(values, v...)
			if i%9 == 0 {
				select {
				case <-l.Grown(int64(len(values) - 1)):
				default:
					t.Error("the log has not grown")
				}
			}
		}
		checkRead(t, live, numbered(values, len(values)-80))
		for from := 0; from <= len(values); from += 13 {
			checkRead(t, l.NewReader(int64(from)), numbered(values, from))
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Append(t.Context(), Record{}); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
		v, err := OpenView(o.Directory)
		if err != nil {
			t.Fatal(err)
		}
		if first, next := v.Ends(); first != 0 || next != int64(len(values)) {
			t.Errorf("the view is of %d to %d", first, next)
		}
		checkRead(t, v.NewReader(17), numbered(values, 17))
	}
	if files, err := list(o.Directory); err != nil || len(files) < 20 {
		t.Errorf("%d segments, %v", len(files), err)
	}
}

func TestOneProcessOwnsALog(t *testing.T) {
	o := options(t.TempDir())
	l := openLog(t, o)
	if _, err := Open(o); !errors.Is(err, datadir.ErrLocked) || !strings.Contains(err.Error(), o.Directory) {
		t.Errorf("the error is %v", err)
	}
	add(t, l, "a")
	if !IsLog(o.Directory) || IsLog(t.TempDir()) {
		t.Error("a log is not recognized")
	}
	if _, err := OpenView(t.TempDir()); !errors.Is(err, ErrNoLog) {
		t.Error(err)
	}
}

// heldDisk blocks the first Sync until it is released, and counts all of them.
type heldDisk struct {
	mu      sync.Mutex
	syncs   int
	syncing chan struct{}
	goOn    chan struct{}
}

func (d *heldDisk) open(path string) (file, error) {
	f, err := osDisk{}.open(path)
	return &heldFile{f, d}, err
}

type heldFile struct {
	file
	of *heldDisk
}

func (f *heldFile) Sync() error {
	f.of.mu.Lock()
	f.of.syncs++
	first := f.of.syncs == 1
	f.of.mu.Unlock()
	if first {
		close(f.of.syncing)
		<-f.of.goOn
	}
	return f.file.Sync()
}

// Waiting appends share one sync, and no record is readable before it is durable.
func TestWaitingAppendsShareASync(t *testing.T) {
	d := &heldDisk{syncing: make(chan struct{}), goOn: make(chan struct{})}
	o := options(t.TempDir())
	o.disk = d
	l := openLog(t, o)
	var appends sync.WaitGroup
	offsets := make([]int64, 50)
	put := func(i int) {
		appends.Go(func() {
			first, err := l.Append(t.Context(), texts(fmt.Sprint(i), "second")...)
			if err != nil {
				t.Error(err)
			}
			offsets[i] = first
		})
	}
	put(0)
	<-d.syncing
	for i := 1; i < len(offsets); i++ {
		put(i)
	}
	waiting := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.queue)
	}
	for deadline := time.Now().Add(10 * time.Second); waiting() < len(offsets)-1; {
		if time.Now().After(deadline) {
			t.Fatal("the appends do not wait")
		}
		time.Sleep(time.Millisecond)
	}
	if got, err := read(l.NewReader(0)); err != nil || len(got) > 0 {
		t.Errorf("read before the sync: %q, %v", got, err)
	}
	close(d.goOn)
	appends.Wait()
	if d.syncs != 2 {
		t.Errorf("%d syncs, want 2", d.syncs)
	}
	want := make([]string, 2*len(offsets))
	for i, at := range offsets {
		want[at], want[at+1] = fmt.Sprint(i), "second"
	}
	checkRead(t, l.NewReader(0), numbered(want, 0))
}

func TestUnfinishedWriteIsCutOff(t *testing.T) {
	whole := t.TempDir()
	l := openLog(t, options(whole))
	add(t, l, "first", "second")
	size := l.size
	add(t, l, "torn", "torn too")
	end := l.size
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(segmentPath(whole, 0))
	if err != nil {
		t.Fatal(err)
	}
	flipped := func(at int64) []byte {
		b := bytes.Clone(written)
		b[at] ^= 1
		return b
	}
	files := map[string][]byte{"zeros": append(bytes.Clone(written[:size]), make([]byte, 5000)...)}
	for at := size + 1; at < end; at++ {
		files[fmt.Sprint("cut at ", at)] = written[:at]
		files[fmt.Sprint("flipped at ", at)] = flipped(at)
	}
	for name, content := range files {
		o := options(t.TempDir())
		if err := os.WriteFile(segmentPath(o.Directory, 0), content, 0o600); err != nil {
			t.Fatal(err)
		}
		if v, err := OpenView(o.Directory); err != nil || v.next != 2 {
			t.Fatalf("%s: the view ends at %d, %v", name, v.next, err)
		}
		o.disk = newFrailDisk() // which syncs nothing
		l, err := Open(o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		add(t, l, "third")
		checkRead(t, l.NewReader(0), []string{"0:first", "1:second", "2:third"})
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// If an intact write follows a damaged one, nothing is truncated: the log is not opened, or not read beyond the damage.
func TestDamageIsRefusedWithItsPlace(t *testing.T) {
	o := options(t.TempDir())
	l := openLog(t, o)
	for i := range 3 {
		add(t, l, fmt.Sprint("record ", i))
	}
	frame := l.size / 3
	add(t, l, strings.Repeat("x", int(o.SegmentSize)))
	add(t, l, "in the next segment")
	add(t, l, "the last")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	segments, err := list(o.Directory)
	if err != nil || len(segments) != 2 {
		t.Fatal(segments, err)
	}
	flip := func(path string, at int64) {
		t.Helper()
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b[at] ^= 0x10
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for at := frame; at < 2*frame; at++ {
		flip(segments[0].path, at)
		v, err := OpenView(o.Directory)
		if err != nil {
			t.Fatal(err)
		}
		got, err := read(v.NewReader(0))
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), fmt.Sprintf("%s, from byte %d (offset 1)", segments[0].path, frame)) || len(got) != 1 {
			t.Fatalf("byte %d: read %q, %v", at, got, err)
		}
		flip(segments[0].path, at)
	}
	for at := range int64(10) {
		flip(segments[1].path, at)
		o.Registerer = prometheus.NewRegistry()
		_, err := Open(o)
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), segments[1].path+", from byte 0 (offset 4)") || !strings.Contains(err.Error(), "truncate -s 0") {
			t.Fatalf("byte %d: %v", at, err)
		}
		if _, err := OpenView(o.Directory); !errors.Is(err, ErrDamaged) { // otherwise later records would go missing silently
			t.Fatalf("byte %d of a view: %v", at, err)
		}
		flip(segments[1].path, at)
	}
	// Once the segment has been moved away as the error suggests, its records are missing, and the others are read.
	if err := os.Rename(segments[0].path, filepath.Join(t.TempDir(), "away")); err != nil {
		t.Fatal(err)
	}
	o.Registerer = prometheus.NewRegistry()
	checkRead(t, openLog(t, o).NewReader(0), []string{"4:in the next segment", "5:the last"})
}

func TestMissingSegmentIsAGap(t *testing.T) {
	o := options(t.TempDir())
	o.SegmentSize = 1
	l := openLog(t, o)
	for i := range 4 {
		add(t, l, fmt.Sprint(i))
	}
	if err := os.Remove(segmentPath(o.Directory, 1)); err != nil {
		t.Fatal(err)
	}
	v, err := OpenView(o.Directory)
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range []int64{0, 1, 2} {
		want := []string{"2:2", "3:3"}
		if from == 0 {
			want = append([]string{"0:0"}, want...)
		}
		checkRead(t, v.NewReader(from), want)
	}
}

func TestRetention(t *testing.T) {
	o := options(t.TempDir())
	o.MaxSize, o.SegmentSize = 8<<10, 1<<10
	l := openLog(t, o)
	value := strings.Repeat("x", 500)
	n := 0
	for ; ; n++ {
		if _, err := l.Append(t.Context(), texts(value)...); err != nil {
			if !errors.Is(err, ErrFull) {
				t.Fatal(err)
			}
			break
		}
	}
	if first, next := l.Ends(); first != 0 || next != int64(n) || n < 14 || l.bytes() > o.MaxSize || l.held() != l.bytes() {
		t.Fatalf("%d to %d, %d bytes, %d held", first, next, l.bytes(), l.held())
	}
	if got := testutil.ToFloat64(l.metrics.full); got != 1 {
		t.Errorf("%v refusals are counted", got)
	}
	commit(t, l, int64(n)/2)
	if _, err := l.Append(t.Context(), texts(value)...); !errors.Is(err, ErrFull) {
		t.Errorf("after one commit: %v", err)
	}
	commit(t, l, int64(n)/2+1)
	for range 3 * n { // as its reader goes on, so does the log
		at := add(t, l, value)
		commit(t, l, at-5)
	}
	first, next := l.Ends()
	if next != int64(4*n) || first == 0 || first > next-7 || l.bytes() > o.MaxSize {
		t.Errorf("%d to %d, %d bytes", first, next, l.bytes())
	}
	if l.bytes()+int64(testutil.ToFloat64(l.metrics.removed)) != next*l.bytes()/(next-first) {
		t.Error("what was removed is not counted")
	}
	if got, err := read(l.NewReader(0)); err != nil || len(got) != int(next-first) {
		t.Errorf("%d records are left, %v", len(got), err)
	}
}

// A commit is visible to the next process, never goes back, and allows the records before it to be removed.
func TestCommit(t *testing.T) {
	o := options(t.TempDir())
	l := openLog(t, o)
	if at, known := l.Committed(); known {
		t.Errorf("a new log has the commit %d", at)
	}
	for _, c := range []struct{ next, committed, released int64 }{{5, 5, 0}, {5, 5, 0}, {3, 5, 0}, {9, 9, 5}, {12, 12, 9}} {
		commit(t, l, c.next)
		if at, known := l.Committed(); at != c.committed || !known || l.released != c.released {
			t.Errorf("after %d: %d, released %d; want %d and %d", c.next, at, l.released, c.committed, c.released)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	o.Registerer = prometheus.NewRegistry()
	l = openLog(t, o)
	if at, known := l.Committed(); at != 12 || !known || l.released != 0 {
		t.Errorf("the next process: %d, released %d", at, l.released)
	}
	commit(t, l, 13)
	if l.released != 12 {
		t.Errorf("released %d, want 12", l.released)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "13", "x\n", "-1\n"} {
		if err := os.WriteFile(l.CommitFile(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(o); err == nil || !strings.Contains(err.Error(), l.CommitFile()) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// clock is a time that tests can change.
type clock struct{ ns atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.ns.Store(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC).UnixNano())
	return c
}

func (c *clock) now() time.Time       { return time.Unix(0, c.ns.Load()) }
func (c *clock) pass(d time.Duration) { c.ns.Add(int64(d)) }

func TestOldSegmentsAreRemoved(t *testing.T) {
	o, c := options(t.TempDir()), newClock()
	o.MaxAge, o.now = 30*24*time.Hour, c.now
	l := openLog(t, o)
	for range 10 {
		add(t, l, strings.Repeat("x", 600))
	}
	_, next := l.Ends()
	c.pass(o.MaxAge + time.Hour)
	add(t, l, "new")
	if first, _ := l.Ends(); first != 0 {
		t.Errorf("unread records up to %d were removed", first)
	}
	commit(t, l, next-1)
	commit(t, l, next)
	add(t, l, "new")
	if first, _ := l.Ends(); first == 0 || first >= next {
		t.Errorf("the log begins at %d", first)
	}
	commit(t, l, next+1)
	commit(t, l, next+2)
	add(t, l, "new")
	if first, _ := l.Ends(); first != next {
		t.Errorf("the log begins at %d, want %d", first, next)
	}
}

// Segments with little data are closed after a while, too.
func TestSegmentsEndInTime(t *testing.T) {
	o, c := options(t.TempDir()), newClock()
	o.now = c.now
	l := openLog(t, o)
	add(t, l, "a")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		after    time.Duration
		segments int
	}{{segmentAge - time.Minute, 1}, {2 * time.Minute, 2}, {10 * segmentAge, 2}} {
		c.pass(step.after)
		var err error
		if l.active, err = l.o.disk.open(l.last().path); err != nil {
			t.Fatal(err)
		}
		l.age() // as run does
		if err := l.close(); err != nil || len(l.segments) != step.segments {
			t.Errorf("%d segments, %v; want %d", len(l.segments), err, step.segments)
		}
	}
}

func TestViewUntil(t *testing.T) {
	o, c := options(t.TempDir()), newClock()
	o.SegmentSize, o.now = 200, c.now
	l := openLog(t, o)
	begun := c.now()
	for i := range 20 {
		if add(t, l, fmt.Sprint("record ", i)); i == 9 {
			c.pass(-time.Hour) // the times in the log must not go back nevertheless
		} else {
			c.pass(time.Second)
		}
	}
	v, err := OpenView(o.Directory)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []struct {
		after time.Duration
		want  int64
	}{{0, 0}, {1, 0}, {time.Millisecond, 1}, {time.Second, 1}, {8500 * time.Millisecond, 9}, {9 * time.Second, 9}, {10 * time.Second, 20}, {time.Hour, 20}} {
		if got, err := v.Until(begun.Add(w.after)); err != nil || got != w.want {
			t.Errorf("until %v: %d, %v; want %d", w.after, got, err, w.want)
		}
	}
}

func TestMetrics(t *testing.T) {
	o := options(t.TempDir())
	registry := prometheus.NewRegistry()
	o.Registerer = registry
	l := openLog(t, o)
	add(t, l, "abc")
	want := `
# HELP rewardwatch_log_bytes Size of the local log: total, the part retained until two checkpoints cover it, and the limit.
# TYPE rewardwatch_log_bytes gauge
rewardwatch_log_bytes{kind="all",log="test"} 38
rewardwatch_log_bytes{kind="held",log="test"} 38
rewardwatch_log_bytes{kind="max",log="test"} 1.048576e+06
# HELP rewardwatch_log_refused_total Writes rejected by the local log, by reason: log full of unjudged records, too many pending writes, or disk failure.
# TYPE rewardwatch_log_refused_total counter
rewardwatch_log_refused_total{log="test",reason="disk"} 0
rewardwatch_log_refused_total{log="test",reason="full"} 0
rewardwatch_log_refused_total{log="test",reason="queue"} 0
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), MetricBytes, MetricRefused); err != nil {
		t.Error(err)
	}
}
