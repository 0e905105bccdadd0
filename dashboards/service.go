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
	d := frame("Rewardwatch / Service", "Health of Rewardwatch itself: telemetry, lag, judgment delay, checkpoints, memory and notifications.",
		serviceUID, s, everything(policyVariable()))
	serviceHeadline(d, s)
	d.WithPanel(burn(s)).
		WithPanel(delay(s)).
		WithPanel(inColors(levels("Records read", "Telemetry records that were accepted or rejected, per second.", records,
			query{expr: perSecond(s.service(ingest.MetricEvents), "result"), legend: "{{result}}"}),
			[2]string{"accepted", green}, [2]string{"rejected", red}).WithTransformation(renamed("/^refused$/", "rejected")).NoValue("No records read")).
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
	d.WithPanel(number("Burn rate (1h)", "How fast the freshness budget was spent over the last hour. The budget allows 1% of episodes (or blocks) to be judged more than a minute after their last event, over 30 days. Above 1, it runs out early.", "short", steps(green, step{1, amber}, step{6, red}),
		query{expr: burnRate(s, "1h")}).Decimals(1).NoValue("No episodes")).
		WithPanel(number("Lag (records)", "Records that have not been read yet. While there is lag, alarms are late. If it keeps growing, Rewardwatch needs more resources.", "short", steps(green, step{100000, amber}),
			query{expr: "sum(max by (topic, partition) (" + s.service(ingest.MetricLagRecords) + "))"})).
		WithPanel(number("Rejection rate", "Share of telemetry records that were rejected. For the reasons, see Rejected records by reason.", "percentunit", steps(green, step{.001, amber}, step{.01, red}),
			query{expr: "sum(rate(" + s.service(ingest.MetricEvents, `result="refused"`) + "[$__rate_interval])) / (sum(rate(" + s.service(ingest.MetricEvents) + "[$__rate_interval])) > 0)"}).
			NoValue("No records")).
		WithPanel(number("Checkpoint age", "Age of the oldest partition checkpoint. After a crash, Rewardwatch reads everything since that checkpoint again.", "s", steps(green, step{300, amber}, step{900, red}),
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
	return inColors(levels("Freshness budget burn rate", "How fast the freshness budget was spent, over one hour and over six hours. The budget allows 1% of episodes (or blocks) to be judged more than a minute after their last event, over 30 days. Dashed: Rewardwatch pages above 14.4 over one hour, and above 6 over six hours.", "short",
		query{expr: burnRate(s, "1h"), legend: "1 hour"}, query{expr: burnRate(s, "6h"), legend: "6 hours"}),
		[2]string{"1 hour", orange}, [2]string{"6 hours", blue}).
		OverrideByName("1 hour", wide()). // still visible where the line of six hours, which is drawn later, covers it
		Thresholds(steps(green, step{6, blue}, step{14.4, orange})).
		ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashed)).
		AxisLabel("Burn rate").NoValue(nothingJudged)
}

func memory(s scope) *timeseries.PanelBuilder {
	return paired("Memory usage vs. limit", "Memory used by each instance. Dashed: `limits.memory`. Above 75% of it, groups are evicted to the checkpoint.", "bytes", "{{instance}}",
		"max by (instance) ("+s.service(names.MetricMemory)+")", "max by (instance) ("+s.service(names.MetricMemoryLimit)+")").
		Min(0).AxisSoftMax(1).NoValue("No instances")
}

func serviceTelemetry(d *dashboard.DashboardBuilder, s scope) {
	folded(d, "Telemetry", "telemetry.md",
		inColors(spaced(stacked("Rejected records by reason", "Records that were rejected and kept as dead letters, by reason. Not kept: rejected records that could not be stored.", records,
			query{expr: perSecond(s.service(ingest.MetricDeadLetters), "reason") + " > 0", legend: "{{reason}}"},
			query{expr: "sum(rate(" + s.service(ingest.MetricDeadLettersLost) + "[$__rate_interval])) > 0", legend: "not kept"})), [2]string{"not kept", dark}).NoValue("No records rejected"),
		inColors(levels("Ignored records by reason", "Valid records that are not judged: duplicates, late steps and summaries, tombstones and control records, values above the maximum number of signals, and records that retention removed before they were read.", records,
			query{expr: perSecond(s.service(assemble.MetricEventsIgnored), "reason") + " > 0", legend: "{{reason}}"},
			query{expr: perSecond(s.service(ingest.MetricMessagesSkipped), "reason") + " > 0", legend: "skipped: {{reason}}"},
			query{expr: "sum(rate(" + s.service(assemble.MetricSignalsIgnored) + "[$__rate_interval])) > 0", legend: "too many signals"},
			query{expr: "sum by (topic) (rate(" + s.service(ingest.MetricOffsetGap) + "[$__rate_interval])) > 0", legend: "removed by retention: {{topic}}"}),
			[2]string{"too many signals", orange}).
			WithTransformation(renamed("/^(late|group|dropped|skipped: not)_/", "$1 ")).NoValue("No records ignored"),
		spaced(stacked("Episodes by type of end", "How episodes ended. Abandoned episodes never ended, and were dropped.", episodes,
			query{expr: perSecond(s.service(assemble.MetricEpisodes), "end") + " > 0", legend: "{{end}}"})).NoValue("No episodes ended"),
		inColors(levels("Open episodes", "Episodes that have started but not ended yet.", "short",
			query{expr: "sum(" + s.service(assemble.MetricOpenEpisodes) + ")", legend: "open"}), [2]string{"open", blue}).AxisLabel("Episodes").NoValue("No episodes"),
		levels("Partitions by topic", "Partitions of each topic: assigned to an instance, and in total. Partitions that are not assigned are not read.", "short",
			query{expr: "sum by (topic) (" + s.service(ingest.MetricPartitions, `kind="assigned"`) + ")", legend: "{{topic}} assigned"},
			query{expr: "max by (topic) (" + s.service(ingest.MetricPartitions, `kind="existing"`) + ")", legend: "{{topic}} total"}).AxisLabel("Partitions").NoValue(noPartitions),
		happened("Reconnections", "Reopened connections to partition leaders, by topic and reason. Occasional reconnections are normal.", "Reconnections",
			query{expr: counted(s.service(ingest.MetricReconnects), overPoint, "topic", "reason") + " > 0", legend: "{{topic}}: {{reason}}"}).NoValue("No reconnections"))
}

