package alerts

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func openNotes(t *testing.T, path string) *Notes {
	t.Helper()
	n, err := OpenNotes(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() }) // some tests have closed it
	return n
}

// A service that reads the same units again after a crash tells what had not been told, and nothing twice.
func TestNothingIsToldTwiceOverACrash(t *testing.T) {
	const before, after = "told before the crash", "told after it"
	opens := func(n *Notifier, b *Book) {
		n.Update(b.Apply(drift("return", 100)))
		pass(time.Second)
	}
	opensAndCloses := func(n *Notifier, b *Book) {
		opens(n, b)
		n.Update(b.Apply(quiet(150)))
	}
	for name, c := range map[string]struct {
		before, after func(n *Notifier, b *Book) // what happens until the crash, and from the checkpoint on after it
		firing, ended []string                   // when an alert that fires, and one that has ended, is told
	}{
		"an incident that had closed":             {opensAndCloses, opensAndCloses, []string{before}, []string{before}},
		"an incident that closes after the crash": {opens, opensAndCloses, []string{before}, []string{after}},
		"the next incident": {
			opensAndCloses,
			func(n *Notifier, b *Book) {
				opensAndCloses(n, b)
				pass(time.Second)
				n.Update(b.Apply(drift("return", 200)))
			},
			[]string{before, after},
			[]string{before},
		},
		"an incident that is muted, and whose mute ends after the crash": {
			func(n *Notifier, b *Book) {
				opens(n, b)
				n.Update(b.Mute(b.Incidents()[0].ID, Decision{Kind: Muted, At: time.Now(), Until: time.Now().Add(time.Hour)}))
			},
			func(n *Notifier, b *Book) {
				b.Apply(drift("return", 100))
				b.Mute(b.Incidents()[0].ID, Decision{Kind: Muted, At: time.Now(), Until: time.Now()})
				n.Resync(b.Incidents(), b.Faults())
				pass(time.Second)
				n.Update(b.EndMutes(time.Now()))
			},
			[]string{before, after},
			[]string{before},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "notifications.log")
				am := &receiver{status: 200}
				var firing, ended []string
				life := func(when string, happens func(*Notifier, *Book)) {
					notes := openNotes(t, path)
					n := startWith(t, notes, am)
					happens(n.Notifier, NewBook())
					pass(time.Second)
					n.stop()
					if err := notes.Close(); err != nil {
						t.Error(err)
					}
					for _, p := range am.taken() {
						if p.EndsAt.After(p.at) {
							firing = append(firing, when)
						} else {
							ended = append(ended, when)
						}
					}
				}
				life(before, c.before)
				pass(time.Second)
				life(after, c.after)
				if !slices.Equal(firing, c.firing) || !slices.Equal(ended, c.ended) {
					t.Errorf("firing alerts %v, want %v; ended ones %v, want %v", firing, c.firing, ended, c.ended)
				}
			})
		})
	}
}

func someNote(i int, at time.Time) note {
	return note{noteKey: noteKey{"http://am", fmt.Sprint("incident/", i)}, Identity: "opening", Resolved: i%2 == 0, Summary: "drifts", At: at.UTC()}
}

// Whatever a crash or a bad disk leaves of the file, every whole line counts and nothing else does.
func TestDamagedNotes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notifications.log")
	n := openNotes(t, path)
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
		again := openNotes(t, path)
		for i, known := range want {
			wanted := someNote(i, at)
			got, any := again.last(wanted.Receiver, wanted.Alert, wanted.Identity)
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

// The file holds what is still to be remembered, not all that was ever told.
func TestNotesAreRewritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "notifications.log")
		n := openNotes(t, path)
		for range 5 {
			for i := range notesRewrite {
				if err := n.add(someNote(i%10, time.Now())); err != nil {
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
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
		if n = openNotes(t, path); len(n.held) != 0 {
			t.Errorf("%d notes are left after %v", len(n.held), notesKept)
		}
	})
}

// A write that failed, as on a full disk, does not spoil what is written after it.
func TestNotesAfterAFailedWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notifications.log")
	notes := openNotes(t, path)
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
	again := openNotes(t, path)
	for _, alert := range []string{"first", "second"} {
		if _, told := again.last("http://a", alert, "opening"); !told {
			t.Errorf("what was told of the %s alert is forgotten", alert)
		}
	}
}

// Damage costs the line that it is in, however long that has become.
func TestNotesBehindDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notifications.log")
	last := note{noteKey: noteKey{"http://a", "last"}, Identity: "opening", Resolved: true, At: time.Now()}
	text := append(bytes.Repeat([]byte{0}, 100_000), '\n')
	if err := os.WriteFile(path, append(text, last.line()...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, told := openNotes(t, path).last("http://a", "last", "opening"); !told {
		t.Error("what stands behind the damage is forgotten")
	}
}
