package rules

import (
	"fmt"

	"github.com/rewardwatch/rewardwatch/alerts"
)

// ofState returns a test series of the requests in a state. All instances that share a ledger export the same.
func ofState(metric, state, values string) inputSeries {
	return ofInstance(metric, fmt.Sprintf("policy=%q,state=%q", "checkout", state), values)
}

// ledgerSuspended alerts if the ledger is unavailable, because nothing is retrained meanwhile. It tolerates a restart
// of PostgreSQL.
func ledgerSuspended(suspended string) rule {
	const (
		summary     = "The ledger of retrain requests is unavailable"
		description = "Retrainings cannot be requested, approved or delivered until the ledger is available again. Drift detection and paging continue. See the response of `/-/ready` on the " +
			"instance for the reason."
	)
	return rule{
		alert: "LedgerSuspended", severity: alerts.Critical, wait: "2m", dashboard: alerts.RetrainingDashboard,
		expr:    fmt.Sprintf("max by (job, instance) (%s) > 0", suspended),
		summary: summary, description: description,
		tests: []ruleTest{
			{
				name: "a damaged file", at: "10m", series: []inputSeries{ofInstance(suspended, "", "0+0x5 1+0x30")},
				fires: []expectedAlert{fires(summary, description, "job", "rewardwatch", "instance", "a")},
			},
			{name: "PostgreSQL restart", at: "7m", series: []inputSeries{ofInstance(suspended, "", "0+0x5 1 0+0x30")}},
			{name: "available again", at: "30m", series: []inputSeries{ofInstance(suspended, "", "0+0x5 1+0x10 0+0x30")}},
		},
	}
}

// retrainNoImprovement alerts on retrainings that did not help. If the ledger was unavailable an hour ago, series are
// missing at that time, so their absence does not show that a retraining is new.
func retrainNoImprovement(requests, suspended string) rule {
	const (
		summary     = "Retraining checkout did not help"
		description = "The new version does not meet its contract, or the job failed. Run `rewardwatch retrain list --policy checkout` " +
			"to find the request and the reason."
	)
	first := fmt.Sprintf(`0 * max by (job, policy, state) (%s{state=~"missed|failed"})`, requests)
	if suspended != "" {
		first = fmt.Sprintf("(%s unless on (job) max by (job) (max_over_time(%s[70m])) > 0)", first, suspended)
	}
	tests := []ruleTest{
		{
			name: "contract missed", at: "2h", series: []inputSeries{ofState(requests, "missed", "1+0x100 2+0x100")},
			fires: []expectedAlert{fires(summary, description, "job", "rewardwatch", "policy", "checkout", "state", "missed")},
		},
		{name: "contract missed long ago", at: "4h", series: []inputSeries{ofState(requests, "missed", "1+0x20 2+0x300")}},
		{name: "contract met", at: "2h", series: []inputSeries{ofState(requests, "met", "1+0x100 2+0x100"), ofState(requests, "missed", "0+0x200")}},
	}
	if suspended != "" {
		tests = append(tests, ruleTest{name: "contract missed before a ledger outage", at: "190m", series: []inputSeries{
			ofState(requests, "missed", "1+0x99 _x60 1+0x100"), ofInstance(suspended, "", "0+0x99 1+0x59 0+0x100"),
		}})
	}
	return rule{
		alert: "RetrainNoImprovement", severity: alerts.Warning, dashboard: alerts.PolicyDashboard,
		expr:    fmt.Sprintf(`max by (job, policy, state) (%[1]s{state=~"missed|failed"}) > (max by (job, policy, state) (%[1]s{state=~"missed|failed"} offset 1h) or %[2]s)`, requests, first),
		summary: "Retraining {{ $labels.policy }} did not help",
		description: "The new version does not meet its contract, or the job failed. Run `rewardwatch retrain list --policy {{ $labels.policy }}` " +
			"to find the request and the reason.",
		tests: tests,
	}
}

// retrainAwaitsApproval alerts on requests that wait for a decision, because they expire without one.
func retrainAwaitsApproval(requests string) rule {
	const (
		summary     = "Retraining of checkout is waiting for approval"
		description = "The request expires one day after it was opened. Run `rewardwatch retrain list --state awaiting_approval` to see it."
	)
	return rule{
		alert: alerts.AlertRetrainAwaitsApproval, severity: alerts.Info, wait: "4h", dashboard: alerts.RetrainingDashboard,
		expr:        fmt.Sprintf(`max by (job, policy) (%s{state="awaiting_approval"}) > 0`, requests),
		summary:     "Retraining of {{ $labels.policy }} is waiting for approval",
		description: description,
		tests: []ruleTest{
			{
				name: "waiting for hours", at: "5h", series: []inputSeries{ofState(requests, "awaiting_approval", "0+0x9 1+0x500")},
				fires: []expectedAlert{fires(summary, description, "job", "rewardwatch", "policy", "checkout")},
			},
			{name: "approved within an hour", at: "5h", series: []inputSeries{ofState(requests, "awaiting_approval", "0+0x9 1+0x50 0+0x500")}},
		},
	}
}
