package console

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/history"
	"github.com/rewardwatch/rewardwatch/ingest"
)

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
		p := past{record: somePast(clock), unit: finding.Episodes(), changes: []Change{{Moment{161, someTime.UnixNano()}, ingest.Versions{Env: "41"}, ingest.Versions{Env: "42"}}}}
		incident := &alerts.Incident{Alarms: []alerts.Alarm{{Signal: "return", Resolved: true, Onset: finding.UnitRef{Ordinal: 160, TS: someTime.UnixNano()}}, {Signal: "reward"}}}
		chart := p.chart("return", &level{10.5, .5}, incident)
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
		if c := p.chart("return", nil, nil); !strings.HasSuffix(c.Now, "The baseline of this signal is unknown.") {
			t.Errorf("without a baseline: %q", c.Now)
		}
		if p.chart("none", nil, nil) != nil {
			t.Error("a signal without values is drawn")
		}
	}
}

// The pages of a policy and of an incident have the charts, and do without them if the past cannot be had.
func TestPagesShowThePast(t *testing.T) {
	v := madeUpFleet(1, someTime)
	g := v.summaries[0].Groups[0].Group
	v.past = map[ingest.Group]history.Record{g: somePast(true)}
	for _, path := range []string{"/policies/policy-0000", "/incidents/a1b2"} {
		wants(t, path, get(consoleOf(v, nil), path), http.StatusOK, "Rolling mean of return")
	}
	v.noPast = errors.New("a calibration is running")
	v.past = nil
	for _, path := range []string{"/policies/policy-0000", "/incidents/a1b2"} {
		w := get(consoleOf(v, nil), path)
		if w.Code != http.StatusOK || strings.Contains(w.Body.String(), "Rolling mean of return") {
			t.Errorf("%s gives %d", path, w.Code)
		}
	}
}

// An alarm of the spread of a reward does not know the mean of its baseline: its group does, while that baseline lasts.
func TestBaselineOfAnotherQuantity(t *testing.T) {
	g := ingest.NewGroup("ranker", ingest.Label{Name: "env", Value: "prod"})
	v := &madeUp{summaries: []*finding.Summary{{Policy: "ranker", Groups: []finding.GroupSummary{{
		Group: g, Baseline: finding.BaselineRef{ID: "b1", Units: 500},
		Streams: []finding.StreamSummary{{Signal: "reward", Baseline: finding.Distribution{Units: 500, Mean: .5, SD: .1}}},
	}}}}}
	c := consoleOf(v, nil)
	a := alerts.Alarm{Signal: "reward", Effect: finding.Effect{Quantity: "sd", BaselineMean: .3, BaselineSD: .2}}
	a.Baseline.ID = "b1"
	if got := c.baselineOf(g, &a); got == nil || *got != (level{.5, .1}) {
		t.Errorf("the baseline is %v", got)
	}
	a.Effect.Quantity = "mean"
	if got := c.baselineOf(g, &a); got == nil || *got != (level{.3, .2}) {
		t.Errorf("the baseline of the alarm itself is %v", got)
	}
	a.Effect.Quantity, a.Baseline.ID = "sd", "b0"
	if got := c.baselineOf(g, &a); got != nil {
		t.Errorf("the mean of another baseline is %v", got)
	}
}
