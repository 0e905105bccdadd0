package dashboards

import (
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/names"
	"github.com/rewardwatch/rewardwatch/detectors/metrics"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/assemble"
)

// service returns the dashboard of Rewardwatch itself: whether it reads telemetry, keeps up, has saved its state, and
// delivers its alerts.
func service(opts Options) *dashboard.DashboardBuilder {
	s := fleetScope(opts)
	d := frame("Rewardwatch / Service", "Rewardwatch itself: the telemetry that it reads, its state, its memory, and the pages that it sends.",
		serviceUID, s, everything(policyVariable()))
	serviceTelemetry(d, s)
	serviceFreshness(d, s)
	serviceState(d, s)
	serviceMemory(d, s)
	serviceNotifications(d, s)
	return d
}

func serviceTelemetry(d *dashboard.DashboardBuilder, s scope) {
	d.WithRow(dashboard.NewRowBuilder("Telemetry")).
		WithPanel(inColors(lines("Records read", "Telemetry records by what became of them.", "cps",
			query{expr: perSecond(s.service(ingest.MetricEvents), "result"), legend: "{{result}}"}),
			[2]string{"accepted", green}, [2]string{"refused", red})).
		WithPanel(stacked("Dead letters", "Refused records by reason, and those of them that could not even be kept.", "cps",
			query{expr: perSecond(s.service(ingest.MetricDeadLetters), "reason"), legend: "{{reason}}"},
			query{expr: "sum(rate(" + s.service(ingest.MetricDeadLettersLost) + "[$__rate_interval]))", legend: "not kept"})).
		WithPanel(lines("Lag in records", "Records that have not been read yet, by topic and partition.", "short",
			query{expr: "max by (topic, partition) (" + s.service(ingest.MetricLagRecords) + ")", legend: "{{topic}} {{partition}}"}).Min(0)).
		WithPanel(lines("Lag in seconds", "Age of the last record that was read, while there are more to read; absent where telemetry has no clock.", "s",
			query{expr: "max by (topic, partition) (" + s.service(ingest.MetricLagSeconds) + ")", legend: "{{topic}} {{partition}}"}).Min(0)).
		WithPanel(stacked("Episode ends", "Episodes by how they ended. Abandoned ones were dropped unfinished.", "cps",
			query{expr: perSecond(s.service(assemble.MetricEpisodes), "end"), legend: "{{end}}"})).
		WithPanel(lines("Open episodes", "Episodes that have begun and not ended.", "short",
			query{expr: "sum(" + s.service(assemble.MetricOpenEpisodes) + ")", legend: "open"}).Min(0)).
		WithPanel(lines("Records passed over", "Records that are no fault and were not judged: duplicates, late steps and late summaries, tombstones and control records, values of too many signals, and records that retention removed before they were read.", "cps",
			query{expr: perSecond(s.service(assemble.MetricEventsIgnored), "reason"), legend: "{{reason}}"},
			query{expr: perSecond(s.service(ingest.MetricMessagesSkipped), "reason"), legend: "{{reason}}"},
			query{expr: "sum(rate(" + s.service(assemble.MetricSignalsIgnored) + "[$__rate_interval]))", legend: "signal_limit"},
			query{expr: "sum by (topic) (rate(" + s.service(ingest.MetricOffsetGap) + "[$__rate_interval]))", legend: "removed by retention: {{topic}}"})).
		WithPanel(lines("Partitions", "Partitions that are read, those that exist, and reconnections by reason, of each topic.", "short",
			query{expr: "sum by (topic) (" + s.service(ingest.MetricPartitions, `kind="assigned"`) + ")", legend: "{{topic}} assigned"},
			query{expr: "max by (topic) (" + s.service(ingest.MetricPartitions, `kind="existing"`) + ")", legend: "{{topic}} existing"},
			query{expr: counted(s.service(ingest.MetricReconnects), overPoint, "topic", "reason"), legend: "{{topic}} reconnected: {{reason}}"}).Min(0))
}

