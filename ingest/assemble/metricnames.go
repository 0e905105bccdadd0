package assemble

// Names of the metrics that this package exports.
const (
	MetricEpisodes       = "rewardwatch_episodes_total"        // {end} ended by kind, including abandoned and dropped ones
	MetricEventsIgnored  = "rewardwatch_events_ignored_total"  // {reason="late_summary|late|duplicate|group_limit|unmatched|dropped_episode"}
	MetricSignalsIgnored = "rewardwatch_signals_ignored_total" // values of signals beyond the limit of one unit
	MetricGroupsExpired  = "rewardwatch_groups_expired_total"  // groups forgotten to make room for others
	MetricOpenEpisodes   = "rewardwatch_open_episodes"
)
