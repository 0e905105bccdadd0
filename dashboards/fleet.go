package dashboards

import (
	"slices"
	"strconv"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
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
	d := frame("Rewardwatch / Fleet", "Overview of all monitored policies: open incidents, the state of each group, and incidents compared with the false alarm budget. Start here, then click a policy for details.",
		fleetUID, s, everything(policyVariable()))
	fleetHeadline(d, s)
	fleetStates(d, s)
	folded(d, "Alarms and causes", "causes.md",
		firing(s, "Firing alarms by severity, with the alarms of muted incidents on top. Info: the baseline is still provisional. Muted: alarms of any severity that page no one, because their incident was muted."),
		inColors(spaced(happened("Closed incidents by cause", "Incidents that closed, by their most likely cause. Each bar counts one interval.", "Incidents",
			query{expr: counted(s.of(alerts.MetricIncidentsClosed), overPoint, "cause"), legend: "{{cause}}"})), causeColors()...).NoValue(noPolicies),
		spaced(stacked("Telemetry faults by rule", "Signals with a telemetry fault, by the rule that detected it. Signals with wrong values are not judged until the fault is fixed.", "short",
			query{expr: orNone("count by (rule) ("+s.of(metrics.MetricStreamFault)+")", s.of(metrics.MetricStreamState), "rule"), legend: "{{rule}}"})).
			OverrideByRegexp("/./", shadesOf(purple)).OverrideByName("none", colored(green)).AxisLabel("Signals").NoValue(noPolicies),
		number("Incidents opened in the time range", "Incidents that opened in the selected time range.", "short", steps(gray),
			query{expr: counted(s.of(alerts.MetricIncidentsOpened), overRange)}).Height(graphHeight).Span(half))
	folded(d, "False alarm budgets", "detection.md",
		inColors(stacked("Budgets by confidence", "Groups with a baseline, by how reliable their false alarm budget is. "+confidenceLevels, "short",
			query{expr: "count by (confidence) (" + s.of(metrics.MetricPromise) + ")", legend: "{{confidence}}"}), confidenceColors()...).AxisLabel("Groups").NoValue(noBaseline),
		inColors(stacked("Signals by state", "Signals of the selected groups, by their current state.", "short",
			streamsIn(s, finding.OK), streamsIn(s, finding.WarmingUp), streamsIn(s, finding.TelemetryFault), streamsIn(s, finding.Drift)),
			[2]string{"ok", green}, [2]string{"warming up", faint}, [2]string{"telemetry fault", purple}, [2]string{"drift", red}).AxisLabel("Signals").NoValue(noPolicies))
	folded(d, "Throughput and delay", "sizing.md#throughput",
		inColors(levels("Judged episodes", "Finished episodes that were compared with a baseline or added to one. Telemetry without episodes is judged in blocks of steps.", episodes,
			query{expr: "sum(rate(" + s.of(metrics.MetricUnits) + "[$__rate_interval]))", legend: "judged"}), [2]string{"judged", blue}).NoValue(nothingJudged).Span(third),
		levels("Lag by topic", "Records that have not been read yet, by topic. While there is lag, alarms are late.", "short",
			query{expr: "sum by (topic) (max by (topic, partition) (" + s.service(ingest.MetricLagRecords) + "))", legend: "{{topic}}"}).AxisLabel("Records").NoValue("No topics").Span(third),
		delay(s).Span(third))
	return d
}

// fleetHeadline counts what is wrong now, and shows whether the alerts arrive.
func fleetHeadline(d *dashboard.DashboardBuilder, s scope) {
	withAny := func(metric string) string {
		return "sum(sum by (" + s.groups() + ") (" + s.of(metric) + ") > bool 0)"
	}
	d.WithPanel(number("Firing incidents", "Groups with at least one firing alarm that is not muted. A group has at most one open incident.",
		"short", steps(gray, step{1, red}),
		query{expr: withAny(alerts.MetricAlarms)})).
		WithPanel(number("Muted incidents", "Groups whose firing alarms page no one, because their incident was muted.",
			"short", steps(gray, step{1, amber}),
			query{expr: orZero(withAny(alerts.MetricAlarmsMuted), s.of(alerts.MetricAlarms))})).
		WithPanel(groupsIn(s, "Drifting groups", finding.Drift, "Groups with at least one signal whose score has reached the threshold and not recovered since.", steps(green, step{1, red}))).
		WithPanel(groupsIn(s, "Telemetry faults", finding.TelemetryFault, "Groups with at least one signal that cannot be judged, for example because its values are missing, not finite, or suddenly constant. Repair the telemetry before you judge the policy.", steps(green, step{1, purple}))).
		WithPanel(groupsIn(s, "Warming up", finding.WarmingUp, "Groups whose first baseline is still being collected. They cannot page anyone yet.", steps(gray))).
		WithPanel(unconfirmed(s))
}

