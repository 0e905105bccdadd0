package rules

import (
	"fmt"
	"strings"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/locallog"
)

func partitionsUnassigned() rule {
	const (
		summary     = "Some partitions are not being read by any instance"
		description = "2 partitions of topic agents are not assigned to any instance. Their telemetry is not being judged."
	)
	kind := func(kind string) string { return fmt.Sprintf("%s{kind=%q}", ingest.MetricPartitions, kind) }
	of := func(topic, kind string) string { return fmt.Sprintf("topic=%q,kind=%q", topic, kind) }
	return rule{
		alert: "PartitionsUnassigned", severity: alerts.Critical, wait: "5m",
		expr:        fmt.Sprintf("max by (job, topic) (%s) - sum by (job, topic) (%s) > 0", kind("existing"), kind("assigned")),
		summary:     summary,
		description: "{{ $value }} partitions of topic {{ $labels.topic }} are not assigned to any instance. Their telemetry is not being judged.",
		tests: []ruleTest{
			{
				name: "two of twelve partitions unassigned", at: "10m",
				series: []inputSeries{
					ofInstance(ingest.MetricPartitions, of("agents", "existing"), "12+0x20"),
					ofInstance(ingest.MetricPartitions, of("agents", "assigned"), "6+0x20"),
					ofJob(ingest.MetricPartitions, `instance="b",`+of("agents", "assigned"), "4+0x20"),
					ofInstance(ingest.MetricPartitions, of("units", "existing"), "6+0x20"),
					ofInstance(ingest.MetricPartitions, of("units", "assigned"), "6+0x20"),
				},
				fires: []expectedAlert{fires(summary, description, "job", "rewardwatch", "topic", "agents")},
			},
			{
				name: "a rebalance", at: "10m",
				series: []inputSeries{
					ofInstance(ingest.MetricPartitions, of("agents", "existing"), "12+0x20"),
					ofInstance(ingest.MetricPartitions, of("agents", "assigned"), "12+0x6 0 0 12+0x20"),
				},
			},
		},
	}
}

func partitionStalled() rule {
	const (
		summary     = "A partition is stalled"
		description = "Rewardwatch reconnected 3 times within 30 minutes because reads from a partition of topic agents stalled while it had unread records. See the log for details."
	)
	stalled := func(topic string) string { return fmt.Sprintf("topic=%q,reason=\"stalled\"", topic) }
	return rule{
		alert: "PartitionStalled", severity: alerts.Warning,
		expr:        fmt.Sprintf("sum by (job, instance, topic) (increase(%s{reason=\"stalled\"}[30m])) > 1", ingest.MetricReconnects),
		summary:     summary,
		description: `Rewardwatch reconnected {{ $value | printf "%.0f" }} times within 30 minutes because reads from a partition of topic {{ $labels.topic }} stalled while it had unread records. See the log for details.`,
		tests: []ruleTest{
			{
				name: "repeatedly", at: "30m", series: []inputSeries{ofInstance(ingest.MetricReconnects, stalled("agents"), "0+0x10 3+0x30")},
				fires: []expectedAlert{fires(summary, description, "job", "rewardwatch", "instance", "a", "topic", "agents")},
			},
			{name: "once per topic", at: "30m", series: []inputSeries{
				ofInstance(ingest.MetricReconnects, stalled("agents"), "0+0x10 1+0x30"),
				ofInstance(ingest.MetricReconnects, stalled("units"), "0+0x10 1+0x30"),
			}},
		},
	}
}

func lagNotFalling() rule {
	const (
		summary     = "Rewardwatch is falling behind"
		description = "Partition 0 of agents is 30k records behind, and has not caught up for 30 minutes. Events arrive faster than they are judged."
	)
	return rule{
		alert: "LagNotFalling", severity: alerts.Warning, wait: "15m",
		expr: fmt.Sprintf("max by (job, topic, partition) (%s) > 10000 and max by (job, topic, partition) (%s) >= "+
			"max by (job, topic, partition) (%s offset 30m)",
			ingest.MetricLagRecords, ingest.MetricLagRecords, ingest.MetricLagRecords),
		summary: summary,
		description: "Partition {{ $labels.partition }} of {{ $labels.topic }} is {{ $value | humanize }} records behind, and has not caught up for 30 minutes. " +
			"Events arrive faster than they are judged.",
		tests: []ruleTest{
			{
				name: "lag grows", at: "60m", series: []inputSeries{ofJob(ingest.MetricLagRecords, telemetry("0"), "0+500x60")},
				fires: []expectedAlert{fires(summary, description, "job", "rewardwatch", "topic", "agents", "partition", "0")},
			},
			{name: "lag falls", at: "60m", series: []inputSeries{ofJob(ingest.MetricLagRecords, telemetry("0"), "90000-500x60")}},
			{name: "a few", at: "60m", series: []inputSeries{ofJob(ingest.MetricLagRecords, telemetry("0"), "0+100x60")}},
		},
	}
}

