package assemble

import (
	"reflect"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rewardwatch/rewardwatch/ingest"
)

func step(episode string, n int64, labels ...ingest.Label) ingest.Event {
	return ingest.Event{
		Policy: "shop", Env: "web", EpisodeID: episode, AgentID: "a", Step: n, Length: -1, HasReward: true, Reward: 1, Labels: labels,
	}
}

// An episode keeps the labels in SplitBy from the record that ends it, even after a restart.
func TestUnitsKeepLabels(t *testing.T) {
	cfg := Config{SplitBy: func(string) []string { return []string{"labels.segment", "env", "labels.none"} }}
	segment := func(value string) ingest.Label { return ingest.Label{Name: "segment", Value: value} }
	first, last, decision, unnamed := step("1", 0, segment("old")), step("1", 1, segment("new")), step("2", 0, segment("guest")), step("", 0, segment("x"))
	last.Terminated, decision.Terminated = true, true
	next := step("", 0, segment("y"))
	long := step("4", 0, segment(strings.Repeat("é", 50)))
	long.Terminated = true
	var units []*ingest.Unit
	emit := func(u *ingest.Unit) { units = append(units, u) }
	a := New(cfg, NewMetrics(prometheus.NewRegistry()))
	a.Fold(&first, emit)
	b := restored(t, cfg, snapshot(t, a)).Assembler
	for i, e := range []ingest.Event{last, decision, unnamed, next, long} {
		e.Pos.Offset = int64(i + 1)
		b.Fold(&e, emit)
		e.Labels = nil
	}
	env := ingest.Label{Name: "env", Value: "web"}
	want := [][]ingest.Label{
		{{Name: "labels.segment", Value: "new"}, env},
		{{Name: "labels.segment", Value: "guest"}, env},
		nil, // it ended before a step of the next episode
		{{Name: "labels.segment", Value: strings.Repeat("é", 32)}, env},
	}
	if len(units) != len(want) {
		t.Fatalf("%d units, want %d", len(units), len(want))
	}
	for i, u := range units {
		if !reflect.DeepEqual(u.Labels, want[i]) {
			t.Errorf("unit %d has the labels %q, want %q", i, u.Labels, want[i])
		}
	}
}
