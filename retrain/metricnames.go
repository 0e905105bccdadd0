// Package retrain turns incidents into retrain requests: it evaluates triggers, keeps the ledger, and delivers signed
// webhooks.
package retrain

// Names of the metrics that this package exports.
const (
	MetricRequests         = "rewardwatch_retrain_requests"                    // {policy,state}
	MetricOutcomes         = "rewardwatch_retrain_outcomes_total"              // {policy,outcome}
	MetricOutcomeSeconds   = "rewardwatch_retrain_outcome_seconds"             // {policy,outcome} from opening to closing
	MetricExpected         = "rewardwatch_retrain_expected_value"              // {policy,statistic,signal,comparison} while the outcome is awaited
	MetricLastExpected     = "rewardwatch_retrain_last_expected_value"         // {policy,request,statistic,signal,comparison,state} of the last retraining that was delivered
	MetricLastObserved     = "rewardwatch_retrain_last_observed_value"         // {policy,request} the same retraining, once its outcome is known
	MetricLastStep         = "rewardwatch_retrain_last_step_timestamp_seconds" // {policy,request,kind,step,by} of the last request
	MetricCooldown         = "rewardwatch_retrain_cooldown_remaining_seconds"  // {policy,target}
	MetricBreakerOpen      = "rewardwatch_retrain_breaker_open"                // {policy}
	MetricDeliveries       = "rewardwatch_webhook_deliveries_total"            // {target,result}
	MetricDeliveryDuration = "rewardwatch_webhook_delivery_duration_seconds"   // {target}
	MetricDeadLetters      = "rewardwatch_webhook_dead_letters"                // {target} requests in the ledger that were given up
	MetricRetrying         = "rewardwatch_webhook_retrying_requests"           // {target} requests with a failed attempt that will be tried again
	MetricGivenUp          = "rewardwatch_webhooks_given_up_total"             // {target} requests given up, counted in the history
	MetricTargetDisabled   = "rewardwatch_webhook_target_disabled"             // {target} 1 after 410 Gone
	MetricCircuitOpen      = "rewardwatch_webhook_circuit_open"                // {target} 1 while only one request at a time tries the target
	MetricLedgerRetries    = "rewardwatch_retrain_ledger_retries_total"        // repeated transactions
	MetricLedgerSuspended  = "rewardwatch_retrain_ledger_suspended"            // 1 while the ledger is suspended
	MetricLedgerUnread     = "rewardwatch_retrain_ledger_unread_scrapes_total" // scrapes without the ledger's series
)