// unconfirmed shows the alerts that do not page anyone because Alertmanager does not have them.
func unconfirmed(s scope) *stat.PanelBuilder {
	return number("Unsent alerts", "Alerts of all policies that no Alertmanager has accepted yet. Until one does, they page no one. Not pushed: `alerts.alertmanager` is not set, and Prometheus evaluates the alerting rules instead.",
		"short", steps(green, step{1, red}),
		query{expr: ifPushed(s, "sum("+s.service(alerts.MetricNotifyPending)+")")}).
		Text(quiet()).Mappings(notPushed())
}

// failedPushes shows whether pushes to Alertmanager fail now.
func failedPushes(s scope) *stat.PanelBuilder {
	return number("Failed pushes", "Pushes that Alertmanager did not accept in the last few minutes. While pushes fail, alerts page no one. Check that Alertmanager is running and reachable.",
		"short", steps(green, step{1, red}),
		query{expr: ifPushed(s, counted(s.service(alerts.MetricNotifications, `result="failed"`), overPoint))}).
		Text(quiet()).Mappings(notPushed())
}

// quiet returns a font size for "Not pushed", which would otherwise be larger than the numbers beside it.
func quiet() *common.VizTextDisplayOptionsBuilder {
	return common.NewVizTextDisplayOptionsBuilder().ValueSize(28)
}

// ifPushed returns the expression for a number of alerts or pushes. It is reduced by 1 if no Alertmanager is
// configured, because 0 would then look like a good value.
func ifPushed(s scope, expr string) string {
	return expr + " - (sum(" + s.service(alerts.MetricAlertmanagers) + ") == bool 0)"
}

// notPushed shows the -1 of ifPushed as a text, in a color that stands out less than that of numbers.
func notPushed() []dashboard.ValueMapping {
	return valueTexts{}.as("-1", 0, "Not pushed", faint).mappings()
}

// fleetStates shows which groups drift, since when and why, and what that means for the budget.
func fleetStates(d *dashboard.DashboardBuilder, s scope) {
	const worst = 20
	scores := "max by (" + s.groups() + ") (" + s.of(metrics.MetricDetectorScore) + ")"
	highest := "max by (" + s.groups() + ") (max_over_time(" + s.of(metrics.MetricDetectorScore) + "[$__range] @ end()))"
	d.WithPanel(openIncidents(s, labelColumn("policy", append(atLeast(220), linked(toPolicy(s, ofRow)))...)).Height(7)).
		WithPanel(states("State by group", "Worst state of any signal in each group. Drifting groups come first, then groups with a telemetry fault. Click a group to open its policy.",
			s, s.groups(), s.legend()).
			DataLinks([]cog.Builder[dashboard.DashboardLink]{dashboard.NewDashboardLinkBuilder("Policy").Type(dashboard.DashboardLinkTypeLink).Url(toPolicy(s, ofSeries))}).
			Height(11).RowHeight(.6)). // the minimum height for a page of rows; a single row does not fill it
		WithPanel(heat("Highest scores by group", "Highest detector score of each group over time, for the 20 groups with the highest scores in the time range. A score of 1 (red) raises an alarm.",
			query{expr: scores + " and on (" + s.groups() + ") topk(" + strconv.Itoa(worst) + ", " + highest + ")", legend: s.legend()}).NoValue(noScores).Height(12).Span(10)).
		WithPanel(againstBudget(s).Height(12).Span(14))
}

// budgetUsed returns the expression for the incidents of each group over 30 days, as a multiple of the false alarms
// that the budget allows for the units in that time.
func budgetUsed(s scope) string {
	units := "sum by (" + s.groups() + ") (increase(" + s.of(metrics.MetricUnits) + "[30d]))"
	budget := "min by (" + s.groups() + ") (" + s.of(metrics.MetricFalseAlarmUnits) + ")"
	return counted(s.of(alerts.MetricIncidentsOpened), "30d", s.groups()) + " / (" + units + " / " + budget + " > 0)"
}

// timesBudget returns the explanation of budgetUsed. An incident may be a true drift, so a number above 1 does not mean
// that the budget is missed.
func timesBudget() string {
	return "divided by the number of false alarms that the [budget](" + documents() + "detection.md#what-is-promised) allows for the episodes (or blocks) in that time. Incidents include true drifts: a value above 1 means that policies have drifted, or that there are more false alarms than the budget allows."
}

// budgetLimits colors a multiple of the budget.
func budgetLimits() *dashboard.ThresholdsConfigBuilder {
	return steps(gray, step{3, amber})
}

