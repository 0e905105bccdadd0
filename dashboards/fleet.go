package dashboards

import (
	"strconv"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/stat"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/assemble"
	"github.com/rewardwatch/rewardwatch/retrain"
)

// fleet is the dashboard of all policies: who drifts, is telemetry read, does Rewardwatch itself keep up.
func fleet(opts Options) *dashboard.DashboardBuilder {
	s := fleetScope(opts)
	d := frame("Rewardwatch / Fleet", "Every policy that is watched: its state, its incidents, and the telemetry that comes in.",
		fleetUID, s, everything(policyVariable())).
		Link(dashboard.NewDashboardLinkBuilder("Policy").
			Type(dashboard.DashboardLinkTypeLink).Url("/d/" + policyUID).KeepTime(true))
	fleetStates(d, s)
	fleetTelemetry(d)
	fleetDelivery(d, s)
	fleetService(d)
	return d
}

func fleetStates(d *dashboard.DashboardBuilder, s scope) {
	d.WithRow(dashboard.NewRowBuilder("Policies")).
		WithPanel(number("Incidents with firing alarms", "Groups in which at least one alarm fires. A group has at most one incident.",
			"short", steps(green, step{1, red}),
			query{expr: "count(sum by (" + s.groups() + ") (" + s.of(alerts.MetricAlarms) + ") > 0) or vector(0)"})).
		WithPanel(streamsIn(s, bank.Drift, "Streams whose score has reached the threshold and that have not come back.", steps(green, step{1, red}))).
		WithPanel(streamsIn(s, bank.TelemetryFault, "Streams whose telemetry cannot be judged: not finite, newly constant, of another kind, or silent.", steps(green, step{1, purple}))).
		WithPanel(streamsIn(s, bank.WarmingUp, "Streams whose baseline is still being collected. Nothing pages for them.", steps(gray))).
		WithPanel(streamsIn(s, bank.OK, "Streams that are judged and within their budget of false alarms.", steps(green))).
		WithPanel(number("Incidents opened", "Incidents that opened over the time shown.", "short", steps(gray),
			query{expr: "sum(increase(" + s.of(alerts.MetricIncidentsOpened) + "[$__range])) or vector(0)"})).
		WithPanel(states("State of each group", "The gravest state over the group's streams.",
			query{expr: "max by (" + s.groups() + ") (" + s.of(bank.MetricStreamState) + ")", legend: s.legend()})).
		WithPanel(againstOne("Highest score of each group", "How far the detector that has gone furthest is on its way to its threshold, which is 1 for every detector.",
			query{expr: "max by (" + s.groups() + ") (" + s.of(bank.MetricDetectorScore) + ")", legend: s.legend()})).
		WithPanel(stacked("Firing alarms by severity", "Alarms that fire now. Info: on a provisional baseline. Muted: of incidents that a person has muted, so that nobody is told.", "short",
			query{expr: "sum by (severity) (" + s.of(alerts.MetricAlarms) + ")", legend: "{{severity}}"}, muted(s))).
		WithPanel(stacked("Incidents closed by cause", "Incidents that closed, by the cause that was found, over the interval of one point.", "short",
			query{expr: "sum by (cause) (increase(" + s.of(alerts.MetricIncidentsClosed) + "[$__rate_interval]))", legend: "{{cause}}"})).
		WithPanel(lines("Units judged", "Finished episodes that were collected for a baseline or judged against one.", "cps",
			query{expr: perSecond(s.of(bank.MetricUnits), s.groups()), legend: s.legend()})).
		WithPanel(stacked("Telemetry faults by rule", "Streams that are in a telemetry fault, by its rule.", "short",
			query{expr: "count by (rule) (" + s.of(bank.MetricStreamFault) + ")", legend: "{{rule}}"})).
		WithPanel(stacked("Budgets of false alarms by how far they hold", "Groups with a baseline. kept; reduced: units depend on one another; provisional: a small first baseline; unconfirmed: no allowance was found that keeps the budget; none: nothing is armed.", "short",
			query{expr: "count by (confidence) (" + s.of(bank.MetricPromise) + ")", legend: "{{confidence}}"}))
}

