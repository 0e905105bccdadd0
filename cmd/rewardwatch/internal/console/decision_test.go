package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/session"
	"github.com/rewardwatch/rewardwatch/retrain"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/target"
)

// rig is a console with a ledger and a token, both of which a test can change, and a browser that keeps its cookie.
type rig struct {
	t       *testing.T
	console *Console
	mux     *http.ServeMux
	view    *madeUp
	orders  *madeUpOrders
	desk    *madeUpDesk
	token   string
	log     bytes.Buffer
	cookie  *http.Cookie
	now     time.Time
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, desk: someDesk(), token: "correct horse", mux: http.NewServeMux(), now: someTime}
	i := someIncident()
	r.view = &madeUp{incidents: append(closedToo(i), i)}
	r.orders = &madeUpOrders{view: r.view}
	r.console = New(r.view, r.orders, r.desk, tokenIs(&r.token), func() time.Time { return r.now }, zerolog.New(&r.log))
	r.console.delivery = 0 // there is no delivery
	r.console.Register(r.mux)
	return r
}

// send sends a request like the browser, and keeps the cookie that it receives.
func (r *rig) send(method, path string, form url.Values, headers ...string) *httptest.ResponseRecorder {
	q := httptest.NewRequest(method, path, strings.NewReader(form.Encode()))
	if method == http.MethodPost {
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		q.Header.Set(headers[i], headers[i+1])
	}
	if r.cookie != nil {
		q.AddCookie(r.cookie)
	}
	w := httptest.NewRecorder()
	r.mux.ServeHTTP(w, q)
	for _, c := range w.Result().Cookies() {
		if c.Name == session.CookieName {
			r.cookie = c
		}
	}
	if r.token != "" && (strings.Contains(r.log.String(), r.token) || strings.Contains(w.Body.String(), r.token) || strings.Contains(w.Header().Get("Location"), r.token)) {
		r.t.Errorf("%s %s tells of the token:\n%s\n%s", method, path, r.log.String(), w.Body)
	}
	return w
}

func (r *rig) logIn() {
	r.t.Helper()
	if w := r.send(http.MethodPost, "/login", url.Values{"token": {r.token}}); w.Code != http.StatusSeeOther {
		r.t.Fatalf("the login gives %d\n%s", w.Code, w.Body)
	}
}

// decision returns the form of the page as a person fills it in.
func decision(what string, seen int) url.Values {
	return url.Values{"decision": {what}, "seen": {strconv.Itoa(seen)}, "by": {"ann"}, "why": {"the new prices are known"}}
}

// wants fails the test unless a response has a status and contains a text.
func wants(t *testing.T, what string, w *httptest.ResponseRecorder, code int, says string) {
	t.Helper()
	if w.Code != code || !strings.Contains(w.Body.String(), says) {
		t.Errorf("%s gives %d, want %d with %q:\n%s", what, w.Code, code, says, w.Body)
	}
}

func TestADecisionAsksForTheTokenOnce(t *testing.T) {
	r := newRig(t)
	page := r.send(http.MethodGet, "/retrain/rr_waits", nil)
	wants(t, "the page without a login", page, 200, `href="./../login?next=retrain%2Frr_waits"`)
	if strings.Contains(page.Body.String(), `name="decision"`) {
		t.Error("a form is shown to who has not logged in")
	}
	refused := r.send(http.MethodPost, "/retrain/rr_waits", decision("approve", 1))
	wants(t, "a decision without a login", refused, 401, "Log in first.")
	wants(t, "it", refused, 401, "<dd>the new prices are known</dd>") // the input is not lost
	wants(t, "a wrong token", r.send(http.MethodPost, "/login", url.Values{"token": {"correct"}, "next": {"retrain/rr_waits"}}), 401, "Invalid token.")
	if r.cookie != nil || r.desk.decided != 0 {
		t.Fatalf("a wrong token gives %v, %d decisions", r.cookie, r.desk.decided)
	}
	in := r.send(http.MethodPost, "/login", url.Values{"token": {r.token}, "next": {"retrain/rr_waits"}})
	if in.Code != 303 || in.Header().Get("Location") != "./retrain/rr_waits" {
		t.Fatalf("the login gives %d to %s", in.Code, in.Header().Get("Location"))
	}
	wants(t, "the page with a login", r.send(http.MethodGet, "/retrain/rr_waits", nil), 200, `name="seen" value="1"`)
	done := r.send(http.MethodPost, "/retrain/rr_waits", decision("approve", 1), "Sec-Fetch-Site", "same-origin")
	if done.Code != 303 || done.Header().Get("Location") != "./rr_waits?saved=approve" {
		t.Fatalf("approving gives %d to %s\n%s", done.Code, done.Header().Get("Location"), done.Body)
	}
	after := r.send(http.MethodGet, "/retrain/rr_waits?saved=approve", nil)
	wants(t, "the page after it", after, 200, `role="status"><b>The request was approved.`)
	wants(t, "the page after it", after, 200, "by <b><bdi>ann</bdi></b><br>the new prices are known")
	if strings.Contains(after.Body.String(), `value="approve"`) || !strings.Contains(after.Body.String(), `value="reject"`) {
		t.Errorf("what is approved offers\n%s", after.Body)
	}
}

