package dashboards

import (
	"cmp"
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/metrics"
	"github.com/rewardwatch/rewardwatch/retrain"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// policy returns the dashboard of one policy. At the top are the answers to the first questions of a person on call:
// the open incident, and which signals moved. Everything else is in closed rows.
func policy(opts Options) *dashboard.DashboardBuilder {
	s := policyScope(opts)
	d := frame("Rewardwatch / Policy", "One policy in detail: its open incident and the likely cause, which signals changed and by how much, and what was done about it.",
		policyUID, s, policyVariable()).
		WithVariable(signalVariable())
	policyHeadline(d, s)
	d.WithPanel(openIncidents(s).Height(5)).
		WithPanel(moved(s).Span(14)).
		WithPanel(done(s).Span(10)).
		WithPanel(meanOfSignal(s).Span(10)).
		WithPanel(states("State by signal", "Warming up: the baseline is still being collected. Drift: the score has reached 1. "+untilResolved+" Telemetry fault: the signal cannot be judged. Drifting signals come first, then signals with a telemetry fault.",
			s, s.groups("signal"), s.legend("signal")).Span(14))
	policyEpisodes(d, s)
	policyProgress(d, s)
	policyDistribution(d, s)
	policyVersions(d, s)
	policyActions(d, s)
	policyIncidents(d, s)
	policyReward(d, s)
	policyPromise(d, s)
	policyDetectors(d, s)
	policyEstimates(d, s)
	return d
}

func policyHeadline(d *dashboard.DashboardBuilder, s scope) {
	d.WithPanel(number("Firing alarms", "Firing alarms of the policy that are not muted. Open incidents lists their most likely cause.", "short", steps(gray, step{1, red}),
		query{expr: "sum(" + s.of(alerts.MetricAlarms) + ")"})).
		WithPanel(number("Muted alarms", "Firing alarms that page no one, because their incident was muted.", "short", steps(gray, step{1, amber}),
			muted(s))).
		WithPanel(number("Highest score", "Highest detector score of all signals. A score of 1 raises an alarm. "+untilResolved, "short", steps(green, step{.8, amber}, step{1, red}),
			query{expr: "max(" + s.of(metrics.MetricDetectorScore) + ")"}).Decimals(2).NoValue("No scores")).
		WithPanel(number("Incidents (30d)", "Incidents opened in the last 30 days, "+timesBudget()+" If there are several groups, the highest value is shown.", budgets, budgetLimits(),
			query{expr: "max(" + budgetUsed(s) + ")"}).Decimals(1).NoValue("No baseline")).
		WithPanel(number("Baseline age", "Time since the oldest baseline of the policy was completed.", "s", steps(gray),
			query{expr: "max(" + s.of(metrics.MetricBaselineAge) + ")"}).NoValue("No baseline")).
		WithPanel(unconfirmed(s).Title("All unsent alerts"))
}

// untilResolved says why a signal may be in drift at a score below 1.
const untilResolved = "An alarm fires until all detectors of the signal have recovered, so a signal can stay in drift with a score below 1."

// done lists the actions of people and services on the latest incident and the last request of the policy, newest
// first. The end of a mute is in the future: it is listed directly below the mute, not at the top as if it were the
// last action.
func done(s scope) *table.PanelBuilder {
	decided := `max by (what, by) (label_replace(` + s.of(alerts.MetricIncidentDecision) + `, "what", "$1", "decision", "(.+)"))`
	stepped := `max by (what, by) (label_join(` + s.policies(retrain.MetricLastStep) + `, "what", " ", "kind", "step"))`
	stepped = `label_replace(` + stepped + `, "by", "retraining job", "by", "job")`
	ends := `label_replace(max by (by) (` + s.of(alerts.MetricIncidentDecision, `decision="`+string(alerts.Muted)+`"`) + `) and on (by) ` +
		s.of(alerts.MetricIncidentDecision, `decision="`+alerts.MuteEnds+`"`) + `, "what", "` + alerts.MuteEnds + `", "", "") - 0.001`
	return rows("Decisions and retraining", "Decisions on the latest incident and steps of the latest retrain request, newest first. Only the last event of each kind is shown. By: a person, `rewardwatch`, the target that accepted the request, or the retraining job. Click an event to open the retrain requests of the policy in the console.",
		[]column{
			valueColumnOf(0, "Time", inUnit(toTheSecond), inWidth(158)),
			{"what", "Event", slices.Concat(mapped(deeds()), requestsInConsole("policy=${policy:percentencode}"), atLeast(149))},
			labelColumn("by", inWidth(103)...),
		}, []order{{"Value #B", true}, {"what", false}},
		query{expr: "1000 * (" + decided + " or " + stepped + ") > 0"},
		query{expr: "1000 * (" + ends + " or " + decided + " or " + stepped + ") > 0"}).
		NoValue("No decisions or retrain requests")
}

// deeds maps decisions, and the kinds and steps of requests, to texts for people.
func deeds() []dashboard.ValueMapping {
	options := valueTexts{}
	add := func(value, text string) { options.as(value, len(options), text, "") }
	for _, d := range [][2]string{
		{string(alerts.Accepted), "Accepted as normal"},
		{string(alerts.Muted), "Muted"},
		{alerts.MuteEnds, "Muted until"},
		{string(alerts.Unmuted), "Unmuted"},
		{string(alerts.Reset), "Baseline reset"},
		{string(alerts.Commented), "Commented"},
		{string(alerts.Released), "Guard released"},
	} {
		add(d[0], d[1])
	}
	for _, kind := range retrain.Kinds() {
		for _, step := range retrain.Steps() {
			add(kind+" "+step, stepTaken(kind, step))
		}
	}
	return options.mappings()
}

// stepTaken returns what happened to a request of a kind: Retraining delivered.
func stepTaken(kind, step string) string {
	whole := map[string]string{
		string(ledger.StateAwaitingApproval): "Approval requested",
		string(ledger.StateOpen):             "Delivery pending",
		string(ledger.StateVerifying):        "Verification started",
		string(ledger.StateMet):              "Contract met",
		string(ledger.StateMissed):           "Contract missed",
		string(ledger.StateInconclusive):     "Outcome inconclusive",
		"untracked":                          "Tracking stopped",
	}
	if text := whole[step]; text != "" {
		return text
	}
	verbs := map[string]string{string(ledger.StateRunning): "started", string(ledger.StateDeadLetter): "not delivered"}
	return orderNames()[kind] + " " + cmp.Or(verbs[step], spacedName(step))
}

// orderNames names the kinds of requests as nouns.
func orderNames() map[string]string {
	return map[string]string{
		"retrain": "Retraining", "freeze": "Freeze", "rollback": "Rollback", "resume": "Resumption", "lower_exploration": "Exploration cut",
	}
}

// moved lists all signals, the ones that moved furthest first.
func moved(s scope) *table.PanelBuilder {
	by := "max by (" + s.groups("signal") + ") ("
	mean := func(sample string) query {
		return query{expr: by + s.of(metrics.MetricSignalMean, `sample="`+sample+`"`) + ")"}
	}
	measured := func(i int, title string, width int, more ...[]dashboard.DynamicConfigValue) column {
		return valueColumnOf(i, title, append([][]dashboard.DynamicConfigValue{inUnit("short"), inDecimals(2), inWidth(width)}, more...)...)
	}
	state := valueColumnOf(1, "State", mapped(stateNames()), []dashboard.DynamicConfigValue{filledCell("color-background")}, inWidth(112))
	columns := slices.Concat(narrow(80, s.labels...), []column{
		labelColumn("signal", atLeast(150)...), state,
		measured(0, "Score", 56, inLimits(steps(gray, step{1, red}))),
		measured(2, "Shift (SD)", 78), measured(3, "Current", 66), measured(4, "Baseline", 72),
	})
	return rows("Signal changes", "All signals of the policy, highest score first. Score: highest detector score; a score of 1 raises an alarm. "+untilResolved+" Current and Baseline: mean of the last 200 episodes (or blocks), and of the baseline. Shift: difference between these means, in standard deviations (SD) of the baseline.",
		columns, []order{{"Value #B", true}, {"Value #A", true}, {"signal", false}},
		query{expr: by + s.of(metrics.MetricDetectorScore) + ")"},
		query{expr: by + s.of(metrics.MetricStreamState) + ")"},
		query{expr: by + s.of(metrics.MetricEffectSize) + ")"},
		mean("current"), mean("baseline")).
		NoValue("No signals").Span(full)
}

func meanOfSignal(s scope) *timeseries.PanelBuilder {
	return againstBaseline("$signal vs. baseline", "Mean of the last 200 episodes (or blocks) of each group. Dashed: mean of the baseline.", "short", s.legend(), func(sample string) string {
		return "max by (" + s.groups() + ") (" + s.ofSignal(metrics.MetricSignalMean, `sample="`+sample+`"`) + ")"
	}).AxisLabel("Mean")
}

// versionLabels returns the names of the labels for the versions of a unit.
func versionLabels() []string { return []string{"policy_version", "env_version", "reward_version"} }

func versionColumns() (all []column) {
	for i, label := range versionLabels() {
		all = append(all, labelColumn(label, inWidth([]int{130, 110, 130}[i])...))
	}
	return all
}

// policyVersions compares the versions with each other, and shows the versions in the baseline.
func policyVersions(d *dashboard.DashboardBuilder, s scope) {
	byVersion := "max by (" + s.groups(versionLabels()...) + ") ("
	// while averages a value of the group over the time in which each version was the latest.
	while := func(value string) query {
		return query{expr: "avg_over_time((" + byVersion + s.of(metrics.MetricVersionInfo) + ") * on (" + s.groups() + ") group_left () " + value + ")[$__range:$__rate_interval])"}
	}
	ofGroup := func(metric string, matchers ...string) string {
		return "max by (" + s.groups() + ") (" + s.ofSignal(metric, matchers...) + ")"
	}
	columns := append(labelColumns(s.labels...), versionColumns()...)
	columns = append(columns, valueColumnOf(0, "First seen", inUnit(toTheSecond), ifAbsent("no timestamps"), inWidth(180)))
	for i, title := range []string{"Mean", "SD", "Shift (SD)", "Score"} {
		columns = append(columns, valueColumnOf(i+1, title, inUnit("short"), inDecimals(3), inWidth(95)))
	}
	folded(d, "Versions and baselines", "baselines.md",
		rows("Version comparison", "Versions of the policy, environment and reward function that were active in the time range, newest first. First seen: end of the first episode (or block). The other columns describe $signal, averaged over the time in which the version was active: mean and standard deviation (SD) of the last 200 episodes (or blocks), shift from the baseline, and highest score. Shortly after a change, the last 200 include both versions.",
			columns, []order{{"Value #A", true}},
			query{expr: "1000 * max_over_time((" + byVersion + s.of(metrics.MetricVersionSince) + "))[$__range:$__rate_interval])"},
			while(ofGroup(metrics.MetricSignalMean, `sample="current"`)),
			while(ofGroup(metrics.MetricSignalStddev, `sample="current"`)),
			while(ofGroup(metrics.MetricEffectSize)),
			while("max by ("+s.groups()+") ("+s.ofSignal(metrics.MetricDetectorScore)+")")).
			NoValue(noVersions).Span(full),
		rows("Current versions", "Versions in the latest episode (or block) of each group.",
			append(labelColumns(s.labels...), versionColumns()...), nil,
			query{expr: byVersion + s.of(metrics.MetricVersionInfo) + ")"}).NoValue(noVersions),
		rows("Current baselines", "Baseline of each group: its number of episodes (or blocks), and its ID, which is a hash of its values.",
			append(labelColumns(s.labels...), valueColumn("Episodes", inDecimals(0), inWidth(90)), column{"baseline", "Baseline ID", atLeast(180)}), []order{{"baseline", false}},
			query{expr: "max by (" + s.groups("baseline") + ") (" + s.of(metrics.MetricBaselineUnits) + " * on (" + s.groups() + ") group_right () max by (" + s.groups("baseline") + ") (" + s.of(metrics.MetricBaselineInfo) + "))"}).NoValue(noBaseline),
		rows("Telemetry status by signal", "Whether the telemetry of each signal has a fault, and the rule that detected it. During a fault, no retraining is triggered, and signals with wrong values are not judged.",
			append(labelColumns(slices.Concat(s.labels, []string{"signal"})...), labelColumn("rule", mapped([]dashboard.ValueMapping{inPlaceOf("/_/g", " ")})...), valueColumn("Status", mapped(faultNames()))), nil,
			query{expr: faultOf(s)}).NoValue("No signals").Span(full))
}

// faultOf returns the expression that is 1, with the rule of the fault, for signals in a fault, and 0 for other
// signals.
func faultOf(s scope) string {
	by := "max by (" + s.groups("signal", "rule") + ") ("
	return by + s.of(metrics.MetricStreamFault) + ") or on (" + s.groups("signal") + ") 0 * " + by + s.of(metrics.MetricStreamState) + ")"
}

// policyPromise shows the false alarm rates that were calibrated when the baselines were frozen.
func policyPromise(d *dashboard.DashboardBuilder, s scope) {
	ofSignal := func(metric string, matchers ...string) query {
		return query{expr: "sum by (" + s.groups("signal") + ") (" + s.of(metric, matchers...) + ")"}
	}
	expected := func(q, name string) query {
		return query{expr: "min by (" + s.groups() + ") (" + s.of(metrics.MetricExpectedUnits, `q="`+q+`"`) + ")", legend: s.legend() + " " + name}
	}
	folded(d, "False alarm budget", "detection.md#what-is-promised",
		number("Budget (episodes)", "Average number of episodes (or blocks) between false alarms that the thresholds are designed for, over all signals of the policy.", "short", steps(gray),
			query{expr: "min(" + s.of(metrics.MetricFalseAlarmUnits) + ")"}).Span(quarter),
		number("Expected (episodes)", "Average number of episodes (or blocks) between false alarms that the calibration expects: the median over many random samples of the baseline.", "short", steps(gray),
			query{expr: "min(" + s.of(metrics.MetricExpectedUnits, `q="0.5"`) + ")"}).Span(quarter),
		number("Sampling allowance", "How much the thresholds are raised because the baseline is only a sample, in standard errors. Above 2.25, the budget is unconfirmed. Larger baselines need a smaller allowance.", "suffix:SE", steps(green, step{2.25, red}),
			query{expr: "max(" + s.of(metrics.MetricAllowance) + ")"}).Decimals(2).Span(quarter),
		number("Test overlap", "How often tests raise false alarms together: the sum of their false alarm rates, divided by the overall rate. At 1, they never raise one together.", "short", steps(gray),
			query{expr: "min(" + s.of(metrics.MetricOverlap) + ")"}).Decimals(2).Span(quarter),
		lines("Episodes between false alarms", "Expected number of episodes (or blocks) between false alarms, as percentiles over many random samples of the baseline. Dashed: the budget, which is met if the 10th percentile is above it.", "short",
			expected("0.1", "10th percentile"), expected("0.5", "median"), expected("0.9", "90th percentile"),
			query{expr: "min by (" + s.groups() + ") (" + s.of(metrics.MetricFalseAlarmUnits) + ")", legend: s.legend() + " budget"}).
			Min(0).AxisSoftMax(1).AxisLabel("Episodes").NoValue(noBaseline).OverrideByRegexp("/budget$/", dashed()).Span(full),
		rows("Budget confidence", "How reliable the false alarm budget of each group is. "+confidenceLevels+" A branch is one test of one statistic. The weakest branch contributes most to the expected false alarms.",
			slices.Concat(labelColumns(s.labels...), []column{labelColumn("confidence", slices.Concat(texts(confidenceColors()...), inWidth(120))...), {"weakest", "Weakest branch", atLeast(300)}}), nil,
			query{expr: "max by (" + s.groups("confidence", "weakest") + ") (" + s.of(metrics.MetricPromise) + ")"}).NoValue(noBaseline).Span(full),
		rows("Branches by signal", "A branch is one test of one statistic of a signal. Active: branches that can raise alarms. Dropped: branches that need a larger baseline. Dependence: how strongly consecutive episodes (or blocks) of the baseline depend on each other. Above 2, the budget is less reliable. Above 4, the signal is not judged.",
			slices.Concat(labelColumns(s.labels...), []column{
				labelColumn("signal"), valueColumnOf(0, "Active", inDecimals(0)), valueColumnOf(1, "Dropped", inDecimals(0)),
				valueColumnOf(2, "Dependence", inDecimals(2), inLimits(steps(green, step{2, yellow}, step{4, red}))),
			}), []order{{"Value #C", true}, {"signal", false}},
			ofSignal(metrics.MetricBranches, `state="armed"`), ofSignal(metrics.MetricBranches, `state="dropped"`), ofSignal(metrics.MetricDependenceFactor)).
			NoValue(noBaseline).Span(full))
}

func policyDistribution(d *dashboard.DashboardBuilder, s scope) {
	folded(d, "Distribution of $signal", "detection.md#how-it-works",
		againstBaseline("Standard deviation vs. baseline", "Standard deviation of the last 200 episodes (or blocks) of each group. Dashed: standard deviation of the baseline.", "short", s.legend(), func(sample string) string {
			return "max by (" + s.groups() + ") (" + s.ofSignal(metrics.MetricSignalStddev, `sample="`+sample+`"`) + ")"
		}).Min(0).AxisSoftMax(1),
		lines("Percentiles vs. baseline", "10th percentile, median and 90th percentile of the last 200 episodes (or blocks), and of the baseline (dashed). With several groups: the lowest 10th percentile, and the highest median and 90th percentile.", "short",
			quantiles(s)...).
			OverrideByRegexp("/baseline/", append(dashed(), colored(faint)...)).
			OverrideByRegexp("/current/", colored(blue)).
			OverrideByRegexp("/percentile/", unlisted()).
			OverrideByName("baseline 90th percentile", band("baseline 10th percentile", faint)).
			OverrideByName("current 90th percentile", band("current 10th percentile", blue)).
			AxisLabel("Value").NoValue(noBaseline),
		bars("Deciles vs. baseline", "Share of episodes (or blocks) in each decile of the baseline, from its lowest values (1st) to its highest (10th). Without drift, the bars of the last 200 episodes (current) are about as high as those of the baseline.", "bin", s,
			"max by ("+s.groups("bin", "sample")+") ("+s.ofSignal(metrics.MetricSignalDecile)+")").
			OverrideByName("bin", mapped(ordinals())).AxisLabel("Share of episodes").NoValue(noBaseline).Span(full))
}

// quantiles returns the queries for the quantile band of each sample over all selected groups.
func quantiles(s scope) (all []query) {
	for _, sample := range []string{"baseline", "current"} {
		for _, q := range [][3]string{{"0.1", "min", "10th percentile"}, {"0.5", "max", "median"}, {"0.9", "max", "90th percentile"}} {
			all = append(all, query{
				expr:   q[1] + "(" + s.ofSignal(metrics.MetricSignalQuantile, `sample="`+sample+`"`, `q="`+q[0]+`"`) + ")",
				legend: sample + " " + q[2],
			})
		}
	}
	return all
}

// policyEpisodes shows the signals that directly measure the performance of the policy.
func policyEpisodes(d *dashboard.DashboardBuilder, s scope) {
	mean := func(title, description, signal string) *timeseries.PanelBuilder {
		return againstBaseline(title+" vs. baseline", description+", averaged over the last 200 episodes (or blocks). Dashed: average over the baseline.", "short", s.legend("signal"), func(sample string) string {
			return "max by (" + s.groups("signal") + ") (" + s.of(metrics.MetricSignalMean, `signal=~"`+signal+`"`, `sample="`+sample+`"`) + ")"
		}).NoValue("Not in the telemetry")
	}
	folded(d, "Returns, rewards, outcomes and lengths", "telemetry.md",
		mean("Mean return", "Total reward per episode", "return"),
		mean("Mean reward", "Reward per step", "reward"),
		mean("Mean outcomes", "Outcomes of episodes", "outcome[.].+"),
		mean("Mean episode length", "Steps per episode", "episode_length").AxisLabel("Steps"))
}

// policyReward shows the reward per step. It uses two counters that only increase, because a sum of rewards that can
// fall has no valid rate.
func policyReward(d *dashboard.DashboardBuilder, s scope) {
	positive := perSecond(s.of(metrics.MetricRewardPositive), s.groups())
	negative := perSecond(s.of(metrics.MetricRewardNegative), s.groups())
	count := perSecond(s.of(metrics.MetricRewardObservations), s.groups())
	folded(d, "Reward over time", "metrics.md",
		lines("Mean reward per step", "Sum of all rewards, divided by their number.", "short",
			query{expr: "(" + positive + " - " + negative + ") / (" + count + " > 0)", legend: s.legend()}).AxisLabel("Reward").NoValue(noRewards),
		lines("Positive and negative rewards", "Sum of positive rewards and sum of negative rewards, per second.", "short",
			query{expr: positive, legend: s.legend() + " positive"},
			query{expr: "-" + negative, legend: s.legend() + " negative"}).AxisSoftMin(0).AxisSoftMax(1).AxisLabel("Reward per second").NoValue(noRewards))
}

func policyActions(d *dashboard.DashboardBuilder, s scope) {
	folded(d, "Actions", "detection.md#how-it-works",
		levels("Action shares", "Share of each action in the last 200 episodes (or blocks). Actions that are rare in the baseline are combined as other.", "percentunit",
			query{expr: "max by (" + s.groups("action") + ") (" + s.of(metrics.MetricActionRatio, `sample="current"`) + ")", legend: s.legend("action")}).Max(1).NoValue(noActions),
		bars("Action shares vs. baseline", "Share of each action in the last 200 episodes (or blocks), next to its share in the baseline.", "action", s,
			"max by ("+s.groups("action", "sample")+") ("+s.of(metrics.MetricActionRatio)+")").
			AxisLabel("Share of actions").NoValue(noActions),
		paired("Action divergence from baseline", "Population stability index (PSI) and Jensen-Shannon divergence (JS) between the actions of the last 200 episodes (or blocks) and those of the baseline. Dashed: 95th percentile for unchanged actions if steps are independent; otherwise, unchanged actions exceed it more often. These measures are for information only and raise no alarms.", "short", s.legend("measure"),
			"max by ("+s.groups("measure")+") ("+s.of(metrics.MetricActionDivergence, `measure=~"psi|js"`)+")",
			"max by ("+s.groups("measure")+") ("+s.of(metrics.MetricActionChance, `measure=~"psi|js"`)+")").
			WithTransformation(renamed(`/( |^)psi$/`, "$1PSI (nats)")).WithTransformation(renamed(`/( |^)js$/`, "$1JS (bits)")).
			Min(0).AxisSoftMax(1).AxisLabel("Divergence").NoValue(noActions),
		againstBaseline("Action entropy vs. baseline", "Entropy of the actions in the last 200 episodes (or blocks) of each group: 0 if the action is always the same, and higher the more varied the actions are. Dashed: entropy of the baseline.", bits, s.legend(), func(sample string) string {
			return "max by (" + s.groups() + ") (" + s.of(metrics.MetricActionEntropy, `sample="`+sample+`"`) + ")"
		}).Min(0).AxisSoftMax(1).NoValue(noActions),
		detectorNames(againstOne("Action detector scores", "Highest score of each detector of actions. A score of 1 raises an alarm.",
			query{expr: "max by (" + s.groups("detector") + ") (" + s.of(metrics.MetricDetectorScore, `signal=~"action([.].+)?"`) + ")", legend: s.legend("detector")})).NoValue(noScores))
}

// policyEstimates shows the off-policy estimates. A value without support has no series, so its line has a gap.
func policyEstimates(d *dashboard.DashboardBuilder, s scope) {
	value := func(bound string) string {
		return "max by (" + s.groups("reference") + ") (" + s.of(metrics.MetricOffPolicyValue, `bound="`+bound+`"`) + ")"
	}
	ofGroup := func(metric string) query {
		return query{expr: "max by (" + s.groups() + ") (" + s.of(metric) + ")", legend: s.legend()}
	}
	actual := ofGroup(metrics.MetricOffPolicyActual)
	actual.legend += " earned"
	folded(d, "Off-policy estimates", "causes.md#the-policy-or-the-world",
		lines("Estimated value of the accepted policy", "What the policy of the baseline would have earned per episode (or per step of a block) on current traffic, with its 95% confidence interval (dashed), and what was actually earned. Accepted: estimated from the logged action probabilities. Frequencies: estimated for a policy that takes each action as often as the baseline did. Gaps: too little data for an estimate.", "short",
			query{expr: value("estimate"), legend: s.legend("reference")},
			query{expr: value("low"), legend: s.legend("reference") + " low"},
			query{expr: value("high"), legend: s.legend("reference") + " high"},
			actual).
			WithTransformation(renamed("/target_prob/", "accepted")).WithTransformation(renamed("/action_frequencies/", "frequencies")).
			OverrideByRegexp("/ (low|high)$/", dashed()).AxisLabel("Return").NoValue(noEstimates),
		levels("Effective sample size", "Number of episodes (or blocks) of the accepted policy that would be as informative as the observed ones. Below 50, there are no estimates.", "short",
			ofGroup(metrics.MetricOffPolicyEffective)).AxisLabel("Episodes").Span(quarter).NoValue(noEstimates),
		levels("Mean importance weight", "Average ratio of the action probabilities of the accepted policy to those of the current one. It is close to 1 if the current policy takes all actions of the accepted policy and the logged probabilities are correct.", "short",
			ofGroup(metrics.MetricOffPolicyWeight)).AxisLabel("Weight").Span(quarter).NoValue(noEstimates))
}

func policyDetectors(d *dashboard.DashboardBuilder, s scope) {
	folded(d, "Detectors of $signal", "detection.md#how-it-works",
		detectorNames(againstOne("Detector scores", "Score of each detector of $signal. A score of 1 raises an alarm.",
			query{expr: "max by (" + s.groups("detector") + ") (" + s.ofSignal(metrics.MetricDetectorScore) + ")", legend: s.legend("detector")})).NoValue(noScores),
		againstOne("Highest score by signal", "Highest detector score of each signal of the policy. A score of 1 raises an alarm.",
			query{expr: "max by (signal) (" + s.of(metrics.MetricDetectorScore) + ")", legend: "{{signal}}"}).NoValue(noScores),
		detectorNames(paired("Detector statistics vs. thresholds", "Statistic that each detector has accumulated, in its own unit. Dashed: threshold at which it raises an alarm. Detectors without a threshold are shown for comparison only.", "short", s.legend("detector"),
			"max by ("+s.groups("detector")+") ("+s.ofSignal(metrics.MetricDetectorStatistic)+")",
			"max by ("+s.groups("detector")+") ("+s.ofSignal(metrics.MetricDetectorThreshold)+" > 0)")).AxisLabel("Statistic").NoValue(noScores).Height(tallGraph),
		lines("Shift by signal", "Difference between the mean of the last 200 episodes (or blocks) and the mean of the baseline, in standard deviations (SD) of the baseline.", deviations,
			query{expr: "max by (" + s.groups("signal") + ") (" + s.of(metrics.MetricEffectSize) + ")", legend: s.legend("signal")}).AxisCenteredZero(true).AxisSoftMin(-1).AxisSoftMax(1).NoValue(noBaseline).Height(tallGraph),
		detectorNames(happened("ADWIN and Page-Hinkley detections", "How often ADWIN and Page-Hinkley detected a drift in $signal. They are shown for comparison only and raise no alarms. Dashed: number of detections expected by chance.", "Detections",
			query{expr: counted(s.ofSignal(metrics.MetricComparisonAlarms), overPoint, "detector"), legend: "{{detector}}"},
			query{expr: gaugeChance(s), legend: "{{detector}} by chance"})).
			Decimals(2).NoValue(noBaseline).OverrideByRegexp("/chance$/", append(dashed(), asLine()...)))
}

// gaugeChance returns the expression for the number of drifts that the detectors that never page would find by chance
// in the units of one point.
func gaugeChance(s scope) string {
	rate := "max by (" + s.groups("detector") + ") (1 / " + s.ofSignal(metrics.MetricComparisonARL0) + ")"
	units := "sum by (" + s.groups() + ") (increase(" + s.of(metrics.MetricUnits) + "[$__rate_interval]))"
	return "sum by (detector) (" + rate + " * on (" + s.groups() + ") group_left () " + units + ")"
}

func policyIncidents(d *dashboard.DashboardBuilder, s scope) {
	folded(d, "Past incidents and retraining", "retraining.md",
		firing(s, "Firing alarms of the policy by severity, with the alarms of muted incidents on top. Info: the baseline is still provisional. Muted: alarms of any severity that page no one, because their incident was muted."),
		rows("Closed incidents by cause", "Incidents of the policy that closed in the time range of the dashboard, by their most likely cause.",
			[]column{causeColumn(likelyCause), valueColumn("Incidents", inDecimals(0))}, []order{{"Value", true}, {"cause", false}},
			query{expr: counted(s.of(alerts.MetricIncidentsClosed), overRange, "cause")}).NoValue("No closed incidents"),
		inStateColors(stacked("Retrain requests by status", "Retrain requests of the policy in the ledger, by status.", "short",
			query{expr: "max by (state) (" + s.policies(retrain.MetricRequests) + ") > 0", legend: "{{state}}"})).AxisLabel("Requests").NoValue("No requests"),
		levels("Remaining cooldown by target", "Time until an incident of the policy can request another retraining from the target.", "s",
			query{expr: "max by (target) (" + s.policies(retrain.MetricCooldown) + ")", legend: "{{target}}"}).NoValue("No cooldowns"))
}
