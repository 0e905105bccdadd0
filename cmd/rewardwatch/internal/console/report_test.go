package console

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/history"
	"github.com/rewardwatch/rewardwatch/ingest"
)

func reportText(t *testing.T, r Report) string {
	t.Helper()
	r.Story = func(a alerts.Alarm) []words.Fact { return []words.Fact{{"alarm", a.ID}} }
	r.Causes = func(i alerts.Incident) []words.Fact { return []words.Fact{{"cause", string(i.Cause)}} }
	if r.Past == nil {
		r.Past = func(ingest.Group) history.Record { return history.Record{} }
	}
	var b strings.Builder
	if err := WriteReport(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestReportOfNothing(t *testing.T) {
	if page := reportText(t, Report{}); !strings.Contains(page, "<p>No alarms.</p>") {
		t.Error(page)
	}
}

// However much drifted, a browser can show it; what is left out is said.
func TestReportIsBounded(t *testing.T) {
	var r Report
	group := ingest.NewGroup("p")
	for n := range maxReportIncidents + 3 {
		i := alerts.Incident{ID: fmt.Sprintf("i%d", n), Group: group, Omitted: 2}
		for k := range maxReportAlarms + 5 {
			i.Alarms = append(i.Alarms, alerts.Alarm{ID: fmt.Sprintf("a%d-%d", n, k), Group: group, Signal: "return"})
		}
		r.Incidents = append(r.Incidents, i)
	}
	page := reportText(t, r)
	for want, times := range map[string]int{
		"<article": maxReportIncidents * maxReportAlarms, "3 older incidents not shown": 1,
		"7 alarms not shown": maxReportIncidents, `id="incident-i2"`: 0, `id="incident-i3"`: 1,
	} {
		if n := strings.Count(page, want); n != times {
			t.Errorf("%q stands there %d times, want %d", want, n, times)
		}
	}
}

// The report draws the signal of an alarm over time, with the band of the baseline and the onset.
func TestReportDrawsThePast(t *testing.T) {
	group := ingest.NewGroup("p")
	a := alerts.Alarm{
		ID: "a1", Group: group, Signal: "return", Onset: finding.UnitRef{Ordinal: 160, TS: someTime.UnixNano() - 80*15e9},
		Effect: finding.Effect{Quantity: "return", BaselineMean: 10.5, BaselineSD: .5},
	}
	r := Report{
		Incidents: []alerts.Incident{{ID: "i", Group: group, Alarms: []alerts.Alarm{a}}},
		Past:      func(ingest.Group) history.Record { return somePast(true) },
	}
	page := reportText(t, r)
	for _, want := range []string{`class="past-course"`, `<rect class="base" x="0" y="6.8" width="640" height="34.1"/>`, `<line class="onset"`, "<title>onset of return</title>", `text-anchor="middle">time (UTC)</text>`, `text-anchor="middle">mean return</text>`, words.Stamp(someTime.Add(-15 * time.Second))} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s in\n%s", want, page)
		}
	}
	p := past{record: somePast(false)}
	course := p.course("return", nil, nil)
	plot := plotPast(course)
	low, high := course.limits() // the return falls from 10.5 ± 0.5 to 7.5 ± 0.5
	last := fmt.Sprintf(" 640.0,%.1f", scoreHeight*(high-7.5)/(high-low))
	if plot.BaseY != "" || low > 7 || low < 6 || high < 11 || high > 12 || plot.Last != "unit 240" || plot.X != "units" || plot.Y != "mean return" || !strings.HasSuffix(plot.Mean, last) {
		t.Errorf("got %+v", plot)
	}
	if plotPast(p.course("none", nil, nil)) != nil {
		t.Error("a signal without values is drawn")
	}
}

func TestPlotScore(t *testing.T) {
	nan := float32(math.NaN())
	c := Course{
		At:      []Moment{{Unit: 1}, {Unit: 2}, {Unit: 3}, {Unit: 4}, {Unit: 5}},
		Scores:  map[string][]float32{"return": {.5, nan, 1, 4, 2}, "length": {nan, nan, nan, nan, nan}},
		Changes: []Change{{Moment: Moment{Unit: 3}, To: ingest.Versions{Policy: "v2"}}},
	}
	p := plotScore(c, finding.UnitName{}, "return", []alerts.Alarm{{ID: "a1", Onset: finding.UnitRef{Ordinal: 2}, At: finding.UnitRef{Ordinal: 3}}})
	if got := strings.Join(p.Lines, " | "); got != "0.0,133.7 | 320.0,117.4 480.0,19.6 640.0,84.8" {
		t.Errorf("lines %s", got)
	}
	if p.Threshold != "117.4" || p.First != "unit 0" || p.Last != "unit 4" || p.Top != "4" || p.TopY != "19.6" || p.X != "units" {
		t.Errorf("%+v", p)
	}
	if a := p.Alarms[0]; a.X != "320.0" || a.Width != "160.0" || !strings.HasPrefix(a.Title, "alarm a1: since unit 2") {
		t.Errorf("alarm %+v", a)
	}
	if v := p.Versions[0]; v.X != "320.0" || v.Title != "now policy v2" {
		t.Errorf("version %+v", v)
	}
	for _, signal := range []string{"length", "reward"} {
		if plotScore(c, finding.UnitName{}, signal, nil) != nil {
			t.Errorf("%s has a plot", signal)
		}
	}
	if p := plotScore(Course{At: c.At[:1], Scores: map[string][]float32{"return": {.5}}}, finding.UnitName{}, "return", nil); p.Lines[0] != "320.0,84.8" {
		t.Errorf("a single point is at %s", p.Lines[0])
	}
}

func TestPlotHistogram(t *testing.T) {
	p := plotHistogram("return", finding.Episodes(), &finding.Histogram{Low: -10, High: 10, Baseline: []int{1, 3}, Current: []int{1, 0}})
	want := histogramPlot{
		Title: "return", Baseline: "0.0,150.0 0.0,112.5 240.0,112.5 240.0,37.5 480.0,37.5 480.0,150.0",
		Current:       "0.0,150.0 0.0,0.0 240.0,0.0 240.0,150.0 480.0,150.0 480.0,150.0",
		BaselineUnits: 4, CurrentUnits: 1, X: "return", Y: "share of episodes",
		Edges:  []edge{{X: "0.0", Text: "-10"}, {X: "240.0", Text: "0"}, {X: "480.0", Text: "10"}},
		Levels: []edge{{Y: 150, Text: "0 %"}, {Y: 75, Text: "50 %"}, {Y: 0, Text: "100 %"}},
	}
	if !reflect.DeepEqual(*p, want) {
		t.Errorf("got %+v", *p)
	}
	wide := plotHistogram("return", finding.Episodes(), &finding.Histogram{Low: 0, High: 10, Baseline: make([]int, 10), Current: []int{9: 8}})
	var edges []string // of the bins, which are 48 wide and of one unit each
	for _, e := range wide.Edges {
		edges = append(edges, e.X+" "+e.Text)
	}
	if got := strings.Join(edges, ", "); got != "0.0 0, 96.0 2, 240.0 5, 336.0 7, 480.0 10" {
		t.Errorf("edges %s", got)
	}
	if plotHistogram("return", finding.Episodes(), nil) != nil {
		t.Error("nothing has a plot")
	}
}
