package dashboards

import (
	"slices"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"

	"github.com/rewardwatch/rewardwatch/detectors/metrics"
	"github.com/rewardwatch/rewardwatch/retrain"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// retraining returns the dashboard of the ledger: which retrainings were ordered, whether they are delivered, and
// whether they helped.
func retraining(opts Options) *dashboard.DashboardBuilder {
	s := fleetScope(opts)
	d := frame("Rewardwatch / Retraining", "Retrain requests from approval to outcome: which ones need a decision, whether they are delivered, and whether the new versions meet their contracts.",
		retrainingUID, s, everything(policyVariable()))
	d.WithPanel(inConsole(number("To approve", "Retrain requests that must be approved before they are delivered. Click the number to decide on them in the console.", "short", steps(gray, step{1, amber}),
		query{expr: inStates(s, "awaiting_approval")}), "awaiting_approval")).
		WithPanel(number("In progress", "Retrain requests that are waiting for delivery, whose job is running, or whose new version is being judged.", "short", steps(gray),
			query{expr: inStates(s, "queued|open|delivered|running|verifying")})).
		WithPanel(number("Retrying", "Retrain requests with at least one failed delivery attempt, which Rewardwatch will try to deliver again. Check that their targets are reachable.", "short", steps(gray, step{1, red}),
			query{expr: "sum(max by (target) (" + s.service(retrain.MetricRetrying) + "))"})).
		WithPanel(inConsole(number("Not delivered", "Retrain requests whose delivery was given up. Click the number to deliver them again from the console.", "short", steps(gray, step{1, red}),
			query{expr: inStates(s, "dead_letter")}), "dead_letter")).
		WithPanel(number("Missed or failed", "All retrainings whose new version did not meet its contract, or whose job failed or did not end in time. The table below lists only the latest retraining of each policy.", "short", steps(gray, step{1, red}),
			query{expr: inStates(s, "missed|failed")})).
		WithPanel(number("Contract met", "All retrainings whose new version met its contract. The table below lists only the latest retraining of each policy.", "short", steps(gray, step{1, green}),
			query{expr: inStates(s, "met")})).
		WithPanel(verdicts(s)).
		WithPanel(underWay(s)).
		WithPanel(inStateColors(stacked("Requests by status", "Retrain requests in the ledger, by status.", "short",
			query{expr: "sum by (state) (max by (policy, state) (" + s.policies(retrain.MetricRequests) + ")) > 0", legend: "{{state}}"})).AxisLabel("Requests").NoValue("No requests").Span(7)).
		WithPanel(webhooks(s).Span(7))
	retrainingOutcomes(d, s)
	folded(d, "Deliveries", "targets.md#the-queue",
		levels("Webhook delivery time (p90)", "90th percentile of the duration of delivery attempts, by target.", "s",
			query{expr: "histogram_quantile(0.9, sum by (le, target) (rate(" + s.service(retrain.MetricDeliveryDuration+"_bucket") + "[$__rate_interval]))) >= 0", legend: "{{target}}"}).NoValue("No deliveries"),
		targetsInTrouble(s),
		happened("Ledger retries", "Transactions that were retried because the ledger could not be reached, by instance.", "Transactions",
			query{expr: counted(s.service(retrain.MetricLedgerRetries), overPoint, "instance"), legend: "{{instance}}"}).NoValue("No ledger"))
	return d
}

// verdicts lists the last retraining of each policy, with those that did not help at the top. The contract of each is
// one text, such as "mean return > 0.5", whose number is the value of the metric.
func verdicts(s scope) *table.PanelBuilder {
	of := func(more ...string) string {
		valued := `count_values by (policy, request, state, statistic, signal, comparison) ("value", round(` + s.policies(retrain.MetricLastExpected, more...) + `, 0.001))`
		return `max by (policy, request, condition, state) (label_join(` + valued + `, "condition", " ", "statistic", "signal", "comparison", "value"))`
	}
	ranks := "0 * " + of(`state=~"missed|failed"`) + " or 1 + 0 * " + of(`state="inconclusive"`) + " or 2 + 0 * " + of()
	return rows("Latest retraining by policy", "Latest delivered retraining of each policy: what its contract expects of the new version, and what was observed once the outcome is known. Missed and failed retrainings come first. Click a request to see its evidence in the console.",
		[]column{
			labelColumn("policy", atLeast(220)...),
			{"state", "Status", slices.Concat(statuses(), inWidth(120))},
			{"condition", "Expected", atLeast(220)},
			valueColumnOf(1, "Observed", inUnit("short"), inDecimals(3), inWidth(110)),
			labelColumn("request", slices.Concat(toConsole("Open the request in the console", "/retrain/", "request"), inWidth(260))...),
		}, []order{{"Value #C", false}, {"policy", false}},
		query{expr: of()},
		query{expr: "max by (policy, request) (" + s.policies(retrain.MetricLastObserved) + ")"},
		query{expr: ranks}).
		NoValue("No retrainings delivered").Span(full)
}

// underWay lists the policies whose requests have not ended. Requests that wait for a person are at the top.
func underWay(s scope) *table.PanelBuilder {
	of := func(states string) string {
		return "max by (policy, state) (" + s.policies(retrain.MetricRequests, `state=~"`+states+`"`) + ") > 0"
	}
	const others = "queued|open|delivered|running|verifying"
	return rows("Unfinished requests", "Number of retrain requests without an outcome, by policy and status. Requests that await approval come first. Click a policy to see its requests in the console.",
		[]column{
			labelColumn("policy", append(requestsInConsole("policy=${__data.fields.policy:percentencode}"), atLeast(220)...)...),
			{"state", "Status", append(statuses(), inWidth(130)...)},
			valueColumnOf(0, "Requests", inDecimals(0), inWidth(85)),
		}, []order{{"Value #B", false}, {"policy", false}, {"state", false}},
		query{expr: of("awaiting_approval|" + others)},
		query{expr: "0 * (" + of("awaiting_approval") + ") or 1 + 0 * (" + of(others) + ")"}).
		NoValue("No unfinished requests").Span(10)
}

// requestsInConsole links to the requests that match a query in the console.
func requestsInConsole(query string) []dashboard.DynamicConfigValue {
	return []dashboard.DynamicConfigValue{{Id: "links", Value: []map[string]any{
		{"title": "Open the retrain requests in the console", "url": "${console:raw}/retrain?" + query, "targetBlank": true},
	}}}
}

// inConsole makes the number of requests in a state link to these requests.
func inConsole(p *stat.PanelBuilder, state string) *stat.PanelBuilder {
	return p.DataLinks([]cog.Builder[dashboard.DashboardLink]{
		dashboard.NewDashboardLinkBuilder("Open the retrain requests in the console").Type(dashboard.DashboardLinkTypeLink).
			Url("${console:raw}/retrain?state=" + state).TargetBlank(true),
	})
}

// inStates returns the expression for the number of requests in some states. All instances that share a ledger export
// the same requests.
func inStates(s scope, states string) string {
	return "sum(max by (policy, state) (" + s.policies(retrain.MetricRequests, `state=~"`+states+`"`) + "))"
}

// inStateColors assigns a color to each state of a request: good outcomes are green, bad ones red.
func inStateColors(p *timeseries.PanelBuilder) *timeseries.PanelBuilder {
	colors := requestColors(ledger.States()...)
	for i := range colors {
		colors[i][0] = statusName(ledger.State(colors[i][0]))
	}
	return inColors(spaced(p.WithTransformation(renamed("/^"+string(ledger.StateDeadLetter)+"$/", statusName(ledger.StateDeadLetter)))), colors...)
}

// statusName returns the state of a request in words.
func statusName(state ledger.State) string {
	if state == ledger.StateDeadLetter {
		return "not delivered"
	}
	return state.InWords(false)
}

// statuses shows the states of requests in words and colors.
func statuses() []dashboard.DynamicConfigValue {
	options := valueTexts{}
	for i, c := range requestColors(ledger.States()...) {
		options.as(c[0], i, statusName(ledger.State(c[0])), readable(c[1]))
	}
	return append(mapped(options.mappings()), filledCell("color-text"))
}

func requestColors(states ...ledger.State) [][2]string {
	colors := map[ledger.State]string{
		ledger.StateQueued: "super-light-blue", ledger.StateAwaitingApproval: "light-yellow", ledger.StateOpen: "light-blue", ledger.StateDelivered: blue,
		ledger.StateRunning: "semi-dark-blue", ledger.StateVerifying: purple,
		ledger.StateMet: green, ledger.StateInconclusive: yellow, ledger.StateMissed: red, ledger.StateFailed: dark, ledger.StateDeadLetter: orange,
		ledger.StateRejected: gray, ledger.StateExpired: "dark-yellow", ledger.StateWithdrawn: "semi-dark-green",
	}
	var all [][2]string
	for _, state := range states {
		all = append(all, [2]string{string(state), colors[state]})
	}
	return all
}

// retrainingOutcomes compares the values that retrainings must achieve with the observed ones.
func retrainingOutcomes(d *dashboard.DashboardBuilder, s scope) {
	expected := "topk(2, max by (policy, statistic, signal, comparison) (" + s.policies(retrain.MetricExpected) + "))"
	observed := "(" + observations(s) + ") and on (policy, statistic, signal) (" + expected + ")"
	folded(d, "Outcomes over time", "outcomes.md",
		lines("Observed vs. expected values", "Statistic in the contract of each retraining whose outcome is pending, over the last 200 episodes (or blocks). Dashed: value that the contract expects. The outcome is decided by episodes of the new version only. At most two policies are shown; choose others with the Policy variable.", "short",
			query{expr: observed, legend: s.legend("statistic", "signal")},
			query{expr: expected, legend: "{{policy}} expected: {{statistic}} {{signal}} {{comparison}}"}).
			OverrideByRegexp("/expected/", append(dashed(), unlisted()...)).AxisLabel("Value").NoValue("No pending outcomes").Span(full),
		inColors(happened("Retrainings by outcome", "Retrainings that ended, by outcome. Met: the new version met its contract. Missed: it did not. Inconclusive: there were too few episodes (or blocks) to decide. Failed: the job did not produce a new version.", "Retrainings",
			query{expr: "round(sum by (outcome) (max by (policy, outcome) (increase(" + s.policies(retrain.MetricOutcomes) + "[$__rate_interval]))))", legend: "{{outcome}}"}),
			requestColors(ledger.StateMet, ledger.StateInconclusive, ledger.StateMissed, ledger.StateFailed)...).
			NoValue("No retrainings have ended"),
		levels("Longest remaining cooldowns", "Time until an incident of a policy can request another retraining from a target. Only the six longest cooldowns are shown.", "s",
			query{expr: "topk(6, max by (policy, target) (" + s.policies(retrain.MetricCooldown) + ") > 0)", legend: "{{policy}} {{target}}"}).NoValue("No cooldowns"))
}

// observations returns the statistics of the last 200 units under the names that contracts use for them.
func observations(s scope) string {
	as := func(statistic, metric string, matchers ...string) string {
		of := s.of(metric, append([]string{`sample="current"`}, matchers...)...)
		return `label_replace(avg by (` + s.groups("signal") + `) (` + of + `), "statistic", "` + statistic + `", "", "")`
	}
	return strings.Join([]string{
		as("mean", metrics.MetricSignalMean), as("sd", metrics.MetricSignalStddev), as("median", metrics.MetricSignalQuantile, `q="0.5"`),
		as("q10", metrics.MetricSignalQuantile, `q="0.1"`), as("q90", metrics.MetricSignalQuantile, `q="0.9"`),
	}, " or ")
}

func webhooks(s scope) *timeseries.PanelBuilder {
	return happened("Webhook deliveries", "Attempts to deliver retrain requests, by target and result. Red: failed attempts, which are retried.", "Attempts",
		query{expr: counted(s.service(retrain.MetricDeliveries), overPoint, "target", "result") + " > 0", legend: "{{target}} {{result}}"}).
		NoValue("No deliveries").
		WithTransformation(renamed("/ refused_address$/", " refused address")).
		OverrideByRegexp("/ /", shadesOf(red)).
		OverrideByRegexp("/ delivered$/", shadesOf(green))
}

func targetsInTrouble(s scope) *timeseries.PanelBuilder {
	of := func(metric, legend string) query {
		return query{expr: "max by (target) (" + s.service(metric) + ") > 0", legend: "{{target}} " + legend}
	}
	return levels("Failing targets", "Targets that do not accept retrain requests. Not delivered: number of requests whose delivery was given up. Disabled: the target returned 410 Gone and receives no more requests. Circuit open: after five consecutive failures, the target receives at most one request per minute.", "short",
		of(retrain.MetricDeadLetters, "not delivered"), of(retrain.MetricTargetDisabled, "disabled"), of(retrain.MetricCircuitOpen, "circuit open")).
		NoValue("No failing targets")
}
