package bank

import (
	"reflect"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/history"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// seen returns the number of units in a group's history, and the number of values of a signal.
func seen(past history.Record, signal string) (units, values int64) {
	for i, s := range past.Spans {
		units += s.Units
		if buckets := past.Of(signal); buckets != nil {
			values += int64(buckets[i].N)
		}
	}
	return units, values
}

// The history of a group continues over restarts and baselines, and includes the units of a version that warms up.
func TestSimPastGoesOn(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	p, r, same := newBank(rebaselining()), newRelease(71), newRelease(71)
	r.run(p, 500, "p1")
	r.run(p, 100, "p1", "p2")
	same.run(newBank(rebaselining()), 500, "p1")
	same.run(newBank(rebaselining()), 100, "p1", "p2")
	key := p.groups[0].Key
	past, part := p.History(key)
	if units, values := seen(past, "return"); units != 700 || values != 700 || part != "" {
		t.Errorf("the past has %d units with %d returns, want 700 of both; part %q", units, values, part)
	}
	resumed := restored(t, p)
	r.run(p, 400, "p1", "p2") // then p2 takes over
	same.run(resumed, 400, "p1", "p2")
	want, _ := p.History(key)
	got, _ := resumed.History(key)
	if !reflect.DeepEqual(got, want) {
		t.Error("after a restart, the past is another one")
	}
	before, _ := seen(want, "return")
	if l := shownGroup(p).Lineage; l.Version != "p2" || before != 1500 {
		t.Errorf("version %s, %d units, want 1500 with those before the take-over", l.Version, before)
	}
	if _, err := p.Restart(key, "reset", time.Time{}); err != nil {
		t.Fatal(err)
	}
	r.run(p, 10, "p2")
	if after, _ := p.History(key); len(after.Spans) == 0 || after.Spans[0].First != want.Spans[0].First {
		t.Errorf("after a reset the past begins with %+v", after.Spans)
	}
	if none, part := p.History(ingest.NewGroup("none")); none.Spans != nil || part != "" {
		t.Errorf("an unknown group has %+v, %q", none, part)
	}
}

// The history of an evicted group is in its part of the checkpoint.
func TestPastIsReadFromACheckpoint(t *testing.T) {
	p, a := newBank(episodes(2000)), newAgent(5)
	for range 150 {
		p.Observe(a.unit(), time.Time{})
	}
	key := p.groups[0].Key
	want, _ := p.History(key)
	parts, _, err := p.Changes()
	if err != nil {
		t.Fatal(err)
	}
	part := parts[p.groups[0].part()+runningPart]
	got, err := ReadHistory(part, key)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, %v, want %+v", got, err, want)
	}
	if other, err := ReadHistory(part, ingest.NewGroup("other")); err != nil || other.Spans != nil {
		t.Errorf("read %+v, %v of a group that has another number", other, err)
	}
	if _, err := ReadHistory([]byte("x"), key); err == nil {
		t.Error("what is damaged is read")
	}
}
