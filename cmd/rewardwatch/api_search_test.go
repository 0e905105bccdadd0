package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/retrain"
)

func TestRequestsAreSearched(t *testing.T) {
	v := storied().view
	s := quietServer(t, HTTPConfig{}, v, nil)
	query := url.Values{
		"text": {"new prices"}, "policy": {"feed"}, "cause": {"environment"}, "state": {"delivered"}, "recipe": {"ranker"}, "parent": {"rr_0"}, "parameter": {"lr=1"},
		"since": {"2026-11-20T10:00:00+01:00"}, "until": {"2026-11-21T10:00:00Z"}, "limit": {"7"}, "after": {"rr_1"}, "format": {"json"},
	}
	w := ask(s, http.MethodGet, "/api/v1/retrain-requests?"+query.Encode())
	if w.Code != http.StatusOK || strings.Count(w.Body.String(), `"id":"rr_delivered"`) != 1 || !strings.Contains(w.Body.String(), `"next":null`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	checkAgainstOpenAPI(t, "/api/v1/retrain-requests", w.Body.Bytes())
	want := retrain.Filter{
		Text: "new prices", Policy: "feed", Cause: "environment", State: "delivered", Recipe: "ranker", Parent: "rr_0", Parameter: "lr=1", After: "rr_1", Limit: 7,
		Since: time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC), Until: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC),
	}
	if v.filter.Since = v.filter.Since.UTC(); !reflect.DeepEqual(v.filter, want) {
		t.Errorf("searched by %+v, want %+v", v.filter, want)
	}
	if w := ask(s, http.MethodGet, "/api/v1/retrain-requests?limit=2"); !strings.Contains(w.Body.String(), `"next":"rr_verifying"`) {
		t.Errorf("a page gives %s", w.Body)
	}
}

func TestSearchSaysWhatIsWrong(t *testing.T) {
	v := storied().view
	s := quietServer(t, HTTPConfig{}, v, nil)
	for query, says := range map[string]string{
		"polcy=feed":      `\"polcy\" is nothing to search by`,
		"since=yesterday": "since must be a time",
		"limit=0":         "limit must be a number from 1 to 1000",
		"limit=many":      "limit must be",
		"format=csv":      "format must be json or ndjson",
	} {
		if w := ask(s, http.MethodGet, "/api/v1/retrain-requests?"+query); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), says) {
			t.Errorf("%s gives %d %s", query, w.Code, w.Body)
		}
	}
	v.ledger = retrain.ErrBadFilter
	if w := ask(s, http.MethodGet, "/api/v1/retrain-requests?text=-"); w.Code != http.StatusBadRequest {
		t.Errorf("a bad filter gives %d %s", w.Code, w.Body)
	}
}

func TestLedgerIsWrittenAsRecords(t *testing.T) {
	rig := newDeskRig(t)
	id := rig.request(retrain.StateOpen)
	w := ask(rig.server, http.MethodGet, "/api/v1/retrain-requests?format=ndjson")
	var record retrain.Record
	if err := json.Unmarshal(w.Body.Bytes(), &record); err != nil || strings.Count(w.Body.String(), "\n") != 1 {
		t.Fatalf("%v: %s", err, w.Body)
	}
	if w.Header().Get("Content-Type") != ndjson || record.Request.ID != id || len(record.History) != 1 || len(record.Decisions) != 1 || record.Deliveries == nil {
		t.Errorf("%s: %+v", w.Header().Get("Content-Type"), record)
	}
	for query, want := range map[string]int{"text=-": http.StatusBadRequest, "text=nonsense": http.StatusOK} {
		if w := ask(rig.server, http.MethodGet, "/api/v1/retrain-requests?format=ndjson&"+query); w.Code != want || want == http.StatusOK && w.Body.Len() != 0 {
			t.Errorf("%s gives %d %s", query, w.Code, w.Body)
		}
	}
}

// A client must not take a part of the ledger for the whole.
func TestRecordsThatBreakOff(t *testing.T) {
	v := storied().view
	v.ledger = errors.New("the disk is gone")
	served := httptest.NewServer(quietServer(t, HTTPConfig{}, v, nil).handler())
	defer served.Close()
	got := runVerb("retrain", "ledger", "--server", served.URL)
	if got.code != exitError || !strings.Contains(got.err, "EOF") {
		t.Errorf("exit %d: %s", got.code, got.err)
	}
}

func TestVerbsThatSearch(t *testing.T) {
	d := storied()
	flags := serveDesk(t, d)
	got := runVerb(append([]string{"retrain", "list", "--text", "new prices", "--cause", "environment", "--parameter", "lr=1", "--limit", "2", "--after", "rr_1"}, flags...)...)
	if got.code != exitFine || !strings.HasPrefix(got.err, "There are older ones: --after rr_") || strings.Count(got.out, "\n") != 3 {
		t.Errorf("exit %d: %s%s", got.code, got.err, got.out)
	}
	want := retrain.Filter{Text: "new prices", Cause: "environment", Parameter: "lr=1", Limit: 2, After: "rr_1"}
	if !reflect.DeepEqual(d.view.filter, want) {
		t.Errorf("searched by %+v, want %+v", d.view.filter, want)
	}
	got = runVerb(append([]string{"retrain", "ledger", "--recipe", "ranker", "--since", "2026-11-20T10:00:00Z"}, flags...)...)
	if got.code != exitFine || got.err != "" || strings.Count(got.out, "\n") != len(d.view.requests) {
		t.Errorf("exit %d: %s%s", got.code, got.err, got.out)
	}
	if f := d.view.filter; f.Recipe != "ranker" || f.Since.IsZero() {
		t.Errorf("exported by %+v", f)
	}
}

