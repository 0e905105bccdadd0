package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api/apitest"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/recipe"
)

func TestRequestsAreSearched(t *testing.T) {
	v := apitest.Storied().View
	s := quietServer(t, Config{}, v, nil)
	query := url.Values{
		"text": {"new prices"}, "policy": {"feed"}, "cause": {"environment"}, "state": {"delivered"}, "recipe": {"ranker"}, "parent": {"rr_0"}, "parameter": {"lr=1"},
		"since": {"2026-11-20T10:00:00+01:00"}, "until": {"2026-11-21T10:00:00Z"}, "limit": {"7"}, "after": {"rr_1"}, "format": {"json"},
	}
	w := ask(s, http.MethodGet, "/api/v1/retrain-requests?"+query.Encode())
	if w.Code != http.StatusOK || strings.Count(w.Body.String(), `"id":"rr_delivered"`) != 1 || !strings.Contains(w.Body.String(), `"next":null`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	checkAgainstOpenAPI(t, "/api/v1/retrain-requests", w.Body.Bytes())
	want := ledger.Filter{
		Text: "new prices", Policy: "feed", Cause: "environment", State: "delivered", Recipe: "ranker", Parent: "rr_0", Parameter: "lr=1", After: "rr_1", Limit: 7,
		Since: time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC), Until: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC),
	}
	if v.Filter.Since = v.Filter.Since.UTC(); !reflect.DeepEqual(v.Filter, want) {
		t.Errorf("searched by %+v, want %+v", v.Filter, want)
	}
	if w := ask(s, http.MethodGet, "/api/v1/retrain-requests?limit=2"); !strings.Contains(w.Body.String(), `"next":"rr_verifying"`) {
		t.Errorf("a page gives %s", w.Body)
	}
}

func TestSearchSaysWhatIsWrong(t *testing.T) {
	v := apitest.Storied().View
	s := quietServer(t, Config{}, v, nil)
	for query, says := range map[string]string{
		"polcy=feed":      `unknown parameter \"polcy\"`,
		"since=yesterday": "since must be a time",
		"limit=0":         "limit must be a number from 1 to 1000",
		"limit=many":      "limit must be",
		"format=csv":      "format must be json or ndjson",
	} {
		if w := ask(s, http.MethodGet, "/api/v1/retrain-requests?"+query); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), says) {
			t.Errorf("%s gives %d %s", query, w.Code, w.Body)
		}
	}
	v.Ledger = ledger.ErrBadFilter
	if w := ask(s, http.MethodGet, "/api/v1/retrain-requests?text=-"); w.Code != http.StatusBadRequest {
		t.Errorf("a bad filter gives %d %s", w.Code, w.Body)
	}
}

func TestLedgerIsWrittenAsRecords(t *testing.T) {
	rig := newDeskRig(t)
	id := rig.request(ledger.StateOpen)
	w := ask(rig.Server, http.MethodGet, "/api/v1/retrain-requests?format=ndjson")
	var record ledger.Record
	if err := json.Unmarshal(w.Body.Bytes(), &record); err != nil || strings.Count(w.Body.String(), "\n") != 1 {
		t.Fatalf("%v: %s", err, w.Body)
	}
	if w.Header().Get("Content-Type") != ndjson || record.Request.ID != id || len(record.History) != 1 || len(record.Decisions) != 1 || record.Deliveries == nil {
		t.Errorf("%s: %+v", w.Header().Get("Content-Type"), record)
	}
	for query, want := range map[string]int{"text=-": http.StatusBadRequest, "text=nonsense": http.StatusOK} {
		if w := ask(rig.Server, http.MethodGet, "/api/v1/retrain-requests?format=ndjson&"+query); w.Code != want || want == http.StatusOK && w.Body.Len() != 0 {
			t.Errorf("%s gives %d %s", query, w.Code, w.Body)
		}
	}
}

