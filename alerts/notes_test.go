package alerts

import (
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// lives returns a function that starts a notifier with the notes of the lives before it. Each life must end before the
// next.
func lives(t *testing.T, keeper string) func(am *receiver) running {
	t.Helper()
	path, journal := filepath.Join(t.TempDir(), "notifications.log"), &fakeJournal{}
	return func(am *receiver) running {
		if keeper == "journal" {
			n := startWith(t, NewNotes(func(string) int32 { return 3 }), am)
			n.Join(3, journal)
			return n
		}
		notes, err := OpenNotes(path)
		if err != nil {
			t.Fatal(err)
		}
		n := startWith(t, notes, am)
		stop := n.stop
		n.stop = func() {
			stop()
			if err := notes.Close(); err != nil {
				t.Error(err)
			}
		}
		return n
	}
}

// A service that reads the same units again after a crash sends what had not been sent, and nothing twice.
func TestNothingIsToldTwiceOverACrash(t *testing.T) {
	const before, after = "told before the crash", "told after it"
	opens := func(n *Notifier, b *Tracker) {
		n.Update(b.Apply(drift("return", 100)))
		pass(time.Second)
	}
	opensAndCloses := func(n *Notifier, b *Tracker) {
		opens(n, b)
		n.Update(b.Apply(quiet(150)))
	}
	for name, c := range map[string]struct {
		before, after func(n *Notifier, b *Tracker) // what happens until the crash, and from the checkpoint on after it
		firing, ended []string                      // when an alert that fires, and one that has ended, is told
	}{
		"an incident that had closed":             {opensAndCloses, opensAndCloses, []string{before}, []string{before}},
		"an incident that closes after the crash": {opens, opensAndCloses, []string{before}, []string{after}},
		"the next incident": {
			opensAndCloses,
			func(n *Notifier, b *Tracker) {
				opensAndCloses(n, b)
				pass(time.Second)
				n.Update(b.Apply(drift("return", 200)))
			},
			[]string{before, after},
			[]string{before},
		},
		"an incident that is muted, and whose mute ends after the crash": {
			func(n *Notifier, b *Tracker) {
				opens(n, b)
				n.Update(b.Mute(b.Incidents()[0].ID, Decision{Kind: Muted, At: time.Now(), Until: time.Now().Add(time.Hour)}))
			},
			func(n *Notifier, b *Tracker) {
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
			for _, keeper := range []string{"file", "journal"} {
				inBubble(t, func(t *testing.T) {
					live := lives(t, keeper)
					am := &receiver{status: 200}
					var firing, ended []string
					life := func(when string, happens func(*Notifier, *Tracker)) {
						n := live(am)
						happens(n.Notifier, NewTracker())
						pass(time.Second)
						n.stop()
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
						t.Errorf("%s: firing alerts %v, want %v; ended ones %v, want %v", keeper, firing, c.firing, ended, c.ended)
					}
				})
			}
		})
	}
}

// However long an alert fires, its note is kept. After it has resolved, the note is dropped after a while.
func TestWhatStillFiresIsRemembered(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		live := lives(t, "file")
		am, b := &receiver{status: 200}, NewTracker()
		remembered := func() bool {
			n := live(am)
			defer n.stop()
			i := b.Incidents()[0]
			told, any := n.notes.last(n.senders[0].url, incidentKey(&i), i.Group.Policy, i.firingSince())
			return any && told.Resolved == i.Closed
		}
		n := live(am)
		n.Update(b.Apply(drift("return", 100)))
		pass(notesKept + time.Hour)
		n.stop()
		if !remembered() {
			t.Error("an alert that still fires is forgotten")
		}
		n = live(am)
		n.Resync(b.Incidents(), nil)
		n.Update(b.Apply(quiet(150)))
		pass(time.Second)
		n.stop()
		if !remembered() {
			t.Error("an alert that has just ended is forgotten")
		}
		pass(notesKept)
		if remembered() {
			t.Error("an alert that has ended long ago is remembered")
		}
	})
}
