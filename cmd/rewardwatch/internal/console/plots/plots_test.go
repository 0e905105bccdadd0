package plots

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

func TestPlotScore(t *testing.T) {
	nan := float32(math.NaN())
	c := Course{
		At:      []Moment{{Unit: 1}, {Unit: 2}, {Unit: 3}, {Unit: 4}, {Unit: 5}},
		Scores:  map[string][]float32{"return": {.5, nan, 1, 4, 2}, "length": {nan, nan, nan, nan, nan}},
		Changes: []Change{{Moment: Moment{Unit: 3}, To: ingest.Versions{Policy: "v2"}}},
	}
	p := ScoreOf(c, finding.UnitName{}, "return", []alerts.Alarm{{ID: "a1", Onset: finding.UnitRef{Ordinal: 2}, At: finding.UnitRef{Ordinal: 3}}})
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
		if ScoreOf(c, finding.UnitName{}, signal, nil) != nil {
			t.Errorf("%s has a plot", signal)
		}
	}
	if p := ScoreOf(Course{At: c.At[:1], Scores: map[string][]float32{"return": {.5}}}, finding.UnitName{}, "return", nil); p.Lines[0] != "320.0,84.8" {
		t.Errorf("a single point is at %s", p.Lines[0])
	}
}

func TestPlotHistogram(t *testing.T) {
	p := HistogramOf("return", finding.Episodes(), &finding.Histogram{Low: -10, High: 10, Baseline: []int{1, 3}, Current: []int{1, 0}})
	want := Histogram{
		Title: "return", Baseline: "0.0,150.0 0.0,112.5 240.0,112.5 240.0,37.5 480.0,37.5 480.0,150.0",
		Current:       "0.0,150.0 0.0,0.0 240.0,0.0 240.0,150.0 480.0,150.0 480.0,150.0",
		BaselineUnits: 4, CurrentUnits: 1, X: "return", Y: "share of episodes",
		Edges:  []edge{{X: "0.0", Text: "-10"}, {X: "240.0", Text: "0"}, {X: "480.0", Text: "10"}},
		Levels: []edge{{Y: 150, Text: "0%"}, {Y: 75, Text: "50%"}, {Y: 0, Text: "100%"}},
	}
	if !reflect.DeepEqual(*p, want) {
		t.Errorf("got %+v", *p)
	}
	wide := HistogramOf("return", finding.Episodes(), &finding.Histogram{Low: 0, High: 10, Baseline: make([]int, 10), Current: []int{9: 8}})
	var edges []string // of the bins, which are 48 wide and of one unit each
	for _, e := range wide.Edges {
		edges = append(edges, e.X+" "+e.Text)
	}
	if got := strings.Join(edges, ", "); got != "0.0 0, 96.0 2, 240.0 5, 336.0 7, 480.0 10" {
		t.Errorf("edges %s", got)
	}
	if HistogramOf("return", finding.Episodes(), nil) != nil {
		t.Error("nothing has a plot")
	}
}