func TestPeopleAskForRetrainings(t *testing.T) {
	rig := newDeskRig(t)
	incident := apitest.SomeView().Opened[0]
	body := func(more string) string {
		return `{"policy":"` + incident.Group.Policy + `","recipe":"ranker","target":"trainer","by":" alice ","why":"new prices"` + more + `}`
	}
	const path = "/api/v1/retrain-requests"
	w := post(rig.Server, path, body(`,"id":"one","incident":"`+incident.ID+`"`), apitest.SomeToken)
	var q ledger.Request
	if err := json.Unmarshal(w.Body.Bytes(), &q); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	_, change := rig.last(q.ID)
	if q.OriginKind != ledger.OriginPerson || change.By != "alice" || change.Reason != "new prices" || !strings.Contains(string(q.Order), `"incident":"`+incident.ID) {
		t.Errorf("%+v %+v", q, change)
	}
	for name, tt := range map[string]struct {
		body string
		code int
		says string
	}{
		"again":           {body(`,"id":"one"`), 200, q.ID},
		"another":         {body(""), 409, "unfinished request: " + q.ID},
		"nobody":          {`{"policy":"p","recipe":"ranker","target":"trainer","why":"x"}`, 400, "by must be 1 to"},
		"long id":         {body(`,"id":"` + strings.Repeat("x", 201) + `"`), 400, "id must be 1 to"},
		"no incident":     {body(`,"incident":"none"`), 404, "incident not found"},
		"no recipe":       {strings.Replace(body(""), "ranker\",\"target", "none\",\"target", 1), 400, "unknown recipe"},
		"other policy":    {strings.Replace(body(`,"incident":"`+incident.ID+`"`), incident.Group.Policy, "other", 1), 400, "the incident belongs to policy"},
		"unknown field":   {body(`,"urgent":true`), 400, "unknown field"},
		"other under one": {strings.Replace(body(`,"id":"one"`), incident.Group.Policy, "other", 1), 409, "the same id was already used for a different retraining"},
	} {
		if w := post(rig.Server, path, tt.body, apitest.SomeToken); w.Code != tt.code || !strings.Contains(w.Body.String(), tt.says) {
			t.Errorf("%s gives %d %s", name, w.Code, w.Body)
		}
	}
	if w := post(rig.Server, path, body(""), "wrong"); w.Code != http.StatusUnauthorized {
		t.Errorf("without the token: %d", w.Code)
	}
	rig.Requests = nil
	if w := post(rig.Server, path, body(""), apitest.SomeToken); w.Code != http.StatusNotFound {
		t.Errorf("where no retraining is configured: %d", w.Code)
	}
}

func TestRetrainSchemaIsServed(t *testing.T) {
	w := ask(quietServer(t, Config{}, apitest.SomeView(), nil), http.MethodGet, "/api/v1/retrain-request.schema.json")
	document, err := jsonschema.UnmarshalJSON(w.Body)
	if err != nil || w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/schema+json" {
		t.Fatalf("%d %s: %v", w.Code, w.Header(), err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", document); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Compile("schema.json"); err != nil {
		t.Error(err)
	}
}

// What the webhook has in common with the API is described alike.
func TestRetrainSchemaAgreesWithOpenAPI(t *testing.T) {
	text, err := web.ReadFile("web/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var api struct {
		Components struct{ Schemas map[string]json.RawMessage }
	}
	var published struct {
		Defs map[string]json.RawMessage `json:"$defs"`
	}
	if err := json.Unmarshal(text, &api); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(recipe.Schema(), &published); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Versions", "Range", "Effect", "Cause", "RankedCause", "OnsetInterval", "ReturnChange", "Promise", "Shift"} {
		want := strings.ReplaceAll(testkit.Indented(t, api.Components.Schemas[name]), "#/components/schemas/", "#/$defs/")
		if got := testkit.Indented(t, published.Defs[name]); got != want {
			t.Errorf("%s is\n%s\nand in the API\n%s", name, got, want)
		}
	}
}

func TestFleetShowsRequests(t *testing.T) {
	d := apitest.Storied()
	d.View.Opened, d.View.Faulty, d.View.Policies = nil, nil, nil
	d.View.Ordered = append(d.View.Ordered[2:3], d.View.Ordered[1], d.View.Ordered[3])
	d.View.Ordered[0].Policy = `<script>alert(1)</script>`
	s := quietServer(t, Config{}, d.View, nil)
	s.Requests = d
	body := ask(s, http.MethodGet, "/").Body.String()
	for _, want := range []string{"awaiting approval", "&lt;script&gt;", "approval", "retrain/rr_waits"} {
		if !strings.Contains(body, want) {
			t.Errorf("without %q the page is %s", want, body)
		}
	}
	d.View.Ordered, d.Err = nil, errors.New("/secret/path: disk full")
	body = ask(s, http.MethodGet, "/").Body.String()
	if !strings.Contains(body, "the ledger cannot be read") || strings.Contains(body, "/secret") {
		t.Errorf("without the ledger the page is %s", body)
	}
}