func TestSessionsEnd(t *testing.T) {
	for name, end := range map[string]func(*rig){
		"time":    func(r *rig) { r.now = r.now.Add(session.Length) },
		"token":   func(r *rig) { r.token = "battery staple" },
		"logout":  func(r *rig) { r.send(http.MethodPost, "/logout", nil) },
		"forgery": func(r *rig) { r.cookie.Value = session.New("guessed", session.Person{}, r.now.Add(time.Hour)) },
	} {
		r := newRig(t)
		r.logIn()
		wants(t, "the login page", r.send(http.MethodGet, "/login", nil), 200, "You are logged in")
		end(r)
		wants(t, name, r.send(http.MethodPost, "/retrain/rr_waits", decision("reject", 1)), 401, "Log in")
		if r.desk.decided != 0 {
			t.Errorf("%s: decided", name)
		}
	}
}

func TestATokenThatCannotBeReadIsNotShown(t *testing.T) {
	r := newRig(t)
	r.logIn()
	r.token = ""
	for _, w := range []*httptest.ResponseRecorder{
		r.send(http.MethodGet, "/retrain/rr_waits", nil),
		r.send(http.MethodPost, "/retrain/rr_waits", decision("approve", 1)),
		r.send(http.MethodPost, "/login", url.Values{"token": {""}}),
	} {
		if strings.Contains(w.Body.String(), "/secret") || strings.Contains(w.Body.String(), `value="approve"`) {
			t.Errorf("gives %d\n%s", w.Code, w.Body)
		}
	}
	if r.desk.decided != 0 || !strings.Contains(r.log.String(), "failed to check a token") {
		t.Errorf("%d decisions, log %s", r.desk.decided, r.log.String())
	}
}

func TestFormsOfOtherSitesAreRefused(t *testing.T) {
	for name, headers := range map[string][]string{
		"another site":   {"Sec-Fetch-Site", "cross-site"},
		"a sibling":      {"Sec-Fetch-Site", "same-site"},
		"an old browser": {"Origin", "https://evil.example"},
		"a hidden one":   {"Origin", "null"},
	} {
		for _, path := range []string{"/retrain/rr_waits", "/incidents/5f0c2e9a11d04b7c", "/login", "/logout"} {
			r := newRig(t)
			r.logIn()
			form := decision("approve", 1)
			form.Set("token", r.token)
			w := r.send(http.MethodPost, path, form, headers...)
			wants(t, name+" to "+path, w, 403, "The form was sent from another site.")
			if r.desk.decided+len(r.orders.asked) != 0 || len(w.Result().Cookies()) != 0 {
				t.Errorf("%s to %s: %d decisions, %v", name, path, r.desk.decided, w.Result().Cookies())
			}
		}
	}
	r := newRig(t)
	r.logIn()
	w := r.send(http.MethodPost, "/retrain/rr_waits", decision("approve", 1), "Origin", "http://example.com") // httptest's host
	if w.Code != 303 {
		t.Errorf("the page itself, of an old browser, gives %d", w.Code)
	}
}

// A proxy may pass on a different Host; people see the configured address.
func TestFormsThroughAProxy(t *testing.T) {
	a := someAccess()
	a.ExternalURL = "https://drift.example/rewardwatch"
	for origin, want := range map[string]int{"https://drift.example": 303, "https://evil.example": 403, "http://drift.example": 403} {
		d := someDesk()
		mux := http.NewServeMux()
		New(&madeUp{}, &madeUpOrders{}, d, a, func() time.Time { return someTime }, zerolog.Nop()).Register(mux)
		q := httptest.NewRequest(http.MethodPost, "/retrain/rr_waits", strings.NewReader(decision("approve", 1).Encode()))
		q.Host = "10.0.0.7:9464"
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		q.Header.Set("Origin", origin)
		w := httptest.NewRecorder()
		if mux.ServeHTTP(w, q); w.Code != want {
			t.Errorf("%s gives %d, want %d", origin, w.Code, want)
		}
	}
}

