package alerts

import (
	"fmt"

	"github.com/rewardwatch/rewardwatch/detectors/bank"
)

// actionCollapse is the rule of policies that do nearly the same all the time: their actions have lost three quarters of the
// entropy that they had in the baseline, and a detector says that it is no chance.
func (g ruleGroups) actionCollapse() rule {
	const description = "The actions have {{ $value | humanizePercentage }} of the entropy that they had in the baseline: the policy does nearly the " +
		"same all the time. Look at the action shares, and at what the policy_version has learnt."
	entropy := func(sample, values string) inputSeries {
		return g.series(bank.MetricActionEntropy, fmt.Sprintf("sample=%q", sample), values)
	}
	return rule{
		alert: "ActionCollapse", severity: Critical, wait: "5m", dashboard: policyDashboard,
		expr: fmt.Sprintf(`sum by (%[1]s) (%[2]s{sample="current"}) / (sum by (%[1]s) (%[2]s{sample="baseline"}) > 0) < 0.25 `+
			`and on (%[1]s) %[3]s`, g.by(), bank.MetricActionEntropy, g.count(`{signal=~"action.*"}`, bank.Drift)),
		summary: g.name() + " does nearly the same all the time", description: description,
		tests: []ruleTest{
			{
				name: "one action is left", at: "10m",
				series: []inputSeries{entropy("baseline", "2+0x20"), entropy("current", "0.2+0x20"), g.stream("action.3", "2+0x20")},
				fires: []expectedAlert{g.fires(" does nearly the same all the time", "The actions have 10% of the entropy that they had in the "+
					"baseline: the policy does nearly the same all the time. Look at the action shares, and at what the policy_version has learnt.")},
			},
			{
				name: "few actions, and no alarm", at: "10m",
				series: []inputSeries{entropy("baseline", "2+0x20"), entropy("current", "0.2+0x20"), g.stream("action.3", "1+0x20")},
			},
			{
				name: "another mix of actions", at: "10m",
				series: []inputSeries{entropy("baseline", "2+0x20"), entropy("current", "1.5+0x20"), g.stream("action.3", "2+0x20")},
			},
		},
	}
}

// rewardChannelFault is the rule of rewards that cannot be trusted: whatever learns from them learns the fault.
func (g ruleGroups) rewardChannelFault() rule {
	const description = "The reward is in a telemetry fault, by the rule {{ $labels.rule }}: what learns from it learns the fault. Retraining is vetoed while it lasts."
	fault := func(signal, values string) inputSeries {
		return g.series(bank.MetricStreamFault, fmt.Sprintf(`signal=%q,rule="scale"`, signal), values)
	}
	fires := g.fires("'s rewards cannot be trusted", "The reward is in a telemetry fault, by the rule scale: what learns from it learns the fault. "+
		"Retraining is vetoed while it lasts.")
	return rule{
		alert: "RewardChannelFault", severity: Critical, dashboard: policyDashboard,
		expr:    fmt.Sprintf(`max by (%s, rule) (%s{signal=~"reward|return|reward_component[.].*"}) > 0`, g.by(), bank.MetricStreamFault),
		summary: g.name() + "'s rewards cannot be trusted", description: description,
		tests: []ruleTest{
			{name: "on another scale", at: "5m", series: []inputSeries{fault("reward", "_ 1+0x10")}, fires: []expectedAlert{fires.with("rule", "scale")}},
			{name: "a fault of the actions", at: "5m", series: []inputSeries{fault("action", "_ 1+0x10")}},
		},
	}
}

// staleAfter is the age, in days, at which a baseline is said to be old.
const staleAfter = 90

// baselineStale is the rule of baselines that nobody has looked at for a long time.
func (g ruleGroups) baselineStale() rule {
	const description = "Its baseline was frozen {{ $value | humanizeDuration }} ago. What is normal has had time to change: promote a newer baseline, " +
		"or confirm this one in your review."
	age := func(values string) inputSeries { return g.series(bank.MetricBaselineAge, "", values) }
	return rule{
		alert: "BaselineStale", severity: Info, wait: "1h", dashboard: policyDashboard,
		expr:    fmt.Sprintf("max by (%s) (%s) > %d * 86400", g.by(), bank.MetricBaselineAge, staleAfter),
		summary: g.name() + " is held to an old baseline", description: description,
		tests: []ruleTest{
			{
				name: "of a hundred days", at: "2h", series: []inputSeries{age("8640000+0x200")},
				fires: []expectedAlert{g.fires(" is held to an old baseline", "Its baseline was frozen 100d 0h 0m 0s ago. What is normal has had "+
					"time to change: promote a newer baseline, or confirm this one in your review.")},
			},
			{name: "of ten days", at: "2h", series: []inputSeries{age("864000+0x200")}},
		},
	}
}

// falseAlarmBudgetSpent is the rule of policies whose incidents are far more than chance would make: three more than three times
// what the budget of false alarms allows for the units of thirty days.
func (g ruleGroups) falseAlarmBudgetSpent() rule {
	const description = "{{ $value | printf `%.0f` }} incidents opened in 30 days, more than three times what its budget of false alarms allows, and three. Either it " +
		"really drifts that often, or its baseline no longer fits: see what a newer baseline would have said with `calibrate`."
	by := g.by()
	opened := func(values string) inputSeries { return g.series(MetricIncidentsOpened, "", values) }
	units := func(values string) inputSeries { return g.series(bank.MetricUnits, "", values) }
	budget := g.series(bank.MetricFalseAlarmUnits, "", "2000+0x200")
	return rule{
		alert: "FalseAlarmBudgetSpent", severity: Info, dashboard: policyDashboard,
		expr: fmt.Sprintf("sum by (%[1]s) (increase(%[2]s[30d])) > 3 + 3 * sum by (%[1]s) (increase(%[3]s[30d])) / min by (%[1]s) (%[4]s)",
			by, MetricIncidentsOpened, bank.MetricUnits, bank.MetricFalseAlarmUnits),
		summary: g.name() + " has more incidents than its budget allows", description: description,
		tests: []ruleTest{
			{
				name: "an incident every hour", at: "2h", series: []inputSeries{opened("0+1x24 24+0x200"), units("0+1x200"), budget},
				fires: []expectedAlert{g.fires(" has more incidents than its budget allows", "24 incidents opened in 30 days, more than three times what its budget of "+
					"false alarms allows, and three. Either it really drifts that often, or its baseline no longer fits: see what a newer baseline "+
					"would have said with `calibrate`.")},
			},
			{name: "as many as chance makes", at: "2h", series: []inputSeries{opened("0+1x2 2+0x200"), units("0+3x200"), budget}},
		},
	}
}
