package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/alerts/alarmmetrics"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/announce"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/audit"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/cluster"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/config"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/checkpoint"
	"github.com/rewardwatch/rewardwatch/ingest/consumer"
	"github.com/rewardwatch/rewardwatch/ingest/deadletter"
	"github.com/rewardwatch/rewardwatch/ingest/format"
	"github.com/rewardwatch/rewardwatch/ingest/kafkalog"
	"github.com/rewardwatch/rewardwatch/ingest/locallog"
	"github.com/rewardwatch/rewardwatch/ingest/receive"
	"github.com/rewardwatch/rewardwatch/ingest/repartition"
	"github.com/rewardwatch/rewardwatch/retrain"
)

func (a *App) open(ctx context.Context) error {
	var err error
	if a.letters, err = openDeadLetters(a.cfg, a.log); err != nil {
		return err
	}
	a.closeLater("dead letters", a.letters.Close)
	if err := a.openRetrain(ctx); err != nil {
		return err
	}
	at, topics, err := a.cfg.Ingest.OpenJudged()
	if err != nil {
		return err
	}
	local, err := a.openLog()
	if err != nil {
		return err
	}
	a.Pipeline = engine.NewPipeline(context.Background(), a.cfg.Settings(), engine.TopicRanges(at, topics), a.scores, a, a.log, a.Registry)
	a.Pipeline.Source = engine.Source{Topics: ingest.TopicNames(topics), SentOn: a.cfg.Ingest.Kafka.RepartitionTopic != "", Shared: a.cfg.Cluster.Enabled()}
	if a.retrain != nil {
		a.retrain.ResolveBy(a.Pipeline.BaselineLevel)
		a.retrain.LearnsBy(a.learns)
	}
	stores, out, notes, err := a.openState(at.Kafka, ingest.TopicNames(topics))
	if err != nil {
		return err
	}
	a.feeds = engine.NewTelemetry(a.Pipeline, out)
	a.Server.Orders, a.Server.Tenants = people{a.Pipeline, a}, a.cfg.Tenants
	if err := errors.Join(a.readBaselines(), a.openGuards(), a.openAuditTopic()); err != nil {
		return err
	}
	if a.notifier, err = alerts.NewNotifier(a.cfg.Alerts.Alertmanager, a.cfg.Links(), notes, a.log, a.Registry); err != nil {
		return err
	}
	a.metrics = alarmmetrics.New(a.groups, a.notifier.Delivery)
	a.exportSeries()
	read := consumer.Options{
		Stores: stores, CheckpointEvery: time.Duration(a.cfg.Checkpoint.Every), Topics: topics, DeadLetters: a.letters,
		Joined: a.cfg.Settings().Joins(), Handler: a.feeds, Log: a.log, Registerer: a.Registry,
	}
	if a.Pipeline.Source.SentOn {
		read.Events = prometheus.NewRegistry() // otherwise events would be counted twice
		if err := a.openSender(read); err != nil {
			return err
		}
	}
	if err := a.openConsumer(at.Kafka, local, read); err != nil {
		return err
	}
	if err := a.openReceiver(local); err != nil {
		return err
	}
	a.Server.Shared = a.cluster != nil
	if a.retrain != nil {
		a.Server.Requests = watchedRequests{a.retrain, a.cfg.Settings()}
	}
	return nil
}

// openRetrain opens the retraining desk if the configuration has one.
func (a *App) openRetrain(ctx context.Context) error {
	if len(a.cfg.Retrain.Triggers)+len(a.cfg.Retrain.Targets) == 0 {
		return nil
	}
	desk, err := retrain.Open(ctx, a.cfg.Retrain.OnBrokersOf(a.cfg.Ingest.Kafka.KafkaConfig), a.cfg.Recipes, a.log, a.Registry)
	if err != nil {
		return err
	}
	a.closeLater("ledger", desk.Close)
	desk.ServeUnder(a.cfg.HTTP.ExternalURL)
	a.retrain = desk
	return nil
}