func TestWithoutATokenOnlyThisMachineDecides(t *testing.T) {
	r := newRig(t)
	local := false
	r.console.access = session.Access{Local: func(*http.Request) bool { return local }}
	wants(t, "the page from elsewhere", r.send(http.MethodGet, "/retrain/rr_waits", nil), 200, "set http.token_file in the configuration")
	form := decision("approve", 1)
	wants(t, "a form from elsewhere", r.send(http.MethodPost, "/retrain/rr_waits", form), 403, "Decisions require a token")
	wants(t, "the login", r.send(http.MethodGet, "/login", nil), 200, "No token is configured")
	wants(t, "a login", r.send(http.MethodPost, "/login", url.Values{"token": {""}}), 200, "No token is configured")
	if r.desk.decided != 0 || r.cookie != nil {
		t.Fatalf("%d decisions, cookie %v", r.desk.decided, r.cookie)
	}
	local = true
	if w := r.send(http.MethodPost, "/retrain/rr_waits", form); w.Code != 303 || r.desk.decided != 1 {
		t.Errorf("a form from here gives %d\n%s", w.Code, w.Body)
	}
}

func TestWhatIsDecided(t *testing.T) {
	for name, tt := range map[string]struct {
		id, what string
		seen     int
		change   func(url.Values)
		refuse   error
		code     int
		says     string
		becomes  ledger.State
	}{
		"approve":       {"rr_waits", "approve", 1, nil, nil, 303, "", ledger.StateOpen},
		"reject":        {"rr_waits", "reject", 1, nil, nil, 303, "", ledger.StateRejected},
		"withdraw":      {"rr_waits", "withdraw", 1, nil, nil, 303, "", ledger.StateWithdrawn},
		"resend":        {"rr_back", "resend", 0, nil, nil, 303, "", ledger.StateOpen},
		"nobody":        {"rr_waits", "approve", 1, func(f url.Values) { f.Set("by", " ") }, nil, 400, "your name must be 1 to 200", ""},
		"no reason":     {"rr_waits", "approve", 1, func(f url.Values) { f.Del("why") }, nil, 400, "the reason must be 1 to 1000", ""},
		"nothing":       {"rr_waits", "", 1, nil, nil, 400, "one of approve, reject, withdraw, resend", ""},
		"another":       {"rr_waits", "delete", 1, nil, nil, 400, "one of approve, reject, withdraw, resend", ""},
		"large":         {"rr_waits", "approve", 1, func(f url.Values) { f.Set("why", strings.Repeat("x", MaxForm)) }, nil, 400, "The form cannot be read.", ""},
		"kept":          {"rr_waits", "approve", 1, func(f url.Values) { f.Del("by") }, nil, 400, `name="why" value="the new prices are known"`, ""},
		"moved":         {"rr_waits", "reject", 2, nil, nil, 409, "Nothing was changed. State of the request: awaiting approval.", ""},
		"nothing seen":  {"rr_waits", "reject", 1, func(f url.Values) { f.Del("seen") }, nil, 409, "Nothing was changed. State of the request: ", ""},
		"unknown":       {"rr_none", "approve", 1, nil, nil, 404, "Request not found.", ""},
		"wrong state":   {"rr_missed", "approve", 4, nil, &ledger.StateError{Request: "rr_missed", State: ledger.StateMissed, To: ledger.StateOpen}, 409, "State of the request: missed.", ""},
		"gone":          {"rr_waits", "approve", 1, nil, fmt.Errorf("request rr_waits: %w", retrain.ErrTargetDisabled), 409, "its target responded with 410 Gone and is disabled until its name or URL changes", ""},
		"no target":     {"rr_waits", "approve", 1, nil, fmt.Errorf("%w: trainer", retrain.ErrUnknownTarget), 409, "no longer configured", ""},
		"another open":  {"rr_back", "resend", 0, nil, fmt.Errorf("%w: rr_waits", retrain.ErrUnfinished), 409, "The policy has another unfinished request: rr_waits.", ""},
		"ledger failed": {"rr_waits", "approve", 1, nil, errors.New("write /secret/path"), 503, "The decision failed. See the service log for details.", ""},
		"ledger late":   {"rr_waits", "approve", 1, nil, fmt.Errorf("write: %w", context.DeadlineExceeded), 503, "The ledger did not respond in time. Check whether the decision was saved.", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.logIn()
			r.desk.refuse = tt.refuse
			form := decision(tt.what, tt.seen)
			if tt.change != nil {
				tt.change(form)
			}
			w := r.send(http.MethodPost, "/retrain/"+tt.id, form)
			wants(t, name, w, tt.code, tt.says)
			if strings.Contains(w.Body.String(), "/secret") {
				t.Errorf("it tells of a file:\n%s", w.Body)
			}
			if (tt.becomes != "") != (r.desk.decided == 1) {
				t.Errorf("%d decisions", r.desk.decided)
			}
			if tt.becomes != "" {
				q := r.desk.requests[r.desk.find(tt.id)]
				last := r.desk.history[tt.id][len(r.desk.history[tt.id])-1]
				if q.State != tt.becomes || last.By != "ann" || last.Reason != "the new prices are known" {
					t.Errorf("the request is %s, %+v", q.State, last)
				}
			}
		})
	}
}