// serviceFreshness shows how quickly units are judged, compared with the objective of the alert FreshnessBudgetBurn.
func serviceFreshness(d *dashboard.DashboardBuilder, s scope) {
	const worst = 12
	folded(d, "Freshness and lag", "runbooks.md#freshnessbudgetburn",
		levels("Lag by partition", "Records that have not been read yet, for the 12 partitions with the most lag.", "short",
			query{expr: fmt.Sprintf("topk(%d, max by (topic, partition) (%s))", worst, s.service(ingest.MetricLagRecords)), legend: "{{topic}} {{partition}}"}).AxisLabel("Records").NoValue(noPartitions),
		levels("Time lag by partition", "Age of the last record read, for the 12 partitions that are furthest behind. It is 0 if all records have been read, and absent if the telemetry has no timestamps.", "s",
			query{expr: fmt.Sprintf("topk(%d, max by (topic, partition) (%s))", worst, s.service(ingest.MetricLagSeconds)), legend: "{{topic}} {{partition}}"}).NoValue(noPartitions),
		inColors(lines("Episodes judged in time", "Share of episodes (or blocks) that were judged within a minute of their last event. Dashed: the objective, which is 99% over 30 days.", "percentunit",
			query{expr: "1 - (" + lateShare(s, overPoint) + ")", legend: "in time"}), [2]string{"in time", green}).Max(1).AxisSoftMin(.95).
			Thresholds(steps(red, step{alerts.FreshObjective, green})).
			ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashed)).NoValue(nothingJudged),
		inColors(levels("Episodes waiting to be judged", "Finished episodes (or blocks) that are not judged yet. Partitions: they wait for other partitions, because all are judged in the order in which they ended. Calibration: they wait for the calibration of a baseline.", "short",
			query{expr: "sum by (reason) (" + s.service(names.MetricUnitsWaiting) + ")", legend: "{{reason}}"}),
			[2]string{"partitions", blue}, [2]string{"calibration", yellow}).AxisLabel("Episodes").NoValue("No episodes"))
}

// delay shows the time from the last event of units to their judgment.
func delay(s scope) *timeseries.PanelBuilder {
	quantile := func(q, legend string) query {
		return query{expr: "histogram_quantile(" + q + ", sum by (le) (rate(" + s.service(names.MetricUnitDelay+"_bucket") + "[$__rate_interval]))) >= 0", legend: legend}
	}
	return inColors(levels("Judgment delay", "Time from the last event of an episode (or block) until it was judged. Telemetry without timestamps is not included.", "s",
		quantile("0.5", "median"), quantile("0.9", "90th percentile"), quantile("0.99", "99th percentile")),
		[2]string{"median", blue}, [2]string{"90th percentile", yellow}, [2]string{"99th percentile", orange}).NoValue(nothingJudged)
}

