package rules

import (
	"fmt"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/fault"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/metrics"
)

// actionCollapse alerts on policies that do nearly the same all the time: their actions have lost three quarters of the
// entropy that they had in the baseline, and a detector confirms that this is not chance.
func (g ruleGroups) actionCollapse() rule {
	const description = "Action entropy is {{ $value | humanizePercentage }} of its baseline. The policy nearly always " +
		"takes the same action. Check the action shares, and how this `policy_version` was trained."
	entropy := func(sample, values string) inputSeries {
		return g.series(metrics.MetricActionEntropy, fmt.Sprintf("sample=%q", sample), values)
	}
	return rule{
		alert: "ActionCollapse", severity: alerts.Critical, wait: "5m", dashboard: alerts.PolicyDashboard,
		expr: fmt.Sprintf(`sum by (%[1]s) (%[2]s{sample="current"}) / (sum by (%[1]s) (%[2]s{sample="baseline"}) > 0) < 0.25 `+
			`and on (%[1]s) %[3]s`, g.by(), metrics.MetricActionEntropy, g.count(`{signal=~"action.*"}`, finding.Drift)),
		summary: g.name() + " nearly always takes the same action", description: description,
		tests: []ruleTest{
			{
				name: "only one action remains", at: "10m",
				series: []inputSeries{entropy("baseline", "2+0x20"), entropy("current", "0.2+0x20"), g.stream("action.3", "2+0x20")},
				fires: []expectedAlert{g.fires(" nearly always takes the same action", "Action entropy is 10% of its baseline. "+
					"The policy nearly always takes the same action. Check the action shares, and how this `policy_version` was trained.")},
			},
			{
				name: "few actions, but no alarm", at: "10m",
				series: []inputSeries{entropy("baseline", "2+0x20"), entropy("current", "0.2+0x20"), g.stream("action.3", "1+0x20")},
			},
			{
				name: "a different mix of actions", at: "10m",
				series: []inputSeries{entropy("baseline", "2+0x20"), entropy("current", "1.5+0x20"), g.stream("action.3", "2+0x20")},
			},
		},
	}
}

// rewardChannelFault alerts on rewards that cannot be trusted, because a policy trained on them would learn the fault.
func (g ruleGroups) rewardChannelFault() rule {
	const description = "The reward has a telemetry fault (rule {{ $labels.rule }}). A policy trained on this reward would learn the fault. No retraining is triggered until the fault ends."
	fault := func(signal, values string) inputSeries {
		return g.series(metrics.MetricStreamFault, fmt.Sprintf(`signal=%q,rule="scale"`, signal), values)
	}
	fires := g.fires(" has unreliable rewards", "The reward has a telemetry fault (rule scale). A policy trained on this reward would learn the fault. "+
		"No retraining is triggered until the fault ends.")
	return rule{
		alert: "RewardChannelFault", severity: alerts.Critical, dashboard: alerts.PolicyDashboard,
		expr:    fmt.Sprintf(`max by (%s, rule) (%s{signal=~"reward|return|reward_component[.].*",rule!~"%s"}) > 0`, g.by(), metrics.MetricStreamFault, unfinishedRules),
		summary: g.name() + " has unreliable rewards", description: description,
		tests: []ruleTest{
			{name: "rewards on a different scale", at: "5m", series: []inputSeries{fault("reward", "_ 1+0x10")}, fires: []expectedAlert{fires.with("rule", "scale")}},
			{name: "missing units", at: "5m", series: []inputSeries{g.series(metrics.MetricStreamFault, `signal="reward",rule="unfinished"`, "_ 1+0x10")}},
			{name: "a fault in the actions", at: "5m", series: []inputSeries{fault("action", "_ 1+0x10")}},
		},
	}
}

// unfinishedRules are the rules of the faults that episodesUnfinished reports.
const unfinishedRules = fault.Unfinished + "|" + fault.MostlyUnfinished

