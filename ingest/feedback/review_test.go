package feedback

import (
	"bytes"
	"strconv"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// A decision from the future would never be due, and many of them would use up the room for others.
func TestDecisionFromTheFutureIsNotOpened(t *testing.T) {
	p := newPartition(clicks(), 100)
	p.read(shown("a", noon))
	e := shown("b", noon+1000*minute)
	p.Fold(&e, p.clock) // the clock has not believed its time
	if got, want := counts(t, p), "open 1, final 0, dropped 0, repeated 0, no time 1; matched 0, late 0, without a decision 0, repeated 0, no key 0"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestNamesKeepTheirBytes(t *testing.T) {
	p := newPartition(clicks(), 100)
	odd := clicked("a", noon+1)
	odd.Outcomes = []ingest.Value{{Name: "x\x00y", X: 1}, {Name: "", X: 2}, {Name: "z", X: 3}}
	p.read(shown("a", noon), odd)
	p.wait(11 * minute)
	got := map[string]float64{}
	for _, n := range p.of("a")[1].Numeric {
		got[n.Signal] = n.Mean
	}
	if got["outcome.x\x00y"] != 1 || got["outcome."] != 2 || got["outcome.z"] != 3 {
		t.Errorf("got %v", got)
	}
}

// A decision that is redelivered after its window is not judged again, also after a restart.
func TestDecisionDeliveredAfterItsWindowIsRepeated(t *testing.T) {
	p := newPartition(clicks(), 100)
	p.read(shown("a", noon))
	p.wait(11 * minute)
	part, err := snapshot(p)
	if err != nil {
		t.Fatal(err)
	}
	q := newPartition(clicks(), 100)
	if err := q.Restore(bytes.NewReader(part), p.clock); err != nil {
		t.Fatal(err)
	}
	q.clock, q.next = p.clock, p.next
	q.read(shown("a", noon), clicked("a", noon+1))
	if n := len(q.units); n != 0 || testutil.ToFloat64(q.metrics.repeated) != 1 || testutil.ToFloat64(q.metrics.late) != 1 {
		t.Errorf("%d units; %s", n, counts(t, q))
	}
}

// Agents decide repeatedly: their IDs can be reused once a window is over.
func TestAgentDecidesAgain(t *testing.T) {
	c := clicks()
	c.Key = "agent_id"
	p := newPartition(c, 100)
	for i := range int64(3) {
		e := shown("", noon+i*11*minute)
		e.AgentID = "robot"
		p.read(e)
	}
	p.wait(11 * minute)
	if n := len(p.of("robot")); n != 6 {
		t.Errorf("%d units of three decisions", n)
	}
}

func TestDecisionsOfOtherGroupsAreDropped(t *testing.T) {
	p := newPartition(clicks(), 100)
	p.read(shown("a", noon), clicked("early", noon))
	part, err := snapshot(p)
	if err != nil {
		t.Fatal(err)
	}
	byRegion := newPartition(clicks(), 100)
	byRegion.options.GroupBy = func(string) []string { return []string{"labels.region"} }
	if err := byRegion.Restore(bytes.NewReader(part), p.clock); err != nil || byRegion.Open() != 1 || testutil.ToFloat64(byRegion.metrics.dropped) != 1 {
		t.Errorf("%d stay open: %v", byRegion.Open(), err)
	}
	other := clicks()
	other.Key = "agent_id"
	byAgents := newPartition(other, 100)
	if err := byAgents.Restore(bytes.NewReader(part), p.clock); err != nil || byAgents.Open() != 0 {
		t.Errorf("%d stay open: %v", byAgents.Open(), err)
	}
}

func TestFeedbackLongBeforeItsDecisionIsLate(t *testing.T) {
	p := newPartition(clicks(), 100)
	p.read(clicked("a", noon), shown("a", noon-11*minute))
	p.wait(11 * minute)
	u := p.of("a")
	if len(u) != 2 || u[1].Return != 0 || len(u[1].Numeric) != 2 || testutil.ToFloat64(p.metrics.late) != 1 {
		t.Errorf("%v; %s", u, counts(t, p))
	}
}

func TestNothingGrowsWithNames(t *testing.T) {
	p := newPartition(clicks(), 100)
	for i := range maxPolicies + 100 {
		e := shown("a", noon)
		e.Policy = "policy-" + strconv.Itoa(i)
		p.read(e)
		p.Forget(e.Policy)
	}
	if n := len(p.byNumber); n > maxPolicies || len(p.policies) > maxPolicies {
		t.Errorf("%d policies are known", n)
	}
	plain := newPartition(Config{}, 100)
	for i := range maxPolicies + 100 {
		if plain.Takes(strconv.Itoa(i)) {
			t.Fatal("a policy without feedback was taken")
		}
	}
	if n := len(plain.others); n > maxPolicies {
		t.Errorf("%d other policies are known", n)
	}
}

func TestVoidMomentsAreRemoved(t *testing.T) {
	p := newPartition(clicks(), 100)
	for i := range int64(10_000) {
		key := strconv.FormatInt(i, 10)
		p.read(clicked(key, noon+i), shown(key, noon+i))
	}
	if n := len(p.store.due); n > 2*p.Open()+slab {
		t.Errorf("%d moments of %d decisions", n, p.Open())
	}
	p.wait(11 * minute)
	if p.Open() != 1 {
		t.Errorf("%d stay open", p.Open())
	}
}
