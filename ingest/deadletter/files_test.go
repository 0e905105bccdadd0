package deadletter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rs/zerolog"
)

var timeOfTests = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

func letter(offset int64, size int) Letter {
	return Letter{
		Topic: "telemetry", Pos: ingest.Position{Partition: 2, Offset: offset, Record: 1}, Reason: ingest.ReasonInvalidJSON, Msg: "broken",
		Raw: bytes.Repeat([]byte{0xff}, size), Size: int64(size), Time: timeOfTests,
	}
}

func openDeadLetters(t *testing.T, dir string, maxSize ingest.ByteSize) *Files {
	t.Helper()
	f, err := NewFiles(dir, maxSize, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// keptLetters reads the offsets of all letters, oldest first, and the total size of the files.
func keptLetters(t *testing.T, dir string) (offsets []int64, size int64) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "dead-letters-*.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		size += int64(len(content))
		for line := range bytes.Lines(content) {
			var l deadLetterLine
			if err := json.Unmarshal(line, &l); err != nil {
				offsets = append(offsets, -1)
				continue
			}
			offsets = append(offsets, l.Offset)
		}
	}
	return offsets, size
}

func TestFileDeadLettersFormat(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "for", "it")
	f := openDeadLetters(t, dir, ingest.MiB)
	l := New("telemetry", &ingest.RecordError{
		Pos: ingest.Position{Partition: 2, Offset: 7, Record: 1}, Reason: ingest.ReasonWrongType, Size: 70_000, Msg: "expected a number",
	}, bytes.Repeat([]byte("a"), 66_000), timeOfTests)
	if err := f.Keep(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	l = New("", &ingest.RecordError{Pos: ingest.Position{Offset: 8}, Reason: ingest.ReasonInvalidUTF8, Size: 2, Msg: "x"}, []byte{0xff, 0}, timeOfTests)
	if err := f.Keep(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "dead-letters-000000000000.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	// 64 KiB are not a multiple of three bytes, so the last byte is encoded separately.
	raw := strings.Repeat("YWFh", ingest.MaxDeadLetterRaw/3) + "YQ=="
	want := `{"time":"2026-11-20T10:00:00Z","topic":"telemetry","partition":2,"offset":7,"record":1,"reason":"wrong_type",` +
		`"message":"expected a number","size":70000,"truncated":true,"raw":"` + raw + "\"}\n" +
		`{"time":"2026-11-20T10:00:00Z","partition":0,"offset":8,"record":0,"reason":"invalid_utf8","message":"x","size":2,"truncated":false,"raw":"/wA="}` + "\n"
	if string(got) != want {
		t.Errorf("got  %.300s\nwant %.300s", got, want)
	}
}

func TestFileDeadLettersStayBounded(t *testing.T) {
	dir := t.TempDir()
	const maxSize = 64 * ingest.KiB
	next := int64(0)
	for range 3 { // restarts
		f := openDeadLetters(t, dir, maxSize)
		for range 400 {
			if err := f.Keep(t.Context(), letter(next, int(next*37)%5000)); err != nil {
				t.Fatal(err)
			}
			next++
			if _, size := keptLetters(t, dir); size > int64(maxSize) {
				t.Fatalf("%d bytes after letter %d", size, next)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	offsets, size := keptLetters(t, dir)
	if size < int64(maxSize)*3/4 {
		t.Errorf("only %d bytes kept", size)
	}
	for i, o := range offsets {
		if want := next - int64(len(offsets)-i); o != want {
			t.Fatalf("letter %d is of offset %d, want %d: the newest must be kept in order", i, o, want)
		}
	}
}

func TestFileDeadLettersWithASmallerSize(t *testing.T) {
	dir := t.TempDir()
	f := openDeadLetters(t, dir, ingest.MiB)
	for i := range int64(100) {
		if err := f.Keep(t.Context(), letter(i, 5000)); err != nil {
			t.Fatal(err)
		}
	}
	openDeadLetters(t, dir, 100*ingest.KiB)
	if _, size := keptLetters(t, dir); size > int64(100*ingest.KiB) {
		t.Errorf("%d bytes after the size was lowered", size)
	}
}

// A letter that a crash has truncated must not damage the next one.
func TestFileDeadLettersAfterACrash(t *testing.T) {
	dir := t.TempDir()
	f := openDeadLetters(t, dir, ingest.MiB)
	if err := f.Keep(t.Context(), letter(1, 10)); err != nil {
		t.Fatal(err)
	}
	path := f.path(0)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, info.Size()-5); err != nil {
		t.Fatal(err)
	}
	f = openDeadLetters(t, dir, ingest.MiB)
	if err := f.Keep(t.Context(), letter(2, 10)); err != nil {
		t.Fatal(err)
	}
	if offsets, _ := keptLetters(t, dir); fmt.Sprint(offsets) != "[-1 2]" {
		t.Errorf("letters %v, want the broken one and 2", offsets)
	}
}

func TestFileDeadLettersFailures(t *testing.T) {
	dir := t.TempDir()
	f := openDeadLetters(t, dir, 10*ingest.KiB)
	if err := f.Keep(t.Context(), letter(1, 20_000)); err == nil {
		t.Error("a letter larger than all of them may be was kept")
	}
	if err := f.Keep(t.Context(), letter(2, 10)); err != nil {
		t.Errorf("after a refused letter: %v", err)
	}
	f.mu.Lock()
	if err := f.file.Close(); err != nil { // the next write fails
		t.Fatal(err)
	}
	f.mu.Unlock()
	if err := f.Keep(t.Context(), letter(3, 10)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a failed write gave %v", err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := f.Keep(t.Context(), letter(4, 10)); err != nil {
		t.Errorf("after a failed write and without the directory: %v", err)
	}
	if offsets, _ := keptLetters(t, dir); fmt.Sprint(offsets) != "[4]" {
		t.Errorf("letters %v, want 4", offsets)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Keep(t.Context(), letter(5, 10)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewFiles(file, ingest.MiB, zerolog.Nop()); err == nil {
		t.Error("a file was taken for a directory")
	}
}

func TestFileDeadLettersFromSeveralGoroutines(t *testing.T) {
	dir := t.TempDir()
	f := openDeadLetters(t, dir, ingest.MiB)
	var wg sync.WaitGroup
	for p := range int64(4) {
		wg.Go(func() {
			for i := range int64(50) {
				if err := f.Keep(t.Context(), letter(p*50+i, 100)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	offsets, _ := keptLetters(t, dir)
	seen := map[int64]bool{}
	for _, o := range offsets {
		seen[o] = true
	}
	if len(offsets) != 200 || len(seen) != 200 || seen[-1] {
		t.Errorf("%d letters, %d different ones", len(offsets), len(seen))
	}
}

func TestDeadLetterConfigFromYAML(t *testing.T) {
	for text, want := range map[string]Config{
		"{directory: /d, max_size: 1GiB}":  {Directory: "/d", MaxSize: ingest.GiB},
		"{max_size: 2097152, topic: dead}": {Directory: DefaultConfig().Directory, MaxSize: 2 * ingest.MiB, Topic: "dead"},
		"{}":                               DefaultConfig(),
	} {
		c := DefaultConfig()
		if err := yaml.UnmarshalWithOptions([]byte(text), &c, yaml.Strict()); err != nil || c != want {
			t.Errorf("%s: %+v (%v), want %+v", text, c, err, want)
		}
	}
}

func TestDeadLetterConfigCheck(t *testing.T) {
	for _, c := range []struct {
		config Config
		want   []string
	}{
		{DefaultConfig(), nil},
		{Config{Topic: "dead"}, nil},
		{Config{}, []string{"directory", "max_size"}},
		{Config{Directory: "d", MaxSize: ingest.MiB - 1}, []string{"max_size"}},
	} {
		var paths []string
		c.config.Check(func(path, _ string) { paths = append(paths, path) })
		if len(paths) != len(c.want) || len(paths) > 0 && paths[0] != c.want[0] {
			t.Errorf("%+v: faults at %q, want %q", c.config, paths, c.want)
		}
	}
}
