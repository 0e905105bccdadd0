package assemble

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// shownBy feeds events to an assembler that shows the steps of policy p. If restarts is set, it restarts the assembler
// after each event.
func shownBy(t *testing.T, events []ingest.Event, apart, restarts bool) (shown []string) {
	t.Helper()
	metrics := NewMetrics(prometheus.NewRegistry())
	fresh := func() *Assembler {
		return New(Config{Stepwise: func(policy string) bool { return policy == "p" }}, metrics)
	}
	a := fresh()
	emit := func(u *ingest.Unit) {
		actions := ""
		for _, c := range u.Actions {
			actions += fmt.Sprint(" ", c.Name, c.N)
		}
		for _, n := range u.Numeric {
			actions += fmt.Sprint(" ", n.Signal, "=", n.Mean, "/", n.NonFinite)
		}
		shown = append(shown, fmt.Sprintf("%s %s %d.%d shown=%v%s", u.Episode, u.End, u.Pos.Offset, u.Ord, u.Shown, actions))
	}
	decided := func(d *ingest.Decision) { emit(d.Unit()) }
	if !apart {
		decided = nil
	}
	for i := range events {
		events[i].Pos.Offset = int64(i)
		a.FoldApart(&events[i], emit, decided)
		if !restarts {
			continue
		}
		var state bytes.Buffer
		if err := a.Snapshot(&state); err != nil {
			t.Fatal(err)
		}
		if a = fresh(); a.Restore(&state) != nil {
			t.Fatal("not restored")
		}
	}
	return shown
}

// TestStepsAreShownOnce has two agents with steps that are late, repeated, and after the end of their episode, a whole
// episode, an episode that a step ends, and a policy without Stepwise.
func TestStepsAreShownOnce(t *testing.T) {
	act := func(name string) change {
		return func(e *ingest.Event) { e.Action = ingest.Action{Kind: ingest.ActionCategory, Category: name} }
	}
	pair := func(e *ingest.Event) {
		e.Action = ingest.Action{Kind: ingest.ActionNumeric, Values: []float64{1, 2}}
		e.Outcomes = []ingest.Value{{Name: "c", X: .5}}
	}
	events := []ingest.Event{
		stepOf(0, 1, agentID("a"), episodeID("1"), act("x")),
		stepOf(0, 1, agentID("b"), episodeID("2"), pair),
		stepOf(2, 1, agentID("a"), episodeID("1"), act("x")),
		stepOf(1, 1, agentID("a"), episodeID("1"), act("late")),
		stepOf(1, 1, agentID("a"), episodeID("1"), act("late")), // again
		stepOf(3, 1, agentID("a"), episodeID("1"), act("x"), terminated),
		stepOf(2, 1, agentID("a"), episodeID("1"), act("x")), // after its end
		stepOf(0, 1, agentID("c"), episodeID("3"), act("y"), terminated),
		stepOf(0, 1, agentID("d"), episodeID(""), act("z")),
		stepOf(0, 1, agentID("d"), episodeID(""), act("z")),
		summaryOf(7, 1, agentID("b"), episodeID("2")),
		stepOf(0, 1, agentID("e"), episodeID("5"), func(e *ingest.Event) { e.Policy = "q" }),
		stepOf(0, 1, agentID("a"), episodeID("6"), act("x"), func(e *ingest.Event) { e.Labels = []ingest.Label{{Name: "shadow", Value: "true"}} }),
	}
	want := []string{
		"1 open 0.0 shown=false x1",
		"2 open 1.0 shown=false action.0=1/0 action.1=2/0 outcome.c=0.5/0",
		"1 open 2.0 shown=false x1",
		"1 open 3.0 shown=false late1",
		"1 open 5.0 shown=false x1",
		"1 terminated 5.1 shown=true x3 late1",
		"3 terminated 7.0 shown=false y1",
		" open 8.0 shown=false z1",
		" step 9.0 shown=true z1",
		" open 9.1 shown=false z1",
		"2 summary 10.0 shown=true action.0=1/0 action.1=2/0 outcome.c=0.5/0",
	}
	for _, apart := range []bool{false, true} {
		for _, restarts := range []bool{false, true} {
			if got := shownBy(t, events, apart, restarts); !slices.Equal(got, want) {
				t.Errorf("apart %v, restarts %v:\n%q\nwant\n%q", apart, restarts, got, want)
			}
		}
	}
}