func againstBudget(s scope) *table.PanelBuilder {
	columns := slices.Concat([]column{labelColumn("policy", append(inWidth(210), linked(toPolicy(s, ofRow)))...)}, labelColumns(s.labels...), []column{
		valueColumnOf(1, "Incidents", inDecimals(0), inWidth(90)),
		valueColumnOf(0, "× budget", inUnit("short"), inDecimals(1), inLimits(budgetLimits()), inWidth(130)),
	})
	return rows("Incidents vs. false alarm budget", "Incidents opened in the last 30 days. × budget: their number, "+timesBudget(),
		columns, []order{{"Value #A", true}, {"policy", false}},
		query{expr: budgetUsed(s)},
		query{expr: counted(s.of(alerts.MetricIncidentsOpened), "30d", s.groups())}).
		NoValue(noPolicies)
}

// likelyCause is the title of the column with the cause of an incident, which is an estimate.
const likelyCause = "Likely cause"

// inTheConsole is the title of the column whose ids link to the pages of the console where people act.
const inTheConsole = "Open in console"

// openIncidents lists the open incidents, by severity and then the newest first. A phone shows only the columns on the
// left. The dashboard of one policy also has columns for the time of the onset, the meaning of the cause, and the
// versions.
func openIncidents(s scope, policy ...column) *table.PanelBuilder {
	columns := []column{labelColumn("severity", slices.Concat(texts(severityColors()...), inWidth(68))...)}
	delivered := valueColumnOf(3, "Alert", mapped(deliveryNames()), []dashboard.DynamicConfigValue{filledCell("color-text")}, inWidth(100))
	inConsole := column{"incident", inTheConsole, slices.Concat(toConsole("Open the incident in the console", "/incidents/", inTheConsole), inWidth(152))}
	if s.single {
		columns = slices.Concat(columns, []column{
			{"cause", likelyCause, slices.Concat(mapped(causePhrases()), atLeast(238))},
			valueColumnOf(0, "Started", inUnit(toTheSecond), mapped(noClock()), inWidth(158)),
		}, narrow(120, s.labels...), []column{
			{"changed", "Version change", slices.Concat(mapped(versionChange()), inWidth(150))},
			valueColumnOf(4, "Seen after", inUnit("s"), inWidth(88)),
			delivered, inConsole,
		})
	} else {
		columns = slices.Concat(columns, policy, narrow(150, s.labels...), []column{
			causeColumn(likelyCause, inWidth(150)...), valueColumnOf(2, "Started", inUnit("dateTimeFromNow"), mapped(noClock()), inWidth(146)), delivered, inConsole,
		})
	}
	by := "max by (" + s.groups("severity", "cause", "incident") + ") ("
	var ranks string
	for i, severity := range alerts.Severities() {
		if i > 0 {
			ranks += " or "
		}
		ranks += by + strconv.Itoa(i) + " + 0 * " + s.of(alerts.MetricIncidentOnset, `severity="`+string(severity)+`"`) + ")"
	}
	onset := by + s.of(alerts.MetricIncidentOnset) + ")"
	key := s.groups("incident")
	delivery := "max by (" + key + ") (" + s.of(alerts.MetricIncidentAlert) + ") * on (" + key + ") group_right () (1 + 0 * " + onset + ")"
	description, queries := "Groups with an open incident, most severe first: the most likely cause, the estimated start of the drift, and whether Alertmanager has accepted the alert. Click a policy for details.",
		[]query{{expr: "1000 * " + onset}, {expr: ranks}, {expr: "1000 * " + onset}, {expr: delivery}}
	if s.single {
		description = "Open incidents of the policy: the most likely cause, the estimated start of the drift, the version change at that time, and whether Alertmanager has accepted the alert. Seen after: time from the start of the drift until the new version was first seen."
		queries = append(queries, seenAfter(s), query{expr: "max by (" + key + ", changed) (" + s.of(alerts.MetricIncidentVersions) + ")"})
	}
	return rows("Open incidents", description+" Not pushed: Prometheus evaluates the alerting rules instead. To mute an incident or decide on a retraining, open it in the console.", columns,
		[]order{{"Value #B", false}, {"Value #A", true}}, queries...).
		NoValue("No open incidents").Span(full)
}

// seenAfter returns the query for the time from the onset of each open incident until the versions after it were first
// seen, if any version changed. Only the latest version exports when it was first seen, so the query looks for it in the
// whole time range.
func seenAfter(s scope) query {
	key := s.groups(versionLabels()...)
	seen := "max by (" + s.groups("incident", "changed") + ") (" + s.of(alerts.MetricIncidentVersions, `changed!="none"`) +
		" * on (" + key + ") group_left () max by (" + key + ") (max_over_time(" + s.of(metrics.MetricVersionSince) + "[$__range])))"
	of := s.groups("incident")
	return query{expr: seen + " - on (" + of + ") group_left () max by (" + of + ") (" + s.of(alerts.MetricIncidentOnset) + ")"}
}

