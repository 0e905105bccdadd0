package alerts

import "time"

// Names of the metrics of alarms, incidents and pushes.
const (
	MetricAlarms           = "rewardwatch_alarms"                              // {policy, group labels, severity} firing now and not muted
	MetricAlarmsMuted      = "rewardwatch_alarms_muted"                        // {policy, group labels, severity} firing now, of muted incidents
	MetricIncidentsOpened  = "rewardwatch_incidents_opened_total"              // {policy, group labels}
	MetricIncidentsClosed  = "rewardwatch_incidents_closed_total"              // {policy, group labels, cause}
	MetricIncidentOnset    = "rewardwatch_incident_onset_timestamp_seconds"    // {policy, group labels, incident, severity, cause} of open incidents, 0 without a clock
	MetricIncidentAlert    = "rewardwatch_incident_alert_state"                // {policy, group labels, incident} a DeliveryState of each open incident
	MetricIncidentVersions = "rewardwatch_incident_version_info"               // {policy, group labels, incident, changed, policy_version, env_version, reward_version} of open incidents
	MetricIncidentDecision = "rewardwatch_incident_decision_timestamp_seconds" // {policy, group labels, incident, decision, by}
	MetricAlertmanagers    = "rewardwatch_alertmanagers"                       // configured ones, to which alerts are pushed
	MetricNotifications    = "rewardwatch_notifications_total"                 // {result="sent|failed"} pushes to Alertmanager
	MetricNotifyPending    = "rewardwatch_notifications_unconfirmed"           // alerts that no Alertmanager has accepted in their current state
)

// The objective for the service's own freshness: over thirty days, the share FreshObjective of the units is judged
// within FreshWithin seconds of their last event.
const (
	FreshWithin    = 60 // seconds; one of the histogram's bucket bounds
	FreshObjective = 0.99
)

// ExportedAfterEnd is how long the decisions on a closed incident, and the steps of a request that has ended, are exported.
const ExportedAfterEnd = 7 * 24 * time.Hour

// MuteEnds is the value of the decision label of MetricIncidentDecision for the end of a mute, which may be in the
// future.
const MuteEnds = "mute_ends"
