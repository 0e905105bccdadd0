package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api/apitest"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// orderServer makes a server with a token and orders.
func orderServer(t *testing.T, o *apitest.FixedOrders) *Server {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(apitest.SomeToken+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := quietServer(t, Config{TokenFile: file}, apitest.SomeView(), nil)
	s.Orders = o
	return s
}

// post sends a body with a token.
func post(s *Server, path, body, token string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return w
}

// Where other instances judge other policies, what is not found here may be there.
func TestWhatIsNotFoundMayBeJudgedElsewhere(t *testing.T) {
	const order, says = `{"by":"alice","why":"new prices"}`, "try the other instances of the group"
	for err, elsewhere := range map[error]bool{
		engine.ErrUnknownIncident: true, engine.ErrUnknownBaseline: true, engine.ErrUnknownGroup: true, engine.ErrIncidentClosed: false, engine.ErrBaselineEnded: false,
	} {
		s := orderServer(t, &apitest.FixedOrders{Err: err})
		s.Shared = true
		w := post(s, "/api/v1/incidents/i9/accept", order, apitest.SomeToken)
		if got := strings.Contains(w.Body.String(), says); got != elsewhere || elsewhere != (w.Code == http.StatusNotFound) {
			t.Errorf("%v gives %d %s", err, w.Code, w.Body)
		}
	}
	w := post(orderServer(t, &apitest.FixedOrders{Err: engine.ErrUnknownIncident}), "/api/v1/incidents/i9/accept", order, apitest.SomeToken)
	if strings.Contains(w.Body.String(), says) {
		t.Errorf("an instance that is alone answers %s", w.Body)
	}
}

func TestOrdersAreCheckedAndCarriedOut(t *testing.T) {
	const who = `"by":"alice","why":"new prices"`
	incident, baseline := apitest.SomeView().Opened[0], apitest.SomeView().Policies[1].Groups[0]
	tests := map[string]struct {
		path, body string
		err        error
		code       int
		says       string // part of the answer
		asked      string
	}{
		"accept":           {"incidents/i1/accept", "{" + who + "}", nil, 200, `"id":"` + incident.ID, "accept i1"},
		"comment":          {"incidents/i1/comment", "{" + who + "}", nil, 200, `"id":"` + incident.ID, "comment i1"},
		"comment until":    {"incidents/i1/comment", "{" + who + `,"for":"4h"}`, nil, 400, "unexpected keys: until and for", ""},
		"mute for":         {"incidents/i1/mute", "{" + who + `,"for":"4h"}`, nil, 200, `"id":"` + incident.ID, "mute i1"},
		"mute until":       {"incidents/i1/mute", "{" + who + `,"until":"2026-11-20T14:00:05Z"}`, nil, 200, `"id":"` + incident.ID, "mute i1"},
		"promote":          {"baselines/b1/promote", "{" + who + "}", nil, 200, `"id":"` + baseline.Baseline.ID, "promote b1"},
		"reset":            {"baselines/reset", "{" + who + `,"policy":"p","group":{"env":"e"}}`, nil, 200, `"policy":"checkout-ranker"`, "reset pmap[env:e]"},
		"reset ungrouped":  {"baselines/reset", "{" + who + `,"policy":"p","group":{}}`, nil, 200, `"policy"`, "reset pmap[]"},
		"forget":           {"policies/a%2Fb/forget", "{" + who + "}", nil, 200, `"forgotten":"a/b"`, "forget a/b"},
		"forget nothing":   {"policies/p/forget", "{" + who + "}", engine.ErrUnknownPolicy, 404, "policy not found", "forget p"},
		"forget a group":   {"policies/p/forget", "{" + who + `,"group":{}}`, nil, 400, "unexpected keys: policy and group", ""},
		"nobody":           {"incidents/i1/accept", `{"by":" ","why":"x"}`, nil, 400, "by must be 1 to", ""},
		"no reason":        {"incidents/i1/accept", `{"by":"alice"}`, nil, 400, "why must be 1 to", ""},
		"long reason":      {"incidents/i1/accept", `{"by":"a","why":"` + strings.Repeat("x", words.MaxWhy+1) + `"}`, nil, 400, "why must be 1 to 1000", ""},
		"unknown field":    {"incidents/i1/accept", "{" + who + `,"reason":"x"}`, nil, 400, "unknown field", ""},
		"no JSON":          {"incidents/i1/accept", "by=alice", nil, 400, "the body is not a valid JSON object", ""},
		"large":            {"incidents/i1/accept", `{"by":"` + strings.Repeat("x", maxOrder) + `"}`, nil, 413, "too large", ""},
		"accept until":     {"incidents/i1/accept", "{" + who + `,"for":"4h"}`, nil, 400, "unexpected keys: until and for", ""},
		"mute for ever":    {"incidents/i1/mute", "{" + who + "}", nil, 400, "either until", ""},
		"mute both":        {"incidents/i1/mute", "{" + who + `,"for":"4h","until":"2026-11-20T14:00:05Z"}`, nil, 400, "either until", ""},
		"mute in the past": {"incidents/i1/mute", "{" + who + `,"until":"2026-11-20T10:00:05Z"}`, nil, 400, "must end in the future", ""},
		"end of a mute":    {"incidents/i1/mute", "{" + who + `,"for":"0s"}`, nil, 200, `"id":"` + incident.ID, "mute i1"},
		"mute for long":    {"incidents/i1/mute", "{" + who + `,"for":"soon"}`, nil, 400, `invalid duration \"soon\": use a number and a unit, such as 4h or 2d`, ""},
		"promote a group":  {"baselines/b1/promote", "{" + who + `,"policy":"p"}`, nil, 400, "unexpected keys: policy and group", ""},
		"reset nothing":    {"baselines/reset", "{" + who + "}", nil, 400, "policy and group are required to select the baseline to reset", ""},
		"unknown":          {"incidents/i9/accept", "{" + who + "}", engine.ErrUnknownIncident, 404, "incident not found", "accept i9"},
		"closed":           {"incidents/i1/mute", "{" + who + `,"for":"4h"}`, engine.ErrIncidentClosed, 409, "the incident is already closed", "mute i1"},
		"no baseline":      {"baselines/b9/promote", "{" + who + "}", engine.ErrUnknownBaseline, 404, "baseline not found", "promote b9"},
		"old baseline":     {"baselines/b0/promote", "{" + who + "}", engine.ErrBaselineEnded, 409, "no longer in use", "promote b0"},
		"no group":         {"baselines/reset", "{" + who + `,"policy":"p","group":{"env":"e"}}`, engine.ErrUnknownGroup, 404, "group not found: no telemetry has been received for it", "reset pmap[env:e]"},
		"not saved":        {"incidents/i1/accept", "{" + who + "}", fmt.Errorf("%w: /secret: full", engine.ErrNotSaved), 503, `not saved yet: repeat the request to confirm"`, "accept i1"},
		"busy":             {"incidents/i1/accept", "{" + who + "}", engine.ErrBusy, 503, `nothing was changed because the policy is calibrating baselines: try again in a few minutes"`, "accept i1"},
		"failed":           {"incidents/i1/accept", "{" + who + "}", errors.New("/secret/path"), 503, `see the service log for details"`, "accept i1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := &apitest.FixedOrders{Incident: incident, Group: baseline, Err: tt.err}
			s := orderServer(t, o)
			w := post(s, "/api/v1/"+tt.path, tt.body, apitest.SomeToken)
			if w.Code != tt.code || !strings.Contains(w.Body.String(), tt.says) || strings.Contains(w.Body.String(), "/secret") {
				t.Errorf("gives %d %s, want %d with %s", w.Code, w.Body, tt.code, tt.says)
			}
			if asked := strings.Join(o.Asked, ", "); asked != tt.asked {
				t.Errorf("asked %q, want %q", asked, tt.asked)
			}
			if tt.code == 200 && (o.Decision.By != "alice" || o.Decision.Why != "new prices" || !o.Decision.At.Equal(s.Now())) {
				t.Errorf("the decision is %+v", o.Decision)
			}
			if until := s.Now().Add(4 * time.Hour); o.Decision.Kind == alerts.Muted && !o.Decision.Until.Equal(until) {
				t.Errorf("muted until %s, want %s", o.Decision.Until, until)
			}
			if ends := name == "end of a mute"; ends != (o.Decision.Kind == alerts.Unmuted) || ends && !o.Decision.Until.IsZero() {
				t.Errorf("the decision is %+v", o.Decision)
			}
		})
	}
}

