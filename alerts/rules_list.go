package alerts

import (
	"fmt"
	"strings"

	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// allRules lists the rules in the order in which they are written.
func allRules(opts RulesOptions) []rule {
	var rules []rule
	g := ruleGroups{labels: opts.GroupLabels}
	if !opts.Push {
		rules = append(rules, g.drift(Critical), g.drift(Warning), g.drift(Info), g.telemetryFault())
	}
	rules = append(rules, g.actionCollapse(), g.rewardChannelFault(), g.baselineStale(), g.falseAlarmBudgetSpent())
	rules = append(rules, telemetryAbsent(), telemetryLost(), consumerLagHigh(), deadLettersRising(), deadLettersLost(),
		checkpointStale(), checkpointDamaged(), partitionsUnassigned(), partitionStalled(), lagNotFalling(), retentionOvertaking(),
		clockJumped(), cardinalityLimit(), notifierFailing(), alertmanagerUnreachable())
	if opts.WebhooksGivenUp != "" {
		rules = append(rules, webhookDeadLetter(opts.WebhooksGivenUp))
	}
	if opts.RetrainRequests != "" {
		rules = append(rules, retrainNoImprovement(opts.RetrainRequests), retrainAwaitsApproval(opts.RetrainRequests))
	}
	if opts.Memory != "" {
		rules = append(rules, memoryLimitPassed(opts.Memory, opts.MemoryLimit))
	}
	if opts.UnitDelay != "" {
		rules = append(rules, freshnessBudgetBurn(opts.UnitDelay, Critical), freshnessBudgetBurn(opts.UnitDelay, Warning))
	}
	return rules
}

// allRecords lists the recording rules, each of which an alert looks at.
func allRecords(opts RulesOptions) []record {
	if opts.UnitDelay == "" {
		return nil
	}
	return freshnessRecords(opts.UnitDelay)
}

// ruleGroups writes the rules that give one alert a group.
type ruleGroups struct {
	labels []string
}

// by lists the labels that name a group.
func (g ruleGroups) by() string { return strings.Join(append([]string{"policy"}, g.labels...), ", ") }

// name is the template of a group's name, as Group.String gives it.
func (g ruleGroups) name() string {
	var labels []string
	for _, l := range g.labels {
		labels = append(labels, fmt.Sprintf(`%s="{{ $labels.%s }}"`, l, l))
	}
	return "{{ $labels.policy }}{" + strings.Join(labels, ",") + "}"
}

// drifting is the template that lists the signals of the alert's group that are in drift.
func (g ruleGroups) drifting() string {
	return g.listed("Signals in drift", bank.MetricStreamState, fmt.Sprintf(" == %d", bank.Drift), "{{ $s.Labels.signal }}")
}

// faulty is the template that lists the signals of the alert's group that are in a telemetry fault, with its rule.
func (g ruleGroups) faulty() string {
	return g.listed("Signals in a telemetry fault, and its rule", bank.MetricStreamFault, "", "{{ $s.Labels.signal }} ({{ $s.Labels.rule }})")
}

// listed is the template that shows, behind a title, each series of a metric, of the alert's group and under a condition;
// nothing where there is none.
func (g ruleGroups) listed(title, metric, condition, shown string) string {
	format, values := "policy=%q", "$labels.policy"
	for _, l := range g.labels {
		format, values = format+","+l+"=%q", values+" $labels."+l
	}
	return fmt.Sprintf("{{ with query (printf `%s{%s}%s` %s) }} %s: {{ range $i, $s := . | sortByLabel \"signal\" }}"+
		"{{ if $i }}, {{ end }}%s{{ end }}.{{ end }}", metric, format, condition, values, title, shown)
}

// count counts the streams of each group that are in a state.
func (g ruleGroups) count(selector string, state bank.State) string {
	return fmt.Sprintf("count by (%s) (%s%s == %d)", g.by(), bank.MetricStreamState, selector, state)
}

// drift is the rule of incidents of one severity. It goes by the alarms and not by the states of streams: a telemetry
// fault that comes upon a drift hides its state and does not resolve its alarm.
func (g ruleGroups) drift(severity Severity) rule {
	selector := fmt.Sprintf("severity=%q", severity)
	alarms := func(values string) inputSeries { return g.series(MetricAlarms, selector, values) }
	const more = " `rewardwatch incident list` names the incidents, `incident show` says of one since when, by how much and why."
	return rule{
		alert: alertRewardDrift, severity: severity, dashboard: policyDashboard,
		expr:        fmt.Sprintf("sum by (%s) (%s{%s}) > 0", g.by(), MetricAlarms, selector),
		summary:     g.name() + " drifts from its baseline",
		description: "Firing alarms: {{ $value }}." + g.drifting() + g.faulty() + more,
		tests: []ruleTest{
			{
				name: string(severity) + " alarms", at: "5m",
				series: []inputSeries{alarms("0 1 2+0x10"), g.stream("return", "1 2+0x10"), g.stream("action.0", "1 2+0x10"), g.stream("reward", "1+0x10")},
				fires: []expectedAlert{g.fires(" drifts from its baseline",
					"Firing alarms: 2. Signals in drift: action.0, return."+more)},
			},
			{
				name: string(severity) + " alarms whose streams fell into a telemetry fault", at: "5m",
				series: []inputSeries{
					alarms("1+0x10"), g.stream("return", "2 3+0x10"),
					g.series(bank.MetricStreamFault, `signal="return",rule="scale"`, "_ 1+0x10"),
				},
				fires: []expectedAlert{g.fires(" drifts from its baseline",
					"Firing alarms: 1. Signals in a telemetry fault, and its rule: return (scale)."+more)},
			},
			{
				name: string(severity) + " alarms that have resolved", at: "5m",
				series: []inputSeries{alarms("1 1 0+0x10"), g.stream("return", "2 2 1+0x10")},
			},
		},
	}
}

// telemetryFault is the rule of faults, which holds whatever the rule of the fault is: it is told.
func (g ruleGroups) telemetryFault() rule {
	const meaning = "A fault vetoes retraining while it lasts, and a signal with wrong values is not judged."
	return rule{
		alert: alertTelemetryFault, severity: Warning, dashboard: policyDashboard,
		expr:        g.count("", bank.TelemetryFault),
		summary:     "the telemetry of " + g.name() + " is faulty",
		description: meaning + g.faulty(),
		tests: []ruleTest{
			{
				name: "a faulty stream", at: "5m",
				series: []inputSeries{
					g.stream("return", "1 3+0x10"), g.stream("reward", "2+0x10"), g.stream("action", "1 3+0x10"),
					g.series(bank.MetricStreamFault, `signal="return",rule="scale"`, "_ 1+0x10"),
					g.series(bank.MetricStreamFault, `signal="action",rule="duplicates"`, "_ 1+0x10"),
				},
				fires: []expectedAlert{{
					Labels: g.example(),
					Annotations: ruleAnnotations{
						Summary:     "the telemetry of " + g.exampleName() + " is faulty",
						Description: meaning + " Signals in a telemetry fault, and its rule: action (duplicates), return (scale).",
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

// example gives the labels of the group that the tests are about.
func (g ruleGroups) example() map[string]string {
	labels := map[string]string{"policy": "checkout"}
	for _, l := range g.labels {
		labels[l] = `a "quoted" ` + l
	}
	return labels
}

// exampleName is what name makes of the example.
func (g ruleGroups) exampleName() string {
	var labels []string
	for _, l := range g.labels {
		labels = append(labels, l+`="`+g.example()[l]+`"`)
	}
	return "checkout{" + strings.Join(labels, ",") + "}"
}

// stream is the state of a stream of the example.
func (g ruleGroups) stream(signal, values string) inputSeries {
	return g.series(bank.MetricStreamState, fmt.Sprintf("signal=%q", signal), values)
}

// series is a metric of the example.
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
		summary     = "Rewardwatch reads no telemetry"
		description = "Agents do not send, Kafka cannot be read, or Rewardwatch is not scraped: drift goes unseen."
	)
	return rule{
		alert: "TelemetryAbsent", severity: Warning, wait: "10m",
		expr:    fmt.Sprintf("sum by (job) (rate(%s[5m])) == 0 or absent(%s)", ingest.MetricEvents, ingest.MetricEvents),
		summary: summary, description: description,
		tests: []ruleTest{
			{
				name: "events stop", at: "25m", series: []inputSeries{events("accepted", "0+60x5 300+0x30")},
				fires: []expectedAlert{fires(summary, description, "job", "rewardwatch")},
			},
			{name: "no metrics at all", at: "11m", fires: []expectedAlert{fires(summary, description)}},
			{name: "a pause", at: "15m", series: []inputSeries{events("accepted", "0+60x5 300+0x30")}},
			{name: "events flow", at: "25m", series: []inputSeries{events("accepted", "0+1x30")}},
		},
	}
}

func telemetryLost() rule {
	const summary = "records were deleted before they were read"
	return rule{
		alert: "TelemetryLost", severity: Critical,
		// After a long outage the gap is counted before the first scrape, so that an increase would not show.
		expr: fmt.Sprintf("sum by (job, topic, partition) (increase(%[1]s[15m])) > 0 or sum by (job, topic, partition) (%[1]s unless %[1]s offset 15m) > 0",
			ingest.MetricOffsetGap),
		summary: summary,
		description: `Kafka deleted {{ $value | printf "%.0f" }} records of partition {{ $labels.partition }} of {{ $labels.topic }} before ` +
			"they were read, in the last 15 minutes: retention is too short for the lag.",
		tests: []ruleTest{
			{
				name: "a gap", at: "20m",
				series: []inputSeries{ofJob(ingest.MetricOffsetGap, telemetry("3"), "0+0x14 40+0x10")},
				fires: []expectedAlert{fires(summary, "Kafka deleted 40 records of partition 3 of agents before they were read, in the "+
					"last 15 minutes: retention is too short for the lag.", "job", "rewardwatch", "topic", "agents", "partition", "3")},
			},
			{
				name: "a gap at the start", at: "10m",
				series: []inputSeries{ofInstance(ingest.MetricOffsetGap, telemetry("3"), "_x5 40+0x10")},
				fires: []expectedAlert{fires(summary, "Kafka deleted 40 records of partition 3 of agents before they were read, in the "+
					"last 15 minutes: retention is too short for the lag.", "job", "rewardwatch", "topic", "agents", "partition", "3")},
			},
			{
				name: "an old gap", at: "40m",
				series: []inputSeries{ofJob(ingest.MetricOffsetGap, telemetry("3"), "0+0x14 40+0x30")},
			},
		},
	}
}

func consumerLagHigh() rule {
	const summary = "Rewardwatch lags behind the telemetry"
	return rule{
		alert: "ConsumerLagHigh", severity: Warning, wait: "10m",
		expr: fmt.Sprintf("max by (job, topic, partition) (%s) > 300 or (max by (job, topic, partition) (%s) > 100000 unless "+
			"max by (job, topic, partition) (%s))", ingest.MetricLagSeconds, ingest.MetricLagRecords, ingest.MetricLagSeconds),
		summary: summary,
		description: "Partition {{ $labels.partition }} of {{ $labels.topic }} is {{ $value | humanize }} behind, in seconds, or in records where " +
			"the telemetry has no clock: alarms come late by as much.",
		tests: []ruleTest{
			{
				name: "minutes behind", at: "15m",
				series: []inputSeries{
					ofJob(ingest.MetricLagSeconds, telemetry("0"), "600+0x20"),
					ofJob(ingest.MetricLagRecords, telemetry("0"), "200000+0x20"),
				},
				fires: []expectedAlert{fires(summary, "Partition 0 of agents is 600 behind, in seconds, or in records where the "+
					"telemetry has no clock: alarms come late by as much.", "job", "rewardwatch", "topic", "agents", "partition", "0")},
			},
			{
				name: "many records behind without a clock", at: "15m",
				series: []inputSeries{ofJob(ingest.MetricLagRecords, telemetry("0"), "200000+0x20")},
				fires: []expectedAlert{fires(summary, "Partition 0 of agents is 200k behind, in seconds, or in records where the "+
					"telemetry has no clock: alarms come late by as much.", "job", "rewardwatch", "topic", "agents", "partition", "0")},
			},
			{
				name: "many records but seconds only, and a peak", at: "15m",
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
	const summary = "Rewardwatch refuses telemetry"
	return rule{
		alert: "DeadLettersRising", severity: Warning, wait: "10m",
		expr: fmt.Sprintf("sum by (job, reason) (rate(%s[10m])) > on (job) group_left () (0.01 * sum by (job) (rate(%s[10m])))",
			ingest.MetricDeadLetters, ingest.MetricEvents),
		summary:     summary,
		description: "{{ $value | humanize }} records a second, above 1 % of all, are refused: {{ $labels.reason }}.",
		tests: []ruleTest{
			{
				name: "one in ten", at: "30m",
				series: []inputSeries{
					events("accepted", "0+540x40"), events("refused", "0+60x40"),
					ofJob(ingest.MetricDeadLetters, `reason="not_json"`, "0+60x40"),
				},
				fires: []expectedAlert{fires(summary, "1 records a second, above 1 % of all, are refused: not_json.",
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
		summary     = "refused telemetry could not be kept"
		description = "The dead letters are full or cannot be written: what was refused can no longer be looked at."
	)
	return rule{
		alert: "DeadLettersLost", severity: Warning,
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
	const summary = "Rewardwatch does not save its state"
	return rule{
		alert: "CheckpointStale", severity: Warning, wait: "5m",
		expr:    fmt.Sprintf("max by (job, instance) (%s) > 120", ingest.MetricCheckpointAge),
		summary: summary,
		description: "The last checkpoint is {{ $value | humanizeDuration }} old: a restart reads again all that came since, " +
			"if Kafka still has it.",
		tests: []ruleTest{
			{
				name: "old", at: "10m", series: []inputSeries{ofInstance(ingest.MetricCheckpointAge, `topic="agents"`, "600+0x20")},
				fires: []expectedAlert{fires(summary, "The last checkpoint is 10m 0s old: a restart reads again all that came "+
					"since, if Kafka still has it.", "job", "rewardwatch", "instance", "a")},
			},
			{name: "fresh", at: "10m", series: []inputSeries{ofInstance(ingest.MetricCheckpointAge, `topic="agents"`, "10+0x20")}},
			{name: "late once", at: "10m", series: []inputSeries{ofInstance(ingest.MetricCheckpointAge, `topic="agents"`, "10+0x6 200 210 10+0x9")}},
		},
	}
}

func checkpointDamaged() rule {
	const (
		summary     = "A checkpoint was damaged"
		description = "Rewardwatch went back to the save before, and lost nothing by it. Look at the disk that holds the checkpoints."
	)
	return rule{
		alert: "CheckpointDamaged", severity: Warning,
		// Most often it is counted before the first scrape, so that an increase would not show.
		expr: fmt.Sprintf("sum by (job, instance) (%[1]s) > (sum by (job, instance) (%[1]s offset 1h) or 0 * sum by (job, instance) (%[1]s))",
			ingest.MetricCheckpointFallbacks),
		summary: summary, description: description,
		tests: []ruleTest{
			{
				name: "at the start", at: "30m", series: []inputSeries{ofInstance(ingest.MetricCheckpointFallbacks, "", "1+0x200")},
				fires: []expectedAlert{fires(summary, description, "job", "rewardwatch", "instance", "a")},
			},
			{
				name: "once more", at: "3h", series: []inputSeries{ofInstance(ingest.MetricCheckpointFallbacks, "", "1+0x170 2+0x20")},
				fires: []expectedAlert{fires(summary, description, "job", "rewardwatch", "instance", "a")},
			},
			{name: "long ago", at: "2h", series: []inputSeries{ofInstance(ingest.MetricCheckpointFallbacks, "", "1+0x200")}},
			{name: "never", at: "2h", series: []inputSeries{ofInstance(ingest.MetricCheckpointFallbacks, "", "0+0x200")}},
		},
	}
}

func cardinalityLimit() rule {
	const (
		summary     = "Rewardwatch leaves metrics out"
		description = "limits.series is reached: healthy streams are not shown in the metrics, but still judged."
	)
	return rule{
		alert: "CardinalityLimit", severity: Warning,
		expr:    fmt.Sprintf("sum by (job, instance) (increase(%s[15m])) > 0", bank.MetricSeriesLimitHits),
		summary: summary, description: description,
		tests: []ruleTest{
			{
				name: "hits", at: "20m", series: []inputSeries{ofInstance(bank.MetricSeriesLimitHits, "", "0+7x30")},
				fires: []expectedAlert{fires(summary, description, "job", "rewardwatch", "instance", "a")},
			},
			{name: "hits of the past", at: "40m", series: []inputSeries{ofInstance(bank.MetricSeriesLimitHits, "", "0+7x10 70+0x40")}},
		},
	}
}

func notifierFailing() rule {
	const (
		summary     = "alerts do not reach Alertmanager"
		description = "No Alertmanager has accepted the current state of 2 alerts: drift may go unheard."
	)
	return rule{
		alert: "NotifierFailing", severity: Critical, wait: "5m",
		expr:        fmt.Sprintf("max by (job, instance) (%s) > 0", MetricNotifyPending),
		summary:     summary,
		description: "No Alertmanager has accepted the current state of {{ $value }} alerts: drift may go unheard.",
		tests: []ruleTest{
			{
				name: "unconfirmed", at: "10m", series: []inputSeries{ofInstance(MetricNotifyPending, "", "0 2+0x20")},
				fires: []expectedAlert{fires(summary, description, "job", "rewardwatch", "instance", "a")},
			},
			{name: "confirmed soon", at: "10m", series: []inputSeries{ofInstance(MetricNotifyPending, "", "0+0x6 2 2 0+0x20")}},
		},
	}
}

func alertmanagerUnreachable() rule {
	const (
		summary     = "an Alertmanager refuses alerts"
		description = "Pushes to an Alertmanager have kept failing for 15 minutes; the log says which and why."
	)
	return rule{
		alert: "AlertmanagerUnreachable", severity: Warning, wait: "15m",
		expr:    fmt.Sprintf(`sum by (job, instance) (increase(%s{result="failed"}[5m])) > 0`, MetricNotifications),
		summary: summary, description: description,
		tests: []ruleTest{
			{
				name: "one of two is down", at: "30m",
				series: []inputSeries{
					ofInstance(MetricNotifications, `result="failed"`, "0+2x40"), ofInstance(MetricNotifications, `result="sent"`, "0+2x40"),
				},
				fires: []expectedAlert{fires(summary, description, "job", "rewardwatch", "instance", "a")},
			},
			{
				name: "a restart of it", at: "30m",
				series: []inputSeries{ofInstance(MetricNotifications, `result="failed"`, "0+2x5 12+0x40")},
			},
		},
	}
}

func webhookDeadLetter(metric string) rule {
	const (
		summary     = "retrain requests did not reach their target"
		description = "Deliveries to trainer were given up within the last hour: no retraining comes of them. `/api/v1/retrain-requests` says which and why."
	)
	return rule{
		alert: "WebhookDeadLetter", severity: Warning, dashboard: retrainingDashboard,
		expr:        fmt.Sprintf("max by (job, target) (increase(%s[1h])) > 0", metric),
		summary:     summary,
		description: "Deliveries to {{ $labels.target }} were given up within the last hour: no retraining comes of them. `/api/v1/retrain-requests` says which and why.",
		tests: []ruleTest{
			{
				name: "given up", at: "30m", series: []inputSeries{ofJob(metric, `target="trainer"`, "0+0x20 1+0x200")},
				fires: []expectedAlert{fires(summary, description,
					"job", "rewardwatch", "target", "trainer")},
			},
			{name: "given up long ago", at: "3h", series: []inputSeries{ofJob(metric, `target="trainer"`, "0+0x20 1+0x200")}},
			{
				name: "one more after others", at: "30m", series: []inputSeries{ofJob(metric, `target="trainer"`, "3+0x20 4+0x200")},
				fires: []expectedAlert{fires(summary, description, "job", "rewardwatch", "target", "trainer")},
			},
			{name: "delivered", at: "30m", series: []inputSeries{ofJob(metric, `target="trainer"`, "0+0x200")}},
		},
	}
}

// events is the counter of records in a test.
func events(result, values string) inputSeries {
	return ofJob(ingest.MetricEvents, fmt.Sprintf("result=%q", result), values)
}

// telemetry labels a series of one partition of a topic in a test.
func telemetry(partition string) string {
	return fmt.Sprintf("topic=\"agents\",partition=%q", partition)
}

// ofJob is a series of the job in a test.
func ofJob(metric, labels, values string) inputSeries {
	if labels != "" {
		labels = "," + labels
	}
	return inputSeries{Series: fmt.Sprintf(`%s{job="rewardwatch"%s}`, metric, labels), Values: values}
}

// ofInstance is a series of one instance of the job in a test.
func ofInstance(metric, labels, values string) inputSeries {
	if labels != "" {
		labels = "," + labels
	}
	return ofJob(metric, `instance="a"`+labels, values)
}

// fires is an alert that a test expects, with its labels as name, value, name, value.
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
