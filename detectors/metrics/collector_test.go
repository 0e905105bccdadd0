package metrics

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/progress"
	"github.com/rewardwatch/rewardwatch/ingest"
)

func oneGroup(state finding.State) []*finding.Summary {
	return []*finding.Summary{{Policy: "ranker", Groups: []finding.GroupSummary{{
		Group: ingest.NewGroup("ranker", ingest.Label{Name: "env", Value: "prod"}), Units: 700,
		Versions: ingest.Versions{Policy: "p1", Env: "e1", Reward: "r1"}, VersionsTS: 1_500_000_000_500_000_000,
		Baseline: finding.BaselineRef{ID: "cafe", Units: 500}, FrozenAt: time.Unix(1000, 0), Promise: finding.Promise{
			N: 2000, ARL0: 4000, Low: 2500, High: 9000, Allowance: 1.75, Overlap: 1.25, Confidence: finding.ConfidenceKept, Weakest: "mean location +0.8",
		},
		Positive: 1.5, Negative: 12, Rewards: 40,
		Streams: []finding.StreamSummary{{
			Signal: "return", State: state, Factor: 1.25, Quantity: "return", Effect: -2,
			Progress: &progress.Progress{State: progress.Regressing, Units: 300, Change: -2, Low: -3, High: -1},
			Baseline: finding.Distribution{Units: 500, Mean: -1.5, SD: 2, Q10: -4, Q50: -1.5, Q90: 1},
			Current:  finding.Distribution{Units: 200, Mean: -5.5, SD: 2, Q10: -8, Q50: -5.5, Q90: -3},
			Detectors: []finding.DetectorSummary{{Detector: finding.DetectorKS, Statistic: .5}, {Detector: finding.DetectorLocation, Score: 1.5, Statistic: 15, Threshold: 10}, {
				Detector: finding.DetectorADWIN, Statistic: -1.5, Gauge: &finding.GaugeSummary{Drifts: 3, ARL0: 10_000, MoreThan: true},
			}},
		}},
		ActionShare: []finding.ActionShare{{Action: "a", Baseline: .75, Current: .25}},
		ActionMix: finding.ActionMix{
			BaselineActions: 400, BaselineEntropy: .75, CurrentActions: 100, CurrentEntropy: .25,
			Divergences: []finding.ActionDivergence{{Measure: finding.MeasurePSI, Value: .5, Chance95: .125}},
		},
	}}}}
}

func registryOf(summaries []*finding.Summary, limit int) *prometheus.Registry {
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(NewCollector(func() []*finding.Summary { return summaries }, []string{"env", "label_region"}, limit,
		func() time.Time { return time.Unix(1060, 0) }))
	return reg
}

// A scrape of thousands of groups must not create all labels for each series.
func TestCollectorSharesLabels(t *testing.T) {
	var all []*finding.Summary
	for i := range 200 {
		one := oneGroup(finding.OK)
		one[0].Groups[0].Group = ingest.NewGroup(fmt.Sprint("policy-", i), ingest.Label{Name: "env", Value: "prod"})
		all = append(all, one...)
	}
	reg := prometheus.NewRegistry()
	reg.MustRegister(NewCollector(func() []*finding.Summary { return all }, []string{"env", "label_region"}, 100_000, time.Now))
	n, err := testutil.GatherAndCount(reg)
	if err != nil || n < 40*len(all) {
		t.Fatalf("%d series of %d groups: %v", n, len(all), err)
	}
	allocated := testing.AllocsPerRun(5, func() { _, _ = reg.Gather() }) / float64(n)
	t.Logf("%d series, %.1f allocations each", n, allocated)
	if allocated > 10 {
		t.Errorf("%.1f allocations for each of %d series", allocated, n)
	}
}

// A stream whose state becomes drift during a scrape is exported once.
func TestCollectorExportsAStreamOnceWhileItsStateChanges(t *testing.T) {
	states := []finding.State{finding.OK, finding.Drift}
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(NewCollector(func() []*finding.Summary {
		now := states[0]
		slices.Reverse(states)
		return oneGroup(now)
	}, []string{"env"}, 1000, time.Now))
	for range 4 {
		if n, err := testutil.GatherAndCount(reg, MetricStreamState); n != 1 || err != nil {
			t.Fatalf("exported %d times: %v", n, err)
		}
	}
}

