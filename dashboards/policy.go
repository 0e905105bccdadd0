package dashboards

import (
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/metrics"
	"github.com/rewardwatch/rewardwatch/retrain"
)

// policy returns the dashboard of one policy: its distributions against their baseline, its actions, its detectors, and
// what was done about its incidents.
func policy(opts Options) *dashboard.DashboardBuilder {
	s := policyScope(opts)
	d := frame("Rewardwatch / Policy", "One policy: what it earns and does now, against what it did when its baseline was frozen.",
		policyUID, s, policyVariable()).
		WithVariable(signalVariable())
	policyState(d, s)
	policyVersions(d, s)
	policyPromise(d, s)
	policyDistribution(d, s)
	policyEpisodes(d, s)
	policyReward(d, s)
	policyActions(d, s)
	policyEstimates(d, s)
	policyDetectors(d, s)
	policyIncidents(d, s)
	return d
}

func policyState(d *dashboard.DashboardBuilder, s scope) {
	d.WithRow(dashboard.NewRowBuilder("$policy")).
		WithPanel(number("Firing alarms", "Alarms of the policy that fire now.", "short", steps(green, step{1, red}),
			query{expr: "sum(" + s.of(alerts.MetricAlarms) + ")"}).Span(quarter)).
		WithPanel(number("Baseline", "Episodes (or blocks) in the frozen baseline; 0 until it is frozen.", "short", steps(gray),
			query{expr: "min(" + s.of(metrics.MetricBaselineUnits) + ")"}).Span(quarter)).
		WithPanel(number("Baseline age", "Time since the oldest baseline was frozen.", "s", steps(gray),
			query{expr: "max(" + s.of(metrics.MetricBaselineAge) + ")"}).Span(quarter)).
		WithPanel(number("Muted alarms", "Alarms of the policy that fire now and page no one, because a person has muted their incident.", "short", steps(gray, step{1, yellow}),
			muted(s)).Span(quarter)).
		WithPanel(states("State of each signal", "warming_up: the baseline is being collected. drift: the score has reached the threshold. telemetry_fault: the telemetry cannot be judged.",
			query{expr: "max by (" + s.groups("signal") + ") (" + s.of(metrics.MetricStreamState) + ")", legend: s.legend("signal")})).
		WithPanel(rows("Telemetry faults", "Which signals are sound, and which are in a telemetry fault now, with its rule. A fault vetoes retraining; a signal with wrong values is not judged.",
			append(labelColumns(slices.Concat(s.labels, []string{"signal", "rule"})...), valueColumn("telemetry", mapped(faultNames()))),
			query{expr: faultOf(s)}).Span(third)).
		WithPanel(rows("Versions", "The versions that the last episode (or block) of each group carried.",
			labelColumns(slices.Concat(s.labels, versionLabels())...),
			query{expr: "max by (" + s.groups(versionLabels()...) + ") (" + s.of(metrics.MetricVersionInfo) + ")"}).Span(third)).
		WithPanel(rows("Baselines", "The id of each group's baseline: a hash of its values.",
			labelColumns(slices.Concat(s.labels, []string{"baseline"})...),
			query{expr: "max by (" + s.groups("baseline") + ") (" + s.of(metrics.MetricBaselineInfo) + ")"}).Span(third))
}

// versionLabels returns the names of the version labels of a unit.
func versionLabels() []string { return []string{"policy_version", "env_version", "reward_version"} }