// muted counts the alarms of muted incidents.
func muted(s scope) query {
	return query{expr: "sum(" + s.of(alerts.MetricAlarmsMuted) + ")", legend: "muted"}
}

// streamsIn counts the streams in one state.
func streamsIn(s scope, state bank.State, description string, colors *dashboard.ThresholdsConfigBuilder) *stat.PanelBuilder {
	value := strconv.Itoa(int(state))
	return number("Streams in "+state.String(), description, "short", colors,
		query{expr: "count(" + s.of(bank.MetricStreamState) + " == " + value + ") or vector(0)"})
}

func fleetTelemetry(d *dashboard.DashboardBuilder) {
	d.WithRow(dashboard.NewRowBuilder("Telemetry")).
		WithPanel(lines("Records read", "Telemetry records by what became of them.", "cps",
			query{expr: perSecond(ingest.MetricEvents, "result"), legend: "{{result}}"})).
		WithPanel(stacked("Dead letters", "Refused records by reason, and those of them that could not even be kept.", "cps",
			query{expr: perSecond(ingest.MetricDeadLetters, "reason"), legend: "{{reason}}"},
			query{expr: "sum(rate(" + ingest.MetricDeadLettersLost + "[$__rate_interval]))", legend: "not kept"})).
		WithPanel(lines("Lag in records", "Records that have not been read yet, by topic and partition.", "short",
			query{expr: "max by (topic, partition) (" + ingest.MetricLagRecords + ")", legend: "{{topic}} {{partition}}"}).Min(0)).
		WithPanel(lines("Lag in seconds", "Age of the last record that was read, while there are more to read; absent where telemetry has no clock.", "s",
			query{expr: "max by (topic, partition) (" + ingest.MetricLagSeconds + ")", legend: "{{topic}} {{partition}}"}).Min(0)).
		WithPanel(stacked("Episode ends", "Episodes by how they ended. Abandoned ones were dropped unfinished.", "cps",
			query{expr: perSecond(assemble.MetricEpisodes, "end"), legend: "{{end}}"})).
		WithPanel(lines("Open episodes", "Episodes that have begun and not ended.", "short",
			query{expr: "sum(" + assemble.MetricOpenEpisodes + ")", legend: "open"}).Min(0)).
		WithPanel(lines("Records passed over", "Records that are no fault and were not judged: duplicates and late summaries, tombstones and control records, values of too many signals, and records that retention removed before they were read.", "cps",
			query{expr: perSecond(assemble.MetricEventsIgnored, "reason"), legend: "{{reason}}"},
			query{expr: perSecond(ingest.MetricMessagesSkipped, "reason"), legend: "{{reason}}"},
			query{expr: "sum(rate(" + assemble.MetricSignalsIgnored + "[$__rate_interval]))", legend: "signal_limit"},
			query{expr: "sum by (topic) (rate(" + ingest.MetricOffsetGap + "[$__rate_interval]))", legend: "removed by retention: {{topic}}"})).
		WithPanel(lines("Partitions", "Partitions that are read, those that exist, and reconnections by reason, of each topic.", "short",
			query{expr: "sum by (topic) (" + ingest.MetricPartitions + "{kind=\"assigned\"})", legend: "{{topic}} assigned"},
			query{expr: "max by (topic) (" + ingest.MetricPartitions + "{kind=\"existing\"})", legend: "{{topic}} existing"},
			query{expr: "sum by (topic, reason) (increase(" + ingest.MetricReconnects + "[$__rate_interval]))", legend: "{{topic}} reconnected: {{reason}}"}).Min(0))
}

