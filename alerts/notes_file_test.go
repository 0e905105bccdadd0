package alerts

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func openFile(t *testing.T, path string) *noteFile {
	t.Helper()
	f, err := openNoteFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.close() }) // some tests have closed it
	return f
}

func someNote(i int, at time.Time) note {
	return note{noteKey: noteKey{"http://am", fmt.Sprint("incident/", i)}, Identity: "opening", Resolved: i%2 == 0, Summary: "drifts", At: at.UTC()}
}

// Whatever a crash or a bad disk leaves in the file, every whole line counts and nothing else does.
func TestDamagedNotes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notifications.log")
	n := openFile(t, path)
	at := time.Now().Round(0)
	for i := range 3 {
		if err := n.add(someNote(i, at)); err != nil {
			t.Fatal(err)
		}
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(whole), "\n")
	check := func(text string, want ...bool) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		again := openFile(t, path)
		for i, known := range want {
			wanted := someNote(i, at)
			got, any := again.last(wanted.noteKey)
			if any != known || any && (got.Resolved != wanted.Resolved || got.Summary != wanted.Summary || !got.At.Equal(at)) {
				t.Errorf("note %d of %d bytes is %+v, %v", i, len(text), got, any)
			}
		}
	}
	check(string(whole), true, true, true)
	for cut := range len(lines[2]) - 1 {
		check(string(whole[:len(lines[0])+len(lines[1])+cut]), true, true, false)
	}
	for at := range len(lines[1]) - 1 {
		damaged := []byte(lines[1])
		damaged[at] ^= 1
		check(lines[0]+string(damaged)+lines[2], true, false, true)
	}
}

// The file contains the notes that are still needed, not everything that was ever sent.
func TestNotesAreRewritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "notifications.log")
		n := openFile(t, path)
		for life := range 5 {
			for i := range notesRewrite {
				told := someNote(i%10, time.Now())
				told.Identity = fmt.Sprint(life, i) // another firing, or it would say nothing new
				if err := n.add(told); err != nil {
					t.Fatal(err)
				}
			}
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(string(text), "\n"); got > notesRewrite {
			t.Errorf("%d lines for ten alerts", got)
		}
		time.Sleep(notesKept + time.Hour)
		if n = openFile(t, path); len(n.held) != 0 {
			t.Errorf("%d notes are left after %v", len(n.held), notesKept)
		}
	})
}

// A failed write, for example on a full disk, does not corrupt later lines.
func TestNotesAfterAFailedWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notifications.log")
	notes := openFile(t, path)
	of := func(alert string) note {
		return note{noteKey: noteKey{"http://a", alert}, Identity: "opening", Resolved: true, At: time.Now()}
	}
	if err := notes.file.Close(); err != nil { // every write fails
		t.Fatal(err)
	}
	if err := notes.add(of("first")); err == nil {
		t.Fatal("a write to a closed file succeeds")
	}
	if err := notes.add(of("second")); err != nil {
		t.Errorf("the next one: %v", err)
	}
	if err := notes.file.Close(); err != nil {
		t.Fatal(err)
	}
	if err := notes.add(of("third")); err == nil {
		t.Fatal("a write to a closed file succeeds")
	}
	if err := notes.add(of("first")); err != nil { // nothing new: it only keeps the alert alive
		t.Errorf("the next one that says nothing new: %v", err)
	}
	again := openFile(t, path)
	for _, alert := range []string{"first", "second", "third"} {
		if _, told := again.last(of(alert).noteKey); !told {
			t.Errorf("what was told of the %s alert is forgotten", alert)
		}
	}
}

// Damage only affects the line that it is in, even if that has become very long.
func TestNotesBehindDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notifications.log")
	last := note{noteKey: noteKey{"http://a", "last"}, Identity: "opening", Resolved: true, At: time.Now()}
	text := append(bytes.Repeat([]byte{0}, 100_000), '\n')
	if err := os.WriteFile(path, append(text, last.line()...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, told := openFile(t, path).last(last.noteKey); !told {
		t.Error("what stands behind the damage is forgotten")
	}
}
