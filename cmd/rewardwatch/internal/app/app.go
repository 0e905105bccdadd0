// Package app assembles the whole service: it opens, runs and closes its parts in order, and acts on what the engine
// finds.
package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/announce"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/audit"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/cluster"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/config"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/console/plots"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/secrets"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/names"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/guard"
	"github.com/rewardwatch/rewardwatch/detectors/history"
	"github.com/rewardwatch/rewardwatch/detectors/metrics"
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
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// Limits on how long a stop takes, counted from the signal: until the last policy begins to be saved, and in all.
// What a stop cuts short is read again at the next start.
const (
	saveTimeout = 15 * time.Second
	stopTimeout = 20 * time.Second
)

// App is the whole service. New opens what it needs. Run runs it until its context ends and stops it in reverse
// order. App is also the effects of all workers, and the view that the HTTP server shows.
//
// It is large because it opens, runs and closes every part of the service, in order, one method each.
type App struct {
	cfg      *config.Config
	log      zerolog.Logger
	Registry *prometheus.Registry

	store    *checkpoint.Store // of a standalone instance, nil in a cluster
	letters  deadletter.Keeper
	retrain  *retrain.Desk // nil if neither a trigger nor a target is configured
	notifier *alerts.Notifier
	bell     announce.Bell       // rings when a guard trips or is released
	guards   *announce.Announcer // nil if no target is configured
	audit    *audit.Sender       // nil if no topic is configured
	metrics  *alerts.Metrics
	Pipeline *engine.Pipeline
	scores   *plots.Scores
	stale    prometheus.Gauge
	workers  *engine.Workers  // of a standalone instance
	cluster  *cluster.Cluster // nil for a standalone instance
	feeds    *engine.Telemetry
	consumer *consumer.Consumer
	sender   *sender                                    // nil if telemetry is judged in the partitions that it is in
	unitLog  func(topic string, partition int32) string // directory of the log of units of a partition, nil in a cluster
	Server   *api.Server

	telling   sync.Mutex // guards against reports about a worker that is gone
	lookAgain lookAgain
	approvals approvals
	closers   []closer // what New opened, in that order
	Reloaded  prometheus.Gauge
}

// closer is one named step of a stop.
type closer struct {
	name  string
	close func() error
}

// New opens state, ledger and connections. POST /-/reload calls reload. If New fails, it closes all that it opened.
// ctx is the context of Run: once it ends, New stops waiting for a ledger that cannot be reached.
func New(ctx context.Context, cfg *config.Config, reload func() error, log zerolog.Logger) (*App, error) {
	a := &App{cfg: cfg, log: log, scores: plots.NewScores(), stale: secrets.NewStale(), Registry: prometheus.NewRegistry(), Reloaded: prometheus.NewGauge(prometheus.GaugeOpts{
		Name: names.MetricReloaded, Help: "1 if the last reload of the configuration succeeded, 0 otherwise.",
	})}
	a.Reloaded.Set(1)
	if err := secrets.Write(ctx, cfg.Secrets); err != nil {
		return nil, err
	}
	if err := a.listen(reload); err != nil {
		return nil, err
	}
	if err := a.open(ctx); err != nil {
		return nil, errors.Join(err, a.Server.Stop(context.Background()), a.Close())
	}
	return a, nil
}

