// Package metrics exports the published state of banks as Prometheus metrics, and defines the names of the metrics.
package metrics

// Names of the metrics that this package exports. All but MetricSeriesLimitHits have the label policy and the group_by
// labels.
const (
	MetricSignalMean         = "rewardwatch_signal_mean"               // {signal,sample="baseline|current"}
	MetricSignalStddev       = "rewardwatch_signal_stddev"             // {signal,sample}
	MetricSignalQuantile     = "rewardwatch_signal_quantile"           // {signal,sample,q="0.1|0.5|0.9"}
	MetricSignalDecile       = "rewardwatch_signal_decile_ratio"       // {signal,sample,bin="0".."9"} share of units by baseline decile
	MetricRewardPositive     = "rewardwatch_reward_positive_sum_total" // counter
	MetricRewardNegative     = "rewardwatch_reward_negative_sum_total" // counter, the absolute sum
	MetricRewardObservations = "rewardwatch_reward_observations_total" // counter
	MetricActionRatio        = "rewardwatch_action_ratio"              // {action,sample} shares
	MetricActionDivergence   = "rewardwatch_action_divergence"         // {measure="psi|js|g"} last 200 units against the baseline
	MetricActionChance       = "rewardwatch_action_divergence_chance"  // {measure} exceeded by independent steps one time in twenty
	MetricActionEntropy      = "rewardwatch_action_entropy"            // {sample} bits
	MetricOffPolicyValue     = "rewardwatch_off_policy_value"          // {reference,bound="estimate|low|high"} of the other policy on today's traffic
	MetricOffPolicyActual    = "rewardwatch_off_policy_actual"         // what was earned on the same units
	MetricOffPolicyEffective = "rewardwatch_off_policy_effective_units"
	MetricOffPolicyWeight    = "rewardwatch_off_policy_mean_weight"  // 1 with full support
	MetricDetectorScore      = "rewardwatch_detector_score"          // {signal,detector} 1 = threshold
	MetricDetectorStatistic  = "rewardwatch_detector_statistic"      // {signal,detector}
	MetricDetectorThreshold  = "rewardwatch_detector_threshold"      // {signal,detector}
	MetricComparisonAlarms   = "rewardwatch_comparison_alarms_total" // {signal,detector} counter, of detectors that never page
	MetricComparisonARL0     = "rewardwatch_comparison_arl0_units"   // {signal,detector} measured at the freeze
	MetricEffectSize         = "rewardwatch_effect_size"             // {signal} standardized shift of the last 200 units
	MetricProgress           = "rewardwatch_progress_state"          // {signal} 1 improving, 2 plateau, 3 regressing, 4 collapsed
	MetricProgressChange     = "rewardwatch_progress_change"         // {signal,bound="low|estimate|high"} of the return over the newest fourth of the past
	MetricGuardState         = "rewardwatch_guard_state"             // {guard} 0 ok, 1 warn, 2 hold, 3 fallback
	MetricGuardEvidence      = "rewardwatch_guard_evidence_ratio"    // {guard} the guard trips at 1
	MetricGuardMean          = "rewardwatch_guard_mean"              // {guard} mean of the counted values
	MetricGuardInvalid       = "rewardwatch_guard_invalid_total"     // {guard} values left out
	MetricStreamState        = "rewardwatch_stream_state"            // {signal} 0 warming_up, 1 ok, 2 drift, 3 telemetry_fault
	MetricStreamFault        = "rewardwatch_stream_fault"            // {signal,rule} 1 while the stream is in a telemetry fault
	MetricBaselineInfo       = "rewardwatch_baseline_info"           // {baseline} 1
	MetricBaselineAge        = "rewardwatch_baseline_age_seconds"
	MetricBaselineUnits      = "rewardwatch_baseline_units"
	MetricDependenceFactor   = "rewardwatch_dependence_factor"          // {signal}
	MetricFalseAlarmUnits    = "rewardwatch_false_alarm_units"          // the promised mean number of units between false alarms
	MetricExpectedUnits      = "rewardwatch_expected_false_alarm_units" // {q="0.1|0.5|0.9"} over the sampling error of the baseline
	MetricAllowance          = "rewardwatch_baseline_allowance"         // C of the allowance for the baseline's own error
	MetricOverlap            = "rewardwatch_branch_overlap"             // factor by which alarms are rarer than the sum over branches
	MetricPromise            = "rewardwatch_promise_info"               // {confidence,weakest} 1
	MetricBranches           = "rewardwatch_branches"                   // {signal,state="armed|dropped"}
	MetricUnits              = "rewardwatch_units_total"                // counter of units judged or collected
	MetricUnfinished         = "rewardwatch_unfinished_episodes_ratio"  // {sample="baseline|current"} share of episodes without an end
	MetricUnitsIgnored       = "rewardwatch_units_ignored_total"        // counter of units of versions that another one has followed
	MetricVersionInfo        = "rewardwatch_version_info"               // {policy_version,env_version,reward_version} 1 for the last seen
	MetricVersionSince       = "rewardwatch_version_first_seen_timestamp_seconds"
	MetricSeriesLimitHits    = "rewardwatch_series_limit_hits_total"
)