// policyVersions compares the versions with each other.
func policyVersions(d *dashboard.DashboardBuilder, s scope) {
	byVersion := "max by (" + s.groups(versionLabels()...) + ") ("
	// while averages a value of the group over the time in which each version was the latest.
	while := func(value string) query {
		return query{expr: "avg_over_time((" + byVersion + s.of(metrics.MetricVersionInfo) + ") * on (" + s.groups() + ") group_left () " + value + ")[$__range:$__rate_interval])"}
	}
	ofGroup := func(metric string, matchers ...string) string {
		return "max by (" + s.groups() + ") (" + s.ofSignal(metric, matchers...) + ")"
	}
	columns := labelColumns(slices.Concat(s.labels, versionLabels())...)
	columns = append(columns, valueColumnOf(0, "first seen", inUnit("dateTimeAsIso")))
	for i, title := range []string{"mean", "standard deviation", "effect size", "highest score"} {
		columns = append(columns, valueColumnOf(i+1, title, inUnit("short"), inDecimals(3)))
	}
	d.WithRow(dashboard.NewRowBuilder("Versions")).
		WithPanel(rows("Versions side by side", "Each version of policy, environment and reward function over the time shown, the newest first: when its first episode (or block) ended, where telemetry has a clock, and then, on average, mean and standard deviation of $signal over the last 200 episodes (or blocks), their shift from the baseline, and the highest score. After a change these are of both versions until 200 have come.",
			columns,
			query{expr: "1000 * max_over_time((" + byVersion + s.of(metrics.MetricVersionSince) + "))[$__range:$__rate_interval])"},
			while(ofGroup(metrics.MetricSignalMean, `sample="current"`)),
			while(ofGroup(metrics.MetricSignalStddev, `sample="current"`)),
			while(ofGroup(metrics.MetricEffectSize)),
			while("max by ("+s.groups()+") ("+s.ofSignal(metrics.MetricDetectorScore)+")")).
			WithTransformation(sortedBy("first seen", true)).Span(full))
}

// faultOf returns the expression that is 1, with the rule of the fault, for signals in a fault, and 0 for others.
func faultOf(s scope) string {
	by := "max by (" + s.groups("signal", "rule") + ") ("
	return by + s.of(metrics.MetricStreamFault) + ") or on (" + s.groups("signal") + ") 0 * " + by + s.of(metrics.MetricStreamState) + ")"
}

// policyPromise shows what was calibrated about false alarms when the baselines froze.
func policyPromise(d *dashboard.DashboardBuilder, s scope) {
	branches := func(state string) string {
		return "sum by (" + s.groups("signal") + ") (" + s.of(metrics.MetricBranches, `state="`+state+`"`) + ")"
	}
	d.WithRow(dashboard.NewRowBuilder("Promise")).
		WithPanel(number("Budget", "The mean number of episodes (or blocks) between false alarms that thresholds are set for, over all signals of the policy.", "short", steps(gray),
			query{expr: "min(" + s.of(metrics.MetricFalseAlarmUnits) + ")"}).Span(quarter)).
		WithPanel(number("Expected", "The mean number of episodes (or blocks) between false alarms that the calibration expects: the median over baselines that could have been drawn.", "short", steps(gray),
			query{expr: "min(" + s.of(metrics.MetricExpectedUnits, `q="0.5"`) + ")"}).Span(quarter)).
		WithPanel(number("Allowance", "The allowance for the baseline being a sample itself, in standard errors. Above 2.25 the budget is not confirmed. A larger baseline needs less.", "short", steps(green, step{2.25, red}),
			query{expr: "max(" + s.of(metrics.MetricAllowance) + ")"}).Decimals(2).Span(quarter)).
		WithPanel(number("Overlap", "By how much false alarms come more seldom than the sum over the branches says, as several go off together.", "short", steps(gray),
			query{expr: "min(" + s.of(metrics.MetricOverlap) + ")"}).Decimals(2).Span(quarter)).
		WithPanel(lines("Episodes (or blocks) between false alarms", "What the budget asks for (dashed), and what is expected: for the unluckiest tenth of the baselines that could have been drawn (0.1), the median one (0.5) and the luckiest tenth (0.9). The budget is kept where the line of 0.1 lies above it.", "short",
			query{expr: "min by (" + s.groups("q") + ") (" + s.of(metrics.MetricExpectedUnits) + ")", legend: s.legend("q")},
			query{expr: "min by (" + s.groups() + ") (" + s.of(metrics.MetricFalseAlarmUnits) + ")", legend: s.legend() + " budget"}).
			Min(0).OverrideByRegexp("/budget/", dashed())).
		WithPanel(rows("How far it holds", "kept; reduced: episodes (or blocks) depend on one another, or the baseline covers less than a day; provisional: a small first baseline; unconfirmed: no allowance was found that keeps it; none: nothing is armed. The weakest branch has the largest part of the expected false alarms.",
			labelColumns(slices.Concat(s.labels, []string{"confidence", "weakest"})...),
			query{expr: "max by (" + s.groups("confidence", "weakest") + ") (" + s.of(metrics.MetricPromise) + ")"})).
		WithPanel(lines("Branches of each signal", "Branches that can page, and (dashed) those that are not armed because a baseline of this size does not carry them.", "short",
			query{expr: branches("armed"), legend: s.legend("signal")},
			query{expr: branches("dropped"), legend: s.legend("signal") + " dropped"}).
			Min(0).OverrideByRegexp("/dropped/", dashed())).
		WithPanel(lines("Dependence of successive episodes", "By what factor the episodes (or blocks) of the baseline vary more slowly than independent ones. Up to 2 the budget stands as stated.", "short",
			query{expr: "max by (signal) (" + s.of(metrics.MetricDependenceFactor) + ")", legend: "{{signal}}"}).
			Thresholds(steps(green, step{2, yellow}, step{4, red})))
}

