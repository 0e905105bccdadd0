package dashboards

import (
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"github.com/rewardwatch/rewardwatch/retrain"
)

// retraining is the dashboard of the ledger: what was ordered, does it arrive, and did it help.
func retraining(opts Options) *dashboard.DashboardBuilder {
	s := fleetScope(opts)
	d := frame("Rewardwatch / Retraining", "Retrain requests: where they stand, whether they arrive, and what came of them.",
		retrainingUID, s, everything(policyVariable()))
	retrainingRequests(d, s)
	retrainingDeliveries(d, s)
	return d
}

// inStates counts the requests in some states. All instances that share a ledger show the same.
func inStates(s scope, states string) string {
	return "sum(max by (policy, state) (" + s.policies(retrain.MetricRequests, `state=~"`+states+`"`) + "))"
}

func retrainingRequests(d *dashboard.DashboardBuilder, s scope) {
	d.WithRow(dashboard.NewRowBuilder("Requests")).
		WithPanel(number("Wait for approval", "Requests that a person has to approve before they leave.", "short", steps(green, step{1, yellow}),
			query{expr: inStates(s, "awaiting_approval") + " or vector(0)"})).
		WithPanel(number("Under way", "Requests that are to be delivered, whose job goes on, or whose new version is being judged.", "short", steps(gray),
			query{expr: inStates(s, "open|delivered|running|verifying") + " or vector(0)"})).
		WithPanel(number("Met", "Retrainings whose new version shows what their contract expects.", "short", steps(green),
			query{expr: inStates(s, "met") + " or vector(0)"})).
		WithPanel(number("Missed", "Retrainings whose new version does not.", "short", steps(green, step{1, red}),
			query{expr: inStates(s, "missed") + " or vector(0)"})).
		WithPanel(number("Failed", "Retrainings whose job has failed or did not end in time.", "short", steps(green, step{1, red}),
			query{expr: inStates(s, "failed") + " or vector(0)"})).
		WithPanel(number("Given up", "Requests that could not be delivered. They can be resent.", "short", steps(green, step{1, red}),
			query{expr: inStates(s, "dead_letter") + " or vector(0)"})).
		WithPanel(stacked("Requests by state", "What the ledger holds.", "short",
			query{expr: "sum by (state) (max by (policy, state) (" + s.policies(retrain.MetricRequests) + ")) > 0", legend: "{{state}}"})).
		WithPanel(lines("Cooldowns", "Time until an incident of a policy can order a retraining from a target again.", "s",
			query{expr: "max by (policy, target) (" + s.policies(retrain.MetricCooldown) + ") > 0", legend: "{{policy}} {{target}}"}).Min(0))
}

func retrainingDeliveries(d *dashboard.DashboardBuilder, s scope) {
	d.WithRow(dashboard.NewRowBuilder("Deliveries")).
		WithPanel(lines("Webhook deliveries", "Attempts to deliver a retrain request, by target and result.", "short",
			query{expr: "sum by (target, result) (increase(" + s.service(retrain.MetricDeliveries) + "[$__rate_interval]))", legend: "{{target}} {{result}}"}).Min(0)).
		WithPanel(lines("Webhook delivery time", "How long nine of ten attempts to deliver take at most, by target.", "s",
			query{expr: "histogram_quantile(0.9, sum by (le, target) (rate(" + s.service(retrain.MetricDeliveryDuration+"_bucket") + "[$__rate_interval])))", legend: "{{target}}"}).Min(0)).
		WithPanel(lines("Targets in trouble", "Requests given up by target, targets that answered 410 Gone and get no more, and targets at which so many attempts failed that one request at a time is tried.", "short",
			query{expr: "max by (target) (" + s.service(retrain.MetricDeadLetters) + ")", legend: "{{target}} given up"},
			query{expr: "max by (target) (" + s.service(retrain.MetricTargetDisabled) + ")", legend: "{{target}} disabled"},
			query{expr: "max by (target) (" + s.service(retrain.MetricCircuitOpen) + ")", legend: "{{target}} circuit open"}).Min(0)).
		WithPanel(lines("Ledger retries", "Transactions that were begun again because the ledger could not be reached.", "short",
			query{expr: "sum by (instance) (increase(" + s.service(retrain.MetricLedgerRetries) + "[$__rate_interval]))", legend: "{{instance}}"}).Min(0))
}
