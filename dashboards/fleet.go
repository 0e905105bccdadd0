package dashboards

import (
	"slices"
	"strconv"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/metrics"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// fleet returns the dashboard of all policies: which ones drift, since when, and whether the alerts arrive.
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
			query{expr: "sum(sum by (" + s.groups() + ") (" + s.of(alerts.MetricAlarms) + ") > bool 0)"})).
		WithPanel(streamsIn(s, finding.Drift, "Streams whose score has reached the threshold and that have not come back.", steps(green, step{1, red}))).
		WithPanel(streamsIn(s, finding.TelemetryFault, "Streams whose telemetry cannot be judged: not finite, newly constant, of another kind, or silent.", steps(green, step{1, purple}))).
		WithPanel(streamsIn(s, finding.WarmingUp, "Streams whose baseline is still being collected. Nothing pages for them.", steps(gray))).
		WithPanel(streamsIn(s, finding.OK, "Streams that are judged and within their budget of false alarms.", steps(green))).
		WithPanel(number("Incidents opened", "Incidents that opened over the time shown.", "short", steps(gray),
			query{expr: counted(s.of(alerts.MetricIncidentsOpened), overRange)})).
		WithPanel(states("State of each group", "The gravest state over the group's streams.",
			query{expr: "max by (" + s.groups() + ") (" + s.of(metrics.MetricStreamState) + ")", legend: s.legend()}).
			DataLinks([]cog.Builder[dashboard.DashboardLink]{dashboard.NewDashboardLinkBuilder("Policy").Type(dashboard.DashboardLinkTypeLink).Url(toPolicy(s, ofSeries))}))
}

// fleetIncidents shows since when and why policies drift, and what that means for the budget.
func fleetIncidents(d *dashboard.DashboardBuilder, s scope) {
	opened := counted(s.of(alerts.MetricIncidentsOpened), "30d", s.groups())
	units := "sum by (" + s.groups() + ") (increase(" + s.of(metrics.MetricUnits) + "[30d]))"
	budget := "min by (" + s.groups() + ") (" + s.of(metrics.MetricFalseAlarmUnits) + ")"
	d.WithRow(dashboard.NewRowBuilder("Incidents")).
		WithPanel(openIncidents(s, labelColumn("policy", linked(toPolicy(s, ofRow))))).
		WithPanel(rows("Incidents against the budget", "Incidents over 30 days, as a multiple of the false alarms that the budget allows for the episodes (or blocks) of that time. Above 3, and with more than three incidents, the budget counts as spent.",
			slices.Concat([]column{labelColumn("policy", linked(toPolicy(s, ofRow)))}, labelColumns(s.labels...), []column{valueColumn("of the budget", inUnit("percentunit"), inDecimals(0))}),
			query{expr: opened + " / (" + units + " / " + budget + " > 0)"}).
			WithTransformation(sortedBy("of the budget", true)))
}

// openIncidents lists the open incidents, the newest first.
func openIncidents(s scope, policy column) *table.PanelBuilder {
	columns := slices.Concat(
		[]column{valueColumn("since", inUnit("dateTimeFromNow"), mapped(noClock())), labelColumn("severity"), policy}, labelColumns(s.labels...), labelColumns("cause", "incident"))
	return rows("Open incidents", "Which groups drift, since when by the estimate, and from which cause as it is known now.", columns,
		query{expr: "1000 * max by (" + s.groups("severity", "cause", "incident") + ") (" + s.of(alerts.MetricIncidentOnset) + ")"}).
		NoValue("No incident is open").
		WithTransformation(sortedBy("since", true))
}

// noClock maps a time of 0 to "no clock".
func noClock() []dashboard.ValueMapping {
	return []dashboard.ValueMapping{{ValueMap: &dashboard.ValueMap{Type: dashboard.MappingTypeValueToText, Options: map[string]dashboard.ValueMappingResult{
		"0": {Text: cog.ToPtr("no clock"), Index: cog.ToPtr(int32(0))},
	}}}}
}

