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
	d := frame("Rewardwatch / Service", "Rewardwatch itself: telemetry, freshness, state, memory and notifications.",
		serviceUID, s, everything(policyVariable()))
	serviceHeadline(d, s)
	d.WithPanel(burn(s)).
		WithPanel(delay(s)).
		WithPanel(inColors(levels("Records read", "Telemetry records per second, by result.", events,
			query{expr: perSecond(s.service(ingest.MetricEvents), "result"), legend: "{{result}}"}),
			[2]string{"accepted", green}, [2]string{"refused", red})).
		WithPanel(memory(s))
	serviceTelemetry(d, s)
	serviceFreshness(d, s)
	serviceState(d, s)
	serviceTenants(d, s)
	serviceNotifications(d, s)
	return d
}

// serviceHeadline shows whether the service works.
func serviceHeadline(d *dashboard.DashboardBuilder, s scope) {
	d.WithPanel(number("Burn rate", "How fast the error budget for late episodes (or blocks) is being spent, over the last hour. The budget allows 1% to be judged more than a minute after their last event. Above 1, it runs out before the 30 days are over.", budgets, steps(green, step{1, amber}, step{6, red}),
		query{expr: burnRate(s, "1h")}).Decimals(1).NoValue("Nothing judged")).
		WithPanel(number("Lag", "Number of unread records.", "short", steps(green, step{100000, amber}),
			query{expr: "sum(max by (topic, partition) (" + s.service(ingest.MetricLagRecords) + "))"})).
		WithPanel(number("Rejected", "Share of records that were rejected.", "percentunit", steps(green, step{.001, amber}, step{.01, red}),
			query{expr: "sum(rate(" + s.service(ingest.MetricEvents, `result="refused"`) + "[$__rate_interval])) / (sum(rate(" + s.service(ingest.MetricEvents) + "[$__rate_interval])) > 0)"}).
			NoValue("Nothing read")).
		WithPanel(number("Checkpoint age", "Age of the oldest partition checkpoint.", "s", steps(green, step{300, amber}, step{900, red}),
			query{expr: "max(" + s.service(ingest.MetricCheckpointAge) + ")"})).
		WithPanel(unconfirmed(s)).
		WithPanel(failedPushes(s))
}

// lateShare returns the expression for the share of units that were judged too late over a window.
func lateShare(s scope, stretch string) string {
	// The format of the scrape decides whether the bound is written 60 or 60.0.
	inTime := "sum(rate(" + s.service(names.MetricUnitDelay+"_bucket", fmt.Sprintf(`le=~"%d([.]0)?"`, alerts.FreshWithin)) + "[" + stretch + "]))"
	return "1 - " + inTime + " / (sum(rate(" + s.service(names.MetricUnitDelay+"_count") + "[" + stretch + "])) > 0)"
}

// burnRate returns the expression for how many times too fast the freshness budget is spent over a window.
func burnRate(s scope, stretch string) string {
	return fmt.Sprintf("(%s) / %.3g", lateShare(s, stretch), 1-alerts.FreshObjective)
}

// burn shows how fast the freshness budget is spent, together with the rates at which FreshnessBudgetBurn pages.
func burn(s scope) *timeseries.PanelBuilder {
	return inColors(levels("Freshness budget burn rate", "How fast the error budget for late episodes (or blocks) is being spent, over one hour and over six hours. The budget allows 1% to be judged more than a minute after their last event. Rewardwatch pages above 14.4 over one hour, and above 6 over six hours (dashed).", budgets,
		query{expr: burnRate(s, "1h"), legend: "1 hour"}, query{expr: burnRate(s, "6h"), legend: "6 hours"}),
		[2]string{"1 hour", orange}, [2]string{"6 hours", blue}).
		OverrideByName("1 hour", wide()). // still visible where the line of six hours, which is drawn later, covers it
		Thresholds(steps(green, step{6, blue}, step{14.4, orange})).
		ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashed)).
		NoValue("Nothing judged")
}

func memory(s scope) *timeseries.PanelBuilder {
	return paired("Memory", "Memory used by each instance. Dashed: `limits.memory`.", "bytes", "{{instance}}",
		"max by (instance) ("+s.service(names.MetricMemory)+")", "max by (instance) ("+s.service(names.MetricMemoryLimit)+")").
		AxisLabel("dashed: memory limit").
		Min(0).AxisSoftMax(1)
}

