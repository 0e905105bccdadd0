package checkpoint

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest/datadir"
)

func openDirectory(t *testing.T, path string) *Directory {
	t.Helper()
	d, err := NewDirectory(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			t.Error(err)
		}
	})
	return d
}

func mustPut(t testing.TB, b Backend, name string, generation uint64, segment []byte) {
	t.Helper()
	if err := b.Put(name, generation, segment); err != nil {
		t.Fatal(err)
	}
}

func wantSegment(t *testing.T, d *Directory, name string, generation uint64, want []byte) {
	t.Helper()
	if got, err := d.Get(name, generation); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%q %d holds %q, %v, want %q", name, generation, got, err, want)
	}
}

// hostileNames returns names that must each have a separate file inside the directory.
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
	d := openDirectory(t, path)
	segments := map[string][]byte{}
	for _, name := range hostileNames() {
		segments[name] = encode(name, 7, nil, index{})
		mustPut(t, d, name, 7, segments[name])
	}
	for _, name := range hostileNames() {
		wantSegment(t, d, name, 7, segments[name])
		if generations, err := d.Generations(name); err != nil || !slices.Equal(generations, []uint64{7}) {
			t.Errorf("generations of %q: %v, %v", name, generations, err)
		}
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
	if len(files) != len(want)+1 { // plus the lock
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

// A name that is truncated in its file names is read from any of its intact segments.
func TestLongNamesAreFoundBesideDamage(t *testing.T) {
	d := openDirectory(t, t.TempDir())
	long := strings.Repeat("x", 300)
	mustPut(t, d, long, 3, []byte("damaged"))
	if _, err := d.Names(""); !isDamage(err) || !strings.Contains(err.Error(), d.Where(long, 3)) {
		t.Errorf("a name that no file tells: %v", err)
	}
	mustPut(t, d, long, 4, encode(long, 4, nil, index{}))
	if names, err := d.Names(""); err != nil || !slices.Equal(names, []string{long}) {
		t.Errorf("names %q, %v", names, err)
	}
}

func TestPutReplacesAndSurvivesReopening(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made", "on", "demand")
	d := openDirectory(t, path)
	if _, err := d.Get("bank-a", 1); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("before the first: %v", err)
	}
	for _, segment := range [][]byte{[]byte("first, and longer"), {}, []byte("second")} {
		mustPut(t, d, "bank-a", 1, segment)
		wantSegment(t, d, "bank-a", 1, segment)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = openDirectory(t, path)
	wantSegment(t, d, "bank-a", 1, []byte("second"))
	for range 2 { // nothing is left to remove the second time
		if err := d.Remove("bank-a", 1); err != nil {
			t.Fatal(err)
		}
	}
	if generations, err := d.Generations("bank-a"); err != nil || len(generations) > 0 {
		t.Errorf("left %v, %v", generations, err)
	}
}

// TestFullDisk writes to a device that is always full, and expects the previous segment to remain.
func TestFullDisk(t *testing.T) {
	path := t.TempDir()
	d := openDirectory(t, path)
	mustPut(t, d, "bank-a", 1, []byte("good"))
	full := filepath.Join(path, "full.checkpoint.tmp")
	d.create = func(string, string) (*os.File, error) {
		if err := os.Symlink("/dev/full", full); err != nil {
			return nil, err
		}
		return os.OpenFile(full, os.O_WRONLY, 0)
	}
	if err := d.Put("bank-a", 1, []byte("more")); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v", err)
	}
	wantSegment(t, d, "bank-a", 1, []byte("good"))
	if _, err := os.Lstat(full); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the unfinished file was left behind: %v", err)
	}
}

func TestADirectoryThatCannotBeWrittenIsReported(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewDirectory(filepath.Join(file, "checkpoints")); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("opening below a file: %v", err)
	}
	path := filepath.Join(t.TempDir(), "checkpoints")
	d := openDirectory(t, path)
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if err := d.Put("bank-a", 1, nil); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("writing to a directory that is gone: %v", err)
	}
	if _, err := d.Names(""); err == nil {
		t.Error("listing a directory that is gone gave no error")
	}
}

// A start requests the generations of thousands of names, so this must not list the directory each time.
func TestGenerationsAreKnownWithoutListing(t *testing.T) {
	path := t.TempDir()
	d := openDirectory(t, path)
	mustPut(t, d, "bank-a", 1, []byte("one"))
	mustPut(t, d, "bank-a", 2, []byte("two"))
	mustPut(t, d, "bank-a", 2, []byte("again"))
	if err := d.Remove("bank-a", 1); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = openDirectory(t, path)
	mustPut(t, d, "bank-b", 7, []byte("seven"))
	if err := os.RemoveAll(path); err != nil { // removes what would be listed
		t.Fatal(err)
	}
	for name, want := range map[string][]uint64{"bank-a": {2}, "bank-b": {7}, "bank-c": nil} {
		if got, err := d.Generations(name); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s has %v, %v, want %v", name, got, err, want)
		}
	}
}

func TestUnfinishedWritesAreRemovedAtOpening(t *testing.T) {
	path := filepath.Join(t.TempDir(), "[odd]*")
	d := openDirectory(t, path)
	mustPut(t, d, "bank-a", 1, []byte("good"))
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	left, foreign := filepath.Join(path, "123.checkpoint.tmp"), filepath.Join(path, "foreign.tmp")
	for _, file := range []string{left, foreign} {
		if err := os.WriteFile(file, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d = openDirectory(t, path)
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Errorf("a file of someone else was removed: %v", err)
	}
	wantSegment(t, d, "bank-a", 1, []byte("good"))
	if names, err := d.Names(""); err != nil || !slices.Equal(names, []string{"bank-a"}) {
		t.Errorf("names %q, %v", names, err)
	}
}

func TestOneOwnerAtATime(t *testing.T) {
	path := t.TempDir()
	d := openDirectory(t, path)
	_, err := NewDirectory(path)
	if !errors.Is(err, datadir.ErrLocked) || !strings.Contains(err.Error(), path) {
		t.Fatalf("the second owner got %v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	openDirectory(t, path)
}

func FuzzFileName(f *testing.F) {
	for _, name := range hostileNames() {
		f.Add(name, uint64(1))
	}
	f.Fuzz(func(t *testing.T, name string, generation uint64) {
		file := fileName(name, generation)
		if len(file) > 240 || strings.ContainsAny(file, "/\x00") || strings.HasPrefix(file, ".") && name != "" {
			t.Fatalf("the file of %q is %q", name, file)
		}
		if name == "" {
			return
		}
		escaped, number, ok := split(file)
		if !ok || number != generation || escaped != stem(name) {
			t.Fatalf("%q -> %q, %d, %v", file, escaped, number, ok)
		}
		if back, whole, ok := nameOf(escaped); !ok || whole && back != name {
			t.Errorf("%q -> %q -> %q", name, file, back)
		}
	})
}