func TestPeopleAskForRetrainings(t *testing.T) {
	rig := newDeskRig(t)
	incident := someView().incidents[0]
	body := func(more string) string {
		return `{"policy":"` + incident.Group.Policy + `","recipe":"ranker","target":"trainer","by":" alice ","why":"new prices"` + more + `}`
	}
	const path = "/api/v1/retrain-requests"
	w := post(rig.server, path, body(`,"id":"one","incident":"`+incident.ID+`"`), someToken)
	var q retrain.Request
	if err := json.Unmarshal(w.Body.Bytes(), &q); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	_, change := rig.last(q.ID)
	if q.OriginKind != retrain.OriginPerson || change.By != "alice" || change.Reason != "new prices" || !strings.Contains(string(q.Order), `"incident":"`+incident.ID) {
		t.Errorf("%+v %+v", q, change)
	}
	for name, tt := range map[string]struct {
		body string
		code int
		says string
	}{
		"again":           {body(`,"id":"one"`), 200, q.ID},
		"another":         {body(""), 409, "not finished: " + q.ID},
		"nobody":          {`{"policy":"p","recipe":"ranker","target":"trainer","why":"x"}`, 400, "by must be a text"},
		"long id":         {body(`,"id":"` + strings.Repeat("x", 201) + `"`), 400, "id must be a text"},
		"no incident":     {body(`,"incident":"none"`), 404, "no such incident"},
		"no recipe":       {strings.Replace(body(""), "ranker\",\"target", "none\",\"target", 1), 400, "no recipe is named"},
		"other policy":    {strings.Replace(body(`,"incident":"`+incident.ID+`"`), incident.Group.Policy, "other", 1), 400, "the incident is of policy"},
		"unknown field":   {body(`,"urgent":true`), 400, "unknown field"},
		"other under one": {strings.Replace(body(`,"id":"one"`), incident.Group.Policy, "other", 1), 409, "another retraining was asked for"},
	} {
		if w := post(rig.server, path, tt.body, someToken); w.Code != tt.code || !strings.Contains(w.Body.String(), tt.says) {
			t.Errorf("%s gives %d %s", name, w.Code, w.Body)
		}
	}
	if w := post(rig.server, path, body(""), "wrong"); w.Code != http.StatusUnauthorized {
		t.Errorf("without the token: %d", w.Code)
	}
	rig.requests = nil
	if w := post(rig.server, path, body(""), someToken); w.Code != http.StatusNotFound {
		t.Errorf("where no retraining is configured: %d", w.Code)
	}
}

func TestPolicyThatIsNotWatchedIsNotRetrained(t *testing.T) {
	rig := newDeskRig(t)
	rig.requests = watchedRequests{rig.requests, &Config{Policies: []PolicyConfig{{Match: "checkout-*"}}}}
	for policy, code := range map[string]int{"chekout-ranker": http.StatusBadRequest, "checkout-ranker": http.StatusOK} {
		w := post(rig.server, "/api/v1/retrain-requests", `{"policy":"`+policy+`","recipe":"ranker","target":"trainer","by":"alice","why":"x"}`, someToken)
		if w.Code != code || code != http.StatusOK && !strings.Contains(w.Body.String(), `no entry of policies matches`) {
			t.Errorf("%s: %d %s", policy, w.Code, w.Body)
		}
	}
}

func TestVerbThatAsksForARetraining(t *testing.T) {
	rig := newDeskRig(t)
	served := httptest.NewServer(rig.handler())
	defer served.Close()
	args := []string{
		"retrain", "request", "bidder", "--recipe", "ranker", "--target", "trainer", "--by", "alice", "--why", "new prices",
		"--server", served.URL, "--token-file", rig.cfg.TokenFile,
	}
	got := runVerb(append(args, "--id", "one")...)
	if got.code != exitFine || got.err != "" || !strings.Contains(got.out, "person person/one") || !strings.Contains(got.out, "bidder") {
		t.Errorf("exit %d: %s%s", got.code, got.err, got.out)
	}
	if again := runVerb(append(args, "--id", "one")...); again.out != got.out {
		t.Errorf("asked again: %s%s", again.err, again.out)
	}
	if other := runVerb(args...); other.code != exitError || !strings.Contains(other.err, "(409 Conflict)") {
		t.Errorf("exit %d: %s", other.code, other.err)
	}
	if got := runVerb("retrain", "request", "bidder", "--recipe", "ranker", "--target", "trainer", "--by", "alice"); !strings.Contains(got.err, "--why must say why") {
		t.Errorf("without a reason: %s", got.err)
	}
}
