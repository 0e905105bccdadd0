package alarmmetrics

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/fault"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

func TestMetricsFollowChanges(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m, b := registered(reg, nobody), alerts.NewTracker()
	other := drift("observation.x", 100)
	other.Group = ingest.NewGroup("ranker", ingest.Label{Name: "label_a.b", Value: "x"}, ingest.Label{Name: "label_a_b", Value: "y"})
	m.Update(applied(b, drift("return", 100), drift("reward", 101), other, faulty("reward", fault.Silent, 102)))
	compare(t, reg, `
# HELP rewardwatch_alarms Firing alarms that are not muted.
# TYPE rewardwatch_alarms gauge
rewardwatch_alarms{env="prod",policy="checkout",severity="critical"} 2
rewardwatch_alarms{env="prod",policy="checkout",severity="info"} 0
rewardwatch_alarms{env="prod",policy="checkout",severity="warning"} 0
rewardwatch_alarms{label_a_b="x",label_a_b_="y",policy="ranker",severity="critical"} 0
rewardwatch_alarms{label_a_b="x",label_a_b_="y",policy="ranker",severity="info"} 0
rewardwatch_alarms{label_a_b="x",label_a_b_="y",policy="ranker",severity="warning"} 1
# HELP rewardwatch_incident_alert_state State of the alert for an open incident: 0 not pushed and left to Prometheus rules, 1 not accepted by any Alertmanager, 2 accepted, 3 muted.
# TYPE rewardwatch_incident_alert_state gauge
rewardwatch_incident_alert_state{env="prod",incident="8913315e1179a501",policy="checkout"} 0
rewardwatch_incident_alert_state{incident="9d0f687e8d548697",label_a_b="x",label_a_b_="y",policy="ranker"} 0
# HELP rewardwatch_incident_onset_timestamp_seconds Onset of an open incident, in Unix time.
# TYPE rewardwatch_incident_onset_timestamp_seconds gauge
rewardwatch_incident_onset_timestamp_seconds{cause="unknown",env="prod",incident="8913315e1179a501",policy="checkout",severity="critical"} 1.800000092e+09
rewardwatch_incident_onset_timestamp_seconds{cause="unknown",incident="9d0f687e8d548697",label_a_b="x",label_a_b_="y",policy="ranker",severity="warning"} 1.800000092e+09
# HELP rewardwatch_incident_version_info Versions that changed at the onset of an open incident, and the versions since then.
# TYPE rewardwatch_incident_version_info gauge
rewardwatch_incident_version_info{changed="none",env="prod",env_version="41",incident="8913315e1179a501",policy="checkout",policy_version="p1",reward_version="r7"} 1
rewardwatch_incident_version_info{changed="none",env_version="41",incident="9d0f687e8d548697",label_a_b="x",label_a_b_="y",policy="ranker",policy_version="p1",reward_version="r7"} 1
# HELP rewardwatch_incidents_closed_total Number of incidents closed, by cause.
# TYPE rewardwatch_incidents_closed_total counter
rewardwatch_incidents_closed_total{cause="environment",env="prod",policy="checkout"} 0
rewardwatch_incidents_closed_total{cause="observations",env="prod",policy="checkout"} 0
rewardwatch_incidents_closed_total{cause="policy",env="prod",policy="checkout"} 0
rewardwatch_incidents_closed_total{cause="reward_function",env="prod",policy="checkout"} 0
rewardwatch_incidents_closed_total{cause="reward_hacking",env="prod",policy="checkout"} 0
rewardwatch_incidents_closed_total{cause="telemetry",env="prod",policy="checkout"} 0
rewardwatch_incidents_closed_total{cause="unknown",env="prod",policy="checkout"} 0
rewardwatch_incidents_closed_total{cause="environment",label_a_b="x",label_a_b_="y",policy="ranker"} 0
rewardwatch_incidents_closed_total{cause="observations",label_a_b="x",label_a_b_="y",policy="ranker"} 0
rewardwatch_incidents_closed_total{cause="policy",label_a_b="x",label_a_b_="y",policy="ranker"} 0
rewardwatch_incidents_closed_total{cause="reward_function",label_a_b="x",label_a_b_="y",policy="ranker"} 0
rewardwatch_incidents_closed_total{cause="reward_hacking",label_a_b="x",label_a_b_="y",policy="ranker"} 0
rewardwatch_incidents_closed_total{cause="telemetry",label_a_b="x",label_a_b_="y",policy="ranker"} 0
rewardwatch_incidents_closed_total{cause="unknown",label_a_b="x",label_a_b_="y",policy="ranker"} 0
# HELP rewardwatch_incidents_opened_total Number of incidents opened.
# TYPE rewardwatch_incidents_opened_total counter
rewardwatch_incidents_opened_total{env="prod",policy="checkout"} 1
rewardwatch_incidents_opened_total{label_a_b="x",label_a_b_="y",policy="ranker"} 1
`)
	m.Update(applied(b, goes("return", finding.Drift, finding.OK, 150), quiet(171), driftAfter("return", 300, "policy")))
	compare(t, reg, `
# HELP rewardwatch_alarms Firing alarms that are not muted.
# TYPE rewardwatch_alarms gauge
rewardwatch_alarms{env="prod",policy="checkout",severity="critical"} 1
rewardwatch_alarms{env="prod",policy="checkout",severity="info"} 0
rewardwatch_alarms{env="prod",policy="checkout",severity="warning"} 0
rewardwatch_alarms{label_a_b="x",label_a_b_="y",policy="ranker",severity="critical"} 0
rewardwatch_alarms{label_a_b="x",label_a_b_="y",policy="ranker",severity="info"} 0
rewardwatch_alarms{label_a_b="x",label_a_b_="y",policy="ranker",severity="warning"} 1
# HELP rewardwatch_incident_alert_state State of the alert for an open incident: 0 not pushed and left to Prometheus rules, 1 not accepted by any Alertmanager, 2 accepted, 3 muted.
# TYPE rewardwatch_incident_alert_state gauge
rewardwatch_incident_alert_state{env="prod",incident="13c6a0c6eac70d26",policy="checkout"} 0
rewardwatch_incident_alert_state{incident="9d0f687e8d548697",label_a_b="x",label_a_b_="y",policy="ranker"} 0
# HELP rewardwatch_incident_onset_timestamp_seconds Onset of an open incident, in Unix time.
# TYPE rewardwatch_incident_onset_timestamp_seconds gauge
rewardwatch_incident_onset_timestamp_seconds{cause="policy",env="prod",incident="13c6a0c6eac70d26",policy="checkout",severity="critical"} 1.800000292e+09
rewardwatch_incident_onset_timestamp_seconds{cause="unknown",incident="9d0f687e8d548697",label_a_b="x",label_a_b_="y",policy="ranker",severity="warning"} 1.800000092e+09
# HELP rewardwatch_incident_version_info Versions that changed at the onset of an open incident, and the versions since then.
# TYPE rewardwatch_incident_version_info gauge
rewardwatch_incident_version_info{changed="policy_version p1 → p2, env_version 41 → 42, reward_version r7 → r8",env="prod",env_version="42",incident="13c6a0c6eac70d26",policy="checkout",policy_version="p2",reward_version="r8"} 1
rewardwatch_incident_version_info{changed="none",env_version="41",incident="9d0f687e8d548697",label_a_b="x",label_a_b_="y",policy="ranker",policy_version="p1",reward_version="r7"} 1
# HELP rewardwatch_incidents_closed_total Number of incidents closed, by cause.
# TYPE rewardwatch_incidents_closed_total counter
rewardwatch_incidents_closed_total{cause="environment",env="prod",policy="checkout"} 0
rewardwatch_incidents_closed_total{cause="observations",env="prod",policy="checkout"} 0
rewardwatch_incidents_closed_total{cause="policy",env="prod",policy="checkout"} 0
rewardwatch_incidents_closed_total{cause="reward_function",env="prod",policy="checkout"} 0
rewardwatch_incidents_closed_total{cause="reward_hacking",env="prod",policy="checkout"} 0
rewardwatch_incidents_closed_total{cause="telemetry",env="prod",policy="checkout"} 0
rewardwatch_incidents_closed_total{cause="unknown",env="prod",policy="checkout"} 1
rewardwatch_incidents_closed_total{cause="environment",label_a_b="x",label_a_b_="y",policy="ranker"} 0
rewardwatch_incidents_closed_total{cause="observations",label_a_b="x",label_a_b_="y",policy="ranker"} 0
rewardwatch_incidents_closed_total{cause="policy",label_a_b="x",label_a_b_="y",policy="ranker"} 0
rewardwatch_incidents_closed_total{cause="reward_function",label_a_b="x",label_a_b_="y",policy="ranker"} 0
rewardwatch_incidents_closed_total{cause="reward_hacking",label_a_b="x",label_a_b_="y",policy="ranker"} 0
rewardwatch_incidents_closed_total{cause="telemetry",label_a_b="x",label_a_b_="y",policy="ranker"} 0
rewardwatch_incidents_closed_total{cause="unknown",label_a_b="x",label_a_b_="y",policy="ranker"} 0
# HELP rewardwatch_incidents_opened_total Number of incidents opened.
# TYPE rewardwatch_incidents_opened_total counter
rewardwatch_incidents_opened_total{env="prod",policy="checkout"} 2
rewardwatch_incidents_opened_total{label_a_b="x",label_a_b_="y",policy="ranker"} 1
`)
}

