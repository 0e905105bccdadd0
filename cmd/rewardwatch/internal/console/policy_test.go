package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/console/plots"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// policyOf returns the data of a policy's page.
func policyOf(t *testing.T, v *madeUp, policy, group string) policyData {
	t.Helper()
	return consoleOf(v, nil).policyData(t.Context(), policy, group)
}

// drawing is what the script draws of a chart.
type drawing struct {
	Clock bool
	X     []float64
	Lines []struct {
		Name string
		Y    []*float64
	}
	Marks []drawnMark
}

type drawnMark struct {
	X          float64
	Kind, Text string
}

func drawn(t *testing.T, c *plots.Chart) drawing {
	t.Helper()
	var out drawing
	if c == nil {
		t.Fatal("no chart")
	}
	if err := json.Unmarshal([]byte(c.Data), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestPolicyTellsWhatSinceWhenAndWhy(t *testing.T) {
	v := madeUpFleet(3, someTime)
	ledger := &madeUpDesk{requests: []ledger.Request{{ID: "rr_1", Policy: "policy-0000"}, {ID: "rr_2", Policy: "policy-0001"}}}
	d := consoleOf(v, ledger).policyData(t.Context(), "policy-0000", "")
	g := d.Group
	if g.State != "drift" || g.Since.Ago != "20 min ago" || g.Incident == nil || g.Incident.Cause != "reward function" || len(d.Incidents) != 1 || d.Incidents[0].Path != "a1b2" {
		t.Errorf("%+v, incidents %+v", g, d.Incidents)
	}
	if len(d.Requests) != 1 || d.Requests[0].Path != "rr_1" {
		t.Errorf("requests %+v", d.Requests)
	}
	first := g.Streams[0]
	if first.Signal != "return" || first.Shift != "-1.20 SD" || first.Next != "Inactive tests: 3 of 12, because the baseline is too small. The next test (return spread +0.5) requires about 900 episodes" {
		t.Errorf("%+v", first)
	}
	if p := first.Picture; len(p.Bins) != 10 || len(p.Edges) != 9 || fmt.Sprint(p.Edges[0], p.Edges[7]) != "{36.0 106 118 7.5} {288.0 119 131 11.88}" || p.Shares != "share of episodes" || p.Bins[0].CurrentPercent != "20.8%" || p.Bins[9].Title != "from 12.5" || p.Bins[4].Title != "9.375 to 10" {
		t.Errorf("%+v", first.Picture)
	}
	if a := g.Actions[0]; a.Action != "offer_b" || a.Baseline != "90.0%" || a.Current != "75.0%" || a.Change != "-15.0" || a.CurrentBar != "75.0" {
		t.Errorf("%+v", g.Actions)
	}
	if w := policyOf(t, v, "policy-0002", "").Group; w.WarmUp != "312 of 500 episodes" || w.Chart != nil || w.Streams[0].Missing != "312 of 500 episodes" || w.Streams[0].Picture != nil {
		t.Errorf("%+v", w)
	}
	wants(t, "the page", get(consoleOf(v, ledger), "/policies/policy-0000"), http.StatusOK, `Likely cause: <b><bdi>reward function</bdi></b>`)
	if f := policyOf(t, v, "policy-0001", "").Group; f.State != "telemetry fault" || f.Fault != "return (constant)" || f.Since.Ago != "20 min ago" {
		t.Errorf("%+v", f)
	}
}

func TestChartMarksOnsetsAndVersions(t *testing.T) {
	v := madeUpFleet(1, someTime)
	g := v.summaries[0].Groups[0].Group
	c := drawn(t, policyOf(t, v, "policy-0000", "").Group.Chart)
	at := v.courses[g].At
	want := []drawnMark{
		{X: float64(at[120].TS) / 1e9, Kind: "onset", Text: "onset of return"}, {X: float64(at[95].TS) / 1e9, Kind: "version", Text: "policy 2026-11-01.3"},
	}
	if fmt.Sprint(c.Marks) != fmt.Sprint(want) || !c.Clock || len(c.X) != len(at) || len(c.Lines) != len(madeUpSignals) || c.Lines[0].Name != "return" || len(c.Lines[0].Y) != len(at) {
		t.Errorf("marks %v, want %v; %d lines", c.Marks, want, len(c.Lines))
	}
	course := v.courses[g]
	for i := range course.At {
		course.At[i].TS = 0
	}
	course.Changes[0].TS, v.incidents[0].Alarms[0].Onset.TS = 0, 0
	c = drawn(t, policyOf(t, v, "policy-0000", "").Group.Chart)
	if c.Clock || c.X[7] != 35 || c.Marks[0].X != 600 || c.Marks[1].X != 475 {
		t.Errorf("without a clock: %v at %v", c.Marks, c.X[:8])
	}
}

func TestChartIsBounded(t *testing.T) {
	v := madeUpFleet(1, someTime)
	g := &v.summaries[0].Groups[0]
	for i := range 30 {
		s := madeUpStream(fmt.Sprint("observation.", i), finding.OK)
		g.Streams = append(g.Streams, s)
		v.courses[g.Group].Scores[s.Signal] = v.courses[g.Group].Scores["action"]
	}
	d := policyOf(t, v, "policy-0000", "").Group
	if c := drawn(t, d.Chart); len(c.Lines) != plots.MaxLines || d.Chart.Hidden != 35-plots.MaxLines || len(d.Streams) != maxCards || d.Hidden != 35-maxCards {
		t.Errorf("%d lines without %d, %d streams without %d", len(c.Lines), d.Chart.Hidden, len(d.Streams), d.Hidden)
	}
}

func TestPolicyOfSeveralGroups(t *testing.T) {
	v := madeUpFleet(1, someTime)
	calm := v.summaries[0].Groups[0]
	calm.Group = ingest.NewGroup("policy-0000", ingest.Label{Name: "env", Value: `a&b="c"`})
	calm.Streams = []finding.StreamSummary{madeUpStream("return", finding.OK)}
	v.summaries[0].Groups = append([]finding.GroupSummary{calm}, v.summaries[0].Groups...)
	d := policyOf(t, v, "policy-0000", "")
	if d.Group.State != "drift" || len(d.Groups) != 2 || !d.Groups[0].Here || d.Groups[1].Name != `env = a&b="c"` {
		t.Fatalf("%+v shows %s", d.Groups, d.Group.State)
	}
	body := get(consoleOf(v, nil), "/policies/policy-0000"+d.Groups[1].Link).Body.String()
	if !strings.Contains(body, `(3 d ago)`) || strings.Contains(body, "Show this incident") {
		t.Errorf("the other group is shown as %s", body)
	}
}

// A refresh of the page leads to the same group, and the address of a group that is gone does not lead to another one.
func TestPageStaysWithItsGroup(t *testing.T) {
	v := madeUpFleet(1, someTime)
	worse := v.summaries[0].Groups[0]
	v.summaries[0].Groups[0].Streams = []finding.StreamSummary{madeUpStream("return", finding.OK)}
	c := consoleOf(v, nil)
	refresh := policyOf(t, v, "policy-0000", "").Refresh
	worse.Group = ingest.NewGroup("policy-0000", ingest.Label{Name: "env", Value: `b","x"="c`})
	twin := worse
	twin.Group = ingest.NewGroup("policy-0000", ingest.Label{Name: "env", Value: "b"}, ingest.Label{Name: "x", Value: "c"})
	v.summaries[0].Groups = append(v.summaries[0].Groups, worse, twin)
	if body := get(c, "/policies/policy-0000"+refresh).Body.String(); !strings.Contains(body, `class="badge ok">ok</span> <bdi class="label">env = prod-eu`) {
		t.Errorf("the refresh %s gives %s", refresh, body)
	}
	for _, g := range policyOf(t, v, "policy-0000", "").Groups {
		key := must(url.ParseQuery(g.Link[1:])).Get("group")
		if d := policyOf(t, v, "policy-0000", key); d.Group == nil || d.Group.Name != g.Name || d.Refresh != g.Link {
			t.Errorf("%s leads to %+v", g.Link, d.Group)
		}
	}
	w := get(c, "/policies/policy-0000"+groupLink("gone"))
	if body := w.Body.String(); w.Code != http.StatusNotFound || !strings.Contains(body, "Unknown group: this instance has not received any telemetry for it. Choose a group above.") || strings.Contains(body, ">Signals</h2>") ||
		strings.Contains(body, `aria-current="true"`) || strings.Count(body, `class="dot `) != 3 {
		t.Errorf("one that is gone gives %d %s", w.Code, body)
	}
}

// changing is a view with different policies at each call.
type changing struct {
	*madeUp
	calls int
}

func (v *changing) Summaries() []*finding.Summary {
	v.calls++
	if v.calls > 1 {
		return []*finding.Summary{{Policy: "another"}}
	}
	return v.madeUp.Summaries()
}

// Data that is published while a page is made is not mixed with earlier data.
func TestPoliciesThatChangeMeanwhile(t *testing.T) {
	for _, path := range []string{"/", "/policies/policy-0001"} {
		w := get(consoleOf(&changing{madeUp: madeUpFleet(2, someTime)}, nil), path)
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "policy-0001") || strings.Contains(w.Body.String(), "another") {
			t.Errorf("%s gives %d %s", path, w.Code, w.Body)
		}
	}
	v := &madeUp{summaries: []*finding.Summary{{Policy: "bare"}}}
	if w := get(consoleOf(v, nil), "/policies/bare"); w.Code != http.StatusNotFound {
		t.Errorf("a policy without groups gives %d %s", w.Code, w.Body)
	}
}

func TestUnknownPolicyAndLedgerThatFails(t *testing.T) {
	v := madeUpFleet(1, someTime)
	w := get(consoleOf(v, nil), "/policies/none")
	if w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "<h2>Unknown policy</h2>") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	body := get(consoleOf(v, &madeUpDesk{err: errors.New("/secret: disk full")}), "/policies/policy-0000").Body.String()
	if !strings.Contains(body, "the ledger cannot be read") || strings.Contains(body, "/secret") {
		t.Errorf("%s", body)
	}
}

