package rules

import (
	"fmt"
	"strings"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/names"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/metrics"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/assemble"
	"github.com/rewardwatch/rewardwatch/ingest/feedback"
	"github.com/rewardwatch/rewardwatch/retrain"
)

// allRules returns the rules in the order in which they are written.
func allRules(opts Options) []rule {
	var rules []rule
	g := ruleGroups{labels: opts.GroupLabels}
	if !opts.Push {
		rules = append(rules, g.drift(alerts.Critical), g.drift(alerts.Warning), g.drift(alerts.Info), g.telemetryFault())
	}
	rules = append(rules, g.actionCollapse(), g.rewardChannelFault(), g.episodesUnfinished(), g.baselineStale(), g.falseAlarmBudgetSpent())
	rules = append(rules, telemetryAbsent(), telemetryLost(), consumerLagHigh(), deadLettersRising(), deadLettersLost(),
		checkpointStale(), checkpointDamaged(), partitionsUnassigned(), partitionStalled(), lagNotFalling(), retentionOvertaking(), logRefuses(),
		clockJumped(), cardinalityLimit(), notifierFailing(), alertmanagerUnreachable())
	rules = append(rules, webhookDeadLetter(retrain.MetricGivenUp),
		retrainNoImprovement(retrain.MetricRequests, retrain.MetricLedgerSuspended), retrainAwaitsApproval(retrain.MetricRequests),
		ledgerSuspended(retrain.MetricLedgerSuspended), memoryLimitPassed(names.MetricMemory, names.MetricMemoryLimit),
		policiesNotWatched(names.MetricStreamLimitHits, assemble.MetricEventsIgnored), tokensThrottled(names.MetricTokensRefused), feedbackApart(feedback.MetricFeedbackLost), guardsUndelivered(names.MetricGuardsUndelivered), secretsStale(names.MetricStale), auditLogNotSent(names.MetricAuditUnsent), tenantOverQuota(names.MetricTenantRefused),
		freshnessBudgetBurn(names.MetricUnitDelay, alerts.Critical), freshnessBudgetBurn(names.MetricUnitDelay, alerts.Warning))
	return rules
}

// allRecords returns the recording rules. Each is used by an alert.
func allRecords() []record { return freshnessRecords(names.MetricUnitDelay) }

// ruleGroups builds the rules whose alerts belong to a group.
type ruleGroups struct {
	labels []string
}

// by returns the labels that identify a group.
func (g ruleGroups) by() string { return strings.Join(append([]string{"policy"}, g.labels...), ", ") }

// name returns the template of a group's name, in the form of Group.String.
func (g ruleGroups) name() string {
	var labels []string
	for _, l := range g.labels {
		labels = append(labels, fmt.Sprintf(`%s="{{ $labels.%s }}"`, l, l))
	}
	return "{{ $labels.policy }}{" + strings.Join(labels, ",") + "}"
}

// drifting returns the template that lists the drifting signals of the alert's group.
func (g ruleGroups) drifting() string {
	return g.listed("Signals in drift", metrics.MetricStreamState, fmt.Sprintf(" == %d", finding.Drift), "{{ $s.Labels.signal }}")
}

// faulty returns the template that lists the signals of the alert's group that are in a telemetry fault, with the rule
// of each.
func (g ruleGroups) faulty() string {
	return g.listed("Signals with a telemetry fault (rule)", metrics.MetricStreamFault, "", "{{ $s.Labels.signal }} ({{ $s.Labels.rule }})")
}

// listed returns the template that shows a title and, after it, each series of a metric that belongs to the alert's
// group and meets a condition. It shows nothing if there is none.
func (g ruleGroups) listed(title, metric, condition, shown string) string {
	format, values := "policy=%q", "$labels.policy"
	for _, l := range g.labels {
		format, values = format+","+l+"=%q", values+" $labels."+l
	}
	return fmt.Sprintf("{{ with query (printf `%s{%s}%s` %s) }} %s: {{ range $i, $s := . | sortByLabel \"signal\" }}"+
		"{{ if $i }}, {{ end }}%s{{ end }}.{{ end }}", metric, format, condition, values, title, shown)
}

// count returns the expression that counts the streams of each group in a state.
func (g ruleGroups) count(selector string, state finding.State) string {
	return fmt.Sprintf("count by (%s) (%s%s == %d)", g.by(), metrics.MetricStreamState, selector, state)
}