func retentionOvertaking() rule {
	const (
		summary     = "Retention is about to delete unread records"
		description = "At the current rate, retention will delete unread records in partition 0 of topic agents within an hour."
	)
	lag := func(values string) inputSeries { return ofJob(ingest.MetricLagRecords, telemetry("0"), values) }
	room := func(values string) inputSeries { return ofJob(ingest.MetricHeadroom, telemetry("0"), values) }
	return rule{
		alert: "RetentionOvertaking", severity: alerts.Critical, wait: "5m",
		expr: fmt.Sprintf("min by (job, topic, partition) (predict_linear(%s[15m], 3600)) < 0 and max by (job, topic, partition) (%s) > 10000",
			ingest.MetricHeadroom, ingest.MetricLagRecords),
		summary:     summary,
		description: "At the current rate, retention will delete unread records in partition {{ $labels.partition }} of topic {{ $labels.topic }} within an hour.",
		tests: []ruleTest{
			{
				name: "half an hour left", at: "30m", series: []inputSeries{lag("50000+0x60"), room("60000-1000x60")},
				fires: []expectedAlert{fires(summary, description, "job", "rewardwatch", "topic", "agents", "partition", "0")},
			},
			{name: "plenty of time left", at: "30m", series: []inputSeries{lag("50000+0x60"), room("600000-1000x60")}},
			{name: "a new topic without lag", at: "30m", series: []inputSeries{lag("0+0x60"), room("60000-1000x60")}},
		},
	}
}

func logRefuses() rule {
	const (
		summary     = "Telemetry is being rejected because the local log cannot store it"
		description = "The local log \"telemetry\" rejected writes (reason: disk). Agents must resend these records. If the reason is `full` or `queue`, telemetry is arriving " +
			"faster than it can be judged or written. If the reason is `disk`, check the service log."
	)
	of := func(reason string) string { return fmt.Sprintf("log=\"telemetry\",reason=%q", reason) }
	return rule{
		alert: "LogRefuses", severity: alerts.Critical, wait: "5m",
		expr:        fmt.Sprintf("sum by (job, instance, log, reason) (increase(%s[5m])) > 0", locallog.MetricRefused),
		summary:     summary,
		description: strings.NewReplacer(`"telemetry"`, `"{{ $labels.log }}"`, "reason: disk", "reason: {{ $labels.reason }}").Replace(description),
		tests: []ruleTest{
			{
				name: "disk remains full", at: "20m", series: []inputSeries{ofInstance(locallog.MetricRefused, of("disk"), "0+5x40")},
				fires: []expectedAlert{fires(summary, description, "job", "rewardwatch", "instance", "a", "log", "telemetry", "reason", "disk")},
			},
			{name: "for a moment", at: "20m", series: []inputSeries{ofInstance(locallog.MetricRefused, of("queue"), "0+0x5 3+0x40")}},
		},
	}
}

func guardsUndelivered(undelivered string) rule {
	const (
		summary     = "Guard states are not reaching a target"
		description = "A target has not accepted the current state of 2 guards for 5 minutes. Agents that read their guards from this target act on outdated states. Once a state expires, they apply `on_silence`."
	)
	return rule{
		alert: "GuardsUndelivered", severity: alerts.Critical, wait: "5m",
		expr:    fmt.Sprintf("max by (job, instance) (%s) > 0", undelivered),
		summary: summary, description: strings.Replace(description, "2 guards", "{{ $value }} guards", 1),
		tests: []ruleTest{
			{
				name: "receiver is down", at: "10m", series: []inputSeries{ofInstance(undelivered, "", "0 2+0x20")},
				fires: []expectedAlert{fires(summary, description, "job", "rewardwatch", "instance", "a")},
			},
			{name: "delivered quickly", at: "10m", series: []inputSeries{ofInstance(undelivered, "", "0+0x6 2 2 0+0x20")}},
		},
	}
}

// tenantOverQuota fires for the tenant that has more than its quota. The others have lost nothing.
func tenantOverQuota(refused string) rule {
	const (
		summary     = "Tenant games exceeds its quota of units"
		description = "In the last 10 minutes, more units of the tenant games arrived than its quota permits. The excess was not judged. Other tenants are not affected. Raise the quota, or find the source."
	)
	with := strings.NewReplacer("games", "{{ with $labels.tenant }}{{ . }}{{ else }}(none){{ end }}", "units", "{{ $labels.kind }}")
	series := func(values string) []inputSeries {
		return []inputSeries{ofInstance(refused, `tenant="games", kind="units"`, values)}
	}
	return rule{
		alert: "TenantOverQuota", severity: alerts.Warning, wait: "5m",
		expr:    fmt.Sprintf("sum by (job, tenant, kind) (increase(%s[10m])) > 0", refused),
		summary: with.Replace(summary), description: with.Replace(description),
		tests: []ruleTest{
			{
				name: "quota exceeded", at: "30m", series: series("0+100x40"),
				fires: []expectedAlert{fires(summary, description, "job", "rewardwatch", "tenant", "games", "kind", "units")},
			},
			{name: "quota exceeded in the past", at: "30m", series: series("0+100x10 1000+0x30")},
		},
	}
}

