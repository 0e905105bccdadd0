package alarmmetrics

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

var (
	prod = ingest.NewGroup("checkout", ingest.Label{Name: "env", Value: "prod"})
	noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
)

// unit returns the nth unit of a group.
func unit(n int64) finding.UnitRef {
	return finding.UnitRef{Ordinal: n, Agent: "a-1", Episode: fmt.Sprintf("e-%d", n), TS: 1_800_000_000e9 + n*1e9}
}

// drift returns a finding for a stream that starts to drift at a unit, with the onset 8 units earlier.
func drift(signal string, n int64) finding.Finding { return goes(signal, finding.OK, finding.Drift, n) }

// driftAfter returns a drift after new versions.
func driftAfter(signal string, n int64, changed ...string) finding.Finding {
	f := drift(signal, n)
	f.Changed, f.After = changed, ingest.Versions{Policy: "p2", Env: "42", Reward: "r8"}
	return f
}

// goes returns a finding for a stream that changes its state at a unit.
func goes(signal string, from, to finding.State, n int64) finding.Finding {
	versions := ingest.Versions{Policy: "p1", Env: "41", Reward: "r7"}
	return finding.Finding{
		Kind: finding.StreamChanged, Group: prod, Signal: signal, From: from, To: to, At: unit(n), Onset: unit(n - 8), Score: 1.02,
		Baseline: finding.BaselineRef{ID: "b1", Units: 500}, Before: versions, After: versions,
	}
}

// faulty returns a finding for a stream with a new telemetry fault.
func faulty(signal, rule string, n int64) finding.Finding {
	f := goes(signal, finding.OK, finding.TelemetryFault, n)
	f.Reason = rule
	return f
}

func quiet(n int64) finding.Finding {
	return finding.Finding{Kind: finding.GroupQuiet, Group: prod, At: unit(n)}
}

// applied applies findings to a tracker and returns all changes.
func applied(b *alerts.Tracker, findings ...finding.Finding) []alerts.Change {
	var out []alerts.Change
	for _, f := range findings {
		out = append(out, b.Apply(f)...)
	}
	return out
}

func muteUntil(until time.Time) alerts.Decision {
	return alerts.Decision{Kind: alerts.Muted, By: "alice", Why: "known", At: noon, Until: until}
}

func TestMutedAlarmsAreCountedApart(t *testing.T) {
	reg, b := prometheus.NewPedanticRegistry(), alerts.NewTracker()
	m := registered(reg, func() []ingest.Group { return []ingest.Group{prod} })
	m.Update(applied(b, drift("return", 100), drift("reward", 101)))
	id := b.Incidents()[0].ID
	values := func() (firing, muted string) {
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		firing, muted = "none", "none"
		for _, f := range families {
			switch f.GetName() {
			case alerts.MetricAlarms:
				firing = fmt.Sprint(f.GetMetric()[0].GetGauge().GetValue())
			case alerts.MetricAlarmsMuted:
				muted = fmt.Sprint(f.GetMetric()[0].GetGauge().GetValue())
			}
		}
		return firing, muted
	}
	check := func(when, wantFiring, wantMuted string) {
		t.Helper()
		if firing, muted := values(); firing != wantFiring || muted != wantMuted {
			t.Errorf("%s %s firing and %s muted, want %s and %s", when, firing, muted, wantFiring, wantMuted)
		}
	}
	check("at first", "2", "none")
	m.Update(b.Mute(id, muteUntil(noon.Add(time.Hour))))
	check("muted", "0", "2")
	m.Update(b.EndMutes(noon.Add(time.Hour)))
	check("after it", "2", "none")
	m.Update(b.Mute(id, muteUntil(noon.Add(2*time.Hour))))
	b.End(id, alerts.Decision{Kind: alerts.Accepted, By: "bob", Why: "new prices", At: noon})
	m.Update(applied(b, goes("return", finding.Drift, finding.WarmingUp, 102), goes("reward", finding.Drift, finding.WarmingUp, 102), quiet(102)))
	check("accepted", "0", "none")
}

func TestMetricsTellHowFarAnAlertHasCome(t *testing.T) {
	for _, c := range []struct {
		delivered, want alerts.DeliveryState
		muted           bool
	}{{alerts.ByRules, alerts.ByRules, false}, {alerts.Undelivered, alerts.Undelivered, false}, {alerts.Delivered, alerts.Delivered, false}, {alerts.Delivered, alerts.Silenced, true}} {
		reg := prometheus.NewPedanticRegistry()
		m := New(nobody, func(string) alerts.Delivery { return alerts.Delivery{State: c.delivered} })
		reg.MustRegister(m)
		b := alerts.NewTracker()
		m.Update(applied(b, drift("return", 100)))
		if c.muted {
			m.Update(b.Mute(b.Incidents()[0].ID, muteUntil(noon.Add(time.Hour))))
		}
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, f := range families {
			if f.GetName() == alerts.MetricIncidentAlert {
				found++
				if got := f.GetMetric()[0].GetGauge().GetValue(); got != float64(c.want) {
					t.Errorf("%v, muted %t: %v, want %v", c.delivered, c.muted, got, c.want)
				}
			}
		}
		if found != 1 {
			t.Errorf("%v, muted %t: found %d metrics", c.delivered, c.muted, found)
		}
	}
}

// If the severity of an incident changes, as when an improvement turns into a deterioration, its alarms are counted
// once.
func TestSeverityThatChangesCountsOnce(t *testing.T) {
	m := New(nobody, byRules)
	for _, severity := range []alerts.Severity{alerts.Info, alerts.Critical, alerts.Info} {
		i := alerts.Incident{ID: "i1", Group: prod, Severity: severity, Alarms: []alerts.Alarm{{Group: prod, Signal: "return"}}}
		m.Update([]alerts.Change{{Incident: &i}})
		for _, other := range alerts.Severities() {
			want := 0
			if other == severity {
				want = 1
			}
			if got := m.firing[severityKey{prod, other}]; got != want {
				t.Errorf("%s: %d alarms fire with severity %s, want %d", severity, got, other, want)
			}
		}
	}
}
