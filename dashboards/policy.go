package dashboards

import (
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest/assemble"
	"github.com/rewardwatch/rewardwatch/retrain"
)

// policy is the dashboard of one policy: its distributions against their baseline, its actions, its detectors, and
// what was done about its incidents.
func policy(opts Options) *dashboard.DashboardBuilder {
	s := policyScope(opts)
	d := frame("Rewardwatch / Policy", "One policy: what it earns and does now, against what it did when its baseline was frozen.",
		policyUID, s, policyVariable()).
		WithVariable(signalVariable()).
		Link(dashboard.NewDashboardLinkBuilder("Fleet").
			Type(dashboard.DashboardLinkTypeLink).Url("/d/" + fleetUID).KeepTime(true))
	policyState(d, s)
	policyDistribution(d, s)
	policyReward(d, s)
	policyActions(d, s)
	policyDetectors(d, s)
	policyIncidents(d, s)
	return d
}

func policyState(d *dashboard.DashboardBuilder, s scope) {
	d.WithRow(dashboard.NewRowBuilder("$policy")).
		WithPanel(number("Firing alarms", "Alarms of the policy that fire now.", "short", steps(green, step{1, red}),
			query{expr: "sum(" + s.of(alerts.MetricAlarms) + ") or vector(0)"}).Span(quarter)).
		WithPanel(number("Baseline", "Units in the frozen baseline; 0 until it is frozen.", "short", steps(gray),
			query{expr: "min(" + s.of(bank.MetricBaselineUnits) + ")"}).Span(quarter)).
		WithPanel(number("Baseline age", "Time since the oldest baseline was frozen.", "s", steps(gray),
			query{expr: "max(" + s.of(bank.MetricBaselineAge) + ")"}).Span(quarter)).
		WithPanel(number("Budget", "The mean number of units between false alarms that thresholds are set for, over all signals of the policy.", "short", steps(gray),
			query{expr: "min(" + s.of(bank.MetricFalseAlarmUnits) + ")"}).Span(quarter)).
		WithPanel(states("State of each signal", "warming_up: the baseline is being collected. drift: the score has reached the threshold. telemetry_fault: the telemetry cannot be judged.",
			query{expr: "max by (" + s.groups("signal") + ") (" + s.of(bank.MetricStreamState) + ")", legend: s.legend("signal")})).
		WithPanel(labelsNow("Versions", "The versions that the last unit of each group carried.",
			query{expr: s.of(bank.MetricVersionInfo), table: true}, "Time", "Value", "__name__", "instance", "job")).
		WithPanel(labelsNow("Baselines", "The id of each group's baseline: a hash of its values.",
			query{expr: s.of(bank.MetricBaselineInfo), table: true}, "Time", "Value", "__name__", "instance", "job"))
}

func policyDistribution(d *dashboard.DashboardBuilder, s scope) {
	bySample := s.groups("sample")
	d.WithRow(dashboard.NewRowBuilder("$signal against its baseline")).
		WithPanel(lines("Mean", "Mean over the last 200 units, and over the baseline.", "short",
			query{expr: "avg by (" + bySample + ") (" + s.ofSignal(bank.MetricSignalMean) + ")", legend: s.legend("sample")}).
			OverrideByRegexp("/baseline/", dashed())).
		WithPanel(lines("Standard deviation", "Standard deviation over the last 200 units, and over the baseline.", "short",
			query{expr: "avg by (" + bySample + ") (" + s.ofSignal(bank.MetricSignalStddev) + ")", legend: s.legend("sample")}).
			Min(0).OverrideByRegexp("/baseline/", dashed())).
		WithPanel(lines("Quantiles", "The 10th, 50th and 90th percentile of the last 200 units, and of the baseline.", "short",
			query{expr: "avg by (" + s.groups("sample", "quantile") + ") (" + s.ofSignal(bank.MetricSignalQuantile) + ")", legend: s.legend("sample", "quantile")}).
			OverrideByRegexp("/baseline/", dashed())).
		WithPanel(bars("Distribution by the baseline's deciles", "Share of the units that fall between the deciles of the baseline, lowest first. Without drift every bar of the last 200 units is about as high as the baseline's.", "bin",
			"avg by (bin) ("+s.ofSignal(bank.MetricSignalHistogram, `sample="baseline"`)+")",
			"avg by (bin) ("+s.ofSignal(bank.MetricSignalHistogram, `sample="current"`)+")"))
}

