package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api/apitest"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/guard"
)

// someGuards returns the guards of a policy, one of which has the given state.
func someGuards(state guard.State, seq uint64) *guard.Summary {
	return &guard.Summary{
		Policy: "ranker", Seq: seq, State: state, MaxAge: time.Minute, OnSilence: "hold",
		Guards: []guard.Verdict{
			{Name: "calm", Limit: "no step with action x", Alpha: .01, Evidence: 1},
			{Name: "unsafe", Limit: "steps with action y at most 1% of steps", State: state, Tripped: state > guard.Warn, Why: "y", Values: 40, Mean: .1, Evidence: 200, Alpha: .01},
		},
	}
}

func TestGuardsKeepToTheOpenAPIDocument(t *testing.T) {
	v := apitest.SomeView()
	v.Guard(someGuards(guard.Hold, 3))
	s := quietServer(t, Config{}, v, nil)
	all := ask(s, http.MethodGet, "/api/v1/guards")
	checkAgainstOpenAPI(t, "/api/v1/guards", all.Body.Bytes())
	one := ask(s, http.MethodGet, "/api/v1/guards/ranker")
	if one.Code != http.StatusOK || one.Header().Get("ETag") == "" {
		t.Fatalf("%d %s", one.Code, one.Body)
	}
	checkAgainstOpenAPI(t, "/api/v1/guards/{policy}", one.Body.Bytes())
	released := someGuards(guard.Hold, 3)
	released.Events = []guard.Event{{Seq: 1, Guard: "unsafe", To: guard.Hold, Why: "y"}, {
		Seq: 2, Guard: "unsafe", From: guard.Hold, At: finding.UnitRef{TS: 5, Agent: "a", Episode: "e"}, By: "ann", Why: "a test", Decided: time.Unix(5, 0),
	}}
	v.Guard(released)
	past := ask(s, http.MethodGet, "/api/v1/guards/ranker/history")
	checkAgainstOpenAPI(t, "/api/v1/guards/{policy}/history", past.Body.Bytes())
	if newest, oldest, _ := strings.Cut(past.Body.String(), `"seq":1`); !strings.Contains(newest, `"by":"ann"`) || !strings.Contains(oldest, `"by":null`) {
		t.Errorf("want the newest event first: %s", past.Body)
	}
	for path, want := range map[string]int{
		"/api/v1/guards/nobody/history": 404, "/api/v1/guards/nobody": 404, "/api/v1/guards/ranker?wait=soon": 400, "/api/v1/guards/ranker?wait=1h": 400, "/api/v1/guards/ranker?wait=-1s": 400,
	} {
		if w := ask(s, http.MethodGet, path); w.Code != want {
			t.Errorf("%s: %d, want %d: %s", path, w.Code, want, w.Body)
		}
	}
}

// asksAgain sends what a client sends that has read the state before.
func asksAgain(s *Server, query, tag string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "/api/v1/guards/ranker"+query, nil)
	r.Host = "127.0.0.1:9464"
	r.Header.Set("If-None-Match", tag)
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return w
}

func TestGuardsAreNotSentTwice(t *testing.T) {
	v := apitest.SomeView()
	before := someGuards(guard.OK, 3)
	v.Guard(before)
	s := quietServer(t, Config{}, v, nil)
	more := someGuards(guard.OK, 3)
	more.Guards[1].Values, more.Guards[1].Evidence = 50, 7
	v.Guard(more)
	if w := asksAgain(s, "", wire.GuardsTag(before)); w.Code != http.StatusNotModified || w.Body.Len() > 0 {
		t.Errorf("more evidence without another state: %d %s, want 304", w.Code, w.Body)
	}
	v.Guard(someGuards(guard.Hold, 4))
	if w := asksAgain(s, "", wire.GuardsTag(before)); w.Code != http.StatusOK {
		t.Errorf("another state: %d, want 200", w.Code)
	}
}

// TestALongPollAnswersAtOnceWhenAGuardTrips measures how long the answer takes after the state has changed.
func TestALongPollAnswersAtOnceWhenAGuardTrips(t *testing.T) {
	v := apitest.SomeView()
	before := someGuards(guard.OK, 3)
	v.Guard(before)
	s := quietServer(t, Config{}, v, nil)
	answered := make(chan int, 1)
	go func() { answered <- asksAgain(s, "?wait=20s", wire.GuardsTag(before)).Code }()
	time.Sleep(200 * time.Millisecond)
	select {
	case code := <-answered:
		t.Fatalf("answered with %d before anything changed", code)
	default:
	}
	changed := time.Now()
	v.Guard(someGuards(guard.Fallback, 4))
	if code := <-answered; code != http.StatusOK {
		t.Errorf("%d, want 200", code)
	}
	if took := time.Since(changed); took > 10*time.Second {
		t.Errorf("answered %s after the change, as if it waited for the end", took)
	}
	if w := asksAgain(s, "?wait=60ms", wire.GuardsTag(someGuards(guard.Fallback, 4))); w.Code != http.StatusNotModified {
		t.Errorf("after the wait: %d, want 304", w.Code)
	}
}

// A long poll at a service that stops has an answer: one without a body would be no state.
func TestALongPollEndsWithTheService(t *testing.T) {
	v := apitest.SomeView()
	g := someGuards(guard.OK, 3)
	v.Guard(g)
	s := quietServer(t, Config{}, v, nil)
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if w := asksAgain(s, "?wait=20s", wire.GuardsTag(g)); w.Code != http.StatusNotModified || time.Since(begun) > 10*time.Second {
		t.Errorf("%d after %s, want 304 at once", w.Code, time.Since(begun))
	}
}

// The incident of a guard says which guard has tripped, and keeps to the document without an effect and a baseline.
func TestTheIncidentOfAGuardKeepsToTheOpenAPIDocument(t *testing.T) {
	v := apitest.SomeView()
	i := v.Opened[0]
	i.Alarms = []alerts.Alarm{{
		Group: i.Group, Signal: guard.Signal, Cause: alerts.CauseUnknown, Score: 1,
		Guard: &finding.Guard{Name: "unsafe", State: "hold", Limit: "no step", Why: "the first step"},
	}}
	v.Opened = []alerts.Incident{i}
	s := quietServer(t, Config{}, v, nil)
	for _, path := range []string{"/api/v1/incidents", "/api/v1/alarms"} {
		w := ask(s, http.MethodGet, path)
		checkAgainstOpenAPI(t, path, w.Body.Bytes())
		if !strings.Contains(w.Body.String(), `"why":"the first step"`) {
			t.Errorf("%s does not say what the guard has seen: %s", path, w.Body)
		}
	}
}
