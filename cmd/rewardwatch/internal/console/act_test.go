package console

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/session"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/retrain"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

const somePage = "/incidents/5f0c2e9a11d04b7c"

// order returns the form of an incident as a person submits it with one of its buttons.
func order(button string) url.Values {
	return url.Values{"decision": {button}, "by": {"ann"}, "why": {"the new prices are known"}, "seen-rr_waits": {"1"}, "recipe": {"ranker"}, "target": {"trainer"}}
}

func TestActingOnAnIncident(t *testing.T) {
	for name, tt := range map[string]struct {
		button, until string
		kind          alerts.DecisionKind
		muted         time.Duration
		says          string
	}{
		"a comment":      {"comment", "", alerts.Commented, 0, "Your comment was saved."},
		"an hour":        {"mute 1h", "", alerts.Muted, time.Hour, "The incident is muted."},
		"a week":         {"mute 1w", "", alerts.Muted, 7 * 24 * time.Hour, "The incident is muted."},
		"until a time":   {"mute ", " 2026-11-20 18:00", alerts.Muted, 8 * time.Hour, "The incident is muted."},
		"until RFC 3339": {"mute ", "2026-11-20T20:00:00+02:00", alerts.Muted, 8 * time.Hour, "The incident is muted."},
		"the end of it":  {"unmute", "", alerts.Unmuted, 0, "The incident is no longer muted."},
		"the new normal": {"accept", "", alerts.Accepted, 0, "The incident was closed."},
	} {
		r := newRig(t)
		r.logIn()
		form := order(tt.button)
		form.Set("until", tt.until)
		w := r.send(http.MethodPost, somePage, form)
		verb, _, _ := strings.Cut(tt.button, " ")
		if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "./5f0c2e9a11d04b7c?saved="+verb+"#act" || len(r.orders.asked) != 1 {
			t.Fatalf("%s gives %d to %s, %d orders\n%s", name, w.Code, w.Header().Get("Location"), len(r.orders.asked), w.Body)
		}
		var until time.Time
		if tt.muted > 0 {
			until = someTime.Add(tt.muted).Truncate(time.Minute)
		}
		if strings.HasSuffix(tt.button, "1h") || strings.HasSuffix(tt.button, "1w") { // at least as long as the button says
			until = until.Add(time.Minute)
		}
		wants(t, name, r.send(http.MethodGet, somePage+"?saved="+verb, nil), http.StatusOK, `role="status"><b>`+tt.says)
		want := alerts.Decision{Kind: tt.kind, By: "ann", Why: "the new prices are known", At: someTime, Until: until}
		if r.orders.asked[0] != want {
			t.Errorf("%s orders %+v, want %+v", name, r.orders.asked[0], want)
		}
		page := r.send(http.MethodGet, somePage, nil)
		wants(t, name, page, 200, string(times("by ann at 2026-11-20 10:00:05 UTC: the new prices are known")))
		wants(t, name, page, 200, `id="`+alerts.MuteForm+`"`) // alerts link to it
	}
}

func TestDecidingOnARetrainingBesideTheHeadline(t *testing.T) {
	for verb, state := range map[string]ledger.State{"approve": ledger.StateOpen, "reject": ledger.StateRejected, "withdraw": ledger.StateWithdrawn} {
		r := newRig(t)
		r.logIn()
		wants(t, "the page", r.send(http.MethodGet, somePage, nil), 200, `value="`+verb+` rr_waits"`)
		for range 2 { // a second click is not a second decision
			if w := r.send(http.MethodPost, somePage, order(verb+" rr_waits")); w.Code != http.StatusSeeOther {
				t.Fatalf("%s gives %d\n%s", verb, w.Code, w.Body)
			}
		}
		if q := r.desk.requests[r.desk.find("rr_waits")]; q.State != state || r.desk.decided != 1 {
			t.Errorf("%s leads to %s, %d decisions", verb, q.State, r.desk.decided)
		}
	}
	r := newRig(t)
	r.logIn()
	stale := order("approve rr_waits")
	stale.Set("seen-rr_waits", "2")
	wants(t, "a page that is out of date", r.send(http.MethodPost, somePage, stale), 409, "Nothing was changed. State of the request: ")
}