func policyDistribution(d *dashboard.DashboardBuilder, s scope) {
	bySample := s.groups("sample")
	d.WithRow(dashboard.NewRowBuilder("$signal against its baseline")).
		WithPanel(lines("Mean", "Mean over the last 200 episodes (or blocks), and over the baseline.", "short",
			query{expr: "max by (" + bySample + ") (" + s.ofSignal(metrics.MetricSignalMean) + ")", legend: s.legend("sample")}).
			OverrideByRegexp("/baseline/", dashed())).
		WithPanel(lines("Standard deviation", "Standard deviation over the last 200 episodes (or blocks), and over the baseline.", "short",
			query{expr: "max by (" + bySample + ") (" + s.ofSignal(metrics.MetricSignalStddev) + ")", legend: s.legend("sample")}).
			Min(0).OverrideByRegexp("/baseline/", dashed())).
		WithPanel(lines("Quantiles", "Bands from the 10th to the 90th percentile of the last 200 episodes (or blocks), and of the baseline (dashed), with the medians. Annotations mark new versions. Where there are several groups, choose one: their bands lie over each other.", "short",
			query{expr: "max by (" + s.groups("sample", "q") + ") (" + s.ofSignal(metrics.MetricSignalQuantile) + ")", legend: "{{sample}} {{q}}"}).
			OverrideByRegexp("/baseline/", append(dashed(), colored(gray)...)).
			OverrideByRegexp("/current/", colored(blue)).
			OverrideByName("baseline 0.9", band("baseline 0.1", gray)).
			OverrideByName("current 0.9", band("current 0.1", blue))).
		WithPanel(bars("Distribution by the baseline's deciles", "Share of the episodes (or blocks) that fall between the deciles of the baseline, lowest first. Without drift every bar of the last 200 episodes (or blocks) is about as high as the baseline's.", "bin", s,
			"max by ("+s.groups("bin", "sample")+") ("+s.ofSignal(metrics.MetricSignalDecile)+")"))
}

// policyEpisodes shows the signals that are direct measures of how the policy does.
func policyEpisodes(d *dashboard.DashboardBuilder, s scope) {
	mean := func(title, description, signal string) *timeseries.PanelBuilder {
		return lines(title, description+" Mean over the last 200 episodes (or blocks), and over the baseline (dashed).", "short",
			query{expr: "max by (" + s.groups("signal", "sample") + ") (" + s.of(metrics.MetricSignalMean, `signal=~"`+signal+`"`) + ")", legend: s.legend("signal", "sample")}).
			OverrideByRegexp("/baseline/", dashed()).NoValue("The telemetry has none")
	}
	d.WithRow(dashboard.NewRowBuilder("Returns, rewards, outcomes and lengths")).
		WithPanel(mean("Return", "What an episode earns.", "return")).
		WithPanel(mean("Reward", "What a step earns.", "reward")).
		WithPanel(mean("Outcomes", "What comes of an episode.", "outcome[.].+")).
		WithPanel(mean("Episode length", "How many steps an episode has.", "episode_length"))
}

