package plots

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/history"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// someTime is when the made-up past ends.
var someTime = time.Date(2026, 11, 20, 10, 0, 5, 0, time.UTC)

// somePast is an hour in which the return falls from 10 to 7 after 40 minutes. Without a clock, times are 0.
func somePast(clock bool) history.Record {
	h := &history.History{}
	for i := range int64(240) {
		ts := someTime.Add(time.Duration(i-240) * 15 * time.Second).UnixNano()
		if !clock {
			ts = 0
		}
		h.Begin(i, ts)
		x := 10.
		if i >= 160 {
			x = 7
		}
		h.Add("return", x+float64(i%2))
	}
	return h.Record()
}

func TestSignalsAreDrawnAgainstTheirBaseline(t *testing.T) {
	for _, clock := range []bool{true, false} {
		p := Past{Record: somePast(clock), Unit: finding.Episodes(), Changes: []Change{{Moment{161, someTime.UnixNano()}, ingest.Versions{Env: "41"}, ingest.Versions{Env: "42"}}}}
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
		if want := "Now 7.5: rolling mean of the last 20 episodes. Baseline 10.5 ± 0.5 (mean ± SD, gray)."; chart.Now != want {
			t.Errorf("clock %v: %q, want %q", clock, chart.Now, want)
		}
		if c := p.Chart("return", nil, nil); !strings.HasSuffix(c.Now, "The baseline of this signal is unknown.") {
			t.Errorf("without a baseline: %q", c.Now)
		}
		if p.Chart("none", nil, nil) != nil {
			t.Error("a signal without values is drawn")
		}
	}
}

// Without a clock, the axis counts units. A signal without values is not drawn.
func TestDrawing(t *testing.T) {
	p := Past{Record: somePast(false)}
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
