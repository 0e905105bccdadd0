package alerts

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts/annotation"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// message is one alert in the form of Alertmanager's API v2. Alertmanager identifies alerts by their labels.
type message struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	StartsAt    time.Time         `json:"startsAt"`
	EndsAt      time.Time         `json:"endsAt"`
	Generator   string            `json:"generatorURL,omitempty"`
}

// Links are the addresses of the pages that alerts link to. If a page has no address, alerts do not link to it.
type Links struct {
	Grafana string // the Grafana that has the dashboards
	Console string // this service

	Tenant func(policy string) string // returns the tenant that a policy belongs to, "" for none
}

// labels returns the labels of an alert about a group.
func (l Links) labels(alert string, g ingest.Group, s Severity) map[string]string {
	labels := map[string]string{"alertname": alert, "policy": g.Policy, "severity": string(s)}
	for _, l := range GroupLabels(g) {
		labels[l.Name] = l.Value
	}
	if l.Tenant != nil && l.Tenant(g.Policy) != "" {
		labels["tenant"] = l.Tenant(g.Policy)
	}
	return labels
}

// alert is the content of an alert about an incident, a retrain request or a fault.
type alert struct {
	labels      map[string]string
	annotations map[string]string
	generator   string // the page of the console that shows what the alert is about
	startTS     int64  // Unix nanoseconds, 0 if the telemetry has no clock
	resolved    bool
	identity    string // identifies this firing of the alert; the same when units are read again
}

// Names of the alerts that are pushed, and of those that the rules define.
const (
	AlertRewardDrift           = "RewardDrift"
	AlertTelemetryFault        = "TelemetryFault"
	AlertRetrainAwaitsApproval = "RetrainAwaitsApproval"
)

// incidentAlert returns the alert of an incident. Only its severity label may change, which is rare: Alertmanager then
// treats it as a different alert.
func (l Links) incidentAlert(i *Incident) alert {
	labels := l.labels(AlertRewardDrift, i.Group, i.Severity)
	labels["incident"] = i.ID
	page := l.page("incidents", i.ID)
	return alert{
		labels: labels, generator: page, startTS: i.Opened.TS, resolved: i.Closed || i.IsMuted(), identity: i.firingSince(),
		annotations: annotation.All(map[string]string{
			"summary":     i.summary(),
			"description": i.describe(),
			"signals":     annotation.List(Ranked(slices.Concat(i.firingSignals())), ", "),
			"since":       i.Earliest().since(),
			"cause":       string(i.Cause),
			"evidence":    annotation.Lines(i.Evidence),
			"offsets":     describeOffsets(i.offsets()),
			"baseline":    i.baselines(),
			"decisions":   i.decisions(),
			"runbook_url": Runbook(AlertRewardDrift), "dashboard_url": l.dashboard(PolicyDashboard, i.Group.Policy),
			"incident_url": page, "mute_url": anchored(page, MuteForm),
		}),
	}
}

// approvalURL is the annotation with the signed link to approve or reject a retraining.
const approvalURL = "approval_url"

// approvalAlert returns the alert of a retrain request that waits for a person, who decides at the address link. If
// link is empty, the alert is resolved.
func (l Links) approvalAlert(i *Incident, request, link string) alert {
	labels := l.labels(AlertRetrainAwaitsApproval, i.Group, Info)
	labels["incident"] = i.ID
	page := l.page("incidents", i.ID)
	a := alert{
		labels: labels, generator: page, resolved: link == "", identity: request + " " + i.firingSince(),
		annotations: annotation.All(map[string]string{
			"summary":     i.Group.String() + ": a retraining is waiting for approval",
			"description": "Approve or reject the retraining for: " + annotation.Printable(i.summary()),
			"cause":       string(i.Cause),
			"runbook_url": Runbook(AlertRetrainAwaitsApproval), "dashboard_url": l.dashboard(RetrainingDashboard, i.Group.Policy),
			"incident_url": page, "mute_url": anchored(page, MuteForm),
		}),
	}
	if link != "" {
		a.annotations[approvalURL] = link // not truncated, or it would not open
	}
	return a
}

// MuteForm is the id of the section of an incident's page where people mute it.
const MuteForm = "act"

// anchored returns the address of a section of a page, or "" if the page has no address.
func anchored(page, section string) string {
	if page == "" {
		return ""
	}
	return page + "#" + section
}

// faultAlert returns the alert of a group's telemetry fault.
func (l Links) faultAlert(f *Fault) alert {
	return alert{
		labels: l.labels(AlertTelemetryFault, f.Group, Warning), generator: l.page("policies", f.Group.Policy), startTS: f.Since.TS, resolved: f.Ended, identity: f.Since.Pos.String(),
		annotations: annotation.All(map[string]string{
			"summary":     f.summary(),
			"description": f.describe(),
			"signals":     f.streams(),
			"since":       f.Since.String(),
			"runbook_url": Runbook(AlertTelemetryFault), "dashboard_url": l.dashboard(PolicyDashboard, f.Group.Policy),
		}),
	}
}

// Runbook returns the URL of the runbook section for an alert.
func Runbook(alert string) string { return Runbooks + "#" + strings.ToLower(alert) }

// dashboard returns the address of a dashboard of a policy, by its uid.
func (l Links) dashboard(uid, policy string) string {
	if l.Grafana == "" {
		return ""
	}
	return strings.TrimSuffix(l.Grafana, "/") + "/d/" + uid + "?var-policy=" + url.QueryEscape(policy)
}

// page returns the address of one of the console's pages.
func (l Links) page(kind, name string) string {
	if l.Console == "" {
		return ""
	}
	return strings.TrimSuffix(l.Console, "/") + "/" + kind + "/" + url.PathEscape(name)
}

// Runbooks is the URL of the runbooks page, which has one heading per alert.
const Runbooks = "https://github.com/rewardwatch/rewardwatch/blob/main/docs/runbooks.md"

// The uids of the dashboards that alerts link to, as package dashboards defines them.
const (
	PolicyDashboard     = "rewardwatch-policy"
	RetrainingDashboard = "rewardwatch-retraining"
	ServiceDashboard    = "rewardwatch-service"
)