func TestCollectorShowsNegativeRewardsRight(t *testing.T) {
	want := `
# HELP rewardwatch_reward_negative_sum_total Sum of the absolute values of the negative rewards.
# TYPE rewardwatch_reward_negative_sum_total counter
rewardwatch_reward_negative_sum_total{env="prod",label_region="",policy="ranker"} 12
# HELP rewardwatch_reward_positive_sum_total Sum of the positive rewards.
# TYPE rewardwatch_reward_positive_sum_total counter
rewardwatch_reward_positive_sum_total{env="prod",label_region="",policy="ranker"} 1.5
# HELP rewardwatch_signal_mean Mean of the signal over the episodes or blocks of the sample.
# TYPE rewardwatch_signal_mean gauge
rewardwatch_signal_mean{env="prod",label_region="",policy="ranker",sample="baseline",signal="return"} -1.5
rewardwatch_signal_mean{env="prod",label_region="",policy="ranker",sample="current",signal="return"} -5.5
# HELP rewardwatch_progress_change Change in return over the most recent quarter of the past week, with its 99% confidence interval.
# TYPE rewardwatch_progress_change gauge
rewardwatch_progress_change{bound="estimate",env="prod",label_region="",policy="ranker",signal="return"} -2
rewardwatch_progress_change{bound="high",env="prod",label_region="",policy="ranker",signal="return"} -1
rewardwatch_progress_change{bound="low",env="prod",label_region="",policy="ranker",signal="return"} -3
# HELP rewardwatch_progress_state Trend in the return of a learning policy: 1 improving, 2 plateau, 3 regressing, 4 collapsed.
# TYPE rewardwatch_progress_state gauge
rewardwatch_progress_state{env="prod",label_region="",policy="ranker",signal="return"} 3
# HELP rewardwatch_detector_score Detector statistic relative to its threshold. An alarm fires at 1, or, for a falling return while the policy learns, later.
# TYPE rewardwatch_detector_score gauge
rewardwatch_detector_score{detector="location",env="prod",label_region="",policy="ranker",signal="return"} 1.5
# HELP rewardwatch_action_divergence Divergence between the actions of the last 200 episodes or blocks and the baseline.
# TYPE rewardwatch_action_divergence gauge
rewardwatch_action_divergence{env="prod",label_region="",measure="psi",policy="ranker"} 0.5
# HELP rewardwatch_action_divergence_chance 95th percentile of the divergence if the actions are unchanged and the steps are independent.
# TYPE rewardwatch_action_divergence_chance gauge
rewardwatch_action_divergence_chance{env="prod",label_region="",measure="psi",policy="ranker"} 0.125
# HELP rewardwatch_action_entropy Entropy of the sample's actions, in bits.
# TYPE rewardwatch_action_entropy gauge
rewardwatch_action_entropy{env="prod",label_region="",policy="ranker",sample="baseline"} 0.75
rewardwatch_action_entropy{env="prod",label_region="",policy="ranker",sample="current"} 0.25
# HELP rewardwatch_comparison_alarms_total Drift detections by a detector that is shown for comparison only and never pages.
# TYPE rewardwatch_comparison_alarms_total counter
rewardwatch_comparison_alarms_total{detector="adwin",env="prod",label_region="",policy="ranker",signal="return"} 3
# HELP rewardwatch_comparison_arl0_units Mean number of episodes or blocks between false alarms of a comparison detector, on independent draws from the baseline.
# TYPE rewardwatch_comparison_arl0_units gauge
rewardwatch_comparison_arl0_units{detector="adwin",env="prod",label_region="",policy="ranker",signal="return"} 10000
# HELP rewardwatch_detector_statistic Statistic of the detector's leading branch.
# TYPE rewardwatch_detector_statistic gauge
rewardwatch_detector_statistic{detector="adwin",env="prod",label_region="",policy="ranker",signal="return"} -1.5
rewardwatch_detector_statistic{detector="ks",env="prod",label_region="",policy="ranker",signal="return"} 0.5
rewardwatch_detector_statistic{detector="location",env="prod",label_region="",policy="ranker",signal="return"} 15
# HELP rewardwatch_stream_state State of the stream: 0 warming_up, 1 ok, 2 drift, 3 telemetry_fault.
# TYPE rewardwatch_stream_state gauge
rewardwatch_stream_state{env="prod",label_region="",policy="ranker",signal="return"} 2
# HELP rewardwatch_baseline_age_seconds Time since the baseline was frozen.
# TYPE rewardwatch_baseline_age_seconds gauge
rewardwatch_baseline_age_seconds{env="prod",label_region="",policy="ranker"} 60
`
	if err := testutil.GatherAndCompare(registryOf(oneGroup(finding.Drift), 1000), strings.NewReader(want),
		MetricRewardNegative, MetricRewardPositive, MetricSignalMean, MetricDetectorScore, MetricDetectorStatistic,
		MetricProgress, MetricProgressChange, MetricStreamState, MetricBaselineAge, MetricActionDivergence, MetricActionChance, MetricActionEntropy, MetricComparisonAlarms,
		MetricComparisonARL0); err != nil {
		t.Error(err)
	}
}

