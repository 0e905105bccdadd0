package assemble

import (
	"bytes"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// byName divides policies by the first letter of their names.
func byName(letters string) ([]Part, func(string) int) {
	var parts []Part
	for _, l := range letters {
		parts = append(parts, Part{Name: string(l), Config: Config{MaxOpen: 10}})
	}
	return append(parts, Part{Config: Config{MaxOpen: 10}}), func(policy string) int {
		if i := strings.Index(letters, policy[:1]); i >= 0 {
			return i
		}
		return len(letters)
	}
}

func dividedBy(letters string) (*Divided, *Metrics) {
	m := NewMetrics(prometheus.NewRegistry())
	parts, of := byName(letters)
	return NewDivided(parts, of, m), m
}

func (d *Divided) feed(t *testing.T, e ingest.Event) (units int) {
	t.Helper()
	d.Fold(&e, func(*ingest.Unit) { units++ })
	return units
}

// Episodes survive a restart in their part. A new part takes over the episodes of its policies. Episodes of a part that
// no longer exists are dropped and counted.
func TestEpisodesFollowTheirPart(t *testing.T) {
	before, _ := dividedBy("a")
	for _, policy := range []string{"a1", "b1", "c1"} {
		before.feed(t, stepOf(0, 1, ofPolicy(policy)))
	}
	var saved bytes.Buffer
	if err := before.Snapshot(&saved); err != nil {
		t.Fatal(err)
	}
	last := stepOf(1, 1)
	last.Terminated = true
	for letters, want := range map[string]struct {
		whole   string
		dropped float64
	}{"a": {"a1 b1 c1", 0}, "ab": {"a1 b1 c1", 0}, "": {"b1 c1", 1}, "b": {"b1 c1", 1}} {
		after, m := dividedBy(letters)
		if err := after.Restore(bytes.NewReader(saved.Bytes())); err != nil {
			t.Fatal(err)
		}
		if got := testutil.ToFloat64(m.dropped); got != want.dropped || after.Open() != 3-int(want.dropped) || testutil.ToFloat64(m.open) != 3-want.dropped {
			t.Errorf("%q: %v dropped, want %v; %d are open", letters, got, want.dropped, after.Open())
		}
		for _, policy := range strings.Fields(want.whole) {
			e := last
			ofPolicy(policy)(&e)
			if n := after.feed(t, e); n != 1 {
				t.Errorf("%q: %d units of %s", letters, n, policy)
			}
		}
	}
	for _, bad := range [][]byte{nil, saved.Bytes()[:10], append(bytes.Clone(saved.Bytes()), 1)} {
		after, _ := dividedBy("a")
		if err := after.Restore(bytes.NewReader(bad)); err == nil || after.Open() != 0 {
			t.Errorf("restored %d bytes: %v", len(bad), err)
		}
	}
}

// A rate admits a burst, and then as much as leaks, by the time of units. It survives a restart, and an end that is not
// credible does not affect it.
func TestRateOfAPart(t *testing.T) {
	const second = int64(1e9)
	open := func() *Divided {
		parts, of := byName("a")
		parts[0].UnitsPerSecond = 2
		return NewDivided(parts, of, NewMetrics(prometheus.NewRegistry()))
	}
	d := open()
	admitted := func(n int, end, clock int64) (passed int) {
		for range n {
			if d.Admits("a1", end, clock) {
				passed++
			}
		}
		return passed
	}
	if n := admitted(100, 0, 1000*second); n != 100 {
		t.Errorf("%d units without a time", n)
	}
	if n := admitted(100, 1000*second, 1000*second); n != burst*2 {
		t.Errorf("%d units at once, want %d", n, burst*2)
	}
	if n := admitted(100, 9000*second, 1000*second); n != 0 {
		t.Errorf("%d units of an end that is not credible", n)
	}
	if n := admitted(100, 0, 1000*second); n != 100 {
		t.Errorf("%d units without an end, want all", n)
	}
	var saved bytes.Buffer
	if err := d.Snapshot(&saved); err != nil {
		t.Fatal(err)
	}
	d = open()
	if err := d.Restore(&saved); err != nil {
		t.Fatal(err)
	}
	if n := admitted(100, 1003*second, 1003*second); n != 6 {
		t.Errorf("%d units in 3 s, want 6", n)
	}
	for range 1000 {
		if !d.Admits("b1", 1000*second, 1003*second) {
			t.Fatal("a part without a limit is limited")
		}
	}
}

// If a part reaches its limit of policies, a new policy finds no room, and the groups of the others remain.
func TestPoliciesOfAPart(t *testing.T) {
	parts, of := byName("a")
	count := func() prometheus.Counter { return prometheus.NewCounter(prometheus.CounterOpts{Name: "x"}) }
	over := &Over{count(), count(), count(), count()}
	parts[0].MaxPolicies, parts[0].MaxGroups, parts[0].Over = 2, 40, over
	d := NewDivided(parts, of, NewMetrics(prometheus.NewRegistry()))
	ended := 0
	for i := range 20 {
		e := stepOf(0, 1, ofPolicy("a1"), env(strings.Repeat("e", i)))
		e.Terminated = true
		ended += d.feed(t, e)
	}
	for _, policy := range []string{"a2", "a3", "a4", "b1"} {
		d.feed(t, stepOf(0, 1, ofPolicy(policy)))
	}
	if got := testutil.ToFloat64(over.Policies); got != 2 || ended != 20 || len(d.parts[0].groups) != 21 || d.Open() != 2 {
		t.Errorf("%v policies refused, %d units, %d groups, %d open", got, ended, len(d.parts[0].groups), d.Open())
	}
}
