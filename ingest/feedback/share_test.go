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

// A policy with open decisions is not forgotten to make room for others, restarts or not.
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

// The decisions of one share take neither the room nor the memory of those of another, restarts or not.
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