func TestOrdersNeedTheToken(t *testing.T) {
	o := &apitest.FixedOrders{}
	s := orderServer(t, o)
	for _, path := range []string{"incidents/i/accept", "incidents/i/mute", "baselines/b/promote", "baselines/reset", "policies/p/forget"} {
		body := `{"by":"mallory","why":"because","for":"1h","policy":"p","group":{}}`
		if w := post(s, "/api/v1/"+path, body, "wrong horse"); w.Code != http.StatusUnauthorized {
			t.Errorf("%s with a wrong token gives %d", path, w.Code)
		}
		if w := post(quietServer(t, Config{}, apitest.SomeView(), nil), "/api/v1/"+path, body, ""); w.Code != http.StatusForbidden {
			t.Errorf("%s without a configured token gives %d", path, w.Code)
		}
	}
	if len(o.Asked) > 0 {
		t.Errorf("asked %v", o.Asked)
	}
}

func TestAPIOfOne(t *testing.T) {
	v := apitest.SomeView()
	group := &v.Policies[1].Groups[0]
	group.Baseline.ID = "fedcba9876543210"
	group.Lineage = finding.Lineage{
		Promoted: "accepted by bob at 2026-11-18T08:00:00Z: good enough", Collected: 0,
		Past: []finding.PastBaseline{{
			BaselineRef: finding.BaselineRef{ID: "0123456789abcdef", Units: 100, Offsets: []ingest.Range{{First: 1, Last: 900}}},
			FrozenAt:    time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC), EndedAt: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), Why: "reset by alice at 2026-11-01T00:00:00Z: new prices",
		}},
	}
	muted := &v.Opened[0]
	muted.MutedUntil = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	muted.Decisions = []alerts.Decision{{Kind: alerts.Muted, By: "alice", Why: "known", At: time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC), Until: muted.MutedUntil}}
	s := quietServer(t, Config{}, v, nil)
	s.Orders = &apitest.FixedOrders{Samples: apitest.SomeSamples()}
	for name, path := range map[string][2]string{
		"incident":      {"/api/v1/incidents/" + muted.ID, "/api/v1/incidents/{id}"},
		"request":       {"/api/v1/retrain-requests/rr_1", "/api/v1/retrain-requests/{id}"},
		"baseline":      {"/api/v1/baselines/fedcba9876543210", "/api/v1/baselines/{id}"},
		"baseline.past": {"/api/v1/baselines/0123456789abcdef", "/api/v1/baselines/{id}"},
		"diff":          {"/api/v1/baselines/0123456789abcdef/diff/fedcba9876543210", "/api/v1/baselines/{id}/diff/{other}"},
	} {
		w := ask(s, http.MethodGet, path[0])
		if w.Code != http.StatusOK {
			t.Fatalf("%s gives %d %s", path[0], w.Code, w.Body)
		}
		testkit.SameAsFile(t, filepath.Join("testdata", "api", name+".json"), testkit.Indented(t, w.Body.Bytes()))
		checkAgainstOpenAPI(t, path[1], w.Body.Bytes())
	}
	for _, path := range []string{"incidents/none", "retrain-requests/none", "baselines/none", "baselines/none/diff/fedcba9876543210", "baselines/fedcba9876543210/diff/none"} {
		w := ask(s, http.MethodGet, "/api/v1/"+path)
		var refused struct{ Error string }
		if err := json.Unmarshal(w.Body.Bytes(), &refused); w.Code != http.StatusNotFound || err != nil || refused.Error == "" {
			t.Errorf("%s gives %d %s", path, w.Code, w.Body)
		}
	}
}
