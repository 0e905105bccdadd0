package checkpoint

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/rewardwatch/rewardwatch/ingest"
)

func openStore(t *testing.T, path string) (*Directory, *prometheus.Registry) {
	t.Helper()
	reg := prometheus.NewRegistry()
	d, err := NewDirectory(path, reg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			t.Error(err)
		}
	})
	return d, reg
}

func mustSave(t *testing.T, d *Directory, name string, snapshot []byte) {
	t.Helper()
	if err := d.Save(name, snapshot); err != nil {
		t.Fatal(err)
	}
}

func wantLoad(t *testing.T, d *Directory, name string, want []byte) {
	t.Helper()
	got, err := d.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("%q holds %q, want %q", name, got, want)
	}
}

// hostileNames must each have a file of their own inside the directory.
func hostileNames() []string {
	long := strings.Repeat("a", 300)
	return []string{
		"partition-events-3", "bank-checkout{env=\"eu\"}", ".", "..", "../outside", "/etc/passwd", "a/b", "a%2fb", "a b",
		"A", "a", "%", "%41", "~", "é", "\x00", "\xff", "lock", "x.checkpoint", "x.checkpoint.tmp", "-", "*", "[a]",
		long, long + "b", strings.ToUpper(long), strings.Repeat("/", 150),
	}
}

func TestEveryNameHasAFileOfItsOwn(t *testing.T) {
	path := t.TempDir()
	d, _ := openStore(t, path)
	for _, name := range hostileNames() {
		mustSave(t, d, name, []byte("of "+name))
	}
	for _, name := range hostileNames() {
		wantLoad(t, d, name, []byte("of "+name))
	}
	names, err := d.Names("")
	if err != nil {
		t.Fatal(err)
	}
	want := hostileNames()
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Errorf("names %q, want %q", names, want)
	}
	files, err := os.ReadDir(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(want)+1 { // and the lock
		t.Errorf("%d files for %d names", len(files), len(want))
	}
	folded := map[string]bool{}
	for _, f := range files {
		folded[strings.ToLower(f.Name())] = true
	}
	if len(folded) != len(files) {
		t.Error("two names share a file on a file system that ignores case")
	}
}