func fleetDelivery(d *dashboard.DashboardBuilder, s scope) {
	d.WithRow(dashboard.NewRowBuilder("Pages and retraining")).
		WithPanel(lines("Notifications", "Pushes to Alertmanager by result.", "cps",
			query{expr: perSecond(alerts.MetricNotifications, "result"), legend: "{{result}}"})).
		WithPanel(lines("Unconfirmed alerts", "Alerts that no Alertmanager has accepted in their current state.", "short",
			query{expr: "sum(" + alerts.MetricNotifyPending + ")", legend: "unconfirmed"}).Min(0)).
		WithPanel(stacked("Retrain requests", "Retrain requests by state.", "short",
			query{expr: "sum by (state) (" + retrain.MetricRequests + "{" + s.policy + "})", legend: "{{state}}"})).
		WithPanel(lines("Webhook deliveries", "Attempts to deliver a retrain request, by target and result.", "short",
			query{expr: "sum by (target, result) (increase(" + retrain.MetricDeliveries + "[$__rate_interval]))", legend: "{{target}} {{result}}"}).Min(0)).
		WithPanel(lines("Webhook delivery time", "How long nine of ten attempts to deliver take at most, by target.", "s",
			query{expr: "histogram_quantile(0.9, sum by (le, target) (rate(" + retrain.MetricDeliveryDuration + "_bucket[$__rate_interval])))", legend: "{{target}}"}).Min(0)).
		WithPanel(lines("Webhooks given up", "Retrain requests that expired undelivered, and targets that answered 410 Gone and get no more.", "short",
			query{expr: "sum by (target) (" + retrain.MetricDeadLetters + ")", legend: "{{target}} given up"},
			query{expr: "max by (target) (" + retrain.MetricTargetDisabled + ")", legend: "{{target}} disabled"}).Min(0))
}

// Metrics of the service itself, whose package cannot be imported.
const (
	lateUnits       = "rewardwatch_units_late_total"
	waitingUnits    = "rewardwatch_units_waiting"
	droppedUnits    = "rewardwatch_units_dropped_total"
	streamLimitHits = "rewardwatch_stream_limit_hits_total"
	reloaded        = "rewardwatch_config_last_reload_successful"
)

func fleetService(d *dashboard.DashboardBuilder) {
	d.WithRow(dashboard.NewRowBuilder("Rewardwatch")).
		WithPanel(lines("Checkpoint age", "Time since the partition that was saved longest ago was saved. What came after it would be read again after a crash.", "s",
			query{expr: "max by (topic) (" + ingest.MetricCheckpointAge + ")", legend: "{{topic}}"}).Min(0).Span(third)).
		WithPanel(lines("Checkpoint size", "Bytes last written, by kind.", "bytes",
			query{expr: "sum by (kind) (" + ingest.MetricCheckpointBytes + ")", legend: "{{kind}}"}).Min(0).Span(third)).
		WithPanel(lines("Failures and limits", "Checkpoints that could not be written, series left out of the metrics because limits.series was reached, streams not followed because limits.streams was, and a configuration that was refused at the last reload.", "short",
			query{expr: "sum by (kind) (increase(" + ingest.MetricCheckpointFailure + "[$__rate_interval]))", legend: "checkpoint failed: {{kind}}"},
			query{expr: "sum(increase(" + bank.MetricSeriesLimitHits + "[$__rate_interval]))", legend: "series left out"},
			query{expr: "sum(increase(" + streamLimitHits + "[$__rate_interval]))", legend: "streams not followed"},
			query{expr: "max(1 - " + reloaded + ")", legend: "configuration refused"}).Min(0).Span(third)).
		WithPanel(lines("Units waiting", "Finished episodes that wait to be judged: for other partitions, so that all are judged in the order in which they ended, or for the calibration of a baseline.", "short",
			query{expr: "sum by (reason) (" + waitingUnits + ")", legend: "{{reason}}"}).Min(0)).
		WithPanel(lines("Units late or not judged", "Late: judged after one of another partition that had ended later. Not judged: of a policy that no entry of policies matches, of a new one beyond limits.streams, or of a policy_version that another one has followed.", "short",
			query{expr: "sum(increase(" + lateUnits + "[$__rate_interval]))", legend: "late"},
			query{expr: "sum by (reason) (increase(" + droppedUnits + "[$__rate_interval]))", legend: "not judged: {{reason}}"},
			query{expr: "sum(increase(" + bank.MetricUnitsIgnored + "[$__rate_interval]))", legend: "not judged: old version"}).Min(0))
}