// policyReward shows the reward a step from two counters that only grow: a sum of rewards that may fall could not be
// read as a rate.
func policyReward(d *dashboard.DashboardBuilder, s scope) {
	positive := perSecond(s.of(bank.MetricRewardPositive), s.groups())
	negative := perSecond(s.of(bank.MetricRewardNegative), s.groups())
	count := perSecond(s.of(bank.MetricRewardObservations), s.groups())
	d.WithRow(dashboard.NewRowBuilder("Reward")).
		WithPanel(lines("Mean reward of a step", "Positive less negative rewards, divided by their number.", "short",
			query{expr: "(" + positive + " - " + negative + ") / " + count, legend: s.legend()})).
		WithPanel(lines("Rewards earned and lost", "Sums of the positive and of the negative rewards, a second.", "short",
			query{expr: positive, legend: s.legend() + " positive"},
			query{expr: "-" + negative, legend: s.legend() + " negative"}))
}

func policyActions(d *dashboard.DashboardBuilder, s scope) {
	d.WithRow(dashboard.NewRowBuilder("Actions")).
		WithPanel(stacked("Action shares", "Share of each action over the last 200 units. Actions that the baseline hardly knows are counted as other.", "percentunit",
			query{expr: "avg by (action) (" + s.of(bank.MetricActionRatio, `sample="current"`) + ")", legend: "{{action}}"}).Min(0).Max(1)).
		WithPanel(bars("Action shares against the baseline", "Share of each action now, beside its share in the baseline.", "action",
			"avg by (action) ("+s.of(bank.MetricActionRatio, `sample="baseline"`)+")",
			"avg by (action) ("+s.of(bank.MetricActionRatio, `sample="current"`)+")"))
}

func policyDetectors(d *dashboard.DashboardBuilder, s scope) {
	d.WithRow(dashboard.NewRowBuilder("Detectors")).
		WithPanel(againstOne("Score of each detector of $signal", "How far each detector is on its way to its threshold, which is 1 for every detector.",
			query{expr: "max by (" + s.groups("detector") + ") (" + s.ofSignal(bank.MetricDetectorScore) + ")", legend: s.legend("detector")})).
		WithPanel(againstOne("Highest score of each signal", "The score of the detector that has gone furthest, for every signal of the policy.",
			query{expr: "max by (signal) (" + s.of(bank.MetricDetectorScore) + ")", legend: "{{signal}}"})).
		WithPanel(lines("Statistic and threshold of $signal", "What each detector has accumulated, in its own unit, and where it pages. The sliding Kolmogorov-Smirnov statistic is shown only and has no threshold.", "short",
			query{expr: "max by (detector) (" + s.ofSignal(bank.MetricDetectorStatistic) + ")", legend: "{{detector}}"},
			query{expr: "max by (detector) (" + s.ofSignal(bank.MetricDetectorThreshold) + " > 0)", legend: "{{detector}} threshold"}).
			OverrideByRegexp("/threshold/", dashed())).
		WithPanel(lines("Effect size of each signal", "Shift of the mean of the last 200 units, in standard deviations of the baseline.", "short",
			query{expr: "avg by (signal) (" + s.of(bank.MetricEffectSize) + ")", legend: "{{signal}}"}).AxisCenteredZero(true)).
		WithPanel(lines("Dependence of successive units", "By what factor the units of the baseline vary more slowly than independent ones. Up to 2 the budget stands as stated.", "short",
			query{expr: "max by (signal) (" + s.of(bank.MetricDependenceFactor) + ")", legend: "{{signal}}"}).
			Thresholds(steps(green, step{2, yellow}, step{4, red}))).
		WithPanel(stacked("Episode ends", "Episodes by how they ended, over all policies: this counter knows no policy.", "cps",
			query{expr: perSecond(assemble.MetricEpisodes, "end"), legend: "{{end}}"}))
}

func policyIncidents(d *dashboard.DashboardBuilder, s scope) {
	ofPolicy := "{" + s.policy + "}"
	d.WithRow(dashboard.NewRowBuilder("Incidents and retraining")).
		WithPanel(stacked("Firing alarms by severity", "Alarms of the policy that fire. Info: on a provisional baseline.", "short",
			query{expr: "sum by (severity) (" + s.of(alerts.MetricAlarms) + ")", legend: "{{severity}}"})).
		WithPanel(labelsNow("Causes of closed incidents", "How many incidents of the policy closed over the time shown, by the cause that was found.",
			query{expr: overRange(s.of(alerts.MetricIncidentsClosed), "cause"), table: true}, "Time")).
		WithPanel(lines("Retrain requests", "Retrain requests of the policy by state.", "short",
			query{expr: "sum by (state) (" + retrain.MetricRequests + ofPolicy + ")", legend: "{{state}}"}).Min(0)).
		WithPanel(lines("Cooldown", "Time until the policy may order another retraining, by target.", "s",
			query{expr: "max by (target) (" + retrain.MetricCooldown + ofPolicy + ")", legend: "{{target}}"}).Min(0))
}