func serviceTelemetry(d *dashboard.DashboardBuilder, s scope) {
	folded(d, "Telemetry", "telemetry.md",
		inColors(stacked("Dead letters", "Rejected records, by reason, and rejected records that could not be stored.", events,
			query{expr: perSecond(s.service(ingest.MetricDeadLetters), "reason") + " > 0", legend: "{{reason}}"},
			query{expr: "sum(rate(" + s.service(ingest.MetricDeadLettersLost) + "[$__rate_interval])) > 0", legend: "not kept"}), [2]string{"not kept", dark}).NoValue("No records rejected"),
		inColors(levels("Records not judged", "Valid records that are not judged: duplicates, late steps and summaries, tombstones and control records, values above the maximum number of signals, and records that retention removed before they were read.", events,
			query{expr: perSecond(s.service(assemble.MetricEventsIgnored), "reason") + " > 0", legend: "{{reason}}"},
			query{expr: perSecond(s.service(ingest.MetricMessagesSkipped), "reason") + " > 0", legend: "message: {{reason}}"},
			query{expr: "sum(rate(" + s.service(assemble.MetricSignalsIgnored) + "[$__rate_interval])) > 0", legend: "signal_limit"},
			query{expr: "sum by (topic) (rate(" + s.service(ingest.MetricOffsetGap) + "[$__rate_interval])) > 0", legend: "removed by retention: {{topic}}"}),
			[2]string{"signal_limit", orange}).NoValue("All records were judged"),
		stacked("Episode ends", "Episodes by how they ended. Abandoned episodes were dropped unfinished.", episodes,
			query{expr: perSecond(s.service(assemble.MetricEpisodes), "end") + " > 0", legend: "{{end}}"}).NoValue("No episodes ended"),
		inColors(levels("Open episodes", "Episodes that have not ended yet.", "short",
			query{expr: "sum(" + s.service(assemble.MetricOpenEpisodes) + ")", legend: "open"}), [2]string{"open", blue}),
		levels("Partitions", "Partitions of each topic: assigned to an instance, and in total.", "short",
			query{expr: "sum by (topic) (" + s.service(ingest.MetricPartitions, `kind="assigned"`) + ")", legend: "{{topic}} assigned"},
			query{expr: "max by (topic) (" + s.service(ingest.MetricPartitions, `kind="existing"`) + ")", legend: "{{topic}} existing"}),
		happened("Reconnections", "Reopened connections to partition leaders, by topic and reason.",
			query{expr: counted(s.service(ingest.MetricReconnects), overPoint, "topic", "reason") + " > 0", legend: "{{topic}}: {{reason}}"}).NoValue("No reconnections"))
}

// serviceFreshness shows how quickly units are judged, compared with the objective of the alert FreshnessBudgetBurn.
func serviceFreshness(d *dashboard.DashboardBuilder, s scope) {
	const worst = 12
	folded(d, "Freshness and lag", "runbooks.md#freshnessbudgetburn",
		levels("Lag in records", "Unread records in the 12 partitions with the most lag.", "short",
			query{expr: fmt.Sprintf("topk(%d, max by (topic, partition) (%s))", worst, s.service(ingest.MetricLagRecords)), legend: "{{topic}} {{partition}}"}),
		levels("Lag in seconds", "Age of the last record read, for the 12 partitions that are furthest behind. 0 if all records have been read; absent if telemetry has no timestamps.", "s",
			query{expr: fmt.Sprintf("topk(%d, max by (topic, partition) (%s))", worst, s.service(ingest.MetricLagSeconds)), legend: "{{topic}} {{partition}}"}),
		inColors(lines("Judged in time", "Share of episodes (or blocks) judged within a minute of their last event. The objective is 99% over 30 days (dashed).", "percentunit",
			query{expr: "1 - (" + lateShare(s, overPoint) + ")", legend: "in time"}), [2]string{"in time", green}).Max(1).AxisSoftMin(.95).
			Thresholds(steps(red, step{alerts.FreshObjective, green})).
			ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashed)).NoValue("Nothing judged"),
		inColors(levels("Waiting to be judged", "Finished episodes (or blocks) that are waiting for other partitions, because all are judged in the order in which they ended, or for the calibration of a baseline.", "short",
			query{expr: "sum by (reason) (" + s.service(names.MetricUnitsWaiting) + ")", legend: "{{reason}}"}),
			[2]string{"partitions", blue}, [2]string{"calibration", yellow}))
}

// delay shows the time from the last event of units to their judgment.
func delay(s scope) *timeseries.PanelBuilder {
	quantile := func(q, legend string) query {
		return query{expr: "histogram_quantile(" + q + ", sum by (le) (rate(" + s.service(names.MetricUnitDelay+"_bucket") + "[$__rate_interval]))) >= 0", legend: legend}
	}
	return inColors(levels("Judgment delay", "Time from the last event of an episode (or block) until it is judged: median, 90th and 99th percentiles. Telemetry without timestamps is not included.", "s",
		quantile("0.5", "median"), quantile("0.9", "90%"), quantile("0.99", "99%")),
		[2]string{"median", blue}, [2]string{"90%", yellow}, [2]string{"99%", orange}).NoValue("Nothing judged")
}