// drift alerts on incidents of one severity. It uses the alarms, not the states of streams: a telemetry fault during a
// drift hides the state of the stream but does not resolve its alarm.
func (g ruleGroups) drift(severity alerts.Severity) rule {
	selector := fmt.Sprintf("severity=%q", severity)
	alarms := func(values string) inputSeries { return g.series(alerts.MetricAlarms, selector, values) }
	const more = " Run `rewardwatch incident list` to list incidents, and `rewardwatch incident show` to see the onset, size and cause."
	moved, why := " is drifting from its baseline", ""
	if severity == alerts.Info {
		moved, why = " has changed from its baseline", " The baseline is provisional, or the signals have improved."
	}
	return rule{
		alert: alerts.AlertRewardDrift, severity: severity, dashboard: alerts.PolicyDashboard,
		expr:        fmt.Sprintf("sum by (%s) (%s{%s}) > 0", g.by(), alerts.MetricAlarms, selector),
		summary:     g.name() + moved,
		description: "Firing alarms: {{ $value }}." + why + g.drifting() + g.faulty() + more,
		tests: []ruleTest{
			{
				name: string(severity) + " alarms", at: "5m",
				series: []inputSeries{alarms("0 1 2+0x10"), g.stream("return", "1 2+0x10"), g.stream("action.0", "1 2+0x10"), g.stream("reward", "1+0x10")},
				fires: []expectedAlert{g.fires(moved,
					"Firing alarms: 2."+why+" Signals in drift: action.0, return."+more)},
			},
			{
				name: string(severity) + " alarms whose streams fell into a telemetry fault", at: "5m",
				series: []inputSeries{
					alarms("1+0x10"), g.stream("return", "2 3+0x10"),
					g.series(metrics.MetricStreamFault, `signal="return",rule="scale"`, "_ 1+0x10"),
				},
				fires: []expectedAlert{g.fires(moved,
					"Firing alarms: 1."+why+" Signals with a telemetry fault (rule): return (scale)."+more)},
			},
			{
				name: string(severity) + " alarms that have resolved", at: "5m",
				series: []inputSeries{alarms("1 1 0+0x10"), g.stream("return", "2 2 1+0x10")},
			},
		},
	}
}

// telemetryFault alerts on telemetry faults of any rule. The alert names the rule.
func (g ruleGroups) telemetryFault() rule {
	const meaning = "No retraining is triggered during a fault, and signals with wrong values are not judged."
	return rule{
		alert: alerts.AlertTelemetryFault, severity: alerts.Warning, dashboard: alerts.PolicyDashboard,
		expr:        g.count("", finding.TelemetryFault),
		summary:     "The telemetry of " + g.name() + " is faulty",
		description: meaning + g.faulty(),
		tests: []ruleTest{
			{
				name: "a faulty stream", at: "5m",
				series: []inputSeries{
					g.stream("return", "1 3+0x10"), g.stream("reward", "2+0x10"), g.stream("action", "1 3+0x10"),
					g.series(metrics.MetricStreamFault, `signal="return",rule="scale"`, "_ 1+0x10"),
					g.series(metrics.MetricStreamFault, `signal="action",rule="duplicates"`, "_ 1+0x10"),
				},
				fires: []expectedAlert{{
					Labels: g.example(),
					Annotations: ruleAnnotations{
						Summary:     "The telemetry of " + g.exampleName() + " is faulty",
						Description: meaning + " Signals with a telemetry fault (rule): action (duplicates), return (scale).",
					},
				}},
			},
			{
				name: "drift is not a fault", at: "5m",
				series: []inputSeries{g.stream("return", "3 3 1+0x10"), g.stream("reward", "2+0x10")},
			},
		},
	}
}

// example returns the labels of the group that the tests use.
func (g ruleGroups) example() map[string]string {
	labels := map[string]string{"policy": "checkout"}
	for _, l := range g.labels {
		labels[l] = `a "quoted" ` + l
	}
	return labels
}

// exampleName returns the name of the example group.
func (g ruleGroups) exampleName() string {
	var labels []string
	for _, l := range g.labels {
		labels = append(labels, l+`="`+g.example()[l]+`"`)
	}
	return "checkout{" + strings.Join(labels, ",") + "}"
}