// hostile are names that telemetry may contain.
var hostile = []string{
	"a/b", "/", "a%2Fb", "..", ".", "~", "~.", "", "a b+c", "?q=1#x", `"><script>alert(1)</script><img src=x onerror=alert(1)>`, "{{.}}", "line\nfeed\ttab", "\x00",
	"\u202egnihton\u202c", "\u202e", "\u200b", strings.Repeat("x", 256), "\xff\xfe not text", "javascript:alert(1)", "//evil.example/", `\\evil`, "&amp;", "ä/日本", "' onclick='x",
}

var links = regexp.MustCompile(`<th scope="row"><a href="([^"]*)"><bdi>[^<]+</bdi>`)

// hostileWorld returns a policy that drifts, in which everything has the same name.
func hostileWorld(name string) *madeUp {
	v := madeUpFleet(0, someTime)
	v.addPolicy(name, finding.Drift, someTime)
	g := &v.summaries[0].Groups[0]
	g.Versions = ingest.Versions{Policy: name, Env: name, Reward: name}
	for i := range g.Streams {
		s := &g.Streams[i]
		s.Notes, s.Dropped[0].Branch = []string{name}, name
	}
	v.courses[g.Group].Scores[name] = v.courses[g.Group].Scores["return"]
	g.Streams[0].Signal, g.ActionShare[0].Action = name, name
	v.incidents[0].ID, v.incidents[0].Alarms[0].Signal, v.incidents[0].Alarms[0].Effect.Quantity = name, name, name
	v.faults = nil
	return v
}