// While a request of the incident waits, another one cannot be asked for.
func TestAskingForARetraining(t *testing.T) {
	r := newRig(t)
	r.logIn()
	if w := r.send(http.MethodGet, somePage, nil); strings.Contains(w.Body.String(), "Request a retraining") {
		t.Error("a second retraining is offered")
	}
	r.desk.move("rr_waits", ledger.StateRejected, "ann", "no")
	r.desk.move("rr_back", ledger.StateMet, "rewardwatch", "")
	wants(t, "the page", r.send(http.MethodGet, somePage, nil), 200, `<option value="ranker">ranker</option><option value="base">`)
	if w := r.send(http.MethodPost, somePage, order("ask once")); w.Code != http.StatusSeeOther || len(r.desk.asks) != 1 {
		t.Fatalf("asking gives %d, %d asks\n%s", w.Code, len(r.desk.asks), w.Body)
	}
	got := r.desk.asks[0]
	if got.Incident == nil || got.Incident.ID != "5f0c2e9a11d04b7c" {
		t.Errorf("asks about %+v", got.Incident)
	}
	got.Incident = nil
	if want := (retrain.Ask{ID: "once", Policy: "checkout-ranker", Recipe: "ranker", Target: "trainer", By: "ann", Why: "the new prices are known"}); got != want {
		t.Errorf("asks %+v, want %+v", got, want)
	}
	r.desk.refuse = fmt.Errorf("%w: no entry of policies matches it", retrain.ErrBadAsk)
	wants(t, "what the desk refuses", r.send(http.MethodPost, somePage, order("ask twice")), 400, "no entry of policies matches it")
}

func TestActionsThatAreRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		button string
		change func(url.Values)
		err    error
		code   int
		says   string
	}{
		"nobody":        {"comment", func(f url.Values) { f.Set("by", " ") }, nil, 400, "your name must be 1 to 200"},
		"no reason":     {"mute 1h", func(f url.Values) { f.Del("why") }, nil, 400, `name="by" value="ann"`}, // the input is not lost
		"no time":       {"mute ", nil, nil, 400, "Enter the end of the mute as YYYY-MM-DD HH:MM."},
		"no date":       {"mute ", func(f url.Values) { f.Set("until", "23:00") }, nil, 400, "The end of the mute must include a date"},
		"a passed time": {"mute ", func(f url.Values) { f.Set("until", "2026-11-20 10:00") }, nil, 400, "The end of the mute has passed"},
		"a past time":   {"mute ", func(f url.Values) { f.Set("until", "2026-11-20 10:00") }, nil, 400, `name="until" value="2026-11-20 10:00"`},
		"a bad preset":  {"mute soon", nil, nil, 400, "Enter the end of the mute"},
		"another verb":  {"delete", nil, nil, 400, "one of accept, approve"},
		"another order": {"approve rr_none", nil, nil, 404, "Request not found."},
		"closed by now": {"accept", nil, &Refusal{Status: 409, Text: "the incident is already closed"}, 409, "The incident is already closed."},
		"not done":      {"accept", nil, fmt.Errorf("write /secret/path"), 503, "The decision failed. See the service log for details."},
	} {
		r := newRig(t)
		r.logIn()
		r.orders.err = tt.err
		form := order(tt.button)
		if tt.change != nil {
			tt.change(form)
		}
		w := r.send(http.MethodPost, somePage, form)
		wants(t, name, w, tt.code, tt.says)
		if len(r.orders.asked)+r.desk.decided != 0 || strings.Contains(w.Body.String(), "/secret") {
			t.Errorf("%s: %d orders, %d decisions\n%s", name, len(r.orders.asked), r.desk.decided, w.Body)
		}
	}
	r := newRig(t)
	wants(t, "without a login", r.send(http.MethodPost, somePage, order("accept")), 401, "<dd>the new prices are known</dd>")
	wants(t, "an unknown incident", r.send(http.MethodPost, "/incidents/none", order("accept")), 404, "Incident not found. Incidents that closed long ago are no longer stored.")
	r.console.access = session.Access{Local: func(*http.Request) bool { return false }}
	wants(t, "from elsewhere", r.send(http.MethodPost, somePage, order("accept")), 403, "Decisions require a token")
	if len(r.orders.asked) != 0 {
		t.Errorf("orders %+v", r.orders.asked)
	}
}