// openLog opens the local telemetry log. It returns nil if the telemetry is in Kafka.
func (a *App) openLog() (*locallog.Log, error) {
	if !a.cfg.Ingest.IsLocal() {
		return nil, nil
	}
	o := a.cfg.Ingest.Log.Options()
	o.Log, o.Registerer = a.log, a.Registry
	local, err := locallog.Open(o)
	if err == nil {
		a.closeLater("telemetry log", local.Close)
	}
	return local, err
}

// openConsumer opens the consumer of the local log or, if that is nil, of Kafka.
func (a *App) openConsumer(kafka ingest.KafkaConfig, local *locallog.Log, o consumer.Options) (err error) {
	if local != nil {
		a.consumer, err = consumer.NewLocal(local, o)
	} else {
		a.consumer, err = consumer.New(kafka, o)
	}
	return err
}

// sender forwards telemetry to the topic that is judged, with the key of its feedback.
type sender struct {
	writer   *repartition.Writer
	consumer *consumer.Consumer // of the telemetry
}

// openSender opens the sender. o are the options of the consumer whose telemetry it forwards.
func (a *App) openSender(o consumer.Options) error {
	at, topics, err := a.cfg.Ingest.Open()
	if err != nil {
		return err
	}
	w, err := repartition.Open(repartition.Options{
		Kafka: at.Kafka, Topic: a.cfg.Ingest.Kafka.RepartitionTopic, Sources: ingest.TopicNames(topics), Key: a.cfg.Settings().JoinKey,
		Keys: a.cfg.Settings().JoinKeys(), Senders: a.cfg.Tenants.Has, Clear: a.clearUnits(topics[0].Name), DeadLetters: a.letters, Log: a.log, Registerer: a.Registry,
	})
	if err != nil {
		return err
	}
	a.closeLater("connections for repartitioned telemetry", w.Close)
	o.Topics, o.Handler, o.Merged, o.AsRecorded, o.Events = topics, w, true, true, nil
	c, err := consumer.New(at.Kafka, o)
	a.sender = &sender{w, c}
	return err
}

// clearUnits returns a function that removes the unit log of a partition, for a topic that is no longer judged
// directly. The checkpoint no longer names any of these units.
func (a *App) clearUnits(topic string) func(partition int32) error {
	if a.unitLog == nil {
		return nil
	}
	return func(partition int32) error { return os.RemoveAll(a.unitLog(topic, partition)) }
}

// openReceiver lets the server receive telemetry for the local log, or else for topics in JSON: the topic of each
// tenant and the topic of the platform.
func (a *App) openReceiver(local *locallog.Log) error {
	var first *receive.Receiver
	opened, of := map[string]*receive.Receiver{}, map[string]api.TelemetryReceiver{}
	for _, name := range append([]string{""}, a.cfg.Tenants.Names()...) {
		topic, takes := a.cfg.Inbox(name)
		if !takes {
			continue
		}
		if opened[topic.Topic] == nil {
			to, records, err := a.openInbox(local, topic)
			if err != nil {
				return err
			}
			if first == nil {
				first = receive.New(to, records, a.cfg.Settings().Key, receive.NewMetrics(a.Registry))
			}
			opened[topic.Topic] = first.To(to, records)
		}
		of[name] = opened[topic.Topic]
	}
	a.Server.Telemetry, a.Server.TelemetryOf = of[""], func(tenant string) api.TelemetryReceiver { return of[tenant] }
	return nil
}

// openInbox opens a topic for received telemetry, and returns it with its format.
func (a *App) openInbox(local *locallog.Log, t format.Topic) (receive.Topic, ingest.Format, error) {
	records, err := t.Open()
	if err != nil {
		return nil, nil, err
	}
	records = a.cfg.Tenants.Format(t.Topic, records)
	if local != nil {
		return receive.Local{Log: local}, records, nil
	}
	topic, err := kafkalog.Open(a.cfg.Ingest.Kafka.KafkaConfig, t.Topic, a.log)
	if err != nil {
		return nil, nil, err
	}
	a.closeLater("connections for received telemetry", topic.Close)
	return topic, records, nil
}

