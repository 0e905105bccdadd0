package main

// Names of the metrics that the service itself exports, beside those of its packages.
const (
	MetricBuildInfo       = "rewardwatch_build_info"                             // {version,revision,goversion} 1
	MetricPolicies        = "rewardwatch_policies"                               // policies watched
	MetricLateUnits       = "rewardwatch_units_late_total"                       // units judged after one that ended later
	MetricStreamLimitHits = "rewardwatch_stream_limit_hits_total"                // times that a stream was not followed because of limits.streams
	MetricUnitsDropped    = "rewardwatch_units_dropped_total"                    // {reason="unmatched|stream_limit|no_baseline|damaged"} units not judged
	MetricUnitsWaiting    = "rewardwatch_units_waiting"                          // {reason="partitions|calibration"} units that wait
	MetricUnitDelay       = "rewardwatch_unit_delay_seconds"                     // from a unit's last event to its judgement
	MetricBankSaves       = "rewardwatch_bank_checkpoints_total"                 // snapshots of banks written
	MetricBankSavedAt     = "rewardwatch_bank_checkpoint_last_timestamp_seconds" // when a bank was last saved, 0 before
	MetricMemory          = "rewardwatch_memory_bytes"                           // in use
	MetricMemoryLimit     = "rewardwatch_memory_limit_bytes"                     // that may be in use
	MetricGroupsEvicted   = "rewardwatch_groups_evicted"                         // groups whose state is in the checkpoint alone
	MetricGroupEvictions  = "rewardwatch_group_evictions_total"                  // groups evicted from memory
	MetricGroupReturns    = "rewardwatch_group_returns_total"                    // groups that came back into memory
	MetricReloaded        = "rewardwatch_config_last_reload_successful"          // 1, or 0 after a configuration that was refused
)
