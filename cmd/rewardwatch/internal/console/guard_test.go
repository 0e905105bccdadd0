package console

import (
	"net/http"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// The page of a guard's incident shows what the guard has seen, and can release it.
func TestThePageOfAGuard(t *testing.T) {
	r := newRig(t)
	i := someIncident()
	a := i.Alarms[0]
	group := ingest.NewGroup("checkout-ranker", ingest.Label{Name: "guard", Value: "unsafe"})
	i.Group, i.Decisions, i.Cause, i.Causes = group, nil, alerts.CauseUnknown, nil
	i.Alarms = []alerts.Alarm{{
		ID: a.ID, Incident: a.Incident, Group: group, Signal: "guard", Score: 1, Detectors: []string{finding.DetectorGuard},
		At: a.At, Onset: a.Onset, OnsetFrom: a.OnsetFrom, OnsetTo: a.At, Cause: alerts.CauseUnknown, Evidence: []string{"no version changed"},
		Guard: &finding.Guard{Name: "unsafe", State: "hold", Limit: "no step", Why: "steps with action drop: 7.5% of 700 steps (limit 1%)"},
	}}
	r.view.incidents = []alerts.Incident{i}
	r.view.summaries = []*finding.Summary{{Policy: group.Policy, Groups: []finding.GroupSummary{{Group: ingest.NewGroup(group.Policy), Units: 700}}}}
	r.logIn()
	page := r.send(http.MethodGet, somePage, nil)
	wants(t, "the page", page, 200, "Guard unsafe tripped at")
	wants(t, "the page", page, 200, "steps with action drop: 7.5% of 700 steps (limit 1%)")
	wants(t, "the page", page, 200, "Release unsafe")
	for _, no := range []string{"What drifted", "was not measured", "Agreeing detectors", "offsets none", "90% confidence"} {
		if strings.Contains(page.Body.String(), no) {
			t.Errorf("the page of a guard says %q", no)
		}
	}
	wants(t, "the fleet", r.send(http.MethodGet, "/", nil), 200, "tripped a guard (state: hold). The cause is unknown.")
	wants(t, "the row of the policy", r.send(http.MethodGet, "/", nil), 200, `">guard: hold</a>`)
	wants(t, "the policy", r.send(http.MethodGet, "/policies/checkout-ranker", nil), 200, "A guard tripped (state: hold)")
	for _, path := range []string{"/", "/incidents", "/policies/checkout-ranker"} {
		wants(t, path, r.send(http.MethodGet, path, nil), 200, "with action drop: 7.5% of 700 steps (limit 1%)")
	}
	if w := r.send(http.MethodPost, somePage, order("accept")); w.Code >= 400 || len(r.orders.asked) != 1 {
		t.Errorf("a release gives %d, asked %+v", w.Code, r.orders.asked)
	}
}
