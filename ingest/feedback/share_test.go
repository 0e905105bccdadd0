package feedback

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// A policy with open decisions is not evicted in favor of others, even after a restart.
func TestPoliciesWithOpenDecisionsStayAfterARestart(t *testing.T) {
	p := newPartition(clicks(), 100)
	p.read(shown("a", noon))
	part, err := snapshot(p)
	if err != nil {
		t.Fatal(err)
	}
	q := newPartition(clicks(), 100)
	q.options.Of = func(policy string) Config {
		c := clicks()
		if policy != "shop" {
			c.Window *= 10
		}
		return c
	}
	if err := q.Restore(bytes.NewReader(part), p.clock); err != nil {
		t.Fatal(err)
	}
	q.clock, q.next = p.clock, p.next
	for i := range maxPolicies {
		q.Takes(strconv.Itoa(i))
	}
	q.wait(11 * minute)
	if u := q.of("a"); len(u) != 2 {
		t.Errorf("%d units, want 2", len(u))
	}
}

// The decisions of one share use neither the room nor the memory of another share, even after a restart.
func TestSharesHaveRoomOfTheirOwn(t *testing.T) {
	over := prometheus.NewCounter(prometheus.CounterOpts{Name: "x"})
	open := func() *partition {
		p := newPartition(clicks(), 20)
		p.options.Shares = []Share{{Name: "noisy", MaxOpen: 15, Over: over}, {MaxOpen: 5}}
		p.options.ShareOf = func(policy string) int {
			if strings.HasPrefix(policy, "noisy") {
				return 0
			}
			return 1
		}
		p.reset()
		return p
	}
	p := open()
	again := func() {
		part, err := snapshot(p)
		if err != nil {
			t.Fatal(err)
		}
		q := open()
		if err := q.Restore(bytes.NewReader(part), p.clock); err != nil {
			t.Fatal(err)
		}
		q.clock, q.next, q.units = p.clock, p.next, p.units
		p = q
	}
	p.read(shown("a", noon), clicked("a", noon+second))
	p.wait(11 * minute) // a is over
	for i := range 3 * mostEnded {
		e := shown(strconv.Itoa(i), p.clock+minute)
		e.Policy = "noisy"
		p.read(e)
		if i%20_000 == 1000 {
			again()
		}
	}
	before := len(p.of("a"))
	p.read(shown("a", noon)) // again
	p.wait(11 * minute)
	if got := len(p.of("a")); got != before || before != 2 {
		t.Errorf("%d units of a decision that was sent twice, at first %d", got, before)
	}
	for i := range 30 {
		e := shown("more-"+strconv.Itoa(i), p.clock)
		e.Policy = "noisy"
		p.read(e)
	}
	p.read(shown("b", p.clock+1))
	again()
	if n := testutil.ToFloat64(over); n != 15 || p.shares[0].open != 15 {
		t.Errorf("%v decisions had no room, and %d are open", n, p.shares[0].open)
	}
	p.read(clicked("b", p.clock), ingest.Event{Policy: "noisy", EpisodeID: "x", Step: -1, Length: -1, HasReward: true})
	p.wait(11 * minute)
	if u := p.of("b"); len(u) != 2 || u[1].Return != 1 {
		t.Errorf("units %v", u)
	}
}

// shared returns a partition with a noisy share and a share for all other policies.
func shared(most int, noisy, rest Share) *partition {
	p := newPartition(clicks(), most)
	p.options.Shares = []Share{noisy, rest}
	p.options.ShareOf = func(policy string) int {
		if strings.HasPrefix(policy, "noisy") {
			return 0
		}
		return 1
	}
	p.reset()
	return p
}

// After a restart with smaller shares, only decisions that exceed their share are dropped. The others keep their room.
func TestSmallerShareDropsItsOwn(t *testing.T) {
	p := shared(20, Share{Name: "noisy", MaxOpen: 15}, Share{MaxOpen: 5})
	p.read(shown("a", noon))
	for i := range 15 {
		e := shown("n"+strconv.Itoa(14-i), noon+minute-int64(i)*second)
		e.Policy = "noisy"
		p.read(e)
	}
	part, err := snapshot(p)
	if err != nil {
		t.Fatal(err)
	}
	over := prometheus.NewCounter(prometheus.CounterOpts{Name: "x"})
	q := shared(15, Share{Name: "noisy", MaxOpen: 5, Over: over}, Share{MaxOpen: 10})
	if err := q.Restore(bytes.NewReader(part), p.clock); err != nil {
		t.Fatal(err)
	}
	q.clock, q.next = p.clock, p.next
	if n := testutil.ToFloat64(over); n != 10 || q.shares[0].open != 5 || q.Open() != 6 {
		t.Errorf("%v were dropped, %d are open, %d in all", n, q.shares[0].open, q.Open())
	}
	for i := range 9 {
		q.read(shown("b"+strconv.Itoa(i), q.clock))
	}
	q.wait(11 * minute)
	for _, key := range []string{"a", "b0", "b8", "n14", "n10"} {
		if len(q.of(key)) != 2 {
			t.Errorf("%d units of %s", len(q.of(key)), key)
		}
	}
	if n := len(q.of("n9")); n != 0 {
		t.Errorf("%d units of what was due first", n)
	}
}

// A share with its maximum number of policies joins no other policy until one of its policies has nothing open.
func TestPoliciesOfAShare(t *testing.T) {
	beyond := prometheus.NewCounter(prometheus.CounterOpts{Name: "x"})
	p := shared(100, Share{Name: "noisy", MaxOpen: 50, MaxPolicies: 2, Beyond: beyond}, Share{MaxOpen: 50})
	decide := func(policy, key string, ts int64) {
		e := shown(key, ts)
		e.Policy = policy
		p.read(e)
	}
	decide("noisy-1", "a", noon)
	decide("noisy-2", "b", noon+5*minute)
	decide("noisy-3", "c", noon+5*minute)
	decide("shop", "d", noon+5*minute)
	if n := testutil.ToFloat64(beyond); n != 1 || p.Open() != 3 || !p.Takes("noisy-3") {
		t.Errorf("%v records beyond, %d open", n, p.Open())
	}
	if e := shown("c", noon); p.Holds(&e) {
		t.Error("what is not joined is held")
	}
	for range 3 {
		decide("noisy-3", "c", p.clock)
	}
	decide("noisy-3", "c", noon+10*minute+second) // when a is over
	decide("noisy-1", "e", p.clock)
	if n := testutil.ToFloat64(beyond); n != 5 || p.shares[0].known != 2 || p.policies["noisy-3"] == nil || p.policies["noisy-1"] != nil {
		t.Errorf("%v records beyond, %d policies", n, p.shares[0].known)
	}
	for i := range maxPolicies + 100 {
		p.Takes("noisy-" + strconv.Itoa(i))
	}
	if len(p.policies) > 3 || len(p.byNumber) > 4 {
		t.Errorf("%d policies are known, %d numbers", len(p.policies), len(p.byNumber))
	}
}

// BenchmarkNewNames checks that a new name takes about as long with many names as with few.
func BenchmarkNewNames(b *testing.B) {
	p := newPartition(clicks(), 100)
	for i := range maxPolicies {
		p.Takes(strconv.Itoa(i))
	}
	i := maxPolicies
	for b.Loop() {
		p.Takes(strconv.Itoa(i))
		i++
	}
}