// openState opens the state store and the outlet for units: the checkpoint directory and the workers themselves, or the
// topics of a cluster.
func (a *App) openState(kafka ingest.KafkaConfig, topics []string) (ingest.Stores, engine.Outlet, *alerts.Notes, error) {
	if a.cfg.Cluster.Enabled() {
		var err error
		if a.cluster, err = cluster.Open(a.cfg.Cluster, kafka, topics, a.Pipeline, func(policy string, at time.Time) { a.feeds.Forget(policy, at) }, a.log, a.Registry); err != nil {
			return nil, nil, nil, err
		}
		a.closeLater("cluster connections", a.cluster.Close)
		return a.cluster.Stores, a.cluster.Writer, alerts.NewNotes(a.cluster.Partition), nil
	}
	directory, err := checkpoint.NewDirectory(a.cfg.Checkpoint.Directory)
	if err != nil {
		return nil, nil, nil, err
	}
	a.closeLater("checkpoints", directory.Close)
	a.Server.KeepSessions(filepath.Join(a.cfg.Checkpoint.Directory, "sessions.json"))
	a.store = checkpoint.NewStore(directory, a.log, a.Registry)
	a.workers = a.Pipeline.NewWorkers(a.store, 0)
	notes, err := alerts.OpenNotes(filepath.Join(a.cfg.Checkpoint.Directory, "notifications.log"))
	if err != nil {
		return nil, nil, nil, err
	}
	a.closeLater("notification log", notes.Close)
	a.unitLog = func(topic string, partition int32) string {
		return directory.Beside(consumer.PartitionCheckpoint(topic, partition))
	}
	logOf := func(partition int32) string { return a.unitLog(topics[0], partition) }
	return checkpoint.Shared{Store: a.store}, engine.Direct{Workers: a.workers, Log: logOf}, notes, nil
}

// readBaselines reads the recordings from which baselines are taken. Pinned offsets may no longer be in the topic if
// their baselines are already saved. An instance of a cluster knows that only once the policies are assigned to it.
func (a *App) readBaselines() error {
	if a.cluster != nil {
		return a.Pipeline.Recorded.ReadFiles(context.Background())
	}
	names, err := a.store.Names(engine.BankPrefix)
	if err != nil {
		return fmt.Errorf("look for saved baselines: %w", err)
	}
	for i := range names {
		names[i] = strings.TrimPrefix(names[i], engine.BankPrefix)
	}
	return a.Pipeline.Recorded.ReadAll(context.Background(), names)
}

// openGuards reads the secrets of the targets for guards.
func (a *App) openGuards() (err error) {
	if len(a.cfg.Guards.Targets) == 0 {
		return nil
	}
	a.guards, err = announce.New(a.cfg.Guards.OnBrokersOf(a.cfg.Ingest.Kafka.KafkaConfig), a.Pipeline.AllGuards, &a.bell, a.log, a.Registry)
	return err
}

// openAuditTopic reads the certificates and secrets of the brokers.
func (a *App) openAuditTopic() error {
	if a.cfg.HTTP.AuditTopic == "" {
		return nil
	}
	topic, err := kafkalog.Open(a.cfg.Ingest.Kafka.KafkaConfig, a.cfg.HTTP.AuditTopic, a.log)
	if err != nil {
		return err
	}
	a.closeLater("audit topic", topic.Close)
	a.audit, err = audit.NewSender(a.Server.Audit, topic, a.log, a.Registry)
	return err
}

// openDeadLetters opens the topic for refused records if one is configured, and the directory otherwise.
func openDeadLetters(cfg *config.Config, log zerolog.Logger) (deadletter.Keeper, error) {
	letters := cfg.Ingest.DeadLetters
	if letters.Topic != "" {
		return deadletter.NewTopic(cfg.Ingest.Kafka.KafkaConfig, letters.Topic, log)
	}
	return deadletter.NewFiles(letters.Directory, letters.MaxSize, log)
}