func TestCollectorShowsThePromise(t *testing.T) {
	want := `
# HELP rewardwatch_baseline_allowance Allowance for the sampling error of the baseline, in standard errors.
# TYPE rewardwatch_baseline_allowance gauge
rewardwatch_baseline_allowance{env="prod",label_region="",policy="ranker"} 1.75
# HELP rewardwatch_branch_overlap Sum of the false alarm rates of all branches, divided by the false alarm rate of the group.
# TYPE rewardwatch_branch_overlap gauge
rewardwatch_branch_overlap{env="prod",label_region="",policy="ranker"} 1.25
# HELP rewardwatch_expected_false_alarm_units Expected mean number of episodes or blocks between false alarms, as quantiles over baselines.
# TYPE rewardwatch_expected_false_alarm_units gauge
rewardwatch_expected_false_alarm_units{env="prod",label_region="",policy="ranker",q="0.1"} 2500
rewardwatch_expected_false_alarm_units{env="prod",label_region="",policy="ranker",q="0.5"} 4000
rewardwatch_expected_false_alarm_units{env="prod",label_region="",policy="ranker",q="0.9"} 9000
# HELP rewardwatch_false_alarm_units Minimum mean number of episodes or blocks between false alarms, set by the budget.
# TYPE rewardwatch_false_alarm_units gauge
rewardwatch_false_alarm_units{env="prod",label_region="",policy="ranker"} 2000
# HELP rewardwatch_promise_info Confidence in the false alarm budget, and the branch with the largest share of false alarms. Always 1.
# TYPE rewardwatch_promise_info gauge
rewardwatch_promise_info{confidence="kept",env="prod",label_region="",policy="ranker",weakest="mean location +0.8"} 1
`
	promise := []string{MetricAllowance, MetricOverlap, MetricExpectedUnits, MetricFalseAlarmUnits, MetricPromise}
	if err := testutil.GatherAndCompare(registryOf(oneGroup(finding.OK), 1000), strings.NewReader(want), promise...); err != nil {
		t.Error(err)
	}
	unarmed := oneGroup(finding.OK)
	unarmed[0].Groups[0].Promise = finding.Promise{N: 2000, Confidence: finding.ConfidenceNone}
	want = `
# HELP rewardwatch_false_alarm_units Minimum mean number of episodes or blocks between false alarms, set by the budget.
# TYPE rewardwatch_false_alarm_units gauge
rewardwatch_false_alarm_units{env="prod",label_region="",policy="ranker"} 2000
# HELP rewardwatch_promise_info Confidence in the false alarm budget, and the branch with the largest share of false alarms. Always 1.
# TYPE rewardwatch_promise_info gauge
rewardwatch_promise_info{confidence="none",env="prod",label_region="",policy="ranker",weakest=""} 1
`
	if err := testutil.GatherAndCompare(registryOf(unarmed, 1000), strings.NewReader(want), promise...); err != nil {
		t.Error(err)
	}
}

func TestCollectorShowsWhenVersionsWereFirstSeen(t *testing.T) {
	want := `
# HELP rewardwatch_version_first_seen_timestamp_seconds Unix time of the first episode or block of each of the newest versions.
# TYPE rewardwatch_version_first_seen_timestamp_seconds gauge
rewardwatch_version_first_seen_timestamp_seconds{env="prod",env_version="e1",label_region="",policy="ranker",policy_version="p1",reward_version="r1"} 1.5000000005e+09
`
	summaries := oneGroup(finding.OK)
	if err := testutil.GatherAndCompare(registryOf(summaries, 1000), strings.NewReader(want), MetricVersionSince); err != nil {
		t.Error(err)
	}
	summaries[0].Groups[0].VersionsTS = 0
	if n, err := testutil.GatherAndCount(registryOf(summaries, 1000), MetricVersionSince); n != 0 || err != nil {
		t.Errorf("%d series without a clock, %v", n, err)
	}
}