// listen starts the server before anything is opened: opening can take minutes, and health checks need an answer
// meanwhile.
func (a *App) listen(reload func() error) (err error) {
	a.Registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), buildInfoMetric(), a.Reloaded, a.stale)
	if a.Server, err = api.New(a.cfg.HTTP, a, nil, a.Registry, reload, a.log); err != nil {
		return err
	}
	a.Registry.MustRegister(a.Server.Guesses.Refused, a.Server.Scrapes.Dropped)
	a.Server.WaitsFor("opening state, ledger and connections")
	if err := a.Server.Start(); err != nil {
		return err
	}
	a.Registry.MustRegister(consoleMetric(cmp.Or(a.cfg.HTTP.ExternalURL, a.Server.URL())))
	return nil
}

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
	a.metrics = alerts.NewMetrics(a.groups, a.notifier.Delivery)
	a.exportSeries()
	read := consumer.Options{
		Stores: stores, CheckpointEvery: time.Duration(a.cfg.Checkpoint.Every), Topics: topics, DeadLetters: a.letters,
		Joined: a.cfg.Settings().Joins(), Handler: a.feeds, Log: a.log, Registerer: a.Registry,
	}
	if a.Pipeline.Source.SentOn {
		read.Events = prometheus.NewRegistry() // or events would count twice
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

// openRetrain opens the retraining desk, where the configuration has one.
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

// openLog opens the local telemetry log, nil if it is in Kafka.
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

// sender sends telemetry on to the topic that is judged, by the key of its feedback.
type sender struct {
	writer   *repartition.Writer
	consumer *consumer.Consumer // of the telemetry
}

// openSender opens the sender, with the options of the consumer of what it sends.
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

// clearUnits returns what removes the log of units of a partition of a topic that is no longer judged itself. Its
// checkpoint no longer names any of them.
func (a *App) clearUnits(topic string) func(partition int32) error {
	if a.unitLog == nil {
		return nil
	}
	return func(partition int32) error { return os.RemoveAll(a.unitLog(topic, partition)) }
}

// openReceiver lets the server take telemetry for the local log or else for topics in JSON: that of each tenant, and that of
// the platform.
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

// openInbox opens a topic for received telemetry, and its format.
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

// openState opens the state store and the outlet for units: the checkpoint directory and the workers themselves, or
// the topics of a cluster.
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

// readBaselines reads the recordings that baselines are taken from. Pinned offsets may be gone from the topic if
// their baselines are saved already. An instance of a cluster knows that only once it is assigned their policies.
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

func (a *App) closeLater(name string, f func() error) {
	a.closers = append(a.closers, closer{name, f})
}

// Close closes what was opened in reverse order. A failure does not skip the rest.
func (a *App) Close() error {
	var errs []error
	for _, c := range slices.Backward(a.closers) {
		if err := c.close(); err != nil {
			errs = append(errs, fmt.Errorf("close %s: %w", c.name, err))
		}
	}
	a.closers = nil
	return errors.Join(errs...)
}

// Run restores the state, serves, and reads until ctx ends or a part fails. It then closes the app.
func (a *App) Run(ctx context.Context) error {
	err := a.run(ctx)
	return errors.Join(err, a.Close())
}

func (a *App) run(ctx context.Context) error {
	defer a.Pipeline.Memory.Hold()() // without it, garbage would take as much again
	ctx, end := context.WithCancel(ctx)
	defer end()
	saving, saved := endsAfter(ctx, saveTimeout)
	defer saved()
	stopping, stopped := endsAfter(ctx, stopTimeout)
	defer stopped()
	if err := a.restore(ctx); err != nil {
		if ctx.Err() != nil {
			err = nil // an orderly stop
		} else {
			err = fmt.Errorf("%w: %w", ErrNotStarted, err)
		}
		end()
		return errors.Join(err, a.Pipeline.Stop(), a.Server.Stop(stopping))
	}
	a.Server.Open()
	// Deliveries and notifications go on until the workers have judged and saved all that was read.
	outward, stopOutward := context.WithCancel(context.WithoutCancel(ctx))
	defer stopOutward()
	var dispatchers sync.WaitGroup
	failed := make(chan error, 2) // one for each dispatcher, so that neither blocks
	a.dispatcher(outward, &dispatchers, failed, "alertmanager", a.notifier.Run)
	dispatchers.Go(func() { a.Pipeline.WatchMemory(outward) })
	dispatchers.Go(func() { a.Pipeline.ExpireUnused(outward) })
	dispatchers.Go(func() { secrets.Run(outward, a.cfg.Secrets, a.stale, a.log) })
	if a.retrain != nil {
		a.dispatcher(outward, &dispatchers, failed, "retrain", a.retrain.Run)
	}
	if a.guards != nil {
		dispatchers.Go(func() { a.guards.Run(outward) })
	}
	if a.audit != nil {
		dispatchers.Go(func() { a.audit.Run(outward) })
	}

	err := a.read(ctx, failed)
	end()
	err = errors.Join(err, a.Pipeline.StopBy(saving))
	stopOutward()
	dispatchers.Wait()
	err = errors.Join(err, a.Server.Stop(stopping))
	if a.audit != nil {
		a.audit.Finish(stopping)
	}
	return err
}

// endsAfter returns a context that ends once d has passed since ctx ended.
func endsAfter(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	after, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(d):
			end()
		case <-after.Done():
		}
	})
	return after, func() { stop(); end() }
}