// Only current mutes are shown beside the headline; the story has all of them.
func TestLatestDecisionsOfAnIncident(t *testing.T) {
	at := func(kind alerts.DecisionKind, minute int, until time.Time) alerts.Decision {
		return alerts.Decision{Kind: kind, By: "ann", Why: fmt.Sprint("reason ", minute), At: someTime.Add(time.Duration(minute) * time.Minute), Until: until}
	}
	end := someTime.Add(time.Hour)
	muted, comment, again, unmuted := at(alerts.Muted, 1, end), at(alerts.Commented, 2, time.Time{}), at(alerts.Muted, 3, end), at(alerts.Unmuted, 4, time.Time{})
	for name, tt := range map[string]struct {
		decisions []alerts.Decision
		until     time.Time
		want      []alerts.Decision
	}{
		"muted twice": {[]alerts.Decision{muted, comment, again}, end, []alerts.Decision{again, comment}},
		"unmuted":     {[]alerts.Decision{muted, comment, again, unmuted}, time.Time{}, []alerts.Decision{unmuted, comment}},
		"mute ended":  {[]alerts.Decision{muted, comment}, time.Time{}, []alerts.Decision{comment}},
	} {
		var want []string
		for _, d := range tt.want {
			want = append(want, words.Decision(d))
		}
		if got := latest(&alerts.Incident{Decisions: tt.decisions, MutedUntil: tt.until}); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// A mute of months is probably a typo, or will be forgotten before it ends. The form says so while it is in force.
func TestLongMutesAreQuestioned(t *testing.T) {
	for length, warns := range map[time.Duration]bool{30 * 24 * time.Hour: false, 400 * 24 * time.Hour: true} {
		r := newRig(t)
		i := &r.view.incidents[len(r.view.incidents)-1] // the open one
		i.MutedUntil = someTime.Add(length)
		i.Decisions = []alerts.Decision{
			{Kind: alerts.Muted, By: "ann", Why: "known", At: someTime, Until: i.MutedUntil},
			{Kind: alerts.Commented, By: "bob", Why: "seen", At: someTime.Add(time.Minute)}, // the mute is repeated after it
		}
		r.logIn()
		page := r.send(http.MethodGet, somePage, nil)
		wants(t, "the page", page, http.StatusOK, "Unmute")
		if got := strings.Contains(page.Body.String(), "This mute suppresses notifications for more than 30 days."); got != warns {
			t.Errorf("a mute of %s: warns %v, want %v", length, got, warns)
		}
	}
}

// A closed incident can be commented on, but no longer muted or accepted.
func TestActionsOnAClosedIncident(t *testing.T) {
	r := newRig(t)
	r.logIn()
	i := r.view.incidents[0]
	if !i.Closed {
		t.Fatal("the first incident is open")
	}
	body := r.send(http.MethodGet, "/incidents/"+i.ID, nil).Body.String()
	for button, want := range map[string]bool{"comment": true, "mute 1h": false, "accept": false} {
		if strings.Contains(body, `value="`+button+`"`) != want {
			t.Errorf("%s: want %v\n%s", button, want, body)
		}
	}
}

// Logging in returns to the page that a person comes from, and the header shows who is logged in.
func TestLoggingInReturns(t *testing.T) {
	r := newRig(t)
	page := r.send(http.MethodGet, "/retrain?state=met", nil)
	wants(t, "the header", page, 200, `href="./login?next=retrain%3Fstate%3Dmet">Log in</a>`)
	wants(t, "the login page", r.send(http.MethodGet, "/login?next=retrain%3Fstate%3Dmet", nil), 200, `name="next" value="retrain?state=met"`)
	in := r.send(http.MethodPost, "/login", url.Values{"token": {r.token}, "name": {"Ann O'Neil"}, "next": {"retrain?state=met"}})
	if in.Code != http.StatusSeeOther || in.Header().Get("Location") != "./retrain?state=met" {
		t.Fatalf("the login gives %d to %s", in.Code, in.Header().Get("Location"))
	}
	wants(t, "the header", r.send(http.MethodGet, "/", nil), 200, "Logged in as <b><bdi>Ann O&#39;Neil</bdi></b>")
	wants(t, "the form", r.send(http.MethodGet, somePage, nil), 200, `name="by" value="Ann O&#39;Neil"`)
	wants(t, "a long name", r.send(http.MethodPost, "/login", url.Values{"token": {r.token}, "name": {strings.Repeat("x", 300)}}), 400, "Your name must be 1 to 200")
}

func TestPagesToReturnTo(t *testing.T) {
	for path, want := range map[string]bool{
		"": true, "incidents/9f3c": true, "incidents": true, "?q=x&state=drift": true, "policies/a%2Fb?group=x": true, "retrain/rr_1?against=before": true,
		"login": false, "logout": false, "api/v1/streams": false, "//evil.example": false, "https://evil.example": false, "/incidents": false,
		"incidents/../logout": false, "incidents/..": false, `\\evil.example`: false, "incidents:x": false, "retrain//evil.example": false, "static/x": false,
	} {
		if got := PageOf(path); (got == path) != want || !want && got != "" {
			t.Errorf("%q gives %q", path, got)
		}
	}
}
