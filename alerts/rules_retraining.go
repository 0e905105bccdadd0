package alerts

import "fmt"

// ofState is a series of the requests of a state in a test. All instances that share a ledger show the same.
func ofState(metric, state, values string) inputSeries {
	return ofInstance(metric, fmt.Sprintf("policy=%q,state=%q", "checkout", state), values)
}

// retrainNoImprovement is the rule of retrainings that did not help.
func retrainNoImprovement(requests string) rule {
	const (
		summary     = "a retraining of checkout did not help"
		description = "The new version does not show what the contract expects, or its job has failed. `rewardwatch retrain list --policy checkout` " +
			"says which request, and why."
	)
	return rule{
		alert: "RetrainNoImprovement", severity: Warning, dashboard: policyDashboard,
		expr: fmt.Sprintf(`max by (job, policy, state) (%[1]s{state=~"missed|failed"}) > (max by (job, policy, state) (%[1]s{state=~"missed|failed"} offset 1h) `+
			`or 0 * max by (job, policy, state) (%[1]s{state=~"missed|failed"}))`, requests),
		summary: "a retraining of {{ $labels.policy }} did not help",
		description: "The new version does not show what the contract expects, or its job has failed. `rewardwatch retrain list --policy {{ $labels.policy }}` " +
			"says which request, and why.",
		tests: []ruleTest{
			{
				name: "missed", at: "2h", series: []inputSeries{ofState(requests, "missed", "1+0x100 2+0x100")},
				fires: []expectedAlert{fires(summary, description, "job", "rewardwatch", "policy", "checkout", "state", "missed")},
			},
			{name: "missed long ago", at: "4h", series: []inputSeries{ofState(requests, "missed", "1+0x20 2+0x300")}},
			{name: "met", at: "2h", series: []inputSeries{ofState(requests, "met", "1+0x100 2+0x100"), ofState(requests, "missed", "0+0x200")}},
		},
	}
}

// retrainAwaitsApproval is the rule of requests that nobody decides on: they expire.
func retrainAwaitsApproval(requests string) rule {
	const (
		summary     = "a retraining of checkout waits for approval"
		description = "It expires a day after it was opened. `rewardwatch retrain list --state awaiting_approval` shows what it is about."
	)
	return rule{
		alert: "RetrainAwaitsApproval", severity: Info, wait: "4h", dashboard: retrainingDashboard,
		expr:        fmt.Sprintf(`max by (job, policy) (%s{state="awaiting_approval"}) > 0`, requests),
		summary:     "a retraining of {{ $labels.policy }} waits for approval",
		description: description,
		tests: []ruleTest{
			{
				name: "since the morning", at: "5h", series: []inputSeries{ofState(requests, "awaiting_approval", "0+0x9 1+0x500")},
				fires: []expectedAlert{fires(summary, description, "job", "rewardwatch", "policy", "checkout")},
			},
			{name: "approved within the hour", at: "5h", series: []inputSeries{ofState(requests, "awaiting_approval", "0+0x9 1+0x50 0+0x500")}},
		},
	}
}