// policyReward shows the reward per step, from two counters that only grow: a sum of rewards that can fall has no valid
// rate.
func policyReward(d *dashboard.DashboardBuilder, s scope) {
	positive := perSecond(s.of(metrics.MetricRewardPositive), s.groups())
	negative := perSecond(s.of(metrics.MetricRewardNegative), s.groups())
	count := perSecond(s.of(metrics.MetricRewardObservations), s.groups())
	d.WithRow(dashboard.NewRowBuilder("Reward by the second")).
		WithPanel(lines("Mean reward of a step", "Positive less negative rewards, divided by their number.", "short",
			query{expr: "(" + positive + " - " + negative + ") / " + count, legend: s.legend()})).
		WithPanel(lines("Rewards earned and lost", "Sums of the positive and of the negative rewards, a second.", "short",
			query{expr: positive, legend: s.legend() + " positive"},
			query{expr: "-" + negative, legend: s.legend() + " negative"}))
}

func policyActions(d *dashboard.DashboardBuilder, s scope) {
	d.WithRow(dashboard.NewRowBuilder("Actions")).
		WithPanel(lines("Action shares", "Share of each action over the last 200 episodes (or blocks). Actions that the baseline hardly knows are counted as other.", "percentunit",
			query{expr: "max by (" + s.groups("action") + ") (" + s.of(metrics.MetricActionRatio, `sample="current"`) + ")", legend: s.legend("action")}).Min(0).Max(1)).
		WithPanel(bars("Action shares against the baseline", "Share of each action now, beside its share in the baseline.", "action", s,
			"max by ("+s.groups("action", "sample")+") ("+s.of(metrics.MetricActionRatio)+")")).
		WithPanel(lines("Divergence of the actions", "Population stability index (psi, nats) and Jensen-Shannon divergence (js, bits) of the actions of the last 200 episodes (or blocks) from the baseline's, and (dashed) what unchanged actions exceed one time in twenty if steps are independent; where they are not, more often. They never page.", "short",
			query{expr: "max by (" + s.groups("measure") + ") (" + s.of(metrics.MetricActionDivergence, `measure=~"psi|js"`) + ")", legend: s.legend("measure")},
			query{expr: "max by (" + s.groups("measure") + ") (" + s.of(metrics.MetricActionChance, `measure=~"psi|js"`) + ")", legend: s.legend("measure") + " by chance"}).
			Min(0).OverrideByRegexp("/chance/", dashed())).
		WithPanel(lines("Entropy of the actions", "How varied the actions of the last 200 episodes (or blocks) are, and those of the baseline, in bits. 0: always the same one.", "short",
			query{expr: "max by (" + s.groups("sample") + ") (" + s.of(metrics.MetricActionEntropy) + ")", legend: s.legend("sample")}).
			Min(0).OverrideByRegexp("/baseline/", dashed())).
		WithPanel(againstOne("Score of each detector of the actions", "How far each detector of the actions is on its way to its threshold, which is 1 for every detector.",
			query{expr: "max by (" + s.groups("signal", "detector") + ") (" + s.of(metrics.MetricDetectorScore, `signal=~"action([.].+)?"`) + ")", legend: s.legend("signal", "detector")}))
}

// policyEstimates shows the off-policy estimates. Without support a value has no series, and its line a gap.
func policyEstimates(d *dashboard.DashboardBuilder, s scope) {
	value := func(bound string) string {
		return "max by (" + s.groups("reference") + ") (" + s.of(metrics.MetricOffPolicyValue, `bound="`+bound+`"`) + ")"
	}
	ofGroup := func(metric string) query {
		return query{expr: "max by (" + s.groups() + ") (" + s.of(metric) + ")", legend: s.legend()}
	}
	actual := ofGroup(metrics.MetricOffPolicyActual)
	actual.legend += " earned"
	d.WithRow(dashboard.NewRowBuilder("Off-policy estimates")).
		WithPanel(lines("Value of the accepted policy", "What the policy of the baseline would have earned on the traffic of today, with its confidence sequence (dashed), and what was earned. target_prob: the accepted policy itself; action_frequencies: one that takes the actions as often as the baseline did. A gap: there is not enough support for an estimate.", "short",
			query{expr: value("estimate"), legend: s.legend("reference")},
			query{expr: value("low"), legend: s.legend("reference") + " low"},
			query{expr: value("high"), legend: s.legend("reference") + " high"},
			actual).
			OverrideByRegexp("/ (low|high)$/", dashed())).
		WithPanel(lines("Effective sample size of the estimate", "How many episodes (or blocks) of the accepted policy would tell as much as those that were seen.", "short",
			ofGroup(metrics.MetricOffPolicyEffective)).Min(0).Span(quarter)).
		WithPanel(lines("Mean weight of the estimate", "Near 1 while the policy of today takes every action of the accepted one, and the logged probabilities are right.", "short",
			ofGroup(metrics.MetricOffPolicyWeight)).Min(0).Span(quarter))
}

