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
	d := frame("Rewardwatch / Retraining", "Retrain requests: what is waiting, whether deliveries arrive, and how the new versions perform.",
		retrainingUID, s, everything(policyVariable()))
	d.WithPanel(inConsole(number("To approve", "Requests that must be approved before they are delivered. Click the number to decide on them in the console.", "short", steps(gray, step{1, amber}),
		query{expr: inStates(s, "awaiting_approval")}), "awaiting_approval")).
		WithPanel(number("In progress", "Requests that are waiting for delivery, whose job is running, or whose new version is being judged.", "short", steps(gray),
			query{expr: inStates(s, "queued|open|delivered|running|verifying")})).
		WithPanel(number("Retrying", "Requests with at least one failed delivery attempt. Rewardwatch tries again.", "short", steps(gray, step{1, red}),
			query{expr: "sum(max by (target) (" + s.service(retrain.MetricRetrying) + "))"})).
		WithPanel(inConsole(number("Given up", "Requests that could not be delivered. Click the number to deliver them again from the console.", "short", steps(gray, step{1, red}),
			query{expr: inStates(s, "dead_letter")}), "dead_letter")).
		WithPanel(number("Missed or failed", "Retrainings whose new version did not meet its contract, and jobs that failed or did not end in time.", "short", steps(gray, step{1, red}),
			query{expr: inStates(s, "missed|failed")})).
		WithPanel(number("Met", "Retrainings whose new version met its contract.", "short", steps(gray, step{1, green}),
			query{expr: inStates(s, "met")})).
		WithPanel(verdicts(s)).
		WithPanel(underWay(s)).
		WithPanel(inStateColors(stacked("Requests by state", "Retrain requests in the ledger, by state.", "short",
			query{expr: "sum by (state) (max by (policy, state) (" + s.policies(retrain.MetricRequests) + ")) > 0", legend: "{{state}}"})).NoValue("No requests").Span(7)).
		WithPanel(webhooks(s).Span(7))
	retrainingOutcomes(d, s)
	folded(d, "Deliveries", "targets.md#the-queue",
		levels("Webhook delivery time", "90th percentile of the duration of delivery attempts, by target.", "s",
			query{expr: "histogram_quantile(0.9, sum by (le, target) (rate(" + s.service(retrain.MetricDeliveryDuration+"_bucket") + "[$__rate_interval]))) >= 0", legend: "{{target}}"}).NoValue("No deliveries"),
		targetsInTrouble(s),
		happened("Ledger retries", "Transactions that were retried because the ledger could not be reached.",
			query{expr: counted(s.service(retrain.MetricLedgerRetries), overPoint, "instance"), legend: "{{instance}}"}))
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
	return rows("Expected and observed", "The last delivered retraining of each policy: what the new version must achieve, and what it has achieved once the outcome is known. Missed and failed retrainings are on top. Click a request to see its evidence in the console.",
		[]column{
			labelColumn("policy", atLeast(220)...),
			{"state", "state or verdict", slices.Concat(texts(requestColors(ledger.States()...)...), inWidth(120))},
			{"condition", "must show", atLeast(220)},
			valueColumnOf(1, "observed", inUnit("short"), inDecimals(3), ifAbsent("-"), inWidth(110)),
			labelColumn("request", slices.Concat(toConsole("Open in the console", "/retrain/", "request"), inWidth(260))...),
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
	return rows("Unfinished requests", "Retrain requests that have not ended, by policy. Those awaiting approval are on top. Click a policy to see its requests in the console.",
		[]column{
			labelColumn("policy", append(requestsInConsole("policy=${__data.fields.policy:percentencode}"), atLeast(220)...)...),
			labelColumn("state", append(texts(requestColors(ledger.States()...)...), inWidth(130)...)...),
			valueColumnOf(0, "requests", inDecimals(0), inWidth(85)),
		}, []order{{"Value #B", false}, {"policy", false}, {"state", false}},
		query{expr: of("awaiting_approval|" + others)},
		query{expr: "0 * (" + of("awaiting_approval") + ") or 1 + 0 * (" + of(others) + ")"}).
		NoValue("No unfinished requests").Span(10)
}

// requestsInConsole links to the requests that match a query in the console.
func requestsInConsole(query string) []dashboard.DynamicConfigValue {
	return []dashboard.DynamicConfigValue{{Id: "links", Value: []map[string]any{
		{"title": "Open the requests in the console", "url": "${console:raw}/retrain?" + query, "targetBlank": true},
	}}}
}

// inConsole makes the number of requests in a state link to these requests.
func inConsole(p *stat.PanelBuilder, state string) *stat.PanelBuilder {
	return p.DataLinks([]cog.Builder[dashboard.DashboardLink]{
		dashboard.NewDashboardLinkBuilder("Open the requests in the console").Type(dashboard.DashboardLinkTypeLink).
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
		colors[i][0] = strings.ReplaceAll(colors[i][0], "_", " ")
	}
	return inColors(spaced(p), colors...)
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
		lines("Expected and observed over time", "What the new version of each retraining must achieve (dashed), from delivery to outcome, and the same statistic for the last 200 episodes (or blocks) of the policy. The verdict uses only episodes of the new version. Shows at most two policies; use the Policy selector above to choose others.", "short",
			query{expr: observed, legend: s.legend("statistic", "signal")},
			query{expr: expected, legend: "{{policy}} expected: {{statistic}} {{signal}} {{comparison}}"}).
			OverrideByRegexp("/expected/", append(dashed(), unlisted()...)).NoValue("No pending outcomes").Span(full),
		inColors(happened("Retrainings by outcome", "Retrainings that have ended. Met, missed: the new version met or did not meet its contract. Inconclusive: there were too few episodes (or blocks) to decide. Failed: the job did not produce a version.",
			query{expr: "round(sum by (outcome) (max by (policy, outcome) (increase(" + s.policies(retrain.MetricOutcomes) + "[$__rate_interval]))))", legend: "{{outcome}}"}),
			requestColors(ledger.StateMet, ledger.StateInconclusive, ledger.StateMissed, ledger.StateFailed)...).
			NoValue("No retrainings have ended"),
		levels("Cooldowns", "The six longest remaining cooldowns: time until an incident of a policy can request another retraining from a target.", "s",
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
	return happened("Webhook deliveries", "Attempts to deliver retrain requests, by target and result. Red: failed attempts, which are retried.",
		query{expr: counted(s.service(retrain.MetricDeliveries), overPoint, "target", "result") + " > 0", legend: "{{target}} {{result}}"}).
		NoValue("No deliveries").
		OverrideByRegexp("/ /", shadesOf(red)).
		OverrideByRegexp("/ delivered$/", shadesOf(green))
}

func targetsInTrouble(s scope) *timeseries.PanelBuilder {
	of := func(metric, legend string) query {
		return query{expr: "max by (target) (" + s.service(metric) + ") > 0", legend: "{{target}} " + legend}
	}
	return levels("Failing targets", "By target: requests that could not be delivered; disabled targets, which returned 410 Gone and receive no more requests; and targets with an open circuit, which receive at most one request per minute after five failed attempts in a row.", "short",
		of(retrain.MetricDeadLetters, "not delivered"), of(retrain.MetricTargetDisabled, "disabled"), of(retrain.MetricCircuitOpen, "circuit open")).
		NoValue("No failing targets")
}