// dispatcher runs a part that notifies other systems.
func (a *App) dispatcher(ctx context.Context, wg *sync.WaitGroup, failed chan<- error, name string, run func(context.Context) error) {
	wg.Go(func() {
		if err := run(ctx); err != nil && ctx.Err() == nil {
			failed <- fmt.Errorf("%s: %w", name, err)
		}
	})
}

// read consumes until ctx ends or something fails, and returns once the consumer has saved its work.
func (a *App) read(ctx context.Context, failed <-chan error) error {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- a.consume(reading) }()
	var err error
	select {
	case err = <-done:
		return err
	case err = <-failed:
	case err = <-a.Server.Failed():
	case <-a.Pipeline.Failed(): // Stop returns the error
	case <-ctx.Done():
	}
	stop()
	return errors.Join(err, <-done)
}

// consume reads until ctx ends, and returns once what it read is saved.
func (a *App) consume(ctx context.Context) error {
	if a.sender == nil {
		return a.judge(ctx)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var sending sync.WaitGroup
	var failed error
	sending.Go(func() {
		defer stop()
		failed = a.sender.writer.Run(ctx, a.sender.consumer.Run)
	})
	err := a.judge(ctx)
	stop()
	sending.Wait()
	return errors.Join(err, failed)
}

// judge reads what is judged.
func (a *App) judge(ctx context.Context) error {
	if a.cluster != nil {
		return a.cluster.Run(ctx, a.consumer)
	}
	return a.consumer.Run(ctx)
}

// restore restores the saved workers. In a cluster they arrive with the partitions of the units topic.
func (a *App) restore(ctx context.Context) error {
	if a.cluster != nil {
		return nil
	}
	names, err := a.store.Names(engine.BankPrefix)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	a.Server.WaitsFor(fmt.Sprintf("restoring the state of %d policies", len(names)))
	return a.workers.Restore(ctx, names)
}

// Restored implements audience.
func (a *App) Restored(d *engine.Workers) {
	incidents, faults := d.Findings()
	if a.cluster != nil {
		a.cluster.Join(a.notifier, d)
	}
	a.metrics.Restore(incidents)
	a.notifier.Resync(incidents, faults)
	a.log.Info().Int("policies", len(d.List())).Int("incidents", len(incidents)).Msg("state restored")
}

// Resumed implements audience: the worker may have been stopped before its retrain requests were durable.
func (a *App) Resumed(ctx context.Context, d *engine.Worker) error {
	for _, i := range d.Shown.Load().Incidents {
		if err := a.consider(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// Gone implements audience.
func (a *App) Gone(d *engine.Workers) {
	var policies []string
	for _, r := range d.List() {
		policies = append(policies, r.Name)
	}
	a.telling.Lock()
	defer a.telling.Unlock()
	a.metrics.Forget(policies)
	a.lookAgain.forget(policies)
	a.approvals.forget(policies)
	if a.cluster != nil {
		a.notifier.Leave(d.Partition)
	}
}

// Changed implements effects. The retrain request comes first: it must be durable before the bank is saved. While the
// ledger is suspended, incidents wait until it is back or the service restarts; they are saved with the bank.
func (a *App) Changed(ctx context.Context, changes []alerts.Change) error {
	a.bell.Ring() // agents need not wait for the ledger
	for _, c := range changes {
		a.report(c)
		if c.Incident != nil {
			if err := a.consider(ctx, *c.Incident); err != nil {
				return err
			}
		}
	}
	a.telling.Lock()
	defer a.telling.Unlock()
	if ctx.Err() != nil { // another instance may already judge the policy, and reports it
		return context.Cause(ctx)
	}
	a.metrics.Update(changes)
	a.notifier.Update(changes)
	return nil
}

func (a *App) consider(ctx context.Context, i alerts.Incident) error {
	if a.retrain == nil {
		return nil
	}
	decision, err := a.retrain.Consider(ctx, i, a.Pipeline.Clock(i.Group))
	if errors.Is(err, ledger.ErrSuspended) {
		a.lookAgain.owe(i.Group.Policy, i.ID)
		return nil
	}
	if err != nil {
		return fmt.Errorf("consider a retraining for incident %s: %w", i.ID, err)
	}
	a.lookAgain.after(i.Group, decision)
	a.askApproval(ctx, &i, decision.Request, time.Now())
	return nil
}

// Passed implements audience.
func (a *App) Passed(ctx context.Context, d *engine.Worker) error {
	if a.retrain == nil {
		return nil
	}
	back, owed := a.lookAgain.back(d.Name, a.retrain.Revivals())
	incidents, now := d.Shown.Load().Incidents, time.Now()
	for incident, request := range a.approvals.due(d.Name, now) {
		if at := slices.IndexFunc(incidents, func(i alerts.Incident) bool { return i.ID == incident }); at >= 0 {
			a.askApproval(ctx, &incidents[at], request, now)
		}
	}
	for _, i := range incidents {
		if owed[i.ID] || !i.Closed && (back || a.lookAgain.due(i.Group, func() time.Time { return d.Clock(i.Group) })) {
			if err := a.consider(ctx, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// report logs a change for people.
func (a *App) report(c alerts.Change) {
	switch {
	case c.Fault != nil:
		a.log.Warn().Stringer("group", c.Fault.Group).Interface("streams", c.Fault.Streams).Bool("ended", c.Fault.Ended).
			Msg("telemetry fault")
	case c.Alarm == nil:
		a.log.Info().Str("incident", c.Incident.ID).Stringer("group", c.Incident.Group).Bool("closed", c.Incident.Closed).
			Bool("muted", c.Incident.IsMuted()).Msg("incident")
	case c.Fired || c.Alarm.Resolved:
		level := zerolog.WarnLevel
		if c.Alarm.Resolved { // good news
			level = zerolog.InfoLevel
		}
		a.log.WithLevel(level).Str("alarm", c.Alarm.ID).Str("incident", c.Alarm.Incident).Stringer("group", c.Alarm.Group).
			Str("signal", c.Alarm.Signal).Str("cause", string(c.Alarm.Cause)).Bool("resolved", c.Alarm.Resolved).
			Float64("score", c.Alarm.Score).Msg("drift")
	}
}

// Summaries implements view.
func (a *App) Summaries() []*finding.Summary { return a.Pipeline.Summaries() }

// Course implements view.
func (a *App) Course(g ingest.Group) plots.Course { return a.scores.Of(g) }

// History implements view.
func (a *App) History(ctx context.Context, g ingest.Group) (history.Record, error) {
	return engine.History(ctx, a.Pipeline, g)
}

// groups lists the watched groups.
func (a *App) groups() []ingest.Group {
	var out []ingest.Group
	for _, p := range a.Pipeline.Summaries() {
		for i := range p.Groups {
			out = append(out, p.Groups[i].Group)
		}
	}
	return out
}

// Alarms implements view.
func (a *App) Alarms() []alerts.Alarm {
	var out []alerts.Alarm
	for _, r := range a.Pipeline.All() {
		out = append(out, r.Shown.Load().Alarms...)
	}
	return out
}

// Incidents implements view.
func (a *App) Incidents() []alerts.Incident {
	var out []alerts.Incident
	for _, r := range a.Pipeline.All() {
		out = append(out, r.Shown.Load().Incidents...)
	}
	return out
}

// Delivery implements view.
func (a *App) Delivery(incident string) alerts.Delivery { return a.notifier.Delivery(incident) }

// Faults implements view.
func (a *App) Faults() []alerts.Fault {
	var out []alerts.Fault
	for _, r := range a.Pipeline.All() {
		out = append(out, r.Shown.Load().Faults...)
	}
	return out
}

// exportSeries exports the metrics of streams, alarms and guards.
func (a *App) exportSeries() {
	series := metrics.NewCollector(a.Pipeline.Summaries, a.cfg.Settings().GroupLabels(), a.cfg.Limits.Series, time.Now)
	a.Server.Export(series, a.metrics)
	a.Registry.MustRegister(series.Guards(a.Pipeline.AllGuards))
}

// Guards implements view.
func (a *App) Guards(policy string) (*guard.Summary, bool) { return a.Pipeline.Guards(policy) }

// AllGuards implements view.
func (a *App) AllGuards() []*guard.Summary { return a.Pipeline.AllGuards() }

// GuardsChanged implements view.
func (a *App) GuardsChanged() <-chan struct{} { return a.bell.Next() }

// openGuards reads the secrets of the targets of guards.
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

// Ready implements view. A standalone instance restores its state before the server opens; an instance of a cluster
// restores it with the assignment.
func (a *App) Ready() error {
	if err := a.consumer.Ready(); err != nil {
		return err
	}
	if a.sender != nil {
		if err := a.sender.consumer.Ready(); err != nil {
			return fmt.Errorf("repartition telemetry: %w", err)
		}
	}
	if a.retrain != nil {
		if err := heldUp(a.retrain.Waiting()); err != nil {
			return err
		}
	}
	if a.cluster == nil {
		return nil
	}
	return a.cluster.Ready()
}

// Degraded implements view.
func (a *App) Degraded() error {
	if a.retrain == nil {
		return nil
	}
	return a.retrain.Suspended()
}

// ledgerPatience is how long a policy may wait for the ledger before the service reports that it is not ready.
const ledgerPatience = 15 * time.Second

// heldUp returns an error if a policy has been waiting for the ledger for too long.
func heldUp(waiting time.Duration) error {
	if waiting < ledgerPatience {
		return nil
	}
	return fmt.Errorf("a policy has been waiting %s for the ledger of retrain requests", waiting.Round(time.Second))
}

// openDeadLetters opens the topic for refused records if one is configured, and the directory otherwise.
func openDeadLetters(cfg *config.Config, log zerolog.Logger) (deadletter.Keeper, error) {
	letters := cfg.Ingest.DeadLetters
	if letters.Topic != "" {
		return deadletter.NewTopic(cfg.Ingest.Kafka.KafkaConfig, letters.Topic, log)
	}
	return deadletter.NewFiles(letters.Directory, letters.MaxSize, log)
}

func buildInfoMetric() prometheus.Collector {
	b := ReadBuildInfo()
	g := prometheus.NewGaugeVec(
		prometheus.GaugeOpts{Name: names.MetricBuildInfo, Help: "Build information. Always 1."}, []string{"version", "revision", "goversion"})
	g.WithLabelValues(b.Version, b.Revision, b.Go).Set(1)
	return g
}

// consoleMetric tells the dashboards where the console is, so that those that are shipped ready-made can link to it.
func consoleMetric(url string) prometheus.Collector {
	g := prometheus.NewGaugeVec(
		prometheus.GaugeOpts{Name: names.MetricConsole, Help: "URL of the console. Always 1."}, []string{"url"})
	g.WithLabelValues(strings.TrimRight(url, "/")).Set(1)
	return g
}
