package assemble

// Names of the metrics that this package exports.
const (
	MetricEpisodes      = "rewardwatch_episodes_total"       // {end} ended by kind, abandoned and dropped ones included
	MetricEventsIgnored = "rewardwatch_events_ignored_total" // {reason="late_summary|duplicate"}
	MetricOpenEpisodes  = "rewardwatch_open_episodes"
)