func serviceState(d *dashboard.DashboardBuilder, s scope) {
	folded(d, "State and limits", "operating.md#state",
		levels("Checkpoint age", "Age of the oldest partition checkpoint, by topic. After a crash, everything since that checkpoint is read again.", "s",
			query{expr: "max by (topic) (" + s.service(ingest.MetricCheckpointAge) + ")", legend: "{{topic}}"}),
		inColors(levels("Checkpoint size", "Size of the last checkpoint, by kind.", "bytes",
			query{expr: "sum by (kind) (" + s.service(ingest.MetricCheckpointBytes) + ")", legend: "{{kind}}"}),
			[2]string{"partition", blue}, [2]string{"bank", purple}),
		inColors(happened("Failures and limits", "Checkpoints that could not be written, series omitted because of `limits.series`, streams not judged because of `limits.streams`, and whether the last configuration reload failed.",
			query{expr: counted(s.service(ingest.MetricCheckpointFailure), overPoint, "kind") + " > 0", legend: "checkpoint failed: {{kind}}"},
			query{expr: counted(s.service(metrics.MetricSeriesLimitHits), overPoint) + " > 0", legend: "series omitted"},
			query{expr: counted(s.service(names.MetricStreamLimitHits), overPoint) + " > 0", legend: "streams not judged"},
			query{expr: "max(1 - " + s.service(names.MetricReloaded) + ") > 0", legend: "reload failed"}),
			[2]string{"series omitted", yellow}, [2]string{"streams not judged", orange}, [2]string{"reload failed", red}).NoValue("No failures"),
		inColors(happened("Late or not judged", "Episodes (or blocks) that were judged late or not at all. Late: judged after an episode from another partition that ended later. Not judged: no entry in `policies` matches, `limits.streams` was reached, or another `policy_version` has replaced this one.",
			query{expr: counted(s.service(names.MetricLateUnits), overPoint) + " > 0", legend: "late"},
			query{expr: counted(s.service(names.MetricUnitsDropped), overPoint, "reason") + " > 0", legend: "not judged: {{reason}}"},
			query{expr: counted(s.service(metrics.MetricUnitsIgnored), overPoint) + " > 0", legend: "not judged: old version"}),
			[2]string{"late", yellow}, [2]string{"not judged: old version", blue}).NoValue("All were judged in order"),
		inColors(levels("Evicted groups", "Groups that were evicted from memory; their state is only in the checkpoint.", "short",
			query{expr: "sum(" + s.service(names.MetricGroupsEvicted) + ")", legend: "evicted"}), [2]string{"evicted", blue}),
		inColors(happened("Evictions and returns", "How often groups are evicted from memory and loaded again. If nearly every episode (or block) reloads its group, `limits.memory` is too low.",
			query{expr: counted(s.service(names.MetricGroupEvictions), overPoint), legend: "left"},
			query{expr: counted(s.service(names.MetricGroupReturns), overPoint), legend: "returned"}),
			[2]string{"left", blue}, [2]string{"returned", orange}))
}

// serviceTenants shows how much of its quotas each tenant uses, and which tenants exceed them.
func serviceTenants(d *dashboard.DashboardBuilder, s scope) {
	const none = "No tenants"
	used, quota := s.service(names.MetricTenantUsed, `tenant!=""`), s.service(names.MetricTenantQuota, `tenant!=""`)
	folded(d, "Tenants", "tenants.md#quotas",
		stacked("Judged by tenant", "Episodes (or blocks) that were added to a baseline or compared with one, by tenant. Policies without a tenant are not included.", episodes,
			query{expr: "sum by (tenant) (rate(" + s.of(metrics.MetricUnits) + "[$__rate_interval]) * on (job, instance, policy) group_left (tenant) " + s.policies(names.MetricTenantPolicy) + ")", legend: "{{tenant}}"}).
			NoValue(none).Span(third),
		happened("Beyond quotas", "Telemetry that was not judged because its tenant exceeded a quota, by tenant and kind. Other tenants are not affected.",
			query{expr: counted(s.service(names.MetricTenantRefused, `tenant!=""`), overPoint, "tenant", "kind") + " > 0", legend: "{{tenant}}: {{kind}}"}).
			NoValue("No tenant exceeded its quota").Span(third),
		levels("Quotas used", "Share of its policy and stream quotas that each tenant uses, on the instance where the share is largest. At 100%, new policies or streams are not judged.", "percentunit",
			query{expr: "max by (tenant, kind) (" + used + " / on (job, instance, tenant, kind) (" + quota + " > 0))", legend: "{{tenant}}: {{kind}}"}).
			NoValue(none).Span(third))
}

func serviceNotifications(d *dashboard.DashboardBuilder, s scope) {
	folded(d, "Notifications and webhooks", "operating.md#alertmanager",
		inColors(happened("Notifications", "Pushes to Alertmanager, by result.",
			query{expr: counted(s.service(alerts.MetricNotifications), overPoint, "result"), legend: "{{result}}"}),
			[2]string{"sent", green}, [2]string{"failed", red}).NoValue("Not pushed"),
		inColors(levels("Unsent alerts over time", "Alerts whose current state has not been accepted by any Alertmanager.", "short",
			query{expr: "sum(" + s.service(alerts.MetricNotifyPending) + ")", legend: "unsent"}), [2]string{"unsent", red}).NoValue("Not pushed"),
		webhooks(s),
		targetsInTrouble(s))
}
