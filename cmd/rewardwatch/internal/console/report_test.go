package console

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
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
	if page := reportText(t, Report{}); !strings.Contains(page, "<p>No incidents.</p>") {
		t.Error(page)
	}
}

// However much has drifted, a browser can show the report, which says what it omits.
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
		"<article": maxReportIncidents * maxReportAlarms, "3 older incidents are not shown": 1,
		"7 more alarms are not shown": maxReportIncidents, `id="incident-i2"`: 0, `id="incident-i3"`: 1,
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
		Past:      func(ingest.Group) history.Record { return testkit.FallingReturn(someTime, true) },
	}
	page := reportText(t, r)
	for _, want := range []string{`class="past-course"`, `<rect class="base" x="0" y="6.8" width="640" height="34.1"/>`, `<line class="onset"`, "<title>onset of return</title>", `text-anchor="middle">time (UTC)</text>`, `text-anchor="middle">mean return</text>`, words.Stamp(someTime.Add(-15 * time.Second))} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s in\n%s", want, page)
		}
	}
}
