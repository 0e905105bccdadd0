package alarmmetrics

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/fault"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// The text equals the output of a registry for any names and values of labels.
func TestTextOfAlarmsIsWhatARegistryExports(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	odd := ingest.NewGroup("a \"policy\"\n\\ \xff\xfe of", ingest.Label{Name: "label_a.b", Value: "\xff"}, ingest.Label{Name: "label_a_b", Value: ""})
	m, b := registered(reg, func() []ingest.Group { return []ingest.Group{odd, ingest.NewGroup("ranker")} }), alerts.NewTracker()
	other := drift("return", 100)
	other.Group = odd
	m.Update(applied(b, drift("return", 100), drift("reward", 101), other, faulty("reward", fault.Silent, 102)))
	text := alarmsText(t, m, false)
	compare(t, reg, text)
	for _, name := range []string{alerts.MetricAlarms, alerts.MetricIncidentsOpened, alerts.MetricIncidentsClosed, alerts.MetricIncidentOnset} {
		if !strings.Contains(text, "\n"+name+"{") {
			t.Errorf("without %s: %s", name, text)
		}
	}
	open := alarmsText(t, m, true)
	if want := "# TYPE rewardwatch_incidents_opened counter\nrewardwatch_incidents_opened_total{"; !strings.Contains(open, want) {
		t.Errorf("OpenMetrics without %q: %s", want, open)
	}
}

func alarmsText(t *testing.T, m *Metrics, openMetrics bool) string {
	t.Helper()
	var b strings.Builder
	if err := m.WriteText(&b, openMetrics); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// BenchmarkScrapeOfAFleet scrapes the alarms of 20,000 groups without alarms, with a registry and as text.
func BenchmarkScrapeOfAFleet(b *testing.B) {
	groups := make([]ingest.Group, 20_000)
	for i := range groups {
		groups[i] = ingest.NewGroup(fmt.Sprintf("policy-%03d", i%1000), ingest.Label{Name: "env", Value: fmt.Sprintf("prod-%d", i/1000)})
	}
	reg := prometheus.NewRegistry()
	m := registered(reg, func() []ingest.Group { return groups })
	var out bytes.Buffer
	b.Run("registry", func(b *testing.B) {
		for b.Loop() {
			out.Reset()
			families, err := reg.Gather()
			if err != nil {
				b.Fatal(err)
			}
			encoder := expfmt.NewEncoder(&out, expfmt.NewFormat(expfmt.TypeTextPlain))
			for _, f := range families {
				if err := encoder.Encode(f); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("text", func(b *testing.B) {
		for b.Loop() {
			out.Reset()
			if err := m.WriteText(&out, false); err != nil {
				b.Fatal(err)
			}
		}
	})
}