// A second click is the same decision; another person's click is not.
func TestARequestIsDecidedOnce(t *testing.T) {
	r := newRig(t)
	r.logIn()
	for range 2 {
		if w := r.send(http.MethodPost, "/retrain/rr_waits", decision("approve", 1)); w.Code != 303 {
			t.Errorf("gives %d\n%s", w.Code, w.Body)
		}
	}
	other := decision("reject", 1)
	other.Set("by", "bob")
	w := r.send(http.MethodPost, "/retrain/rr_waits", other)
	wants(t, "another decision", w, 409, "Nothing was changed. State of the request: open.")
	wants(t, "it", w, 409, "by <b><bdi>ann</bdi></b>") // the page says who was first
	if r.desk.decided != 1 {
		t.Errorf("decided %d times", r.desk.decided)
	}
}

// A person's own decision is recognized regardless of the later state of the request; another decision never is.
func TestASecondClickIsNoSecondDecision(t *testing.T) {
	dispatcher := func(r *rig, id string) { r.desk.move(id, ledger.StateDelivered, "rewardwatch", "") }
	for name, tt := range map[string]struct {
		id, what, second string
		seen             int
		between          func(*rig, string)
		code             int
	}{
		"approved":                           {"rr_waits", "approve", "approve", 1, nil, 303},
		"approved and delivered":             {"rr_waits", "approve", "approve", 1, dispatcher, 303},
		"sent again and delivered":           {"rr_back", "resend", "resend", 0, dispatcher, 303},
		"approved, then rejected":            {"rr_waits", "approve", "reject", 1, nil, 409},
		"approved, delivered, then rejected": {"rr_waits", "approve", "reject", 1, dispatcher, 409},
		"rejected, then approved":            {"rr_waits", "reject", "approve", 1, nil, 409},
	} {
		r := newRig(t)
		r.logIn()
		if w := r.send(http.MethodPost, "/retrain/"+tt.id, decision(tt.what, tt.seen)); w.Code != 303 {
			t.Fatalf("%s: the first gives %d\n%s", name, w.Code, w.Body)
		}
		if tt.between != nil {
			tt.between(r, tt.id)
		}
		if w := r.send(http.MethodPost, "/retrain/"+tt.id, decision(tt.second, tt.seen)); w.Code != tt.code {
			t.Errorf("%s: the second gives %d, want %d\n%s", name, w.Code, tt.code, w.Body)
		}
		if r.desk.decided != 1 {
			t.Errorf("%s: decided %d times", name, r.desk.decided)
		}
	}
}

// A decision on a page that was opened after an earlier decision of the same person is a new one, even with the same
// name and reason.
func TestTheSameDecisionOnANewPage(t *testing.T) {
	r := newRig(t)
	r.logIn()
	for seen := range 2 {
		if w := r.send(http.MethodPost, "/retrain/rr_back", decision("resend", 2*seen)); w.Code != 303 {
			t.Fatalf("gives %d\n%s", w.Code, w.Body)
		}
		r.desk.move("rr_back", ledger.StateDelivered, "rewardwatch", "")
	}
	if r.desk.decided != 2 {
		t.Errorf("decided %d times", r.desk.decided)
	}
}