func serviceState(d *dashboard.DashboardBuilder, s scope) {
	d.WithRow(dashboard.NewRowBuilder("State and limits")).
		WithPanel(lines("Checkpoint age", "Time since the partition that was saved longest ago was saved. What came after it would be read again after a crash.", "s",
			query{expr: "max by (topic) (" + s.service(ingest.MetricCheckpointAge) + ")", legend: "{{topic}}"}).Min(0).Span(third)).
		WithPanel(lines("Checkpoint size", "Bytes last written, by kind.", "bytes",
			query{expr: "sum by (kind) (" + s.service(ingest.MetricCheckpointBytes) + ")", legend: "{{kind}}"}).Min(0).Span(third)).
		WithPanel(lines("Failures and limits", "Checkpoints that could not be written, series left out of the metrics because limits.series was reached, streams not followed because limits.streams was, and a configuration that was refused at the last reload.", "short",
			query{expr: counted(s.service(ingest.MetricCheckpointFailure), overPoint, "kind"), legend: "checkpoint failed: {{kind}}"},
			query{expr: counted(s.service(metrics.MetricSeriesLimitHits), overPoint), legend: "series left out"},
			query{expr: counted(s.service(names.MetricStreamLimitHits), overPoint), legend: "streams not followed"},
			query{expr: "max(1 - " + s.service(names.MetricReloaded) + ")", legend: "configuration refused"}).Min(0).Span(third)).
		WithPanel(lines("Late or not judged", "Late: judged after one of another partition that had ended later. Not judged: of a policy that no entry of policies matches, of a new one beyond limits.streams, or of a policy_version that another one has followed.", "short",
			query{expr: counted(s.service(names.MetricLateUnits), overPoint), legend: "late"},
			query{expr: counted(s.service(names.MetricUnitsDropped), overPoint, "reason"), legend: "not judged: {{reason}}"},
			query{expr: counted(s.service(metrics.MetricUnitsIgnored), overPoint), legend: "not judged: old version"}).Min(0))
}

// serviceFreshness shows how soon units are judged, compared with the objective of the alert FreshnessBudgetBurn.
func serviceFreshness(d *dashboard.DashboardBuilder, s scope) {
	// The format of the scrape decides whether the bound is written 60 or 60.0.
	inTime := "sum(rate(" + s.service(names.MetricUnitDelay+"_bucket", fmt.Sprintf(`le=~"%d([.]0)?"`, alerts.FreshWithin)) + "[$__rate_interval]))"
	all := "sum(rate(" + s.service(names.MetricUnitDelay+"_count") + "[$__rate_interval]))"
	d.WithRow(dashboard.NewRowBuilder("Freshness")).
		WithPanel(delay(s).Span(third)).
		WithPanel(lines("Judged in time", "Share of the episodes (or blocks) that were judged within a minute of their last event. 99 % are to be, over 30 days.", "percentunit",
			query{expr: inTime + " / " + all, legend: "in time"}).Max(1).Span(third).
			Thresholds(steps(red, step{.99, green})).
			ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashed))).
		WithPanel(lines("Waiting to be judged", "Finished episodes (or blocks) that wait to be judged: for other partitions, so that all are judged in the order in which they ended, or for the calibration of a baseline.", "short",
			query{expr: "sum by (reason) (" + s.service(names.MetricUnitsWaiting) + ")", legend: "{{reason}}"}).Min(0).Span(third))
}

// delay shows the time from the last event of units to their judgement.
func delay(s scope) *timeseries.PanelBuilder {
	quantile := func(q string) query {
		return query{expr: "histogram_quantile(" + q + ", sum by (le) (rate(" + s.service(names.MetricUnitDelay+"_bucket") + "[$__rate_interval])))", legend: q}
	}
	return lines("Delay of judgement", "How long it takes from the last event of an episode (or block) until it is judged: for half of them, nine of ten, and 99 of a hundred at most. Telemetry without a clock is left out.", "s",
		quantile("0.5"), quantile("0.9"), quantile("0.99")).Min(0)
}

func serviceMemory(d *dashboard.DashboardBuilder, s scope) {
	d.WithRow(dashboard.NewRowBuilder("Memory")).
		WithPanel(lines("Memory", "Memory in use of each instance, and (dashed) limits.memory.", "bytes",
			query{expr: "max by (instance) (" + s.service(names.MetricMemory) + ")", legend: "{{instance}}"},
			query{expr: "max by (instance) (" + s.service(names.MetricMemoryLimit) + ")", legend: "{{instance}} limit"}).
			Min(0).OverrideByRegexp("/limit/", dashed())).
		WithPanel(lines("Groups evicted", "Groups whose state is in the checkpoint alone, and how often groups leave memory and come back to it. Where they come back with every episode (or block), memory is too small.", "short",
			query{expr: "sum(" + s.service(names.MetricGroupsEvicted) + ")", legend: "evicted"},
			query{expr: counted(s.service(names.MetricGroupEvictions), overPoint), legend: "left"},
			query{expr: counted(s.service(names.MetricGroupReturns), overPoint), legend: "came back"}).Min(0))
}

func serviceNotifications(d *dashboard.DashboardBuilder, s scope) {
	d.WithRow(dashboard.NewRowBuilder("Pages and webhooks")).
		WithPanel(inColors(lines("Notifications", "Pushes to Alertmanager by result.", "cps",
			query{expr: perSecond(s.service(alerts.MetricNotifications), "result"), legend: "{{result}}"}),
			[2]string{"sent", green}, [2]string{"failed", red})).
		WithPanel(lines("Unconfirmed alerts", "Alerts that no Alertmanager has accepted in their current state.", "short",
			query{expr: "sum(" + s.service(alerts.MetricNotifyPending) + ")", legend: "unconfirmed"}).Min(0)).
		WithPanel(webhooks(s)).
		WithPanel(targetsInTrouble(s))
}
