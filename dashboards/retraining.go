package dashboards

import (
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"

	"github.com/rewardwatch/rewardwatch/detectors/metrics"
	"github.com/rewardwatch/rewardwatch/retrain"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// retraining returns the dashboard of the ledger: what was ordered, whether it arrives, and whether it helped.
func retraining(opts Options) *dashboard.DashboardBuilder {
	s := fleetScope(opts)
	d := frame("Rewardwatch / Retraining", "Retrain requests: where they stand, whether they arrive, and what came of them.",
		retrainingUID, s, everything(policyVariable()))
	retrainingRequests(d, s)
	retrainingOutcomes(d, s)
	retrainingDeliveries(d, s)
	return d
}

// inStates returns the number of requests in some states. All instances that share a ledger export the same.
func inStates(s scope, states string) string {
	return "sum(max by (policy, state) (" + s.policies(retrain.MetricRequests, `state=~"`+states+`"`) + "))"
}

func retrainingRequests(d *dashboard.DashboardBuilder, s scope) {
	d.WithRow(dashboard.NewRowBuilder("Requests")).
		WithPanel(number("Wait for approval", "Requests that a person has to approve before they leave.", "short", steps(green, step{1, yellow}),
			query{expr: inStates(s, "awaiting_approval")})).
		WithPanel(number("Under way", "Requests that are to be delivered, whose job goes on, or whose new version is being judged.", "short", steps(gray),
			query{expr: inStates(s, "queued|open|delivered|running|verifying")})).
		WithPanel(number("Met", "Retrainings whose new version shows what their contract expects.", "short", steps(green),
			query{expr: inStates(s, "met")})).
		WithPanel(number("Missed", "Retrainings whose new version does not.", "short", steps(green, step{1, red}),
			query{expr: inStates(s, "missed")})).
		WithPanel(number("Failed", "Retrainings whose job has failed or did not end in time.", "short", steps(green, step{1, red}),
			query{expr: inStates(s, "failed")})).
		WithPanel(number("Given up", "Requests that could not be delivered. They can be resent.", "short", steps(green, step{1, red}),
			query{expr: inStates(s, "dead_letter")})).
		WithPanel(inStateColors(stacked("Requests by state", "What the ledger holds.", "short",
			query{expr: "sum by (state) (max by (policy, state) (" + s.policies(retrain.MetricRequests) + ")) > 0", legend: "{{state}}"}))).
		WithPanel(lines("Cooldowns", "Time until an incident of a policy can order a retraining from a target again.", "s",
			query{expr: "max by (policy, target) (" + s.policies(retrain.MetricCooldown) + ") > 0", legend: "{{policy}} {{target}}"}).Min(0))
}

// inStateColors distinguishes good outcomes from bad ones by color.
func inStateColors(p *timeseries.PanelBuilder) *timeseries.PanelBuilder {
	return inColors(p, [2]string{string(ledger.StateMet), green}, [2]string{string(ledger.StateInconclusive), yellow},
		[2]string{string(ledger.StateMissed), red}, [2]string{string(ledger.StateFailed), dark}, [2]string{string(ledger.StateDeadLetter), orange})
}

// retrainingOutcomes compares what retrainings were to show with what is observed.
func retrainingOutcomes(d *dashboard.DashboardBuilder, s scope) {
	expected := "max by (policy, statistic, signal, comparison) (" + s.policies(retrain.MetricExpected) + ")"
	observed := "(" + observations(s) + ") and on (policy, statistic, signal) (" + expected + ")"
	d.WithRow(dashboard.NewRowBuilder("Outcomes")).
		WithPanel(lines("Expected against observed", "What the new version of each retraining is to show (dashed), from the delivery of the order to its outcome, and the same statistic of the last 200 episodes (or blocks) of the policy. The verdict itself takes those of the new version alone.", "short",
			query{expr: observed, legend: s.legend("statistic", "signal")},
			query{expr: expected, legend: "{{policy}} expected: {{statistic}} {{signal}} {{comparison}}"}).
			OverrideByRegexp("/expected/", dashed()).NoValue("No outcome is awaited")).
		WithPanel(inStateColors(lines("Retrainings by outcome", "Retrainings that have come to an end: met and missed, what was expected was or was not observed; inconclusive, the episodes (or blocks) did not tell; failed, the job did not deliver. Over the interval of one point.", "short",
			query{expr: "round(sum by (outcome) (max by (policy, outcome) (increase(" + s.policies(retrain.MetricOutcomes) + "[$__rate_interval]))))", legend: "{{outcome}}"}).
			Min(0).NoValue("Nothing was retrained")))
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

func retrainingDeliveries(d *dashboard.DashboardBuilder, s scope) {
	d.WithRow(dashboard.NewRowBuilder("Deliveries")).
		WithPanel(webhooks(s)).
		WithPanel(lines("Webhook delivery time", "How long nine of ten attempts to deliver take at most, by target.", "s",
			query{expr: "histogram_quantile(0.9, sum by (le, target) (rate(" + s.service(retrain.MetricDeliveryDuration+"_bucket") + "[$__rate_interval])))", legend: "{{target}}"}).Min(0)).
		WithPanel(targetsInTrouble(s)).
		WithPanel(lines("Ledger retries", "Transactions that were begun again because the ledger could not be reached.", "short",
			query{expr: counted(s.service(retrain.MetricLedgerRetries), overPoint, "instance"), legend: "{{instance}}"}).Min(0))
}

func webhooks(s scope) *timeseries.PanelBuilder {
	return lines("Webhook deliveries", "Attempts to deliver a retrain request, by target and result.", "short",
		query{expr: counted(s.service(retrain.MetricDeliveries), overPoint, "target", "result"), legend: "{{target}} {{result}}"}).Min(0).
		OverrideByRegexp("/ /", shadesOf(red)).
		OverrideByRegexp("/ delivered$/", colored(green))
}

func targetsInTrouble(s scope) *timeseries.PanelBuilder {
	return lines("Targets in trouble", "Requests given up by target, targets that answered 410 Gone and get no more, and targets at which so many attempts failed that one request at a time is tried.", "short",
		query{expr: "max by (target) (" + s.service(retrain.MetricDeadLetters) + ")", legend: "{{target}} given up"},
		query{expr: "max by (target) (" + s.service(retrain.MetricTargetDisabled) + ")", legend: "{{target}} disabled"},
		query{expr: "max by (target) (" + s.service(retrain.MetricCircuitOpen) + ")", legend: "{{target}} circuit open"}).Min(0)
}
