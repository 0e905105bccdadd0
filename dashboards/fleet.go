package dashboards

import (
	"strconv"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/table"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// fleet is the dashboard of all policies: who drifts, since when, and does anybody hear of it.
func fleet(opts Options) *dashboard.DashboardBuilder {
	s := fleetScope(opts)
	d := frame("Rewardwatch / Fleet", "Every policy that is watched: its state, its incidents and its budget of false alarms.",
		fleetUID, s, everything(policyVariable()))
	fleetStates(d, s)
	fleetIncidents(d, s)
	fleetScores(d, s)
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
			query{expr: "max by (" + s.groups() + ") (" + s.of(bank.MetricStreamState) + ")", legend: s.legend()}).DataLinks(toPolicy(s, ofSeries)))
}

// fleetIncidents says of what drifts since when and why, and what that means for the budget.
func fleetIncidents(d *dashboard.DashboardBuilder, s scope) {
	opened := "sum by (" + s.groups() + ") (increase(" + s.of(alerts.MetricIncidentsOpened) + "[30d]))"
	units := "sum by (" + s.groups() + ") (increase(" + s.of(bank.MetricUnits) + "[30d]))"
	budget := "min by (" + s.groups() + ") (" + s.of(bank.MetricFalseAlarmUnits) + ")"
	d.WithRow(dashboard.NewRowBuilder("Incidents")).
		WithPanel(openIncidents(s).DataLinks(toPolicy(s, ofRow))).
		WithPanel(labelsNow("Incidents against the budget", "Incidents over 30 days, as a multiple of the false alarms that the budget allows in the units of that time. Above 3, and with more than three incidents, the budget counts as spent.",
			query{expr: opened + " / (" + units + " / " + budget + ")", table: true}, "Time").Unit("percentunit").DataLinks(toPolicy(s, ofRow)))
}

// openIncidents lists them by when their drift began.
func openIncidents(s scope) *table.PanelBuilder {
	return labelsNow("Open incidents", "Which groups drift, since when by the estimate, and from which cause as it is known now. 1970: the telemetry has no clock. A click leads to the policy.",
		query{expr: "1000 * max by (" + s.groups("severity", "cause", "incident") + ") (" + s.of(alerts.MetricIncidentOnset) + ")", table: true}, "Time").
		Unit("dateTimeAsIso").NoValue("No incident is open").
		WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{"renameByName": map[string]string{"Value": "since"}}})
}

func fleetScores(d *dashboard.DashboardBuilder, s scope) {
	d.WithRow(dashboard.NewRowBuilder("Scores and budgets")).
		WithPanel(heat("Scores", "The highest score of each group: how far the detector that has gone furthest is on its way to its threshold, which is 1 for every detector.",
			query{expr: "max by (" + s.groups() + ") (" + s.of(bank.MetricDetectorScore) + ")", legend: s.legend()})).
		WithPanel(stacked("Firing alarms by severity", "Alarms that fire now. Info: on a provisional baseline. Muted: of incidents that a person has muted, so that nobody is told.", "short",
			query{expr: "sum by (severity) (" + s.of(alerts.MetricAlarms) + ")", legend: "{{severity}}"}, muted(s))).
		WithPanel(stacked("Incidents closed by cause", "Incidents that closed, by the cause that was found, over the interval of one point.", "short",
			query{expr: "sum by (cause) (increase(" + s.of(alerts.MetricIncidentsClosed) + "[$__rate_interval]))", legend: "{{cause}}"})).
		WithPanel(lines("Units judged", "Finished episodes that were collected for a baseline or judged against one.", "cps",
			query{expr: perSecond(s.of(bank.MetricUnits), s.groups()), legend: s.legend()})).
		WithPanel(stacked("Telemetry faults by rule", "Streams that are in a telemetry fault, by its rule.", "short",
			query{expr: orNone("count by (rule) ("+s.of(bank.MetricStreamFault)+")", "rule"), legend: "{{rule}}"})).
		WithPanel(stacked("Budgets of false alarms by how far they hold", "Groups with a baseline. kept; reduced: units depend on one another; provisional: a small first baseline; unconfirmed: no allowance was found that keeps the budget; none: nothing is armed.", "short",
			query{expr: "count by (confidence) (" + s.of(bank.MetricPromise) + ")", legend: "{{confidence}}"})).
		WithPanel(lines("Lag in records", "Records that have not been read yet, by topic. Alarms come late by as much.", "short",
			query{expr: "sum by (topic) (max by (topic, partition) (" + s.service(ingest.MetricLagRecords) + "))", legend: "{{topic}}"}).Min(0)).
		WithPanel(delay(s))
}

// toPolicy leads from a group to the dashboard of its policy. The labels of a series are those of its field, in a table they are
// other fields of the row.
func toPolicy(s scope, labels string) []cog.Builder[dashboard.DashboardLink] {
	url := "/d/" + policyUID + "?var-datasource=${datasource}&${job:queryparam}"
	for _, label := range append([]string{"policy"}, s.labels...) {
		url += "&var-" + label + "=${" + labels + "." + label + "}"
	}
	return []cog.Builder[dashboard.DashboardLink]{dashboard.NewDashboardLinkBuilder("Policy").Type(dashboard.DashboardLinkTypeLink).Url(url).KeepTime(true)}
}

// What toPolicy finds labels in.
const (
	ofSeries = "__field.labels"
	ofRow    = "__data.fields"
)

// muted counts the alarms of muted incidents.
func muted(s scope) query {
	return query{expr: "sum(" + s.of(alerts.MetricAlarmsMuted) + ") or vector(0)", legend: "muted"}
}

// streamsIn counts the streams in one state.
func streamsIn(s scope, state bank.State, description string, colors *dashboard.ThresholdsConfigBuilder) *stat.PanelBuilder {
	value := strconv.Itoa(int(state))
	return number("Streams in "+state.String(), description, "short", colors,
		query{expr: "count(" + s.of(bank.MetricStreamState) + " == " + value + ") or vector(0)"})
}
