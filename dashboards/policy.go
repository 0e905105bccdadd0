package dashboards

import (
	"slices"
	"strings"

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
	d := frame("Rewardwatch / Policy", "One policy: its open incident, what changed, and the evidence.",
		policyUID, s, policyVariable()).
		WithVariable(signalVariable())
	policyHeadline(d, s)
	d.WithPanel(openIncidents(s).Height(5)).
		WithPanel(moved(s).Span(14)).
		WithPanel(done(s).Span(10)).
		WithPanel(meanOfSignal(s).Span(10)).
		WithPanel(states("State of each signal", "Warming up: the baseline is being collected. Drift: the score has reached 1. "+untilResolved+" Telemetry fault: the telemetry cannot be judged. Drifting signals are on top.",
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
	d.WithPanel(number("Firing alarms", "Firing alarms of the policy, excluding muted alarms.", "short", steps(gray, step{1, red}),
		query{expr: "sum(" + s.of(alerts.MetricAlarms) + ")"})).
		WithPanel(number("Muted alarms", "Firing alarms that do not page anyone, because the incident was muted.", "short", steps(gray, step{1, amber}),
			muted(s))).
		WithPanel(number("Highest score", "The highest score of all signals. Every detector raises an alarm at 1. "+untilResolved, "short", steps(green, step{.8, amber}, step{1, red}),
			query{expr: "max(" + s.of(metrics.MetricDetectorScore) + ")"}).Decimals(2)).
		WithPanel(number("Incidents, 30 d", "Incidents in the last 30 days, "+asMultiple(), budgets, budgetLimits(),
			query{expr: "max(" + budgetUsed(s) + ")"}).Decimals(1)).
		WithPanel(number("Baseline age", "Time since the oldest baseline was frozen.", "s", steps(gray),
			query{expr: "max(" + s.of(metrics.MetricBaselineAge) + ")"}).NoValue("None yet")).
		WithPanel(unconfirmed(s).Title("Unsent (fleet)"))
}

// untilResolved says why a signal may be in drift at a score below 1.
const untilResolved = "An alarm fires until all sums of the signal's detectors have returned to 0 and stayed low, so a signal can be in drift at a score below 1."

// done lists the actions of people and services on the latest incident and the last request of the policy, newest
// first. The end of a mute is in the future: it is listed directly below the mute, not at the top as if it were the
// last action.
func done(s scope) *table.PanelBuilder {
	decided := `max by (what, by) (label_replace(` + s.of(alerts.MetricIncidentDecision) + `, "what", "$1", "decision", "(.+)"))`
	stepped := `max by (what, by) (label_join(` + s.policies(retrain.MetricLastStep) + `, "what", " ", "kind", "step"))`
	stepped = `label_replace(` + stepped + `, "by", "retraining job", "by", "job")`
	ends := `label_replace(max by (by) (` + s.of(alerts.MetricIncidentDecision, `decision="`+string(alerts.Muted)+`"`) + `) and on (by) ` +
		s.of(alerts.MetricIncidentDecision, `decision="`+alerts.MuteEnds+`"`) + `, "what", "` + alerts.MuteEnds + `", "", "") - 0.001`
	return rows("What was done", "Decisions on the latest incident and steps of the last retrain request, newest first, with the last of each kind. By: a user, `rewardwatch`, the target that accepted the request, or the retraining job. Click an entry to approve or reject requests in the console.",
		[]column{
			valueColumnOf(0, "at", inUnit(toTheSecond), inWidth(158)),
			labelColumn("what", slices.Concat(mapped(deeds()), requestsInConsole("policy=${policy:percentencode}"), atLeast(149))...),
			labelColumn("by", inWidth(103)...),
		}, []order{{"Value #B", true}, {"what", false}},
		query{expr: "1000 * (" + decided + " or " + stepped + ") > 0"},
		query{expr: "1000 * (" + ends + " or " + decided + " or " + stepped + ") > 0"}).
		NoValue("Nothing yet")
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
		name := strings.ToUpper(kind[:1]) + spacedName(kind[1:])
		if kind == "retrain" {
			name = "Retraining"
		}
		for _, step := range retrain.Steps() {
			text := name + " " + spacedName(step)
			if step == string(ledger.StateAwaitingApproval) {
				text = "Approval requested"
			}
			add(kind+" "+step, text)
		}
	}
	return options.mappings()
}

// moved lists all signals, the ones that moved furthest first.
func moved(s scope) *table.PanelBuilder {
	by := "max by (" + s.groups("signal") + ") ("
	mean := func(sample string) query {
		return query{expr: by + s.of(metrics.MetricSignalMean, `sample="`+sample+`"`) + ")"}
	}
	measured := func(i int, title string, width int, more ...[]dashboard.DynamicConfigValue) column {
		return valueColumnOf(i, title, append([][]dashboard.DynamicConfigValue{inUnit("short"), inDecimals(2), ifAbsent("-"), inWidth(width)}, more...)...)
	}
	state := valueColumnOf(1, "state", mapped(stateNames()), []dashboard.DynamicConfigValue{filledCell("color-background")}, inWidth(112))
	columns := slices.Concat(narrow(80, s.labels...), []column{
		labelColumn("signal", atLeast(150)...), state,
		measured(0, "score", 56, inLimits(steps(gray, step{1, red}))),
		measured(2, "shift (SD)", 78), measured(3, "now", 66), measured(4, "baseline", 72),
	})
	return rows("What moved", "All signals, highest score first. Score: the highest score of the detectors; each raises an alarm at 1. "+untilResolved+" Shift: how far the mean of the last 200 episodes (or blocks) is from the baseline, in standard deviations of the baseline (how far values usually lie from its mean). Now: the mean of these 200. Baseline: the mean before the drift.",
		columns, []order{{"Value #B", true}, {"Value #A", true}, {"signal", false}},
		query{expr: by + s.of(metrics.MetricDetectorScore) + ")"},
		query{expr: by + s.of(metrics.MetricStreamState) + ")"},
		query{expr: by + s.of(metrics.MetricEffectSize) + ")"},
		mean("current"), mean("baseline")).
		Span(full)
}

func meanOfSignal(s scope) *timeseries.PanelBuilder {
	return againstBaseline("Mean of $signal", "Mean over the last 200 episodes (or blocks) of each group. Dashed: mean in the baseline.", "short", s.legend(), func(sample string) string {
		return "max by (" + s.groups() + ") (" + s.ofSignal(metrics.MetricSignalMean, `sample="`+sample+`"`) + ")"
	})
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
	columns = append(columns, valueColumnOf(0, "first seen", inUnit(toTheSecond), ifAbsent("no timestamps"), inWidth(180)))
	for i, title := range []string{"mean", "SD", "shift (SD)", "score"} {
		columns = append(columns, valueColumnOf(i+1, title, inUnit("short"), inDecimals(3), ifAbsent("-"), inWidth(95)))
	}
	folded(d, "Versions and baselines", "baselines.md",
		rows("Versions side by side", "Versions of policy, environment and reward function in the time range, newest first. For each version: when its first episode (or block) ended, and averages over its active time of the mean and standard deviation of $signal in the last 200 episodes (or blocks), the shift from the baseline, and the highest score. Directly after a change, the last 200 contain both versions.",
			columns, []order{{"Value #A", true}},
			query{expr: "1000 * max_over_time((" + byVersion + s.of(metrics.MetricVersionSince) + "))[$__range:$__rate_interval])"},
			while(ofGroup(metrics.MetricSignalMean, `sample="current"`)),
			while(ofGroup(metrics.MetricSignalStddev, `sample="current"`)),
			while(ofGroup(metrics.MetricEffectSize)),
			while("max by ("+s.groups()+") ("+s.ofSignal(metrics.MetricDetectorScore)+")")).
			Span(full),
		rows("Current versions", "The versions in the last episode (or block) of each group.",
			append(labelColumns(s.labels...), versionColumns()...), nil,
			query{expr: byVersion + s.of(metrics.MetricVersionInfo) + ")"}),
		rows("Baselines", "The baseline of each group: its size, in episodes (or blocks), and its id, a hash of its values.",
			append(labelColumns(s.labels...), valueColumn("size", inDecimals(0), inWidth(90)), labelColumn("baseline", atLeast(180)...)), []order{{"baseline", false}},
			query{expr: "max by (" + s.groups("baseline") + ") (" + s.of(metrics.MetricBaselineUnits) + " * on (" + s.groups() + ") group_right () max by (" + s.groups("baseline") + ") (" + s.of(metrics.MetricBaselineInfo) + "))"}),
		rows("Telemetry faults", "Signals with a telemetry fault, and the rule. During a fault, no retraining is triggered, and signals with wrong values are not judged.",
			append(labelColumns(slices.Concat(s.labels, []string{"signal", "rule"})...), valueColumn("telemetry", mapped(faultNames()))), nil,
			query{expr: faultOf(s)}).Span(full))
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
	folded(d, "False alarm budget", "detection.md#what-is-promised",
		number("Budget", "Mean number of episodes (or blocks) between false alarms that the thresholds aim for, over all signals of the policy.", "short", steps(gray),
			query{expr: "min(" + s.of(metrics.MetricFalseAlarmUnits) + ")"}).Span(quarter),
		number("Expected", "The number of episodes (or blocks) between false alarms that the calibration expects: the median over many random samples of the baseline.", "short", steps(gray),
			query{expr: "min(" + s.of(metrics.MetricExpectedUnits, `q="0.5"`) + ")"}).Span(quarter),
		number("Allowance", "How much higher the thresholds are because the baseline is only a sample, in standard errors. Above 2.25, the budget is not confirmed. Larger baselines need a smaller allowance.", "short", steps(green, step{2.25, red}),
			query{expr: "max(" + s.of(metrics.MetricAllowance) + ")"}).Decimals(2).Span(quarter),
		number("Overlap", "How often tests raise false alarms together: the sum of their false alarm rates, divided by the rate of false alarms. At 1, they never do.", "short", steps(gray),
			query{expr: "min(" + s.of(metrics.MetricOverlap) + ")"}).Decimals(2).Span(quarter),
		lines("Episodes between false alarms", "The budget (dashed), and the expected number of episodes (or blocks) between false alarms over many random samples of the baseline: 10th percentile (0.1), median (0.5) and 90th percentile (0.9). The budget is met if the 0.1 line is above it.", "short",
			query{expr: "min by (" + s.groups("q") + ") (" + s.of(metrics.MetricExpectedUnits) + ")", legend: s.legend() + " quantile {{q}}"},
			query{expr: "min by (" + s.groups() + ") (" + s.of(metrics.MetricFalseAlarmUnits) + ")", legend: s.legend() + " budget"}).
			Min(0).AxisSoftMax(1).OverrideByRegexp("/budget/", dashed()).Span(full),
		rows("Confidence", "How reliable the budget is. Reduced: episodes (or blocks) depend on each other, or the baseline covers less than a day. Provisional: the baseline is still small. Unconfirmed: calibration found no thresholds that are certain to meet the budget. None: no detector is active. A branch is one test of one statistic; the weakest branch has the largest share of the expected false alarms.",
			slices.Concat(labelColumns(s.labels...), []column{labelColumn("confidence", slices.Concat(texts(confidenceColors()...), inWidth(120))...), labelColumn("weakest", atLeast(300)...)}), nil,
			query{expr: "max by (" + s.groups("confidence", "weakest") + ") (" + s.of(metrics.MetricPromise) + ")"}).Span(full),
		rows("Branches of each signal", "A branch is one test of one statistic of a signal. Active: branches that can raise alarms. Dropped: branches for which the baseline is too small. Dependence: how strongly the baseline's episodes (or blocks) depend on each other. Above 2, the budget is less reliable; above 4, it is not stated.",
			slices.Concat(labelColumns(s.labels...), []column{
				labelColumn("signal"), valueColumnOf(0, "active", inDecimals(0), ifAbsent("-")), valueColumnOf(1, "dropped", inDecimals(0), ifAbsent("-")),
				valueColumnOf(2, "dependence", inDecimals(2), ifAbsent("-"), inLimits(steps(green, step{2, yellow}, step{4, red}))),
			}), []order{{"Value #C", true}, {"signal", false}},
			ofSignal(metrics.MetricBranches, `state="armed"`), ofSignal(metrics.MetricBranches, `state="dropped"`), ofSignal(metrics.MetricDependenceFactor)).
			Span(full))
}

func policyDistribution(d *dashboard.DashboardBuilder, s scope) {
	folded(d, "Distribution of $signal", "detection.md#how-it-works",
		againstBaseline("SD", "Standard deviation over the last 200 episodes (or blocks) of each group. Dashed: standard deviation in the baseline.", "short", s.legend(), func(sample string) string {
			return "max by (" + s.groups() + ") (" + s.ofSignal(metrics.MetricSignalStddev, `sample="`+sample+`"`) + ")"
		}).Min(0).AxisSoftMax(1),
		lines("Quantiles", "10th percentile, median and 90th percentile of the last 200 episodes (or blocks), and of the baseline (dashed). With several groups: the lowest 10th percentile, and the highest median and 90th percentile.", "short",
			quantiles(s)...).
			OverrideByRegexp("/baseline/", append(dashed(), colored(faint)...)).
			OverrideByRegexp("/current/", colored(blue)).
			OverrideByRegexp("/%/", unlisted()).
			OverrideByName("baseline 90%", band("baseline 10%", faint)).
			OverrideByName("current 90%", band("current 10%", blue)),
		bars("Deciles", "Share of the episodes (or blocks) in each tenth of the baseline (decile), from its lowest to its highest values. Without drift, every bar for the last 200 episodes (or blocks) is about as high as the baseline's.", "bin", s,
			"max by ("+s.groups("bin", "sample")+") ("+s.ofSignal(metrics.MetricSignalDecile)+")").Span(full))
}

// quantiles returns the queries for the quantile band of each sample over all selected groups.
func quantiles(s scope) (all []query) {
	for _, sample := range []string{"baseline", "current"} {
		for _, q := range [][3]string{{"0.1", "min", "10%"}, {"0.5", "max", "median"}, {"0.9", "max", "90%"}} {
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
		return againstBaseline(title, description+" Mean over the last 200 episodes (or blocks). Dashed: mean in the baseline.", "short", s.legend("signal"), func(sample string) string {
			return "max by (" + s.groups("signal") + ") (" + s.of(metrics.MetricSignalMean, `signal=~"`+signal+`"`, `sample="`+sample+`"`) + ")"
		}).NoValue("Not in the telemetry")
	}
	folded(d, "Returns, rewards, outcomes and lengths", "telemetry.md",
		mean("Return", "Total reward of an episode.", "return"),
		mean("Reward", "Reward of a step.", "reward"),
		mean("Outcomes", "Outcomes of an episode.", "outcome[.].+"),
		mean("Episode length", "Steps per episode.", "episode_length"))
}

// policyReward shows the reward per step. It uses two counters that only increase, because a sum of rewards that can
// fall has no valid rate.
func policyReward(d *dashboard.DashboardBuilder, s scope) {
	positive := perSecond(s.of(metrics.MetricRewardPositive), s.groups())
	negative := perSecond(s.of(metrics.MetricRewardNegative), s.groups())
	count := perSecond(s.of(metrics.MetricRewardObservations), s.groups())
	folded(d, "Reward over time", "metrics.md",
		lines("Mean reward per step", "Sum of the rewards, divided by their number.", "short",
			query{expr: "(" + positive + " - " + negative + ") / (" + count + " > 0)", legend: s.legend()}),
		lines("Rewards earned and lost", "Sums of positive and negative rewards per second.", "short",
			query{expr: positive, legend: s.legend() + " positive"},
			query{expr: "-" + negative, legend: s.legend() + " negative"}).AxisSoftMin(0).AxisSoftMax(1))
}

func policyActions(d *dashboard.DashboardBuilder, s scope) {
	folded(d, "Actions", "detection.md#how-it-works",
		levels("Action shares", "Share of each action over the last 200 episodes (or blocks). Actions that are rare in the baseline are shown as other.", "percentunit",
			query{expr: "max by (" + s.groups("action") + ") (" + s.of(metrics.MetricActionRatio, `sample="current"`) + ")", legend: s.legend("action")}).Max(1),
		bars("Action shares and baseline", "Current share of each action, next to its share in the baseline.", "action", s,
			"max by ("+s.groups("action", "sample")+") ("+s.of(metrics.MetricActionRatio)+")"),
		paired("Action divergence", "Population stability index (`psi`, in nats) and Jensen-Shannon divergence (`js`, in bits) between the actions in the last 200 episodes (or blocks) and in the baseline. Dashed: the 95th percentile for unchanged actions if steps are independent. If they are not, unchanged actions exceed it more often. These measures never page.", "short", s.legend("measure"),
			"max by ("+s.groups("measure")+") ("+s.of(metrics.MetricActionDivergence, `measure=~"psi|js"`)+")",
			"max by ("+s.groups("measure")+") ("+s.of(metrics.MetricActionChance, `measure=~"psi|js"`)+")").
			Min(0).AxisSoftMax(1),
		againstBaseline("Action entropy", "How varied the actions of the last 200 episodes (or blocks) are, in bits. 0 means that the action is always the same. Dashed: entropy in the baseline.", "short", s.legend(), func(sample string) string {
			return "max by (" + s.groups() + ") (" + s.of(metrics.MetricActionEntropy, `sample="`+sample+`"`) + ")"
		}).Min(0).AxisSoftMax(1),
		againstOne("Action scores", "The highest score of the action detectors in each group. Every detector raises an alarm at 1.",
			query{expr: "max by (" + s.groups("detector") + ") (" + s.of(metrics.MetricDetectorScore, `signal=~"action([.].+)?"`) + ")", legend: s.legend("detector")}))
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
		lines("Value of the accepted policy", "What the baseline's policy would have earned on current traffic, with its 95% confidence limits (dashed), and what was actually earned. `target_prob`: the accepted policy itself. `action_frequencies`: a policy that takes each action as often as the baseline did. Gaps: not enough data for an estimate.", "short",
			query{expr: value("estimate"), legend: s.legend("reference")},
			query{expr: value("low"), legend: s.legend("reference") + " low"},
			query{expr: value("high"), legend: s.legend("reference") + " high"},
			actual).
			OverrideByRegexp("/ (low|high)$/", dashed()).NoValue("Not enough data for an estimate"),
		levels("Effective sample size", "Number of episodes (or blocks) of the accepted policy that would provide the same information as the observed ones.", "short",
			ofGroup(metrics.MetricOffPolicyEffective)).Span(quarter).NoValue("No estimates"),
		levels("Mean weight", "Close to 1 if the current policy takes all actions of the accepted policy and the logged probabilities are correct.", "short",
			ofGroup(metrics.MetricOffPolicyWeight)).Span(quarter).NoValue("No estimates"))
}

func policyDetectors(d *dashboard.DashboardBuilder, s scope) {
	folded(d, "Detectors of $signal", "detection.md#how-it-works",
		againstOne("Scores", "The score of each detector. Every detector raises an alarm at 1.",
			query{expr: "max by (" + s.groups("detector") + ") (" + s.ofSignal(metrics.MetricDetectorScore) + ")", legend: s.legend("detector")}),
		againstOne("Highest score of each signal", "The highest score of each signal's detectors. Every detector raises an alarm at 1.",
			query{expr: "max by (signal) (" + s.of(metrics.MetricDetectorScore) + ")", legend: "{{signal}}"}),
		paired("Thresholds", "The statistic that each detector has accumulated, in its own unit. Dashed: the value at which it raises an alarm. Detectors without a threshold are shown for comparison only.", "short", s.legend("detector"),
			"max by ("+s.groups("detector")+") ("+s.ofSignal(metrics.MetricDetectorStatistic)+")",
			"max by ("+s.groups("detector")+") ("+s.ofSignal(metrics.MetricDetectorThreshold)+" > 0)").Height(tallGraph),
		lines("Effect size of each signal", "Shift of the mean over the last 200 episodes (or blocks), in standard deviations of the baseline. One standard deviation is how far values usually lie from the mean.", deviations,
			query{expr: "max by (" + s.groups("signal") + ") (" + s.of(metrics.MetricEffectSize) + ")", legend: s.legend("signal")}).AxisCenteredZero(true).AxisSoftMin(-1).AxisSoftMax(1).Height(tallGraph),
		happened("ADWIN and Page-Hinkley", "How often ADWIN and Page-Hinkley detected drift in $signal. They are shown for comparison and never page. Dashed: the number of detections expected by chance.",
			query{expr: counted(s.ofSignal(metrics.MetricComparisonAlarms), overPoint, "detector"), legend: "{{detector}}"},
			query{expr: gaugeChance(s), legend: "{{detector}} by chance"}).
			Decimals(2).OverrideByRegexp("/chance/", append(dashed(), asLine()...)))
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
		firing(s, "Firing alarms of the policy. Info: based on a provisional baseline. Muted: the incident was muted."),
		rows("Causes of closed incidents", "The policy's incidents that closed in the selected time range, by cause.",
			[]column{causeColumn(), valueColumn("incidents", inDecimals(0))}, []order{{"Value", true}, {"cause", false}},
			query{expr: counted(s.of(alerts.MetricIncidentsClosed), overRange, "cause")}),
		inStateColors(stacked("Retrain requests", "Retrain requests for the policy, by state.", "short",
			query{expr: "max by (state) (" + s.policies(retrain.MetricRequests) + ") > 0", legend: "{{state}}"})).NoValue("No requests"),
		levels("Cooldown", "Time until an incident of the policy can request another retraining, by target.", "s",
			query{expr: "max by (target) (" + s.policies(retrain.MetricCooldown) + ")", legend: "{{target}}"}).NoValue("No cooldowns"))
}
