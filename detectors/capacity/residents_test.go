package capacity

import (
	"slices"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// The least recently used group leaves first, no matter how often the last one is used in a row and what happens between
// two uses of it.
func TestResidentsLeaveByLastUse(t *testing.T) {
	group := func(name string) ingest.Group { return ingest.NewGroup(name) }
	r := NewResidents(1000)
	a, b := r.Enter(group("a"), 10), r.Enter(group("b"), 10)
	choose := func(doing string, want ...string) {
		t.Helper()
		var got []string
		for _, g := range r.Choose(10) {
			got = append(got, g.Policy)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q leave, want %q", doing, got, want)
		}
	}
	r.Use(a)
	r.Use(a)
	choose("a is used twice", "b")
	choose("b leaves already")
	r.Use(b)
	choose("b is used after that", "a")
	r.Use(a)
	r.Use(a)
	r.Yield(a)
	choose("a yields", "a")
	r.Use(a)
	choose("a is used after it yielded", "b")
	r.Use(b)
	c := r.Enter(group("c"), 10)
	r.Use(b)
	choose("b is used after c has entered", "a")
	r.Use(a)
	r.Leave(a)
	choose("a has left, b was used after c", "c")
	r.Use(c)
	if got := r.Bytes(); got != 20 {
		t.Errorf("%d bytes, want 20", got)
	}
}

// After a long time without evictions, the groups that were used least recently leave first, if they age regularly.
func TestResidentsAge(t *testing.T) {
	r := NewResidents(1000)
	var all []*Resident
	for _, name := range []string{"busy", "idle", "rare"} {
		m := r.Enter(ingest.NewGroup(name), 10)
		r.Use(m)
		all = append(all, m)
	}
	r.Age()
	r.Use(all[2])
	r.Use(all[0])
	r.Age()
	r.Use(all[0])
	r.Age()
	var got []string
	for _, g := range r.Choose(30) {
		got = append(got, g.Policy)
	}
	if want := []string{"idle", "rare", "busy"}; !slices.Equal(got, want) {
		t.Errorf("%q leave, want %q", got, want)
	}
}