func serviceState(d *dashboard.DashboardBuilder, s scope) {
	folded(d, "State and limits", "operating.md#state",
		levels("Checkpoint age by topic", "Age of the oldest partition checkpoint of each topic. After a crash, Rewardwatch reads everything since that checkpoint again.", "s",
			query{expr: "max by (topic) (" + s.service(ingest.MetricCheckpointAge) + ")", legend: "{{topic}}"}).NoValue(noCheckpoints),
		inColors(levels("Checkpoint size by kind", "Total size of the latest checkpoints. Partition: open episodes and offsets. Policy: baselines, detectors and incidents.", "bytes",
			query{expr: "sum by (kind) (" + s.service(ingest.MetricCheckpointBytes) + ")", legend: "{{kind}}"}),
			[2]string{"partition", blue}, [2]string{"policy", purple}).WithTransformation(renamed("/^bank$/", "policy")).NoValue(noCheckpoints),
		inColors(happened("Failures and exceeded limits", "Checkpoints that could not be written or read, series omitted because of `limits.series`, streams not judged because of `limits.streams`, and failed reloads of the configuration.", "Events",
			query{expr: counted(s.service(ingest.MetricCheckpointFailure), overPoint, "kind") + " > 0", legend: "checkpoint failed: {{kind}}"},
			query{expr: counted(s.service(metrics.MetricSeriesLimitHits), overPoint) + " > 0", legend: "series omitted"},
			query{expr: counted(s.service(names.MetricStreamLimitHits), overPoint) + " > 0", legend: "streams not judged"},
			query{expr: "max(1 - " + s.service(names.MetricReloaded) + ") > 0", legend: "reload failed"}),
			[2]string{"series omitted", yellow}, [2]string{"streams not judged", orange}, [2]string{"reload failed", red}).WithTransformation(renamed("/: bank$/", ": policy")).NoValue("No failures or exceeded limits"),
		inColors(happened("Late and unjudged episodes", "Episodes (or blocks) that were judged late or not at all. Late: judged after an episode from another partition that ended later. Not judged: no entry in `policies` matches, `limits.streams` was reached, or a newer `policy_version` has replaced this one.", "Episodes",
			query{expr: counted(s.service(names.MetricLateUnits), overPoint) + " > 0", legend: "late"},
			query{expr: counted(s.service(names.MetricUnitsDropped), overPoint, "reason") + " > 0", legend: "not judged: {{reason}}"},
			query{expr: counted(s.service(metrics.MetricUnitsIgnored), overPoint) + " > 0", legend: "not judged: old version"}),
			[2]string{"late", yellow}, [2]string{"not judged: old version", blue}).
			WithTransformation(renamed("/: (stream|tenant|no)_/", ": $1 ")).NoValue("No late or unjudged episodes"),
		inColors(levels("Evicted groups", "Groups that are not in memory. Their state is only in the checkpoint.", "short",
			query{expr: "sum(" + s.service(names.MetricGroupsEvicted) + ")", legend: "evicted"}), [2]string{"evicted", blue}).AxisLabel("Groups").NoValue("No groups"),
		inColors(happened("Group evictions and reloads", "How often groups were evicted from memory and loaded again. If nearly every episode (or block) reloads its group, increase `limits.memory`.", "Groups",
			query{expr: counted(s.service(names.MetricGroupEvictions), overPoint), legend: "evicted"},
			query{expr: counted(s.service(names.MetricGroupReturns), overPoint), legend: "reloaded"}),
			[2]string{"evicted", blue}, [2]string{"reloaded", orange}).NoValue("No groups"))
}

// serviceTenants shows how much of its quotas each tenant uses, and which tenants exceed them.
func serviceTenants(d *dashboard.DashboardBuilder, s scope) {
	const none = "No tenants"
	used, quota := s.service(names.MetricTenantUsed, `tenant!=""`), s.service(names.MetricTenantQuota, `tenant!=""`)
	folded(d, "Tenants", "tenants.md#quotas",
		stacked("Judged episodes per tenant", "Episodes (or blocks) that were compared with a baseline or added to one, by tenant. Policies without a tenant are not included.", episodes,
			query{expr: "sum by (tenant) (rate(" + s.of(metrics.MetricUnits) + "[$__rate_interval]) * on (job, instance, policy) group_left (tenant) " + s.policies(names.MetricTenantPolicy) + ")", legend: "{{tenant}}"}).
			NoValue(none).Span(third),
		happened("Telemetry over quota", "Telemetry that was not judged because its tenant exceeded a quota, by tenant and kind of quota. Other tenants are not affected.", "Items",
			query{expr: counted(s.service(names.MetricTenantRefused, `tenant!=""`), overPoint, "tenant", "kind") + " > 0", legend: "{{tenant}}: {{kind}}"}).
			NoValue("No tenant exceeded its quota").Span(third),
		levels("Quota usage", "Share of its policy and stream quotas that each tenant uses, on the instance where this share is highest. At 100%, new policies or streams are not judged.", "percentunit",
			query{expr: "max by (tenant, kind) (" + used + " / on (job, instance, tenant, kind) (" + quota + " > 0))", legend: "{{tenant}}: {{kind}}"}).
			NoValue(none).Span(third))
}

func serviceNotifications(d *dashboard.DashboardBuilder, s scope) {
	folded(d, "Notifications and webhooks", "operating.md#alertmanager",
		inColors(happened("Notifications", "Pushes of alerts to Alertmanager, by result.", "Pushes",
			query{expr: counted(s.service(alerts.MetricNotifications), overPoint, "result"), legend: "{{result}}"}),
			[2]string{"sent", green}, [2]string{"failed", red}).NoValue("Not pushed"),
		inColors(levels("Unsent alerts over time", "Alerts whose current state no Alertmanager has accepted yet. Until one does, they page no one.", "short",
			query{expr: "sum(" + s.service(alerts.MetricNotifyPending) + ")", legend: "unsent"}), [2]string{"unsent", red}).AxisLabel("Alerts").NoValue("Not pushed"),
		webhooks(s),
		targetsInTrouble(s))
}
