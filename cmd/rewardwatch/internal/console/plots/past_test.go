package plots

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/history"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// someTime is the end of the artificial history.
var someTime = time.Date(2026, 11, 20, 10, 0, 5, 0, time.UTC)

func TestSignalsAreDrawnAgainstTheirBaseline(t *testing.T) {
	for _, clock := range []bool{true, false} {
		p := Past{Record: testkit.FallingReturn(someTime, clock), Unit: finding.Episodes(), Changes: []Change{{Moment{161, someTime.UnixNano()}, ingest.Versions{Env: "41"}, ingest.Versions{Env: "42"}}}}
		incident := &alerts.Incident{Alarms: []alerts.Alarm{{Signal: "return", Resolved: true, Onset: finding.UnitRef{Ordinal: 160, TS: someTime.UnixNano()}}, {Signal: "reward"}}}
		chart := p.Chart("return", &Level{10.5, .5}, incident)
		var c courseJSON
		if err := json.Unmarshal([]byte(chart.Data), &c); err != nil {
			t.Fatal(err)
		}
		last := len(c.X) - 1
		if c.Clock != clock || len(c.Lines) != 1 || c.Lines[0].Name != "rolling mean" || *c.Lines[0].Y[0] < 10 || *c.Lines[0].Y[last] != 7.5 ||
			*c.Band.Low[last] != 7 || *c.Band.High[last] != 8 || *c.Baseline != (baselineJSON{10.5, 10, 11}) || c.Titles != (titlesJSON{"episodes", "mean return"}) {
			t.Errorf("clock %v: %s", clock, chart.Data)
		}
		if len(c.Marks) != 2 || c.Marks[0].Text != "onset of return" || c.Marks[1].Text != "environment 42" {
			t.Errorf("clock %v: marks %+v", clock, c.Marks)
		}
		if !strings.Contains(chart.Text, "last 7.5, lowest 7.") || !strings.Contains(chart.Text, "highest 10.5; baseline 10.5 ± 0.5") || !strings.HasPrefix(chart.Row, "█") || !strings.HasSuffix(chart.Row, "▁") {
			t.Errorf("clock %v: %s %s", clock, chart.Row, chart.Text)
		}
		if want := "Mean of the last 20 episodes: 7.5. Baseline (gray): 10.5 ± 0.5 (mean ± SD)."; chart.Latest != want {
			t.Errorf("clock %v: %q, want %q", clock, chart.Latest, want)
		}
		if c := p.Chart("return", nil, nil); !strings.HasSuffix(c.Latest, "No baseline is available.") {
			t.Errorf("without a baseline: %q", c.Latest)
		}
		if p.Chart("none", nil, nil) != nil {
			t.Error("a signal without values is drawn")
		}
	}
}

// The parts of a drawing that show values cover its width without overlaps.
func TestHoversCoverTheDrawing(t *testing.T) {
	p := Past{Record: testkit.FallingReturn(someTime, true), Unit: finding.Episodes()}
	plot := p.Draw("return", nil, nil)
	at := 0.
	for i, h := range plot.Hovers {
		x, width := 0., 0.
		if _, err := fmt.Sscan(h.X+" "+h.Width, &x, &width); err != nil || math.Abs(x-at) > .2 || width <= 0 {
			t.Errorf("part %d: %+v (%v), want one from %g on", i, h, err, at)
		}
		at = x + width
	}
	if math.Abs(at-scoreWidth) > .2 {
		t.Errorf("the parts end at %g of %g", at, float64(scoreWidth))
	}
	if got, want := plot.Hovers[len(plot.Hovers)-1].Title, plot.Last+": 7.5 ± 0.5"; got != want {
		t.Errorf("the last title is %q, want %q", got, want)
	}
}

// Without a clock, the axis counts units. A signal without values is not drawn.
func TestDrawing(t *testing.T) {
	p := Past{Record: testkit.FallingReturn(someTime, false)}
	course := p.course("return", nil, nil)
	plot := draw(course)
	low, high := course.limits() // the return falls from 10.5 ± 0.5 to 7.5 ± 0.5
	last := fmt.Sprintf(" 640.0,%.1f", scoreHeight*(high-7.5)/(high-low))
	if plot.BaseY != "" || low > 7 || low < 6 || high < 11 || high > 12 || plot.Last != "unit 240" || plot.X != "units" || plot.Y != "mean return" || !strings.HasSuffix(plot.Mean, last) {
		t.Errorf("got %+v", plot)
	}
	if p.Draw("none", nil, nil) != nil {
		t.Error("a signal without values is drawn")
	}
}

// Even if a drift began long ago, its chart includes the onset and the signal before it.
func TestOnsetStaysInTheChart(t *testing.T) {
	const every, healthy = 20 * time.Millisecond, 700
	start := someTime.Add(-2 * time.Hour).UnixNano()
	h := &history.History{}
	onset := finding.UnitRef{Ordinal: healthy, TS: start + healthy*int64(every)}
	incident := &alerts.Incident{Alarms: []alerts.Alarm{{Signal: "return", Onset: onset}}}
	n := int64(0)
	for _, after := range []time.Duration{time.Second, time.Minute, 6 * time.Minute, 8 * time.Minute, time.Hour} {
		for ; n < healthy+int64(after/every); n++ {
			h.Begin(n, start+n*int64(every))
			x := 10.
			if n >= healthy {
				x = 7
			}
			h.Add("return", x)
			if n == healthy+20 { // the drift is found
				h.Keep(onset.Ordinal)
			}
		}
		p := Past{Record: h.Record(), Unit: finding.Episodes(), Changes: []Change{{Moment{healthy + 1, onset.TS}, ingest.Versions{Env: "41"}, ingest.Versions{Env: "42"}}}}
		c := p.course("return", &Level{10, .5}, incident)
		if len(c.Marks) != 2 || c.Marks[0].X < c.X[0] || c.Marks[0].Text != "onset of return" || c.Marks[1].Text != "environment 42" {
			t.Errorf("after %s: marks %+v, from %f on", after, c.Marks, c.X[0])
		}
		if first := *c.Lines[0].Y[0]; c.X[0] > float64(start)/1e9+.1 || first != 10 {
			t.Errorf("after %s: the signal was %g at the beginning, %f", after, first, c.X[0])
		}
		before := 0
		for i, y := range c.Lines[0].Y {
			if c.X[i] < c.Marks[0].X && *y == 10 {
				before = i
			}
		}
		if gap := c.Marks[0].X - c.X[before]; gap > 6 {
			t.Errorf("after %s: nothing is known of the last %.0f s before the onset", after, gap)
		}
	}
}

// An onset before the first point is marked at the first point.
func TestOnsetBeforeTheChart(t *testing.T) {
	p := Past{Record: testkit.FallingReturn(someTime, true), Unit: finding.Episodes()}
	incident := &alerts.Incident{Alarms: []alerts.Alarm{{Signal: "return", Onset: finding.UnitRef{TS: someTime.Add(-9 * 24 * time.Hour).UnixNano()}}}}
	if c := p.course("return", nil, incident); len(c.Marks) != 1 || c.Marks[0].X != c.X[0] || c.Marks[0].Text != "onset of return, earlier" {
		t.Errorf("marks %+v", c.Marks)
	}
}
