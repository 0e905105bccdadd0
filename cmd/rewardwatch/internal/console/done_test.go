package console

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// Below the headline stands whether anyone was alerted, and who asked for a retraining.
func TestWhatWasDoneStandsBelowTheHeadline(t *testing.T) {
	muted := func(i *alerts.Incident) {
		i.MutedUntil = someTime.Add(time.Hour)
		i.Decisions = []alerts.Decision{{Kind: alerts.Muted, By: "ann", Until: i.MutedUntil}, {Kind: alerts.Commented, By: "bob"}}
	}
	for name, tt := range map[string]struct {
		delivery alerts.Delivery
		change   func(*alerts.Incident)
		want     string
	}{
		"rules":         {alerts.Delivery{}, nil, "Left to the alerting rules of Prometheus: alerts.alertmanager is not set."},
		"not delivered": {alerts.Delivery{State: alerts.Undelivered}, nil, "Not delivered: Alertmanager has not accepted it yet. No one was alerted."},
		"delivered":     {alerts.Delivery{State: alerts.Delivered, Since: someTime}, nil, "Accepted by Alertmanager at 2026-11-20 10:00:05 UTC, which notifies people."},
		"news to come":  {alerts.Delivery{State: alerts.Undelivered, Since: someTime}, nil, "Accepted by Alertmanager at 2026-11-20 10:00:05 UTC, but not the latest change."},
		"muted":         {alerts.Delivery{State: alerts.Delivered, Since: someTime}, muted, "Muted until 2026-11-20 11:00:05 UTC by ann. No one is alerted until then."},
	} {
		r := newRig(t)
		r.view.delivery = tt.delivery
		if tt.change != nil {
			for k := range r.view.incidents {
				tt.change(&r.view.incidents[k])
			}
		}
		wants(t, name, r.send(http.MethodGet, somePage, nil), 200, "<dt>Alert</dt>")
		wants(t, name, r.send(http.MethodGet, somePage, nil), 200, string(times(tt.want)))
	}
	r := newRig(t)
	closed := r.view.incidents[0]
	if w := r.send(http.MethodGet, "/incidents/"+closed.ID, nil); !closed.Closed || strings.Contains(w.Body.String(), "<dt>Alert</dt>") {
		t.Error("a closed incident has an alert")
	}
}

func TestWhoAskedForARetraining(t *testing.T) {
	for kind, want := range map[ledger.OriginKind]string{
		ledger.OriginIncident: "requested by <bdi>a trigger, automatically, because of an incident</bdi>",
		ledger.OriginSchedule: "requested by <bdi>a schedule, automatically</bdi>",
		ledger.OriginPerson:   "requested by <bdi>carol</bdi>",
	} {
		r := newRig(t)
		at := r.desk.find("rr_waits")
		r.desk.requests[at].OriginKind = kind
		r.desk.history["rr_waits"][0].By = "carol"
		wants(t, "the incident", r.send(http.MethodGet, somePage, nil), 200, want)
		wants(t, "the request", r.send(http.MethodGet, "/retrain/rr_waits", nil), 200, want)
	}
}

// A button of a request that has gone out says what it does.
func TestButtonsSayWhatTheyDo(t *testing.T) {
	for state, want := range map[ledger.State][2]string{
		ledger.StateAwaitingApproval: {">Approve</button>", "rejected means no, withdrawn no longer needed."},
		ledger.StateDelivered:        {">Deliver again</button>", "if the target lost it."},
		ledger.StateRunning:          {">Stop following it</button>", "does not stop the job."},
		ledger.StateDeadLetter:       {">Deliver again</button>", "The target did not accept the request."},
	} {
		r := newRig(t)
		r.logIn()
		r.desk.requests[r.desk.find("rr_waits")].State = state
		pages := []string{"/retrain/rr_waits"}
		if !state.Final() {
			pages = append(pages, somePage)
		}
		for _, page := range pages {
			w := r.send(http.MethodGet, page, nil)
			wants(t, page, w, 200, want[0])
			wants(t, page, w, 200, want[1])
			if state != ledger.StateAwaitingApproval && strings.Contains(w.Body.String(), `value="reject rr_waits">Reject`) {
				t.Errorf("%s: %s can be rejected", page, state)
			}
		}
	}
}
