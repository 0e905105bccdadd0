package ingest

// Names of the metrics that the packages consumer and checkpoint export.
const (
	MetricEvents            = "rewardwatch_events_total"                 // {result="accepted|refused"} records read
	MetricDeadLetters       = "rewardwatch_dead_letters_total"           // {reason} records refused
	MetricDeadLettersCapped = "rewardwatch_dead_letters_not_kept_total"  // refused records beyond MaxRefusals of their message
	MetricDeadLettersLost   = "rewardwatch_dead_letters_dropped_total"   // refused records that could not be stored
	MetricLagRecords        = "rewardwatch_consumer_lag_records"         // {topic, partition}
	MetricLagSeconds        = "rewardwatch_consumer_lag_seconds"         // {topic, partition} absent without ts, 0 when caught up
	MetricLastEvent         = "rewardwatch_last_event_timestamp_seconds" // {topic, partition}
	MetricNextOffset        = "rewardwatch_next_offset"                  // {topic, partition} next offset to read, -1 before the first
	MetricHeadroom          = "rewardwatch_retention_headroom_records"   // {topic, partition} from the start of the log to the next offset to read
	MetricClockJumps        = "rewardwatch_clock_jumps_total"            // {topic} times that the machine's clock was set
	MetricPartitions        = "rewardwatch_partitions"                   // {topic, kind="assigned|existing"}
	MetricOffsetGap         = "rewardwatch_offset_gap_records_total"     // {topic, partition} records removed unread
	MetricMessagesSkipped   = "rewardwatch_messages_skipped_total"       // {reason="tombstone|control|aborted|not_taken"} not telemetry
	MetricReconnects        = "rewardwatch_partition_reconnects_total"   // {topic, reason}
	MetricCheckpointAge     = "rewardwatch_checkpoint_age_seconds"       // {topic} since the oldest assigned partition was last saved
	MetricCheckpointBytes   = "rewardwatch_checkpoint_bytes"             // {kind="partition|bank"} size last written
	MetricCheckpointFailure = "rewardwatch_checkpoint_failures_total"    // {kind}

	// MetricCheckpointFallbacks counts, by kind, damaged checkpoints that were replaced by the one before.
	MetricCheckpointFallbacks = "rewardwatch_checkpoint_fallbacks_total"
)