func TestMetricsAfterARestart(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	b := alerts.NewTracker()
	applied(b, drift("return", 100), quiet(150), drift("return", 300), drift("reward", 301))
	registered(reg, nobody).Restore(b.Incidents())
	compare(t, reg, `
# HELP rewardwatch_alarms Firing alarms that are not muted.
# TYPE rewardwatch_alarms gauge
rewardwatch_alarms{env="prod",policy="checkout",severity="critical"} 2
rewardwatch_alarms{env="prod",policy="checkout",severity="info"} 0
rewardwatch_alarms{env="prod",policy="checkout",severity="warning"} 0
# HELP rewardwatch_incident_alert_state State of the alert for an open incident: 0 not pushed and left to Prometheus rules, 1 not accepted by any Alertmanager, 2 accepted, 3 muted.
# TYPE rewardwatch_incident_alert_state gauge
rewardwatch_incident_alert_state{env="prod",incident="13c6a0c6eac70d26",policy="checkout"} 0
# HELP rewardwatch_incident_onset_timestamp_seconds Onset of an open incident, in Unix time.
# TYPE rewardwatch_incident_onset_timestamp_seconds gauge
rewardwatch_incident_onset_timestamp_seconds{cause="unknown",env="prod",incident="13c6a0c6eac70d26",policy="checkout",severity="critical"} 1.800000292e+09
# HELP rewardwatch_incident_version_info Versions that changed at the onset of an open incident, and the versions since then.
# TYPE rewardwatch_incident_version_info gauge
rewardwatch_incident_version_info{changed="none",env="prod",env_version="41",incident="13c6a0c6eac70d26",policy="checkout",policy_version="p1",reward_version="r7"} 1
# HELP rewardwatch_incidents_closed_total Number of incidents closed, by cause.
# TYPE rewardwatch_incidents_closed_total counter
rewardwatch_incidents_closed_total{cause="environment",env="prod",policy="checkout"} 0
rewardwatch_incidents_closed_total{cause="observations",env="prod",policy="checkout"} 0
rewardwatch_incidents_closed_total{cause="policy",env="prod",policy="checkout"} 0
rewardwatch_incidents_closed_total{cause="reward_function",env="prod",policy="checkout"} 0
rewardwatch_incidents_closed_total{cause="reward_hacking",env="prod",policy="checkout"} 0
rewardwatch_incidents_closed_total{cause="telemetry",env="prod",policy="checkout"} 0
rewardwatch_incidents_closed_total{cause="unknown",env="prod",policy="checkout"} 0
`)
}

// registered returns metrics that are registered with a registry.
func registered(reg prometheus.Registerer, groups func() []ingest.Group) *Metrics {
	m := New(groups, byRules)
	reg.MustRegister(m)
	return m
}

func compare(t *testing.T, g prometheus.Gatherer, want string) {
	t.Helper()
	if err := testutil.GatherAndCompare(g, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func nobody() []ingest.Group { return nil }

// A counter that first appears with value 1 has no increase that a query could see.
func TestMetricsShowWatchedGroupsBeforeTheirFirstIncident(t *testing.T) {
	reg := prometheus.NewRegistry()
	registered(reg, func() []ingest.Group { return []ingest.Group{ingest.NewGroup("ranker")} })
	compare(t, reg, `
# HELP rewardwatch_alarms Firing alarms that are not muted.
# TYPE rewardwatch_alarms gauge
rewardwatch_alarms{policy="ranker",severity="critical"} 0
# HELP rewardwatch_incidents_opened_total Number of incidents opened.
# TYPE rewardwatch_incidents_opened_total counter
rewardwatch_incidents_opened_total{policy="ranker"} 0
`)
}

func byRules(string) alerts.Delivery { return alerts.Delivery{} }
