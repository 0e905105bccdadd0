package console

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// madeUp shows what a test has put into it.
type madeUp struct {
	summaries []*bank.Summary
	incidents []alerts.Incident
	faults    []alerts.Fault
	notReady  error
}

func (v *madeUp) Summaries() []*bank.Summary   { return v.summaries }
func (v *madeUp) Incidents() []alerts.Incident { return v.incidents }
func (v *madeUp) Faults() []alerts.Fault       { return v.faults }
func (v *madeUp) Ready() error                 { return v.notReady }

var someTime = time.Date(2026, 11, 20, 10, 0, 5, 0, time.UTC)

// consoleOf makes a console of made-up data, with a clock that stands.
func consoleOf(v View, d Desk) *Console {
	return New(v, d, func() time.Time { return someTime }, zerolog.Nop())
}

func get(c *Console, path string, headers ...string) *httptest.ResponseRecorder {
	mux := http.NewServeMux()
	c.Register(mux)
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	return w
}

func TestFleetIsBounded(t *testing.T) {
	v := &madeUp{summaries: []*bank.Summary{{Policy: "p"}}}
	for range maxPageStreams + 7 {
		v.summaries[0].Groups = append(v.summaries[0].Groups, bank.GroupSummary{
			Group: ingest.NewGroup("p"), Streams: []bank.StreamSummary{{Signal: "return", State: bank.OK}},
		})
	}
	d := consoleOf(v, nil).fleetData(t.Context())
	if len(d.Groups) != maxPageStreams || d.Hidden != 7 {
		t.Errorf("shows %d groups and hides %d streams", len(d.Groups), d.Hidden)
	}
}

func TestDriftingGroupsComeFirst(t *testing.T) {
	v := &madeUp{summaries: []*bank.Summary{{Groups: []bank.GroupSummary{
		{Group: ingest.NewGroup("a"), Streams: []bank.StreamSummary{{Signal: "return"}}},
		{Group: ingest.NewGroup("b"), Incident: true, Streams: []bank.StreamSummary{{Signal: "action", State: bank.OK}, {Signal: "return", State: bank.Drift}}},
	}}}}
	d := consoleOf(v, nil).fleetData(t.Context())
	if d.Groups[0].Policy != "b" || d.Groups[0].Streams[0].Signal != "return" {
		t.Errorf("first is %s with %s", d.Groups[0].Policy, d.Groups[0].Streams[0].Signal)
	}
}

func TestStaticFilesAreKeptUntilTheyChange(t *testing.T) {
	c := consoleOf(&madeUp{}, nil)
	for name, kind := range map[string]string{"console.css": "text/css", "vendor/htmx.min.js": "text/javascript", "icon.svg": "image/svg+xml"} {
		w := get(c, "/static/"+asset(name))
		if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), kind) || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s gives %d %v", name, w.Code, w.Header())
		}
		tag := w.Header().Get("ETag")
		if w := get(c, "/static/"+name, "If-None-Match", tag); w.Code != http.StatusNotModified || w.Header().Get("Cache-Control") != "no-cache" {
			t.Errorf("%s asked again gives %d %v", name, w.Code, w.Header())
		}
	}
	for _, name := range []string{"layout.html", "pages/fleet.html", "vendor", "", "none.css"} {
		if w := get(c, "/static/"+name); w.Code != http.StatusNotFound {
			t.Errorf("%q gives %d", name, w.Code)
		}
	}
}

func TestLinksLeadBackToTheRoot(t *testing.T) {
	for path, want := range map[string]string{"/": "./", "/retrain/rr_1/decide": "./../../", "/retrain/a%2Fb/decide?token=/": "./../../"} {
		if got := root(httptest.NewRequest(http.MethodGet, path, nil)); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
