package alerts

import (
	"net/url"
	"strings"
	"time"
)

// message is one alert as Alertmanager's API v2 takes it. Alertmanager tells alerts apart by their labels.
type message struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	StartsAt    time.Time         `json:"startsAt"`
	EndsAt      time.Time         `json:"endsAt"`
}

// alert is what is to be told about an incident or a fault.
type alert struct {
	labels      map[string]string
	annotations map[string]string
	startTS     int64 // Unix nanoseconds, 0 where the telemetry has no clock
	resolved    bool
	identity    string // which firing of the alert it is, where it fires: the same for units that are read again
}

// Names of the alerts that are pushed, and of those that the rules define.
const (
	alertRewardDrift    = "RewardDrift"
	alertTelemetryFault = "TelemetryFault"
)

// incidentAlert makes the alert of an incident. Its labels are those with which the incident opened, or Alertmanager
// would take it for another one.
func incidentAlert(i *Incident) alert {
	labels := map[string]string{
		"alertname": alertRewardDrift, "incident": i.ID, "policy": i.Group.Policy, "severity": string(i.Severity),
	}
	for _, l := range groupLabels(i.Group) {
		labels[l.Name] = l.Value
	}
	return alert{
		labels: labels, startTS: i.Opened.TS, resolved: i.Closed || i.IsMuted(), identity: i.firingSince(),
		annotations: annotations(map[string]string{
			"summary":     i.summary(),
			"description": i.describe(),
			"signals":     listed(i.firingSignals(), ", "),
			"since":       i.Earliest().since(),
			"cause":       string(i.Cause),
			"evidence":    strings.Join(i.Evidence, "\n"),
			"offsets":     describeOffsets(i.offsets()),
			"baseline":    i.baselines(),
			"decisions":   i.decisions(),
			"runbook_url": runbook(alertRewardDrift), "dashboard_url": policyPage(i.Group.Policy),
		}),
	}
}

// faultAlert makes the alert of a group's telemetry fault.
func faultAlert(f *Fault) alert {
	labels := map[string]string{
		"alertname": alertTelemetryFault, "policy": f.Group.Policy, "severity": string(Warning),
	}
	for _, l := range groupLabels(f.Group) {
		labels[l.Name] = l.Value
	}
	return alert{
		labels: labels, startTS: f.Since.TS, resolved: f.Ended, identity: f.Since.Pos.String(),
		annotations: annotations(map[string]string{
			"summary":     f.summary(),
			"description": f.describe(),
			"signals":     f.streams(),
			"since":       f.Since.String(),
			"runbook_url": runbook(alertTelemetryFault), "dashboard_url": policyPage(f.Group.Policy),
		}),
	}
}

// runbook is the page that says what to do about an alert.
func runbook(alert string) string { return Runbooks + "#" + strings.ToLower(alert) }

// policyPage is the path of a policy's dashboard within Grafana, whose address is not known here.
func policyPage(policy string) string {
	return "/d/" + policyDashboard + "?var-policy=" + url.QueryEscape(policy)
}

// annotations leaves out the empty ones and cuts the long ones.
func annotations(all map[string]string) map[string]string {
	out := map[string]string{}
	for name, text := range all {
		if text != "" {
			out[name] = truncate(text, maxAnnotation)
		}
	}
	return out
}