func fleetScores(d *dashboard.DashboardBuilder, s scope) {
	d.WithRow(dashboard.NewRowBuilder("Scores and budgets")).
		WithPanel(heat("Scores", "The highest score of each group: how far the detector that has gone furthest is on its way to its threshold, which is 1 for every detector.",
			query{expr: "max by (" + s.groups() + ") (" + s.of(metrics.MetricDetectorScore) + ")", legend: s.legend()})).
		WithPanel(firing(s, "Alarms that fire now. Info: on a provisional baseline. Muted: of incidents that a person has muted, so that they page no one.")).
		WithPanel(stacked("Incidents closed by cause", "Incidents that closed, by the cause that was found, over the interval of one point.", "short",
			query{expr: counted(s.of(alerts.MetricIncidentsClosed), overPoint, "cause"), legend: "{{cause}}"}).Decimals(0)).
		WithPanel(lines("Episodes judged", "Finished episodes, or blocks of steps where no episode ends, that were collected for a baseline or judged against one.", "cps",
			query{expr: perSecond(s.of(metrics.MetricUnits), s.groups()), legend: s.legend()})).
		WithPanel(stacked("Telemetry faults by rule", "Streams that are in a telemetry fault, by its rule.", "short",
			query{expr: orNone("count by (rule) ("+s.of(metrics.MetricStreamFault)+")", s.of(metrics.MetricStreamState), "rule"), legend: "{{rule}}"})).
		WithPanel(inColors(stacked("Budgets of false alarms by how far they hold", "Groups with a baseline. kept; reduced: episodes (or blocks) depend on one another, or the baseline covers less than a day; provisional: a small first baseline; unconfirmed: no allowance was found that keeps the budget; none: nothing is armed.", "short",
			query{expr: "count by (confidence) (" + s.of(metrics.MetricPromise) + ")", legend: "{{confidence}}"}),
			[2]string{"kept", green}, [2]string{"reduced", blue}, [2]string{"provisional", yellow}, [2]string{"unconfirmed", orange}, [2]string{"none", red})).
		WithPanel(lines("Lag in records", "Records that have not been read yet, by topic. Alarms come late by as much.", "short",
			query{expr: "sum by (topic) (max by (topic, partition) (" + s.service(ingest.MetricLagRecords) + "))", legend: "{{topic}}"}).Min(0)).
		WithPanel(delay(s))
}

// toPolicy returns the link from a group to the dashboard of its policy, at the displayed time. The labels of a series
// are those of its field; in a table they are other fields of the row.
func toPolicy(s scope, labels string) string {
	url := "/d/" + policyUID + "?var-datasource=${datasource}&${job:queryparam}"
	for _, label := range append([]string{"policy"}, s.labels...) {
		url += "&var-" + label + "=${" + labels + "." + label + "}"
	}
	return url + "&${__url_time_range}"
}

// linked makes a column link to a policy.
func linked(url string) dashboard.DynamicConfigValue {
	return dashboard.DynamicConfigValue{Id: "links", Value: []map[string]any{{"title": "Policy", "url": url}}}
}

// Where toPolicy finds labels.
const (
	ofSeries = "__field.labels"
	ofRow    = "__data.fields"
)

// firing shows the alarms by severity, and those of muted incidents.
func firing(s scope, description string) *timeseries.PanelBuilder {
	return inColors(stacked("Firing alarms by severity", description, "short",
		query{expr: "sum by (severity) (" + s.of(alerts.MetricAlarms) + ")", legend: "{{severity}}"}, muted(s)),
		[2]string{"critical", red}, [2]string{"warning", orange}, [2]string{"info", blue}, [2]string{"muted", gray})
}

// muted counts the alarms of muted incidents.
func muted(s scope) query {
	return query{expr: orZero("sum("+s.of(alerts.MetricAlarmsMuted)+")", s.of(alerts.MetricAlarms)), legend: "muted"}
}

// streamsIn shows the number of streams in one state.
func streamsIn(s scope, state finding.State, description string, colors *dashboard.ThresholdsConfigBuilder) *stat.PanelBuilder {
	return number("Streams in "+state.String(), description, "short", colors,
		query{expr: "sum(" + s.of(metrics.MetricStreamState) + " == bool " + strconv.Itoa(int(state)) + ")"})
}