func policyDetectors(d *dashboard.DashboardBuilder, s scope) {
	d.WithRow(dashboard.NewRowBuilder("Detectors")).
		WithPanel(againstOne("Score of each detector of $signal", "How far each detector is on its way to its threshold, which is 1 for every detector.",
			query{expr: "max by (" + s.groups("detector") + ") (" + s.ofSignal(metrics.MetricDetectorScore) + ")", legend: s.legend("detector")})).
		WithPanel(againstOne("Highest score of each signal", "The score of the detector that has gone furthest, for every signal of the policy.",
			query{expr: "max by (signal) (" + s.of(metrics.MetricDetectorScore) + ")", legend: "{{signal}}"})).
		WithPanel(lines("Statistic and threshold of $signal", "What each detector has accumulated, in its own unit, and (dashed) where it pages. What has no threshold is shown only.", "short",
			query{expr: "max by (" + s.groups("detector") + ") (" + s.ofSignal(metrics.MetricDetectorStatistic) + ")", legend: s.legend("detector")},
			query{expr: "max by (" + s.groups("detector") + ") (" + s.ofSignal(metrics.MetricDetectorThreshold) + " > 0)", legend: s.legend("detector") + " threshold"}).
			OverrideByRegexp("/threshold/", dashed())).
		WithPanel(lines("Effect size of each signal", "Shift of the mean of the last 200 episodes (or blocks), in standard deviations of the baseline.", "short",
			query{expr: "max by (" + s.groups("signal") + ") (" + s.of(metrics.MetricEffectSize) + ")", legend: s.legend("signal")}).AxisCenteredZero(true)).
		WithPanel(lines("Drifts by ADWIN and Page-Hinkley of $signal", "Detectors that are shown for comparison and never page: the drifts that they found over the interval of one point, and (dashed) how many of them chance alone would bring, from their mean time between false alarms on draws from the baseline.", "short",
			query{expr: counted(s.ofSignal(metrics.MetricComparisonAlarms), overPoint, "detector"), legend: "{{detector}}"},
			query{expr: gaugeChance(s), legend: "{{detector}} by chance"}).
			Min(0).OverrideByRegexp("/chance/", dashed()))
}

// gaugeChance returns the expression of how many drifts the detectors that never page would find by chance in the units
// of one point.
func gaugeChance(s scope) string {
	rate := "max by (" + s.groups("detector") + ") (1 / " + s.ofSignal(metrics.MetricComparisonARL0) + ")"
	units := "sum by (" + s.groups() + ") (increase(" + s.of(metrics.MetricUnits) + "[$__rate_interval]))"
	return "sum by (detector) (" + rate + " * on (" + s.groups() + ") group_left () " + units + ")"
}

func policyIncidents(d *dashboard.DashboardBuilder, s scope) {
	d.WithRow(dashboard.NewRowBuilder("Incidents and retraining")).
		WithPanel(openIncidents(s, labelColumn("policy"))).
		WithPanel(firing(s, "Alarms of the policy that fire. Info: on a provisional baseline. Muted: of an incident that a person has muted.")).
		WithPanel(rows("Causes of closed incidents", "How many incidents of the policy closed over the time shown, by the cause that was found.",
			[]column{labelColumn("cause"), valueColumn("incidents", inDecimals(0))},
			query{expr: counted(s.of(alerts.MetricIncidentsClosed), overRange, "cause")})).
		WithPanel(inStateColors(lines("Retrain requests", "Retrain requests of the policy by state.", "short",
			query{expr: "max by (state) (" + s.policies(retrain.MetricRequests) + ")", legend: "{{state}}"}).Min(0))).
		WithPanel(lines("Cooldown", "Time until the policy may order another retraining, by target.", "s",
			query{expr: "max by (target) (" + s.policies(retrain.MetricCooldown) + ")", legend: "{{target}}"}).Min(0))
}