// secretsStale tolerates two failures of a command that runs at the default interval.
func secretsStale(stale string) rule {
	const (
		summary     = "Rewardwatch cannot renew a secret"
		description = "Secrets have not been renewed for 15 minutes because their commands failed. Secrets with old values: 1. Once the old values expire, Kafka, Alertmanager or a target will reject Rewardwatch's connections. " +
			"See the log for the file and the reason."
	)
	return rule{
		alert: "SecretsStale", severity: alerts.Warning, wait: "15m",
		expr:    fmt.Sprintf("max by (job, instance) (%s) > 0", stale),
		summary: summary, description: strings.Replace(description, ": 1.", ": {{ $value }}.", 1),
		tests: []ruleTest{
			{
				name: "the secret manager is down", at: "30m", series: []inputSeries{ofInstance(stale, "", "0+0x5 1+0x30")},
				fires: []expectedAlert{fires(summary, description, "job", "rewardwatch", "instance", "a")},
			},
			{name: "renewed again", at: "30m", series: []inputSeries{ofInstance(stale, "", "0+0x5 1+0x10 0+0x30")}},
		},
	}
}

func auditLogNotSent(unsent string) rule {
	const (
		summary     = "Audit log entries are not reaching Kafka"
		description = "Audit log entries have been missing from `http.audit_topic` for 15 minutes. They stay in the file. See the log for the reason."
	)
	return rule{
		alert: "AuditLogNotSent", severity: alerts.Warning, wait: "15m",
		expr:    fmt.Sprintf("max by (job, instance) (%s) > 0", unsent),
		summary: summary, description: description,
		tests: []ruleTest{
			{
				name: "the topic does not exist", at: "30m", series: []inputSeries{ofInstance(unsent, "", "0+0x5 500+0x30")},
				fires: []expectedAlert{fires(summary, description, "job", "rewardwatch", "instance", "a")},
			},
			{name: "sent eventually", at: "30m", series: []inputSeries{ofInstance(unsent, "", "0+0x5 500+0x10 0+0x30")}},
		},
	}
}

func clockJumped() rule {
	const (
		summary     = "The system clock of a machine has jumped"
		description = "Cooldowns, mutes and the order of episodes (or blocks) from several partitions depend on the clock, and may be off by the size of the change."
	)
	return rule{
		alert: "ClockJumped", severity: alerts.Warning,
		expr:    fmt.Sprintf("max by (job, instance) (increase(%s[15m])) > 0", ingest.MetricClockJumps),
		summary: summary, description: description,
		tests: []ruleTest{
			{
				name: "set", at: "20m", series: []inputSeries{ofInstance(ingest.MetricClockJumps, `topic="agents"`, "0+0x14 1+0x10")},
				fires: []expectedAlert{fires(summary, description, "job", "rewardwatch", "instance", "a")},
			},
			{name: "kept", at: "20m", series: []inputSeries{ofInstance(ingest.MetricClockJumps, `topic="agents"`, "1+0x30")}},
		},
	}
}

func memoryLimitPassed(memory, limit string) rule {
	const (
		summary     = "Rewardwatch exceeds its memory limit"
		description = "Memory usage exceeds `limits.memory` even after evicting groups, so Rewardwatch has slowed down reads. Too many groups are active " +
			"or have open incidents or faults, or the limit is too low. See the section Memory in docs/sizing.md."
	)
	return rule{
		alert: "MemoryLimitPassed", severity: alerts.Warning, wait: "15m",
		expr:        fmt.Sprintf("max by (job, instance) (%s / %s) > 1", memory, limit),
		summary:     summary,
		description: description,
		tests: []ruleTest{
			{
				name: "limit exceeded", at: "30m", series: []inputSeries{ofInstance(memory, "", "500+0x40"), ofInstance(limit, "", "400+0x40")},
				fires: []expectedAlert{fires(summary, description, "job", "rewardwatch", "instance", "a")},
			},
			{
				name: "limit exceeded briefly", at: "30m",
				series: []inputSeries{ofInstance(memory, "", "300+0x20 500+0x5 300+0x20"), ofInstance(limit, "", "400+0x40")},
			},
			{name: "kept", at: "30m", series: []inputSeries{ofInstance(memory, "", "300+0x40"), ofInstance(limit, "", "400+0x40")}},
		},
	}
}

