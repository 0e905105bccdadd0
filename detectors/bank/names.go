package bank

// Names of the metrics that this package exports. All but MetricSeriesLimitHits carry the labels policy and the
// group_by labels.
const (
	MetricSignalMean         = "rewardwatch_signal_mean"               // {signal,sample="baseline|current"}
	MetricSignalStddev       = "rewardwatch_signal_stddev"             // {signal,sample}
	MetricSignalQuantile     = "rewardwatch_signal_quantile"           // {signal,sample,quantile="0.1|0.5|0.9"}
	MetricSignalHistogram    = "rewardwatch_signal_histogram_ratio"    // {signal,sample,bin="0".."9"} share of units by baseline decile
	MetricRewardPositive     = "rewardwatch_reward_positive_sum_total" // counter
	MetricRewardNegative     = "rewardwatch_reward_negative_sum_total" // counter, the absolute sum
	MetricRewardObservations = "rewardwatch_reward_observations_total" // counter
	MetricActionRatio        = "rewardwatch_action_ratio"              // {action,sample} shares
	MetricDetectorScore      = "rewardwatch_detector_score"            // {signal,detector} 1 = threshold
	MetricDetectorStatistic  = "rewardwatch_detector_statistic"        // {signal,detector}
	MetricDetectorThreshold  = "rewardwatch_detector_threshold"        // {signal,detector}
	MetricEffectSize         = "rewardwatch_effect_size"               // {signal} standardized shift of the last 200 units
	MetricStreamState        = "rewardwatch_stream_state"              // {signal} 0 warming_up, 1 ok, 2 drift, 3 telemetry_fault
	MetricBaselineInfo       = "rewardwatch_baseline_info"             // {baseline} 1
	MetricBaselineAge        = "rewardwatch_baseline_age_seconds"
	MetricBaselineUnits      = "rewardwatch_baseline_units"
	MetricDependenceFactor   = "rewardwatch_dependence_factor" // {signal}
	MetricFalseAlarmUnits    = "rewardwatch_false_alarm_units" // the promised mean number of units between false alarms
	MetricUnits              = "rewardwatch_units_total"       // counter of units judged or collected
	MetricVersionInfo        = "rewardwatch_version_info"      // {policy_version,env_version,reward_version} 1 for the last seen
	MetricSeriesLimitHits    = "rewardwatch_series_limit_hits_total"
)

// Names of the detectors, the values of the label detector.
const (
	DetectorLocation = "location" // rank CUSUMs of shift
	DetectorSpread   = "spread"   // rank CUSUMs of scale
	DetectorWilcoxon = "wilcoxon" // rank CUSUMs for skewed and heavy-tailed laws
	DetectorNovelty  = "novelty"  // values not seen in a nearly constant baseline
	DetectorKS       = "ks"       // sliding Kolmogorov-Smirnov, a gauge
)