// Every name is shown as text, and its link leads to its page in a browser.
func TestHostileNames(t *testing.T) {
	for _, name := range hostile {
		c := consoleOf(hostileWorld(name), nil)
		fleet := get(c, "/").Body.String()
		inert(t, name, fleet)
		found := links.FindStringSubmatch(fleet)
		if found == nil {
			t.Errorf("%q has no link in %s", name, fleet)
			continue
		}
		at, err := url.Parse("http://localhost/" + strings.TrimPrefix(html.UnescapeString(found[1]), "./"))
		if err != nil || strings.Contains(at.EscapedPath(), "/../") || strings.HasSuffix(at.EscapedPath(), "/.") || strings.HasSuffix(at.EscapedPath(), "/..") {
			t.Errorf("%q: the link %s is resolved to another: %v", name, found[1], err)
			continue
		}
		w := get(c, at.RequestURI())
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "Show this incident") {
			t.Errorf("%q: %s gives %d", name, at, w.Code)
		}
		inert(t, name, w.Body.String())
	}
}

var (
	isolated = regexp.MustCompile(`<bdi[^>]*>[^<]*</bdi>`)
	blocks   = regexp.MustCompile(`</?(?:br|td|th|tr|p|li|dt|dd|h1|h2|h3|div|section|nav|title|text)(?: [^>]*)?>`)
	tags     = regexp.MustCompile(`<[^>]*>`)
	word     = regexp.MustCompile(`[A-Za-z]{2}`)
)

// straight fails the test if a name that reverses the writing direction, and is not isolated, is in one line with other
// text.
func straight(t *testing.T, what, page string) {
	t.Helper()
	for _, block := range blocks.Split(isolated.ReplaceAllString(page, "…"), -1) {
		if text := tags.ReplaceAllString(block, " "); strings.Contains(text, "\u202e") && word.MatchString(text) {
			t.Errorf("%s: a name turns round %q", what, strings.TrimSpace(text))
		}
	}
}

