package verdicts

import (
	"fmt"
	"strings"
	"testing"
)

// With the smallest baseline, a version can be found to be the same; with the next smaller one, it cannot.
func TestLeastBaseline(t *testing.T) {
	least := 50
	for Needed(least) == 0 {
		least++
	}
	fault := func(baseline int) string {
		return Faults(Gate{Baseline: baseline, Seeds: 5, Episodes: 20, Sent: true})["monitoring.baseline"]
	}
	if fault(least) != "" || !strings.HasPrefix(fault(least-1), fmt.Sprintf("must be at least %d, and preferably 500:", least)) {
		t.Errorf("%d: %q, one less: %q", least, fault(least), fault(least-1))
	}
	for _, units := range []int{50, 100} {
		if fault(units) == "" {
			t.Errorf("a baseline of %d passes", units)
		}
	}
	if n := Needed(ample); n == 0 || n > ample {
		t.Errorf("%d units are needed with a baseline of %d", n, ample)
	}
}

// The default number of episodes suffices for an unchanged version, and is bounded for a small baseline.
func TestEpisodesByDefault(t *testing.T) {
	for _, test := range []struct {
		decides               bool
		baseline, seeds, want int
	}{
		{false, 500, 5, 20}, {true, 500, 5, 81}, {true, 500, 100, 20}, {true, 2000, 2, 126}, {true, 225, 5, 200}, {true, 100, 5, 20},
	} {
		if got := Episodes(test.decides, test.baseline, test.seeds); got != test.want {
			t.Errorf("%+v: %d", test, got)
		}
	}
}

// Only a gate that can decide is accepted.
func TestGatesThatCannotDecide(t *testing.T) {
	for _, test := range []struct {
		gate Gate
		want string
	}{
		{Gate{Baseline: 500, Seeds: 2, Episodes: 15, Sent: true}, ""},
		{Gate{Baseline: 500, Seeds: 2, Episodes: 14, Sent: true}, "evaluation.episodes"},
		{Gate{Baseline: 500, Seeds: 2, Episodes: 14, Sent: true, Passes: true}, ""},
		{Gate{Baseline: 500, Seeds: 2, Episodes: 1, Others: true}, ""},
		{Gate{Baseline: 500, Seeds: 5, Episodes: 20}, "evaluation.telemetry"},
		{Gate{Baseline: 500, Seeds: 5, Episodes: 20, Passes: true}, "evaluation.telemetry"},
		{Gate{Baseline: 100, Others: true}, "monitoring.baseline"},
		{Gate{Baseline: 100, Others: true, Passes: true}, ""},
		{Gate{Baseline: 100, Skipped: true}, ""},
	} {
		got := ""
		for path := range Faults(test.gate) {
			got += path
		}
		if got != test.want {
			t.Errorf("%+v: %q, want %q", test.gate, got, test.want)
		}
	}
}