func TestNoRetrainingConfigured(t *testing.T) {
	r := newRig(t)
	r.console.desk = nil
	r.logIn()
	wants(t, "the ledger", r.send(http.MethodGet, "/retrain", nil), 200, "Retraining is not configured.")
	wants(t, "a request", r.send(http.MethodGet, "/retrain/rr_waits", nil), 404, "Retraining is not configured.")
	wants(t, "a decision", r.send(http.MethodPost, "/retrain/rr_waits", decision("approve", 1)), 404, "Retraining is not configured.")
	wants(t, "an incident", r.send(http.MethodGet, "/incidents/5f0c2e9a11d04b7c", nil), 200, "Retraining is not configured.")
}

func TestALedgerThatCannotBeRead(t *testing.T) {
	r := newRig(t)
	r.logIn()
	r.desk.err = errors.New("open /secret/ledger.db")
	for path, code := range map[string]int{"/retrain": 503, "/retrain/rr_waits": 503, "/incidents/5f0c2e9a11d04b7c": 200} {
		w := r.send(http.MethodGet, path, nil)
		wants(t, path, w, code, "The ledger cannot be read.")
		if strings.Contains(w.Body.String(), "/secret") {
			t.Errorf("%s tells of a file", path)
		}
	}
	w := r.send(http.MethodPost, "/retrain/rr_waits", decision("approve", 1))
	wants(t, "a decision", w, 503, "The decision failed. See the service log for details.")
	wants(t, "it", w, 503, "<dd>the new prices are known</dd>")
	if !strings.Contains(r.log.String(), "/secret/ledger.db") {
		t.Errorf("the log says %s", r.log.String())
	}
}

func TestASlowLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.logIn()
		r.desk.slow = true
		began := time.Now()
		for path, code := range map[string]int{"/retrain": 503, "/retrain/rr_waits": 503, "/incidents/5f0c2e9a11d04b7c": 200} {
			wants(t, path, r.send(http.MethodGet, path, nil), code, "The ledger did not respond in time.")
		}
		if took := time.Since(began); took != 3*ledgerPatience {
			t.Errorf("three pages took %s", took)
		}
		for _, path := range []string{"/retrain/rr_waits", "/retrain/rr_waits/decide"} {
			w := r.send(http.MethodPost, path, decision("approve", 1))
			wants(t, path, w, 503, "The ledger did not respond in time. Check whether the decision was saved.")
		}
		wants(t, "a link", r.send(http.MethodGet, "/retrain/rr_waits/decide?token=x", nil), 503, "The ledger did not respond in time. Check whether the decision was saved.")
	})
}

// If no target has accepted a request yet, the top of its page says so, with the reason.
func TestFailedDeliveriesAreOnTop(t *testing.T) {
	r := newRig(t)
	q := &r.desk.requests[0]
	q.State, q.Attempts = ledger.StateOpen, 3
	r.desk.deliveries = []ledger.Delivery{
		{Request: q.ID, Attempt: 3, Target: "trainer", StartedAt: someTime, Result: target.ResultTimeout, Error: "no answer within 15s"},
	}
	top, _, _ := strings.Cut(r.send(http.MethodGet, "/retrain/"+q.ID, nil).Body.String(), `id="decide"`)
	for _, want := range []string{`<span class="badge drift">not delivered</span>`, "no answer within 15s", "delivery to trainer (failed attempts: 2; deadline: ", `<span class="badge drift">open</span>`} {
		if !strings.Contains(top, want) {
			t.Errorf("there is no %q in\n%s", want, top)
		}
	}
	q.State = ledger.StateDelivered
	if page := r.send(http.MethodGet, "/retrain/"+q.ID, nil).Body.String(); strings.Contains(page, "not delivered") {
		t.Error("a delivered request is not delivered")
	}
}

// The page after an approval shows the delivery, which takes milliseconds. It does not wait for one that takes longer.
func TestApprovalWaitsForTheDelivery(t *testing.T) {
	for name, tt := range map[string]struct{ takes, waits time.Duration }{
		"fast": {50 * time.Millisecond, 60 * time.Millisecond},
		"slow": {time.Minute, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.console.delivery = time.Second
			r.logIn()
			began := time.Now()
			r.desk.delivers = began.Add(tt.takes)
			if w := r.send(http.MethodPost, "/retrain/rr_waits", decision("approve", 1)); w.Code != http.StatusSeeOther {
				t.Fatalf("%s: approving gives %d\n%s", name, w.Code, w.Body)
			}
			if took := time.Since(began); took != tt.waits {
				t.Errorf("%s: the answer took %s, want %s", name, took, tt.waits)
			}
		})
	}
}