// versionChange shows a change such as "env_version 41 → 42" without the underscore.
func versionChange() []dashboard.ValueMapping {
	return []dashboard.ValueMapping{inPlaceOf("/_version /g", " version ")}
}

func causeColumn(title string, options ...dashboard.DynamicConfigValue) column {
	var causes [][2]string
	for _, cause := range alerts.Causes() {
		causes = append(causes, [2]string{string(cause)})
	}
	return column{"cause", title, append(plain(causes...), options...)}
}

// causePhrases maps each cause to its meaning.
func causePhrases() []dashboard.ValueMapping {
	phrases := map[alerts.Cause]string{
		alerts.CausePolicy:         "Policy: changed behavior",
		alerts.CauseEnvironment:    "Environment: changed responses",
		alerts.CauseRewardFunction: "Reward function: changed rewards",
		alerts.CauseRewardHacking:  "Reward hacking: worse outcomes",
		alerts.CauseObservations:   "Observations: changed inputs",
		alerts.CauseTelemetry:      "Telemetry: wrong values",
		alerts.CauseUnknown:        "Unknown",
	}
	options := valueTexts{}
	for i, cause := range alerts.Causes() {
		options.as(string(cause), i, phrases[cause], "")
	}
	return options.mappings()
}

// deliveryNames maps the values of MetricIncidentAlert to words.
func deliveryNames() []dashboard.ValueMapping {
	options := valueTexts{}
	for state, named := range map[alerts.DeliveryState][2]string{
		alerts.ByRules: {"not pushed", gray}, alerts.Undelivered: {"not delivered", red},
		alerts.Delivered: {"delivered", green}, alerts.Silenced: {"muted", blue},
	} {
		options.as(strconv.Itoa(int(state)), int(state), named[0], readable(named[1]))
	}
	return options.mappings()
}

// noClock maps a time of 0 to "no timestamps".
func noClock() []dashboard.ValueMapping {
	return valueTexts{}.as("0", 0, "no timestamps", "").mappings()
}

// toPolicy returns the link from a group to the dashboard of its policy, for the displayed time range. labels is where
// the link finds the labels: ofSeries, or in a table ofRow.
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
	return inColors(stacked("Firing and muted alarms", description, "short",
		query{expr: "sum by (severity) (" + s.of(alerts.MetricAlarms) + ")", legend: "{{severity}}"}, muted(s)),
		append(severityColors(), [2]string{"muted", faint})...).AxisLabel("Alarms").NoValue(noPolicies)
}

func severityColors() [][2]string {
	return [][2]string{{string(alerts.Critical), red}, {string(alerts.Warning), orange}, {string(alerts.Info), blue}}
}

func causeColors() [][2]string {
	colors := map[alerts.Cause]string{
		alerts.CausePolicy: red, alerts.CauseEnvironment: orange, alerts.CauseRewardFunction: blue,
		alerts.CauseRewardHacking: dark, alerts.CauseObservations: yellow, alerts.CauseTelemetry: purple, alerts.CauseUnknown: faint,
	}
	var all [][2]string
	for _, c := range alerts.Causes() {
		all = append(all, [2]string{spacedName(string(c)), colors[c]})
	}
	return all
}

func confidenceColors() [][2]string {
	return [][2]string{{"kept", green}, {"reduced", blue}, {"provisional", yellow}, {"unconfirmed", orange}, {"none", red}}
}

// muted counts the alarms of muted incidents.
func muted(s scope) query {
	return query{expr: orZero("sum("+s.of(alerts.MetricAlarmsMuted)+")", s.of(alerts.MetricAlarms)), legend: "muted"}
}

// streamsIn counts the streams in one state.
func streamsIn(s scope, state finding.State) query {
	return query{expr: "sum(" + s.of(metrics.MetricStreamState) + " == bool " + strconv.Itoa(int(state)) + ")", legend: inWords(state)}
}

// groupsIn shows the number of groups whose worst stream is in the given state.
func groupsIn(s scope, title string, state finding.State, description string, colors *dashboard.ThresholdsConfigBuilder) *stat.PanelBuilder {
	return number(title, description, "short", colors,
		query{expr: "sum(max by (" + s.groups() + ") (" + s.of(metrics.MetricStreamState) + ") == bool " + strconv.Itoa(int(state)) + ")"})
}
