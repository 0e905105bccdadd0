package console

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/console/plots"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/history"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// The pages of a policy and of an incident have charts, and work without them if the history is unavailable.
func TestPagesShowThePast(t *testing.T) {
	v := madeUpFleet(1, someTime)
	g := v.summaries[0].Groups[0].Group
	v.past = map[ingest.Group]history.Record{g: testkit.FallingReturn(someTime, true)}
	for _, path := range []string{"/policies/policy-0000", "/incidents/a1b2"} {
		wants(t, path, get(consoleOf(v, nil), path), http.StatusOK, "Rolling mean of return")
	}
	v.noPast = errors.New("a calibration is running")
	v.past = nil
	for _, path := range []string{"/policies/policy-0000", "/incidents/a1b2"} {
		w := get(consoleOf(v, nil), path)
		if w.Code != http.StatusOK || strings.Contains(w.Body.String(), "Rolling mean of return") {
			t.Errorf("%s gives %d", path, w.Code)
		}
	}
}

// An alarm of a reward's spread does not include the mean of its baseline. It is taken from the group, as long as that
// baseline is in force.
func TestBaselineOfAnotherQuantity(t *testing.T) {
	g := ingest.NewGroup("ranker", ingest.Label{Name: "env", Value: "prod"})
	v := &madeUp{summaries: []*finding.Summary{{Policy: "ranker", Groups: []finding.GroupSummary{{
		Group: g, Baseline: finding.BaselineRef{ID: "b1", Units: 500},
		Streams: []finding.StreamSummary{{Signal: "reward", Baseline: finding.Distribution{Units: 500, Mean: .5, SD: .1}}},
	}}}}}
	c := consoleOf(v, nil)
	a := alerts.Alarm{Signal: "reward", Effect: finding.Effect{Quantity: "sd", BaselineMean: .3, BaselineSD: .2}}
	a.Baseline.ID = "b1"
	if got := c.baselineOf(g, &a); got == nil || *got != (plots.Level{Mean: .5, SD: .1}) {
		t.Errorf("the baseline is %v", got)
	}
	a.Effect.Quantity = "mean"
	if got := c.baselineOf(g, &a); got == nil || *got != (plots.Level{Mean: .3, SD: .2}) {
		t.Errorf("the baseline of the alarm itself is %v", got)
	}
	a.Effect.Quantity, a.Baseline.ID = "sd", "b0"
	if got := c.baselineOf(g, &a); got != nil {
		t.Errorf("the mean of another baseline is %v", got)
	}
}
