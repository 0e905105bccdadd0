// Package names contains the names of the metrics that the service itself exports, for rules and dashboards that query
// them. Other packages name their own metrics.
//
// For a new metric, name it in the metricnames.go of ingest, here, or in the package that exports it, and register it
// where it is counted. Metrics of groups and signals are series in detectors/metrics/collector.go. Panels and alerts
// import the name; the tests of dashboards and alerts/rules write deploy with -update.
package names

// Metrics of judging.
const (
	MetricPolicies        = "rewardwatch_policies"                // policies watched
	MetricLateUnits       = "rewardwatch_units_late_total"        // units judged after one that ended later
	MetricStreamLimitHits = "rewardwatch_stream_limit_hits_total" // {reason="limit|policy"} times that a stream was refused because of limits.streams
	MetricGroupsForgotten = "rewardwatch_groups_forgotten_total"  // unused groups forgotten to make room for others
	MetricUnitsDropped    = "rewardwatch_units_dropped_total"     // {reason="unmatched|stream_limit|tenant_policies|no_baseline|damaged"} units not judged
	MetricUnitLogBytes    = "rewardwatch_unit_log_bytes"
	MetricUnitsWaiting    = "rewardwatch_units_waiting"                          // {reason="partitions|calibration"} units waiting to be judged
	MetricCalibrations    = "rewardwatch_calibrations"                           // {state="waiting|running"} baselines that are to be calibrated
	MetricGroups          = "rewardwatch_groups"                                 // {baseline="none|provisional|accepted"} groups by what they are judged against
	MetricUnitDelay       = "rewardwatch_unit_delay_seconds"                     // from a unit's last event to its judgment
	MetricBankSaves       = "rewardwatch_bank_checkpoints_total"                 // snapshots of banks written
	MetricBankSavedAt     = "rewardwatch_bank_checkpoint_last_timestamp_seconds" // when a bank was last saved, 0 before the first save
	MetricMemory          = "rewardwatch_memory_bytes"                           // memory in use
	MetricMemoryLimit     = "rewardwatch_memory_limit_bytes"                     // limit of the memory in use
	MetricGroupsEvicted   = "rewardwatch_groups_evicted"                         // groups whose state is only in the checkpoint
	MetricGroupEvictions  = "rewardwatch_group_evictions_total"                  // groups evicted from memory
	MetricGroupReturns    = "rewardwatch_group_returns_total"                    // evicted groups loaded back into memory
)

// Metrics of sending the state of guards.
const (
	MetricGuardDeliveries   = "rewardwatch_guard_deliveries_total" // {target,result} attempts
	MetricGuardsUndelivered = "rewardwatch_guards_undelivered"     // policies whose newest state a target has not accepted, or that has expired there
)

// Metrics of tenants, exported only if there are any. The policies of no tenant have no label tenant.
const (
	MetricTenantQuota   = "rewardwatch_tenant_quota"         // {tenant,kind}
	MetricTenantUsed    = "rewardwatch_tenant_used"          // {tenant,kind="policies|streams"}
	MetricTenantPolicy  = "rewardwatch_tenant_policy_info"   // {tenant,policy} 1
	MetricTenantRefused = "rewardwatch_tenant_refused_total" // {tenant,kind="policies|groups|streams|open_episodes|open_decisions|units"}
)

// Metrics of the HTTP server.
const (
	MetricTokensRefused  = "rewardwatch_http_tokens_refused_total"  // {reason="wrong|throttled"}
	MetricScrapesDropped = "rewardwatch_http_scrapes_dropped_total" // {reason="busy|unread"}
)

// Metrics of the process.
const (
	MetricBuildInfo = "rewardwatch_build_info"                    // {version,revision,goversion} 1
	MetricConsole   = "rewardwatch_console_info"                  // {url} 1
	MetricReloaded  = "rewardwatch_config_last_reload_successful" // 1, or 0 after a configuration was refused
	MetricStale     = "rewardwatch_secrets_stale"                 // secrets whose last renewal failed

	MetricAuditUnsent = "rewardwatch_audit_log_unsent_bytes" // of the audit log, not yet in its topic
)
