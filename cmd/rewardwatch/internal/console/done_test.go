package console

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// Below the headline, the page says whether anyone was alerted, and who asked for a retraining.
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
		"rules":         {alerts.Delivery{}, nil, "Rewardwatch does not send an alert, because alerts.alertmanager is not set. Prometheus alerting rules may have sent one."},
		"not delivered": {alerts.Delivery{State: alerts.Undelivered}, nil, "Not delivered: Alertmanager has not accepted the alert yet, so no one has been notified."},
		"delivered":     {alerts.Delivery{State: alerts.Delivered, Since: someTime}, nil, "Alertmanager accepted the alert at 2026-11-20 10:00:05 UTC and sends the notifications."},
		"news to come":  {alerts.Delivery{State: alerts.Undelivered, Since: someTime}, nil, "Alertmanager accepted the alert at 2026-11-20 10:00:05 UTC, but not its latest update."},
		"muted":         {alerts.Delivery{State: alerts.Delivered, Since: someTime}, muted, "Muted until 2026-11-20 11:00:05 UTC by ann. No notifications are sent until then."},
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
}

// Below the headline of a closed incident, the page says when it was open, and mentions an alert only if Alertmanager
// has accepted one.
func TestTheAlertOfAClosedIncidentIsPast(t *testing.T) {
	const open = "The incident was open from 2026-11-20 08:30:05 UTC until 2026-11-20 09:35:05 UTC"
	since := time.Date(2026, 11, 20, 8, 31, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		delivery  alerts.Delivery
		decisions []alerts.Decision
		want      string
	}{
		"rules":    {alerts.Delivery{State: alerts.ByRules}, nil, open + ". Rewardwatch sent no alert, because alerts.alertmanager is not set. Prometheus alerting rules may have sent one."},
		"not sent": {alerts.Delivery{State: alerts.Undelivered}, nil, open + ".</dd>"},
		"sent":     {alerts.Delivery{State: alerts.Undelivered, Since: since}, nil, open + ". Alertmanager accepted its alert at 2026-11-20 08:31:00 UTC.</dd>"},
		"muted":    {alerts.Delivery{State: alerts.Undelivered}, []alerts.Decision{{Kind: alerts.Muted, By: "ann"}, {Kind: alerts.Unmuted, By: "ann"}}, open + ". It was muted for part of that time.</dd>"},
	} {
		r := newRig(t)
		r.view.delivery = tt.delivery
		i := closed(someIncident())
		i.MutedUntil, i.Decisions = time.Time{}, tt.decisions
		r.view.incidents = []alerts.Incident{i}
		text, tag, _ := strings.Cut(tt.want, "</dd>")
		want := string(times(text))
		if strings.HasSuffix(tt.want, "</dd>") {
			want += "</dd>" + tag
		}
		wants(t, name, r.send(http.MethodGet, "/incidents/"+i.ID, nil), 200, want)
	}
}

func TestWhoAskedForARetraining(t *testing.T) {
	for kind, want := range map[ledger.OriginKind]string{
		ledger.OriginIncident: "Requested by <bdi>a trigger</bdi>",
		ledger.OriginSchedule: "Requested by <bdi>a schedule</bdi>",
		ledger.OriginPerson:   "Requested by <bdi>carol</bdi>",
	} {
		r := newRig(t)
		at := r.desk.find("rr_waits")
		r.desk.requests[at].OriginKind = kind
		r.desk.history["rr_waits"][0].By = "carol"
		wants(t, "the incident", r.send(http.MethodGet, somePage, nil), 200, want)
		wants(t, "the request", r.send(http.MethodGet, "/retrain/rr_waits", nil), 200, want)
		r.desk.history["rr_waits"][0].Reason = "the catalogue is new"
		asked := strings.Contains(r.send(http.MethodGet, somePage, nil).Body.String(), "<li>Retraining requested by carol at "+string(times("2026-11-20 09:00:05 UTC"))+": the catalogue is new</li>")
		if asked != (kind == ledger.OriginPerson) {
			t.Errorf("%s: a decision by carol is shown: %v", kind, asked)
		}
	}
}