func policiesNotWatched(streamLimitHits, eventsIgnored string) rule {
	const (
		summary     = "Rewardwatch is not judging new policies or groups"
		description = "`limits.streams` has been reached, one policy uses half of the streams that other policies leave free, or a partition has 20,000 groups. New policies and groups are not judged. " +
			"Use `rewardwatch forget` to remove a policy that is no longer needed."
	)
	groupLimit := eventsIgnored + `{reason="group_limit"}`
	return rule{
		alert: "PoliciesNotWatched", severity: alerts.Warning,
		// increase() also works if the limit was reached before the first scrape, because each refused unit counts.
		expr: fmt.Sprintf("sum by (job, instance) (increase(%s[15m])) > 0 or sum by (job, instance) (increase(%s[15m])) > 0",
			streamLimitHits, groupLimit),
		summary: summary, description: description,
		tests: []ruleTest{
			{
				name: "streams", at: "20m", series: []inputSeries{ofInstance(streamLimitHits, `reason="policy"`, "0+7x30"), ofInstance(eventsIgnored, `reason="group_limit"`, "0+0x30")},
				fires: []expectedAlert{fires(summary, description, "job", "rewardwatch", "instance", "a")},
			},
			{
				name: "groups", at: "20m", series: []inputSeries{ofInstance(streamLimitHits, `reason="limit"`, "0+0x30"), ofInstance(eventsIgnored, `reason="group_limit"`, "0+7x30")},
				fires: []expectedAlert{fires(summary, description, "job", "rewardwatch", "instance", "a")},
			},
			{
				name: "in the past, or for other reasons", at: "40m", series: []inputSeries{
					ofInstance(streamLimitHits, `reason="limit"`, "0+7x10 70+0x40"), ofInstance(eventsIgnored, `reason="unmatched"`, "0+7x40"),
				},
			},
		},
	}
}

// apartShare is the share of unmatched feedback whose decision is in another partition above which decisions and
// feedback must have different keys or partitioners.
const apartShare = .5

func feedbackApart(lost string) rule {
	const (
		summary     = "Feedback and its decisions are in different partitions"
		description = "{{ $value | humanizePercentage }} of the feedback without a decision is in a different partition from its decision and cannot be joined. Write decisions and " +
			"feedback with the same key and the same partitioner, to topics with the same number of partitions."
	)
	of := func(decision, values string) inputSeries {
		return ofInstance(lost, fmt.Sprintf("decision=%q", decision), values)
	}
	elsewhere := fmt.Sprintf(`sum by (job, instance) (increase(%s{decision="other_partition"}[1h]))`, lost)
	all := fmt.Sprintf("sum by (job, instance) (increase(%s[1h]))", lost)
	return rule{
		alert: "FeedbackApart", severity: alerts.Warning, wait: "5m",
		expr:    fmt.Sprintf("%s / %s > %v and %s > 10", elsewhere, all, apartShare, elsewhere),
		summary: summary, description: description,
		tests: []ruleTest{
			{
				name: "nearly all", at: "30m", series: []inputSeries{of("other_partition", "0+9x40"), of("unknown", "0+1x40")},
				fires: []expectedAlert{fires(summary, strings.Replace(description, "{{ $value | humanizePercentage }}", "90%", 1), "job", "rewardwatch", "instance", "a")},
			},
			{name: "decisions not found anywhere", at: "30m", series: []inputSeries{of("other_partition", "0+1x40"), of("unknown", "0+9x40")}},
			{name: "in the past", at: "2h", series: []inputSeries{of("other_partition", "0+9x10 90+0x120"), of("unknown", "0+0x120")}},
		},
	}
}

func tokensThrottled(tokensRefused string) rule {
	const (
		summary     = "Clients are repeatedly sending invalid tokens to Rewardwatch"
		description = "An address has sent ten invalid tokens, so its requests are rejected with status 429. Either a client uses an old token, or someone is trying to guess one."
	)
	throttled := func(values string) inputSeries { return ofInstance(tokensRefused, `reason="throttled"`, values) }
	return rule{
		alert: "TokensThrottled", severity: alerts.Warning,
		expr:    fmt.Sprintf(`sum by (job, instance) (increase(%s{reason="throttled"}[15m])) > 0`, tokensRefused),
		summary: summary, description: description,
		tests: []ruleTest{
			{
				name: "many wrong tokens", at: "20m", series: []inputSeries{throttled("0+0x14 60+60x10")},
				fires: []expectedAlert{fires(summary, description, "job", "rewardwatch", "instance", "a")},
			},
			{
				name: "a few wrong tokens, many in the past", at: "40m",
				series: []inputSeries{throttled("0+60x10 600+0x40"), ofInstance(tokensRefused, `reason="wrong"`, "0+1x40")},
			},
		},
	}
}