// stream returns the state series of a stream of the example.
func (g ruleGroups) stream(signal, values string) inputSeries {
	return g.series(metrics.MetricStreamState, fmt.Sprintf("signal=%q", signal), values)
}

// series returns a series of a metric of the example.
func (g ruleGroups) series(metric, more, values string) inputSeries {
	labels := `policy="checkout"`
	for _, l := range g.labels {
		labels += fmt.Sprintf(",%s=%q", l, g.example()[l])
	}
	return inputSeries{Series: fmt.Sprintf("%s{%s,%s}", metric, labels, more), Values: values}
}

func (g ruleGroups) fires(summary, description string) expectedAlert {
	return expectedAlert{
		Labels:      g.example(),
		Annotations: ruleAnnotations{Summary: g.exampleName() + summary, Description: description},
	}
}

func telemetryAbsent() rule {
	const (
		summary     = "Rewardwatch is not reading any telemetry"
		description = "Agents are not sending telemetry, Kafka cannot be read, or Rewardwatch is not being scraped. Drift may not be detected."
	)
	return rule{
		alert: "TelemetryAbsent", severity: alerts.Warning, wait: "10m",
		expr:    fmt.Sprintf("sum by (job) (rate(%s[5m])) == 0 or absent(%s)", ingest.MetricEvents, ingest.MetricEvents),
		summary: summary, description: description,
		tests: []ruleTest{
			{
				name: "events stop", at: "25m", series: []inputSeries{events("accepted", "0+60x5 300+0x30")},
				fires: []expectedAlert{fires(summary, description, "job", "rewardwatch")},
			},
			{name: "no metrics at all", at: "11m", fires: []expectedAlert{fires(summary, description)}},
			{name: "a short pause", at: "15m", series: []inputSeries{events("accepted", "0+60x5 300+0x30")}},
			{name: "events arrive", at: "25m", series: []inputSeries{events("accepted", "0+1x30")}},
		},
	}
}

func telemetryLost() rule {
	const summary = "Records were deleted before they were read"
	return rule{
		alert: "TelemetryLost", severity: alerts.Critical,
		// After a long outage the gap is counted before the first scrape, where increase() cannot see it.
		expr: fmt.Sprintf("sum by (job, topic, partition) (increase(%[1]s[15m])) > 0 or sum by (job, topic, partition) (%[1]s unless %[1]s offset 15m) > 0",
			ingest.MetricOffsetGap),
		summary: summary,
		description: `In the last 15 minutes, Kafka deleted {{ $value | printf "%.0f" }} records of partition {{ $labels.partition }} of ` +
			"{{ $labels.topic }} before they were read. Either the retention is too short for the lag, or the topic is compacted.",
		tests: []ruleTest{
			{
				name: "a gap", at: "20m",
				series: []inputSeries{ofJob(ingest.MetricOffsetGap, telemetry("3"), "0+0x14 40+0x10")},
				fires: []expectedAlert{fires(summary, "In the last 15 minutes, Kafka deleted 40 records of partition 3 of "+
					"agents before they were read. Either the retention is too short for the lag, or the topic is compacted.", "job", "rewardwatch", "topic", "agents", "partition", "3")},
			},
			{
				name: "a gap at startup", at: "10m",
				series: []inputSeries{ofInstance(ingest.MetricOffsetGap, telemetry("3"), "_x5 40+0x10")},
				fires: []expectedAlert{fires(summary, "In the last 15 minutes, Kafka deleted 40 records of partition 3 of "+
					"agents before they were read. Either the retention is too short for the lag, or the topic is compacted.", "job", "rewardwatch", "topic", "agents", "partition", "3")},
			},
			{
				name: "a gap long ago", at: "40m",
				series: []inputSeries{ofJob(ingest.MetricOffsetGap, telemetry("3"), "0+0x14 40+0x30")},
			},
		},
	}
}