// episodesUnfinished alerts on episodes without an end. Such episodes are not units, so the judged episodes are not
// representative. It uses the share, because a drift of all signals hides the fault.
func (g ruleGroups) episodesUnfinished() rule {
	share := func(sample, values string) inputSeries {
		return g.series(metrics.MetricUnfinished, fmt.Sprintf("sample=%q", sample), values)
	}
	now, usual := fmt.Sprintf(`max by (%s) (%s{sample="current"})`, g.by(), metrics.MetricUnfinished),
		fmt.Sprintf(`max by (%s) (%s{sample="baseline"})`, g.by(), metrics.MetricUnfinished)
	fires := func(was string) []expectedAlert {
		return []expectedAlert{g.fires(" has episodes that do not end", was+" of its episodes do not end, so they are not judged.")}
	}
	return rule{
		alert: "EpisodesUnfinished", severity: alerts.Warning, wait: "5m", dashboard: alerts.PolicyDashboard,
		expr:        fmt.Sprintf("%s > 0.5 or (%s and abs(%s - %s) > 0.1)", now, now, now, usual),
		summary:     g.name() + " has episodes that do not end",
		description: "{{ $value | humanizePercentage }} of its episodes do not end, so they are not judged.",
		tests: []ruleTest{
			{name: "most, as in the baseline", at: "10m", series: []inputSeries{share("current", ".8+0x10"), share("baseline", ".8+0x10")}, fires: fires("80%")},
			{name: "more than before", at: "10m", series: []inputSeries{share("current", ".3+0x10"), share("baseline", ".05+0x10")}, fires: fires("30%")},
			{name: "fewer than before", at: "10m", series: []inputSeries{share("current", ".2+0x10"), share("baseline", ".4+0x10")}, fires: fires("20%")},
			{name: "some, as in the baseline", at: "10m", series: []inputSeries{share("current", ".3+0x10"), share("baseline", ".25+0x10")}},
			{name: "for a moment", at: "10m", series: []inputSeries{share("current", "0 0 0 0 .9 .9 0+0x10"), share("baseline", "0+0x10")}},
		},
	}
}

// staleAfter is the age, in days, at which a baseline becomes stale.
const staleAfter = 90

// baselineStale alerts on baselines that have not been reviewed for a long time.
func (g ruleGroups) baselineStale() rule {
	const description = "Its baseline was frozen {{ $value | humanizeDuration }} ago. Normal behavior may have changed since then. If the policy " +
		"and its environment are healthy, run `rewardwatch baseline reset` to collect a new baseline."
	age := func(values string) inputSeries { return g.series(metrics.MetricBaselineAge, "", values) }
	return rule{
		alert: "BaselineStale", severity: alerts.Info, wait: "1h", dashboard: alerts.PolicyDashboard,
		expr:    fmt.Sprintf("max by (%s) (%s) > %d * 86400", g.by(), metrics.MetricBaselineAge, staleAfter),
		summary: g.name() + " has an old baseline", description: description,
		tests: []ruleTest{
			{
				name: "a hundred days old", at: "2h", series: []inputSeries{age("8640000+0x200")},
				fires: []expectedAlert{g.fires(" has an old baseline", "Its baseline was frozen 100d 0h 0m 0s ago. Normal behavior may "+
					"have changed since then. If the policy and its environment are healthy, run `rewardwatch baseline reset` to collect a new baseline.")},
			},
			{name: "ten days old", at: "2h", series: []inputSeries{age("864000+0x200")}},
		},
	}
}

// falseAlarmBudgetSpent alerts on policies with far more incidents than chance explains: more than three times what the
// budget of false alarms allows for the units of thirty days, plus three.
func (g ruleGroups) falseAlarmBudgetSpent() rule {
	const description = "{{ $value | printf `%.0f` }} incidents opened in 30 days, far more than the false alarm budget allows. Either the policy " +
		"drifts this often, or its baseline is out of date. To find out, run `rewardwatch calibrate` on recent telemetry."
	by := g.by()
	opened := func(values string) inputSeries { return g.series(alerts.MetricIncidentsOpened, "", values) }
	units := func(values string) inputSeries { return g.series(metrics.MetricUnits, "", values) }
	budget := g.series(metrics.MetricFalseAlarmUnits, "", "2000+0x200")
	return rule{
		alert: "FalseAlarmBudgetSpent", severity: alerts.Info, dashboard: alerts.PolicyDashboard,
		expr: fmt.Sprintf("sum by (%[1]s) (increase(%[2]s[30d])) > 3 + 3 * sum by (%[1]s) (increase(%[3]s[30d])) / min by (%[1]s) (%[4]s)",
			by, alerts.MetricIncidentsOpened, metrics.MetricUnits, metrics.MetricFalseAlarmUnits),
		summary: g.name() + " has more incidents than its budget allows", description: description,
		tests: []ruleTest{
			{
				name: "an incident every hour", at: "2h", series: []inputSeries{opened("0+1x24 24+0x200"), units("0+1x200"), budget},
				fires: []expectedAlert{g.fires(" has more incidents than its budget allows", "24 incidents opened in 30 days, far more than the false alarm budget "+
					"allows. Either the policy drifts this often, or its baseline is out of date. To find out, run "+
					"`rewardwatch calibrate` on recent telemetry.")},
			},
			{name: "as many as expected by chance", at: "2h", series: []inputSeries{opened("0+1x2 2+0x200"), units("0+3x200"), budget}},
		},
	}
}