func TestSaveReplacesAndSurvivesReopening(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made", "on", "demand")
	d, _ := openStore(t, path)
	if _, err := d.Load("bank-a"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("before the first save: %v", err)
	}
	for _, snapshot := range [][]byte{[]byte("first, and longer"), {}, []byte("second")} {
		mustSave(t, d, "bank-a", snapshot)
		wantLoad(t, d, "bank-a", snapshot)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	again, _ := openStore(t, path)
	wantLoad(t, again, "bank-a", []byte("second"))
}

func TestSaveRefusesANameOfNothing(t *testing.T) {
	d, _ := openStore(t, t.TempDir())
	if err := d.Save("", []byte("x")); err == nil {
		t.Error("it was saved")
	}
}

func TestNamesAndRemove(t *testing.T) {
	d, _ := openStore(t, t.TempDir())
	for _, name := range []string{"partition-2", "bank-b", "partition-1"} {
		mustSave(t, d, name, []byte("x"))
	}
	for range 2 { // the second time there is nothing left to remove
		if err := d.Remove("partition-2"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Load("partition-2"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("loading a removed checkpoint: %v", err)
	}
	for prefix, want := range map[string][]string{
		"": {"bank-b", "partition-1"}, "partition-": {"partition-1"}, "other-": nil,
	} {
		names, err := d.Names(prefix)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(names, want) {
			t.Errorf("names with %q: %q, want %q", prefix, names, want)
		}
	}
}

// wantDamaged demands that the file is refused, by its path.
func wantDamaged(t *testing.T, d *Directory, name, why string) {
	t.Helper()
	_, err := d.Load(name)
	var damaged *DamagedError
	if !errors.As(err, &damaged) {
		t.Fatalf("%s: it was not refused: %v", why, err)
	}
	if damaged.Path != d.file(name) || damaged.Why == "" {
		t.Fatalf("%s: %+v", why, damaged)
	}
}

func TestEveryFlippedByteIsRefused(t *testing.T) {
	d, _ := openStore(t, t.TempDir())
	mustSave(t, d, "bank-a", []byte("some state"))
	good, err := os.ReadFile(d.file("bank-a"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range good {
		for _, flip := range []byte{0x01, 0x80, 0xff} {
			bad := slices.Clone(good)
			bad[i] ^= flip
			overwrite(t, d, "bank-a", bad)
			wantDamaged(t, d, "bank-a", "a flipped byte")
		}
	}
}

func TestEveryOtherLengthIsRefused(t *testing.T) {
	d, _ := openStore(t, t.TempDir())
	mustSave(t, d, "bank-a", []byte("some state"))
	good, err := os.ReadFile(d.file("bank-a"))
	if err != nil {
		t.Fatal(err)
	}
	for n := range good {
		overwrite(t, d, "bank-a", good[:n])
		wantDamaged(t, d, "bank-a", "cut short")
	}
	overwrite(t, d, "bank-a", append(slices.Clone(good), 0))
	wantDamaged(t, d, "bank-a", "a byte too long")
	overwrite(t, d, "bank-a", good)
	wantLoad(t, d, "bank-a", []byte("some state"))
}

func overwrite(t *testing.T, d *Directory, name string, file []byte) {
	t.Helper()
	if err := os.WriteFile(d.file(name), file, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestSwappedFilesAreRefused(t *testing.T) {
	d, reg := openStore(t, t.TempDir())
	mustSave(t, d, "partition-1", []byte("of 1"))
	mustSave(t, d, "partition-2", []byte("of 2"))
	file, err := os.ReadFile(d.file("partition-1"))
	if err != nil {
		t.Fatal(err)
	}
	overwrite(t, d, "partition-2", file)
	wantDamaged(t, d, "partition-2", "the file of another name")
	_, err = d.Load("partition-2")
	for _, want := range []string{d.file("partition-2"), `"partition-1"`, "move it away"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %s: %v", want, err)
		}
	}
	wantMetrics(t, reg, `
# HELP rewardwatch_checkpoint_bytes Size of the checkpoint written last, by kind.
# TYPE rewardwatch_checkpoint_bytes gauge
rewardwatch_checkpoint_bytes{kind="partition"} 4
# HELP rewardwatch_checkpoint_failures_total Checkpoints that could not be written, or were refused when read, by kind.
# TYPE rewardwatch_checkpoint_failures_total counter
rewardwatch_checkpoint_failures_total{kind="bank"} 0
rewardwatch_checkpoint_failures_total{kind="partition"} 2
`)
}

func wantMetrics(t *testing.T, reg *prometheus.Registry, want string) {
	t.Helper()
	err := testutil.GatherAndCompare(reg, strings.NewReader(want), ingest.MetricCheckpointBytes, ingest.MetricCheckpointFailure)
	if err != nil {
		t.Error(err)
	}
}

func TestAnotherFormatVersionIsRefusedByItsNumber(t *testing.T) {
	d, _ := openStore(t, t.TempDir())
	mustSave(t, d, "bank-a", []byte("x"))
	file, err := os.ReadFile(d.file("bank-a"))
	if err != nil {
		t.Fatal(err)
	}
	file[len(magic)] = 9
	overwrite(t, d, "bank-a", file)
	if _, err := d.Load("bank-a"); err == nil || !strings.Contains(err.Error(), "format version 9") {
		t.Errorf("got %v", err)
	}
}

// TestFullDisk writes to a device that is always full, and expects the checkpoint before to hold.
func TestFullDisk(t *testing.T) {
	path := t.TempDir()
	d, reg := openStore(t, path)
	mustSave(t, d, "bank-a", []byte("good"))
	full := filepath.Join(path, "full.checkpoint.tmp")
	d.create = func(string, string) (*os.File, error) {
		if err := os.Symlink("/dev/full", full); err != nil {
			return nil, err
		}
		return os.OpenFile(full, os.O_WRONLY, 0)
	}
	if err := d.Save("bank-a", []byte("more")); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "bank-a") {
		t.Errorf("got %v", err)
	}
	wantLoad(t, d, "bank-a", []byte("good"))
	if _, err := os.Lstat(full); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the unfinished file was left behind: %v", err)
	}
	wantMetrics(t, reg, `
# HELP rewardwatch_checkpoint_bytes Size of the checkpoint written last, by kind.
# TYPE rewardwatch_checkpoint_bytes gauge
rewardwatch_checkpoint_bytes{kind="bank"} 4
# HELP rewardwatch_checkpoint_failures_total Checkpoints that could not be written, or were refused when read, by kind.
# TYPE rewardwatch_checkpoint_failures_total counter
rewardwatch_checkpoint_failures_total{kind="bank"} 1
rewardwatch_checkpoint_failures_total{kind="partition"} 0
`)
}

func TestADirectoryThatCannotBeWrittenIsReported(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewDirectory(filepath.Join(file, "checkpoints"), prometheus.NewRegistry()); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("opening below a file: %v", err)
	}
	path := filepath.Join(t.TempDir(), "checkpoints")
	d, _ := openStore(t, path)
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if err := d.Save("bank-a", nil); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("saving to a directory that is gone: %v", err)
	}
	if _, err := d.Names(""); err == nil {
		t.Error("listing a directory that is gone gave no error")
	}
}

func TestUnfinishedWritesAreRemovedAtOpening(t *testing.T) {
	path := filepath.Join(t.TempDir(), "[odd]*")
	d, _ := openStore(t, path)
	mustSave(t, d, "bank-a", []byte("good"))
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	left, foreign := filepath.Join(path, "123.checkpoint.tmp"), filepath.Join(path, "foreign.tmp")
	for _, file := range []string{left, foreign} {
		if err := os.WriteFile(file, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d, _ = openStore(t, path)
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Errorf("a file of someone else was removed: %v", err)
	}
	wantLoad(t, d, "bank-a", []byte("good"))
	if names, err := d.Names(""); err != nil || !slices.Equal(names, []string{"bank-a"}) {
		t.Errorf("names %q, %v", names, err)
	}
}

func TestOneOwnerAtATime(t *testing.T) {
	path := t.TempDir()
	d, _ := openStore(t, path)
	_, err := NewDirectory(path, prometheus.NewRegistry())
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), path) {
		t.Fatalf("the second owner got %v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	openStore(t, path)
}

func TestSavesAtTheSameTime(t *testing.T) {
	d, _ := openStore(t, t.TempDir())
	snapshots := [][]byte{bytes.Repeat([]byte("a"), 5000), bytes.Repeat([]byte("b"), 7000)}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 5 {
				if err := d.Save("bank-a", snapshots[i%2]); err != nil {
					t.Error(err)
				}
				if got, err := d.Load("bank-a"); err != nil || !bytes.Equal(got, snapshots[got[0]-'a']) {
					t.Errorf("%d bytes, %v", len(got), err)
				}
			}
		})
	}
	wg.Wait()
}

func FuzzOpen(f *testing.F) {
	f.Add(append(header("bank-a", []byte("x")), 'x'))
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, file []byte) {
		name, snapshot, why := open(file)
		if why == "" && !bytes.Equal(append(header(name, snapshot), snapshot...), file) {
			t.Errorf("accepted %q, which is not what is written for %q", file, name)
		}
	})
}

func FuzzFileName(f *testing.F) {
	for _, name := range hostileNames() {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		file := fileName(name)
		if len(file) > 230 || strings.ContainsAny(file, "/\x00") || strings.HasPrefix(file, ".") && name != "" {
			t.Fatalf("the file of %q is %q", name, file)
		}
		if back, whole, ok := nameOf(file); name != "" && (!ok || whole && back != name) {
			t.Errorf("%q -> %q -> %q", name, file, back)
		}
	})
}