func consumerLagHigh() rule {
	const summary = "Rewardwatch is lagging behind the telemetry"
	return rule{
		alert: "ConsumerLagHigh", severity: alerts.Warning, wait: "10m",
		expr: fmt.Sprintf("max by (job, topic, partition) (%s) > 300 or (max by (job, topic, partition) (%s) > 100000 unless "+
			"max by (job, topic, partition) (%s))", ingest.MetricLagSeconds, ingest.MetricLagRecords, ingest.MetricLagSeconds),
		summary:     summary,
		description: "Partition {{ $labels.partition }} of {{ $labels.topic }} is behind by {{ $value | humanize }} seconds (or records, if the telemetry has no timestamps). Alarms are delayed accordingly.",
		tests: []ruleTest{
			{
				name: "minutes behind", at: "15m",
				series: []inputSeries{
					ofJob(ingest.MetricLagSeconds, telemetry("0"), "600+0x20"),
					ofJob(ingest.MetricLagRecords, telemetry("0"), "200000+0x20"),
				},
				fires: []expectedAlert{fires(summary, "Partition 0 of agents is behind by 600 seconds (or records, if the telemetry has no timestamps). Alarms are delayed accordingly.", "job", "rewardwatch", "topic", "agents", "partition", "0")},
			},
			{
				name: "many records behind, without timestamps", at: "15m",
				series: []inputSeries{ofJob(ingest.MetricLagRecords, telemetry("0"), "200000+0x20")},
				fires:  []expectedAlert{fires(summary, "Partition 0 of agents is behind by 200k seconds (or records, if the telemetry has no timestamps). Alarms are delayed accordingly.", "job", "rewardwatch", "topic", "agents", "partition", "0")},
			},
			{
				name: "many records but only seconds behind, and a short peak", at: "15m",
				series: []inputSeries{
					ofJob(ingest.MetricLagSeconds, telemetry("0"), "20+0x20"),
					ofJob(ingest.MetricLagRecords, telemetry("0"), "200000+0x20"),
					ofJob(ingest.MetricLagSeconds, telemetry("1"), "0+0x9 600+0x3 0+0x20"),
				},
			},
		},
	}
}

func deadLettersRising() rule {
	const summary = "Rewardwatch is rejecting telemetry"
	return rule{
		alert: "DeadLettersRising", severity: alerts.Warning, wait: "10m",
		expr: fmt.Sprintf("sum by (job, reason) (rate(%s[10m])) > on (job) group_left () (0.01 * sum by (job) (rate(%s[10m])))",
			ingest.MetricDeadLetters, ingest.MetricEvents),
		summary:     summary,
		description: "{{ $value | humanize }} records per second are being rejected, which is more than 1% of all records. Reason: {{ $labels.reason }}.",
		tests: []ruleTest{
			{
				name: "one in ten", at: "30m",
				series: []inputSeries{
					events("accepted", "0+540x40"), events("refused", "0+60x40"),
					ofJob(ingest.MetricDeadLetters, `reason="not_json"`, "0+60x40"),
				},
				fires: []expectedAlert{fires(summary, "1 records per second are being rejected, which is more than 1% of all records. Reason: not_json.",
					"job", "rewardwatch", "reason", "not_json")},
			},
			{
				name: "one in a thousand", at: "30m",
				series: []inputSeries{
					events("accepted", "0+999x40"), events("refused", "0+1x40"),
					ofJob(ingest.MetricDeadLetters, `reason="not_json"`, "0+1x40"),
				},
			},
		},
	}
}

func deadLettersLost() rule {
	const (
		summary     = "Rejected telemetry cannot be stored"
		description = "Dead letters cannot be stored because their queue is full, or because the disk or topic is not writable. Rejected records are lost until this is fixed."
	)
	return rule{
		alert: "DeadLettersLost", severity: alerts.Warning,
		expr:    fmt.Sprintf("sum by (job) (increase(%s[15m])) > 0", ingest.MetricDeadLettersLost),
		summary: summary, description: description,
		tests: []ruleTest{
			{
				name: "some dropped", at: "20m", series: []inputSeries{ofJob(ingest.MetricDeadLettersLost, "", "0+0x14 5+0x10")},
				fires: []expectedAlert{fires(summary, description, "job", "rewardwatch")},
			},
			{name: "none", at: "20m", series: []inputSeries{ofJob(ingest.MetricDeadLettersLost, "", "5+0x20")}},
		},
	}
}