func TestNamesDoNotTurnTheWritingRound(t *testing.T) {
	const name = "\u202e1"
	w := hostileWorld(name)
	w.summaries[0].Groups = append(w.summaries[0].Groups, w.summaries[0].Groups[0])
	w.summaries[0].Groups[1].Group = ingest.NewGroup(name, ingest.Label{Name: name, Value: "2"})
	w.addPolicy(name+"2", finding.TelemetryFault, someTime)
	w.faults[0].Streams = map[string]string{name: name}
	ledger := someDesk()
	q := &ledger.requests[0]
	q.Policy, q.Recipe, q.Parent, q.Reason, q.Trigger, q.Target = name, name, name, name, name, name
	ledger.history[q.ID][0].By, ledger.history[q.ID][0].Reason = name, name
	c := consoleOf(w, ledger)
	for _, path := range []string{"/", "/" + policyLink(name), "/incidents", "/" + incidentLink(name), "/retrain", "/retrain/" + q.ID} {
		page := get(c, path)
		if page.Code != http.StatusOK || !strings.Contains(page.Body.String(), "<bdi>\ufffd1") {
			t.Errorf("%s gives %d without the name: %s", path, page.Code, page.Body)
		}
		straight(t, path, page.Body.String())
	}
}

func TestVisible(t *testing.T) {
	for name, want := range map[string]string{
		"": `""`, "  ": `"  "`, "\u200b": "\ufffd", "\u202e": "\ufffd", "a\u202eb": "a\ufffdb", "ä b/日本": "ä b/日本", "\xff": "\ufffd", "\t": `"\t"`,
	} {
		if got := visible(name); got != want {
			t.Errorf("%q is shown as %q, want %q", name, got, want)
		}
	}
}

var (
	handlers = regexp.MustCompile(`<[^>"]*("[^"]*"[^>"]*)*\son[a-z]+=`)
	inlined  = regexp.MustCompile(`<[^>"]*("[^"]*"[^>"]*)*\sstyle=|<script(>| [^s])|<style|<img src=x|href="(javascript|//)`)
)

// inert fails the test if a page contains an inline script, style or handler, none of which the security policy allows.
func inert(t *testing.T, name, page string) {
	t.Helper()
	for _, pattern := range []*regexp.Regexp{handlers, inlined} {
		if at := pattern.FindString(page); at != "" {
			t.Errorf("%q: the page holds %s", name, at)
		}
	}
	if strings.Contains(page, "ZgotmplZ") {
		t.Errorf("%q: a value did not get through: %s", name, page)
	}
}

func FuzzSegment(f *testing.F) {
	for _, name := range hostile {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		var got *string
		mux := http.NewServeMux()
		mux.HandleFunc("GET /policies/{policy}", func(_ http.ResponseWriter, r *http.Request) { got = new(named(r, "policy")) })
		r, err := http.NewRequest(http.MethodGet, "http://localhost/"+policyLink(name), nil)
		if err != nil {
			t.Fatal(err)
		}
		mux.ServeHTTP(nil, r)
		if got == nil || *got != name {
			t.Errorf("%q comes back as %v", name, got)
		}
	})
}

// Cards keep their places whatever the scores are: drifting signals come first, and then signals in the order of
// headlines.
func TestCardsKeepTheirPlaces(t *testing.T) {
	names := []string{"outcome.click", "reward", "return", "outcome.sale", "action", "episode_length"}
	for range len(names) {
		names = append(names[1:], names[0])
		v := madeUpFleet(1, someTime)
		var streams []finding.StreamSummary
		for i, name := range names {
			state := finding.OK
			if name == "reward" || name == "outcome.click" {
				state = finding.Drift
			}
			s := madeUpStream(name, state)
			s.Detectors = []finding.DetectorSummary{{Detector: finding.DetectorLocation, Score: float64(i) / 10, Threshold: 1}}
			streams = append(streams, s)
		}
		v.summaries[0].Groups[0].Streams = streams
		var got []string
		for _, card := range policyOf(t, v, "policy-0000", "").Group.Streams {
			got = append(got, card.Signal)
		}
		if want := []string{"reward", "outcome.click", "return", "outcome.sale", "action", "episode_length"}; !slices.Equal(got, want) {
			t.Errorf("of %q: %q, want %q", names, got, want)
		}
	}
}
