package assemble

// Names of the metrics that this package exports.
const (
	MetricEpisodes       = "rewardwatch_episodes_total"        // {end} ended by kind, abandoned and dropped ones included
	MetricEventsIgnored  = "rewardwatch_events_ignored_total"  // {reason="late_summary|duplicate|group_limit"}
	MetricSignalsIgnored = "rewardwatch_signals_ignored_total" // values of signals beyond the bound of one unit
	MetricOpenEpisodes   = "rewardwatch_open_episodes"
)