func checkpointStale() rule {
	const summary = "Rewardwatch is not saving its state"
	return rule{
		alert: "CheckpointStale", severity: alerts.Warning, wait: "5m",
		expr:    fmt.Sprintf("max by (job, instance) (%s) > 120", ingest.MetricCheckpointAge),
		summary: summary,
		description: "The last checkpoint is {{ $value | humanizeDuration }} old. After a restart, telemetry since then is read again " +
			"if it is still in Kafka.",
		tests: []ruleTest{
			{
				name: "old", at: "10m", series: []inputSeries{ofInstance(ingest.MetricCheckpointAge, `topic="agents"`, "600+0x20")},
				fires: []expectedAlert{fires(summary, "The last checkpoint is 10m 0s old. After a restart, telemetry "+
					"since then is read again if it is still in Kafka.", "job", "rewardwatch", "instance", "a")},
			},
			{name: "fresh", at: "10m", series: []inputSeries{ofInstance(ingest.MetricCheckpointAge, `topic="agents"`, "10+0x20")}},
			{name: "late once", at: "10m", series: []inputSeries{ofInstance(ingest.MetricCheckpointAge, `topic="agents"`, "10+0x6 200 210 10+0x9")}},
		},
	}
}

func checkpointDamaged() rule {
	const (
		summary     = "A checkpoint was damaged"
		description = "Rewardwatch used the previous checkpoint. No data was lost. Check the disk that stores the checkpoints."
	)
	return rule{
		alert: "CheckpointDamaged", severity: alerts.Warning,
		// It is usually counted before the first scrape, where increase() cannot see it.
		expr: fmt.Sprintf("sum by (job, instance) (%[1]s) > (sum by (job, instance) (%[1]s offset 1h) or 0 * sum by (job, instance) (%[1]s))",
			ingest.MetricCheckpointFallbacks),
		summary: summary, description: description,
		tests: []ruleTest{
			{
				name: "at startup", at: "30m", series: []inputSeries{ofInstance(ingest.MetricCheckpointFallbacks, "", "1+0x200")},
				fires: []expectedAlert{fires(summary, description, "job", "rewardwatch", "instance", "a")},
			},
			{
				name: "once again", at: "3h", series: []inputSeries{ofInstance(ingest.MetricCheckpointFallbacks, "", "1+0x170 2+0x20")},
				fires: []expectedAlert{fires(summary, description, "job", "rewardwatch", "instance", "a")},
			},
			{name: "long ago", at: "2h", series: []inputSeries{ofInstance(ingest.MetricCheckpointFallbacks, "", "1+0x200")}},
			{name: "never", at: "2h", series: []inputSeries{ofInstance(ingest.MetricCheckpointFallbacks, "", "0+0x200")}},
		},
	}
}

func cardinalityLimit() rule {
	const (
		summary     = "Rewardwatch is omitting metrics"
		description = "`limits.series` has been reached. Healthy streams are still judged, but they are missing from the metrics."
	)
	return rule{
		alert: "CardinalityLimit", severity: alerts.Warning,
		expr:    fmt.Sprintf("sum by (job, instance) (increase(%s[15m])) > 0", metrics.MetricSeriesLimitHits),
		summary: summary, description: description,
		tests: []ruleTest{
			{
				name: "limit reached", at: "20m", series: []inputSeries{ofInstance(metrics.MetricSeriesLimitHits, "", "0+7x30")},
				fires: []expectedAlert{fires(summary, description, "job", "rewardwatch", "instance", "a")},
			},
			{name: "limit reached in the past", at: "40m", series: []inputSeries{ofInstance(metrics.MetricSeriesLimitHits, "", "0+7x10 70+0x40")}},
		},
	}
}

func notifierFailing() rule {
	const (
		summary     = "Alerts are not reaching Alertmanager"
		description = "No Alertmanager has accepted the current state of 2 alerts. Some notifications of drift may not have been sent."
	)
	return rule{
		alert: "NotifierFailing", severity: alerts.Critical, wait: "5m",
		expr:        fmt.Sprintf("max by (job, instance) (%s) > 0", alerts.MetricNotifyPending),
		summary:     summary,
		description: "No Alertmanager has accepted the current state of {{ $value }} alerts. Some notifications of drift may not have been sent.",
		tests: []ruleTest{
			{
				name: "unconfirmed", at: "10m", series: []inputSeries{ofInstance(alerts.MetricNotifyPending, "", "0 2+0x20")},
				fires: []expectedAlert{fires(summary, description, "job", "rewardwatch", "instance", "a")},
			},
			{name: "confirmed quickly", at: "10m", series: []inputSeries{ofInstance(alerts.MetricNotifyPending, "", "0+0x6 2 2 0+0x20")}},
		},
	}
}