// The button of a request that has been sent says what it does.
func TestButtonsSayWhatTheyDo(t *testing.T) {
	for state, want := range map[ledger.State][2]string{
		ledger.StateAwaitingApproval: {">Approve</button>", "reject a retraining that should not run; withdraw one that is no longer needed."},
		ledger.StateDelivered:        {">Deliver again</button>", "if the target lost it."},
		ledger.StateRunning:          {">Stop tracking</button>", "does not stop the job."},
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

// People's decisions on a request are shown with name and time, on the page of its incident and on its own page.
func TestDecisionsOnRequestsNameThePerson(t *testing.T) {
	r := newRig(t)
	for _, step := range []struct {
		to                   ledger.State
		by, why, wants, list string
	}{
		{ledger.StateOpen, "ann", "new prices", "Approved by ann at 2026-11-20 10:00:05 UTC: new prices", "Retraining approved by ann at 2026-11-20 10:00:05 UTC: new prices"},
		{ledger.StateDelivered, ledger.ByService, "", "Approved by ann", "Retraining approved by ann"},
		{ledger.StateOpen, "bob", "lost", "Delivery repeated by bob at 2026-11-20 10:00:05 UTC: lost", "Retraining delivered again by bob at 2026-11-20 10:00:05 UTC: lost"},
		{ledger.StateDelivered, ledger.ByService, "", "Delivery repeated by bob", "Retraining delivered again by bob"},
		{
			ledger.StateRejected, "sam", "trying", "Tracking stopped by sam at 2026-11-20 10:00:05 UTC: trying. The job may still be running",
			"Tracking of the retraining stopped by sam at 2026-11-20 10:00:05 UTC: trying. The job may still be running",
		},
	} {
		r.desk.move("rr_waits", step.to, step.by, step.why)
		wants(t, "the incident", r.send(http.MethodGet, somePage, nil), 200, string(times(step.wants)))
		wants(t, "the request", r.send(http.MethodGet, "/retrain/rr_waits", nil), 200, "<bdi>"+string(times(step.wants)))
		wants(t, "its list of decisions", r.send(http.MethodGet, somePage, nil), 200, "<li>"+string(times(step.list)))
	}
	wants(t, "the request", r.send(http.MethodGet, "/retrain/rr_waits", nil), 200, "</time>. <bdi>"+string(times("Tracking stopped by sam at 2026-11-20 10:00:05 UTC: trying. The job may still be running")))
	wants(t, "the request", r.send(http.MethodGet, "/retrain/rr_waits", nil), 200, ">no longer tracked</span>")
	wants(t, "the ledger", r.send(http.MethodGet, "/retrain", nil), 200, ">no longer tracked</span>")
	wants(t, "the ledger's filter", r.send(http.MethodGet, "/retrain", nil), 200, `<option value="rejected">rejected or no longer tracked</option>`)
	r.logIn()
	wants(t, "another decision", r.send(http.MethodPost, "/retrain/rr_waits", decision("reject", 1)), 409, "Nothing was changed. State of the request: no longer tracked.")
	r = newRig(t)
	q := &r.desk.requests[r.desk.find("rr_waits")]
	r.desk.move("rr_waits", ledger.StateRejected, "sam", "not now")
	q.Reason = "not now"
	wants(t, "the request", r.send(http.MethodGet, "/retrain/rr_waits", nil), 200, string(times("Rejected by sam at 2026-11-20 10:00:05 UTC: not now")))
	wants(t, "the outcome", r.send(http.MethodGet, "/retrain/rr_waits", nil), 200, `>rejected</span> `+string(times("by sam at 2026-11-20 10:00:05 UTC: not now")))
	wants(t, "the list", r.send(http.MethodGet, "/retrain", nil), 200, "Rejected: not now")
}

// The next form in a browser has the name that a person last entered, unless it follows from a token.
func TestFormsRememberTheName(t *testing.T) {
	v := &madeUp{incidents: []alerts.Incident{someIncident()}}
	mux := http.NewServeMux()
	New(v, &madeUpOrders{view: v}, someDesk(), someAccess(), func() time.Time { return someTime }, zerolog.Nop()).Register(mux)
	send := func(method, path string, form url.Values, cookies ...*http.Cookie) *httptest.ResponseRecorder {
		q := httptest.NewRequest(method, path, strings.NewReader(form.Encode()))
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for _, c := range cookies {
			q.AddCookie(c)
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, q)
		return w
	}
	given := order("mute 1h")
	given.Set("by", "Ann Öther; \"x\"")
	w := send(http.MethodPost, somePage, given)
	cookies := w.Result().Cookies()
	if w.Code != http.StatusSeeOther || len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode {
		t.Fatalf("a mute gives %d with %v", w.Code, cookies)
	}
	for _, path := range []string{somePage, "/retrain/rr_waits"} {
		wants(t, path, send(http.MethodGet, path, nil, cookies...), 200, `name="by" value="Ann Öther; &#34;x&#34;"`)
		wants(t, path, send(http.MethodGet, path, nil, &http.Cookie{Name: nameCookie, Value: "%zz"}), 200, `name="by" value=""`)
		wants(t, path, send(http.MethodGet, path, nil, &http.Cookie{Name: nameCookie, Value: strings.Repeat("x", 300)}), 200, `name="by" value=""`)
	}
	refused := order("mute 1h")
	refused.Set("why", "")
	if c := send(http.MethodPost, somePage, refused).Result().Cookies(); len(c) != 0 {
		t.Errorf("a refused form is remembered: %v", c)
	}
}

// The figures of a signal with an alarm are shown once, since other alarms are measured at other times.
func TestOtherSignalsAreOthers(t *testing.T) {
	i := someIncident()
	d := storyOf(&i)
	for _, a := range d.Alarms {
		for _, s := range d.Shifts {
			if s.Signal == a.Signal && quantityText(s.Signal, s.Quantity) == a.Quantity {
				t.Errorf("%s is shown twice: now %s and %s", a.Quantity, a.Now, s.Now)
			}
		}
	}
	if len(d.Shifts) == 0 || len(d.Alarms) == 0 {
		t.Errorf("%d alarms, %d other signals", len(d.Alarms), len(d.Shifts))
	}
}

// The first sentences of an ended incident say how it ended. An incident that a retraining has repaired was not
// accepted.
func TestLeadSaysHowAnIncidentEnded(t *testing.T) {
	v := madeUpFleet(1, someTime)
	i := v.incidents[0]
	i.Closed = true
	for want, d := range map[string]alerts.Decision{
		"Accepted as the new normal by ann.":                                            {Kind: alerts.Accepted, By: "ann", Why: "new prices"},
		"Closed because ann reset the baseline.":                                        {Kind: alerts.Reset, By: "ann", Why: "new prices"},
		"Closed because v2 has met the contract of retraining rr_1. What became of it.": {Kind: alerts.Reset, By: "rewardwatch", Why: "v2 has met the contract of retraining rr_1"},
	} {
		if i.Decisions = []alerts.Decision{d}; !strings.Contains(lead(&i, "What became of it. "), want) {
			t.Errorf("%+v: %s", d, lead(&i, ""))
		}
	}
}