// Streams in drift keep their series whatever the limit is; healthy streams lose theirs, which is counted.
func TestCollectorKeepsToItsLimit(t *testing.T) {
	summaries := oneGroup(finding.Drift)
	for i := range 50 {
		healthy := oneGroup(finding.OK)
		healthy[0].Groups[0].Group = ingest.NewGroup("ranker", ingest.Label{Name: "env", Value: fmt.Sprint("env-", i)})
		summaries = append(summaries, healthy...)
	}
	count := func(limit int, name string) int {
		n, err := testutil.GatherAndCount(registryOf(summaries, limit), name)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := count(100_000, MetricStreamState); n != 51 {
		t.Errorf("%d streams without a limit, want 51", n)
	}
	if n := count(1, MetricStreamState); n != 1 {
		t.Errorf("%d streams at a limit of 1, want the one in drift", n)
	}
	reg := registryOf(summaries, 500)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	total, hits := 0, 0.0
	for _, f := range families {
		if f.GetName() == MetricSeriesLimitHits {
			hits = f.GetMetric()[0].GetCounter().GetValue()
			continue
		}
		total += len(f.GetMetric())
	}
	if total > 500 || total < 400 || hits == 0 {
		t.Errorf("%d series at a limit of 500, %v hits", total, hits)
	}
}

func TestCollectorShowsNothingOfActionsThatThereAreNot(t *testing.T) {
	summaries := oneGroup(finding.OK)
	for _, want := range []int{3, 0} {
		if n, err := testutil.GatherAndCount(registryOf(summaries, 1000), MetricActionEntropy, MetricActionDivergence); err != nil || n != want {
			t.Errorf("%d series of actions (%v), want %d", n, err, want)
		}
		summaries[0].Groups[0].ActionMix = finding.ActionMix{}
	}
}

func TestCollectorShowsTheOffPolicyEstimate(t *testing.T) {
	estimated := func(o *finding.OffPolicy) *prometheus.Registry {
		s := oneGroup(finding.OK)
		s[0].Groups[0].OffPolicy = o
		return registryOf(s, 1000)
	}
	names := []string{MetricOffPolicyValue, MetricOffPolicyActual, MetricOffPolicyEffective, MetricOffPolicyWeight}
	some := finding.OffPolicy{
		Reference: finding.ReferenceTarget, Shown: finding.ShownPolicy, Effective: 120, MeanWeight: 1.25, Value: .5, Low: .25, High: .75, Actual: .125,
	}
	const supported = `
# HELP rewardwatch_off_policy_actual Mean return of the episodes or blocks of the off-policy estimate.
# TYPE rewardwatch_off_policy_actual gauge
rewardwatch_off_policy_actual{env="prod",label_region="",policy="ranker"} 0.125
# HELP rewardwatch_off_policy_effective_units Effective sample size of the off-policy estimate.
# TYPE rewardwatch_off_policy_effective_units gauge
rewardwatch_off_policy_effective_units{env="prod",label_region="",policy="ranker"} 120
# HELP rewardwatch_off_policy_mean_weight Mean weight of the off-policy estimate. Near 1 if the current policy takes all actions of the accepted policy.
# TYPE rewardwatch_off_policy_mean_weight gauge
rewardwatch_off_policy_mean_weight{env="prod",label_region="",policy="ranker"} 1.25
# HELP rewardwatch_off_policy_value Estimated return per episode or block of another policy on current traffic, with the bounds of its confidence sequence. Not exported if there is not enough data for an estimate.
# TYPE rewardwatch_off_policy_value gauge
rewardwatch_off_policy_value{bound="estimate",env="prod",label_region="",policy="ranker",reference="target_prob"} 0.5
rewardwatch_off_policy_value{bound="high",env="prod",label_region="",policy="ranker",reference="target_prob"} 0.75
rewardwatch_off_policy_value{bound="low",env="prod",label_region="",policy="ranker",reference="target_prob"} 0.25
`
	if err := testutil.GatherAndCompare(estimated(&some), strings.NewReader(supported), names...); err != nil {
		t.Error(err)
	}
	unsupported := some
	unsupported.Shown = finding.NoSupport
	for want, o := range map[int]*finding.OffPolicy{0: nil, 3: &unsupported} {
		if n, err := testutil.GatherAndCount(estimated(o), names...); n != want || err != nil {
			t.Errorf("%d series, want %d: %v", n, want, err)
		}
	}
}