func alertmanagerUnreachable() rule {
	const (
		summary     = "An Alertmanager is not accepting alerts"
		description = "Pushes to an Alertmanager have failed for 15 minutes. See the log for the reason."
	)
	return rule{
		alert: "AlertmanagerUnreachable", severity: alerts.Warning, wait: "15m",
		expr:    fmt.Sprintf(`sum by (job, instance) (increase(%s{result="failed"}[5m])) > 0`, alerts.MetricNotifications),
		summary: summary, description: description,
		tests: []ruleTest{
			{
				name: "one of two is down", at: "30m",
				series: []inputSeries{
					ofInstance(alerts.MetricNotifications, `result="failed"`, "0+2x40"), ofInstance(alerts.MetricNotifications, `result="sent"`, "0+2x40"),
				},
				fires: []expectedAlert{fires(summary, description, "job", "rewardwatch", "instance", "a")},
			},
			{
				name: "a restart", at: "30m",
				series: []inputSeries{ofInstance(alerts.MetricNotifications, `result="failed"`, "0+2x5 12+0x40")},
			},
		},
	}
}

func webhookDeadLetter(metric string) rule {
	const (
		summary     = "Retrain requests did not reach their target"
		description = "Within the last hour, Rewardwatch stopped trying to deliver retrain requests to trainer. These retrainings will not happen. See `/api/v1/retrain-requests`."
	)
	return rule{
		alert: "WebhookDeadLetter", severity: alerts.Warning, dashboard: alerts.RetrainingDashboard,
		expr:        fmt.Sprintf("max by (job, target) (increase(%s[1h])) > 0", metric),
		summary:     summary,
		description: "Within the last hour, Rewardwatch stopped trying to deliver retrain requests to {{ $labels.target }}. These retrainings will not happen. See `/api/v1/retrain-requests`.",
		tests: []ruleTest{
			{
				name: "delivery failed", at: "30m", series: []inputSeries{ofJob(metric, `target="trainer"`, "0+0x20 1+0x200")},
				fires: []expectedAlert{fires(summary, description,
					"job", "rewardwatch", "target", "trainer")},
			},
			{name: "delivery failed long ago", at: "3h", series: []inputSeries{ofJob(metric, `target="trainer"`, "0+0x20 1+0x200")}},
			{
				name: "another delivery failed after earlier ones", at: "30m", series: []inputSeries{ofJob(metric, `target="trainer"`, "3+0x20 4+0x200")},
				fires: []expectedAlert{fires(summary, description, "job", "rewardwatch", "target", "trainer")},
			},
			{name: "delivered", at: "30m", series: []inputSeries{ofJob(metric, `target="trainer"`, "0+0x200")}},
		},
	}
}

// events returns a test series of the counter of records.
func events(result, values string) inputSeries {
	return ofJob(ingest.MetricEvents, fmt.Sprintf("result=%q", result), values)
}

// telemetry returns the labels of a test series of one partition of a topic.
func telemetry(partition string) string {
	return fmt.Sprintf("topic=\"agents\",partition=%q", partition)
}

// ofJob returns a test series of the job.
func ofJob(metric, labels, values string) inputSeries {
	if labels != "" {
		labels = "," + labels
	}
	return inputSeries{Series: fmt.Sprintf(`%s{job="rewardwatch"%s}`, metric, labels), Values: values}
}

// ofInstance returns a test series of one instance of the job.
func ofInstance(metric, labels, values string) inputSeries {
	if labels != "" {
		labels = "," + labels
	}
	return ofJob(metric, `instance="a"`+labels, values)
}

// fires returns an alert that a test expects, with its labels as name, value, name, value.
func fires(summary, description string, labels ...string) expectedAlert {
	e := expectedAlert{
		Labels:      map[string]string{},
		Annotations: ruleAnnotations{Summary: summary, Description: description},
	}
	for i := 0; i+1 < len(labels); i += 2 {
		e.Labels[labels[i]] = labels[i+1]
	}
	return e
}
