package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/alerts"
	pages "github.com/rewardwatch/rewardwatch/cmd/rewardwatch/console"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/checkpoint"
	"github.com/rewardwatch/rewardwatch/retrain"
)

// stopTimeout bounds a stop; what it cuts short is read again at the next start.
const stopTimeout = 20 * time.Second

// app is the whole service. New opens what it needs, Run runs it until its context ends, and stops it in the reverse
// order. It is also the effects of all desks, and what the HTTP server shows.
type app struct {
	cfg      *Config
	log      zerolog.Logger
	registry *prometheus.Registry

	store    *checkpoint.Store // of an instance that is alone, nil in a cluster
	letters  ingest.DeadLetters
	retrain  *retrain.Desk // nil where neither a trigger nor a target is configured
	notifier *alerts.Notifier
	metrics  *alerts.Metrics
	pipeline *pipeline
	desks    *desks   // of an instance that is alone
	cluster  *cluster // nil for an instance that is alone
	feeds    *telemetry
	consumer *ingest.Consumer
	server   *server

	telling   sync.Mutex // so that nothing is told of a desk that is gone
	lookAgain lookAgain
	closers   []closer // what New opened, in that order
	reloaded  prometheus.Gauge
}

// closer is one named step of a stop.
type closer struct {
	name  string
	close func() error
}

// newApp opens state, ledger and connections. reload is called by POST /-/reload. On an error nothing is left open. ctx is
// that of Run: when it ends, nothing waits any longer for a ledger that cannot be reached.
func newApp(ctx context.Context, cfg *Config, reload func() error, log zerolog.Logger) (*app, error) {
	a := &app{cfg: cfg, log: log, registry: prometheus.NewRegistry(), reloaded: prometheus.NewGauge(prometheus.GaugeOpts{
		Name: MetricReloaded, Help: "Whether the configuration that was read last is in use.",
	})}
	a.reloaded.Set(1)
	if err := a.open(ctx, reload); err != nil {
		return nil, errors.Join(err, a.close())
	}
	return a, nil
}

func (a *app) open(ctx context.Context, reload func() error) error {
	a.registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), buildInfoMetric(), a.reloaded)
	var err error
	if a.letters, err = openDeadLetters(a.cfg, a.log); err != nil {
		return err
	}
	a.closeLater("dead letters", a.letters.Close)
	if len(a.cfg.Retrain.Triggers)+len(a.cfg.Retrain.Targets) > 0 {
		if a.retrain, err = retrain.Open(ctx, a.cfg.Retrain.OnBrokersOf(a.cfg.Ingest.Kafka), a.cfg.recipes, a.log, a.registry); err != nil {
			return err
		}
		a.closeLater("ledger", a.retrain.Close)
		a.retrain.ServeUnder(a.cfg.HTTP.ExternalURL)
	}
	a.pipeline = newPipeline(context.Background(), a.cfg, a, a.log, a.registry)
	stores, out, notes, err := a.openState()
	if err != nil {
		return err
	}
	a.feeds = newTelemetry(a.pipeline, out)
	if err := a.readBaselines(); err != nil {
		return err
	}
	a.notifier = alerts.NewNotifier(a.cfg.Alerts.Alertmanager, notes, a.log, a.registry)
	a.metrics = alerts.NewMetrics(a.registry, a.groups)
	a.registry.MustRegister(bank.NewCollector(a.pipeline.summaries, a.cfg.groupLabels(), a.cfg.Limits.Series, time.Now))
	if a.consumer, err = ingest.NewConsumer(a.cfg.Ingest.Kafka, ingest.ConsumerOptions{
		Stores: stores, CheckpointEvery: time.Duration(a.cfg.Checkpoint.Every), DeadLetters: a.letters,
		Handler: a.feeds, Log: a.log, Registerer: a.registry,
	}); err != nil {
		return err
	}
	if a.server, err = newServer(a.cfg.HTTP, a, a, a.registry, reload, a.log); err != nil {
		return err
	}
	a.server.shared = a.cluster != nil
	if a.retrain != nil {
		a.server.requests = watchedRequests{a.retrain, a.cfg}
	}
	return nil
}

// openState opens where state is kept and where units go: in the checkpoint directory and straight to the desks, or over the
// topics of a cluster.
func (a *app) openState() (ingest.Stores, outlet, *alerts.Notes, error) {
	if a.cfg.Cluster.enabled() {
		var err error
		if a.cluster, err = openCluster(a.cfg, a.pipeline, a.log, a.registry); err != nil {
			return nil, nil, nil, err
		}
		a.closeLater("connections of the cluster", a.cluster.close)
		return a.cluster.stores, a.cluster.writer, alerts.NewNotes(a.cluster.partition), nil
	}
	directory, err := checkpoint.NewDirectory(a.cfg.Checkpoint.Directory)
	if err != nil {
		return nil, nil, nil, err
	}
	a.closeLater("checkpoints", directory.Close)
	a.store = checkpoint.NewStore(directory, a.log, a.registry)
	a.desks = a.pipeline.newDesks(a.store, 0)
	notes, err := alerts.OpenNotes(filepath.Join(a.cfg.Checkpoint.Directory, "notifications.log"))
	if err != nil {
		return nil, nil, nil, err
	}
	a.closeLater("log of notifications", notes.Close)
	return checkpoint.Shared{Store: a.store}, direct{a.desks}, notes, nil
}

// readBaselines reads the recordings that baselines are taken from. What is pinned may be gone from the topic where the
// baselines are saved already, which an instance of a cluster knows only once it is given their policies.
func (a *app) readBaselines() error {
	if a.cluster != nil {
		return a.pipeline.recorded.readFiles(context.Background())
	}
	names, err := a.store.Names(bankPrefix)
	if err != nil {
		return fmt.Errorf("look for saved baselines: %w", err)
	}
	for i := range names {
		names[i] = strings.TrimPrefix(names[i], bankPrefix)
	}
	return a.pipeline.recorded.readAll(context.Background(), names)
}

func (a *app) closeLater(name string, f func() error) {
	a.closers = append(a.closers, closer{name, f})
}

// close closes what was opened, the last first; one failure does not skip the next.
func (a *app) close() error {
	var errs []error
	for _, c := range slices.Backward(a.closers) {
		if err := c.close(); err != nil {
			errs = append(errs, fmt.Errorf("close %s: %w", c.name, err))
		}
	}
	a.closers = nil
	return errors.Join(errs...)
}

// Run restores the state, serves, and reads until ctx ends or a part fails. It closes the app.
func (a *app) Run(ctx context.Context) error {
	err := a.run(ctx)
	return errors.Join(err, a.close())
}

func (a *app) run(ctx context.Context) error {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(int64(a.cfg.Limits.Memory))) // or garbage would take as much again
	if err := a.restore(); err != nil {
		return errors.Join(fmt.Errorf("%w: %w", errNotStarted, err), a.pipeline.Stop())
	}
	if err := a.server.Start(); err != nil {
		return errors.Join(fmt.Errorf("%w: %w", errNotStarted, err), a.pipeline.Stop())
	}
	// Deliveries and notifications go on until the desks have judged and saved all that was read.
	outward, stopOutward := context.WithCancel(context.WithoutCancel(ctx))
	defer stopOutward()
	var couriers sync.WaitGroup
	failed := make(chan error, 2) // one for each courier, so that neither blocks
	a.courier(outward, &couriers, failed, "alertmanager", a.notifier.Run)
	couriers.Go(func() { a.pipeline.watchMemory(outward) })
	if a.retrain != nil {
		a.courier(outward, &couriers, failed, "retrain", a.retrain.Run)
	}

	err := a.read(ctx, failed)
	err = errors.Join(err, a.pipeline.Stop())
	stopOutward()
	couriers.Wait()
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	return errors.Join(err, a.server.Stop(stopping))
}

// courier runs one of the parts that tell others.
func (a *app) courier(ctx context.Context, wg *sync.WaitGroup, failed chan<- error, name string, run func(context.Context) error) {
	wg.Go(func() {
		if err := run(ctx); err != nil && ctx.Err() == nil {
			failed <- fmt.Errorf("%s: %w", name, err)
		}
	})
}

// read consumes until ctx ends or something fails, and returns when the consumer has saved what it had in hand.
func (a *app) read(ctx context.Context, failed <-chan error) error {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- a.consume(reading) }()
	var err error
	select {
	case err = <-done:
		return err
	case err = <-failed:
	case err = <-a.server.Failed():
	case <-a.pipeline.Failed(): // Stop gives the error
	case <-ctx.Done():
	}
	stop()
	return errors.Join(err, <-done)
}

// consume reads until ctx ends, and returns when what was read is saved.
func (a *app) consume(ctx context.Context) error {
	if a.cluster != nil {
		return a.cluster.run(ctx, a.consumer)
	}
	return a.consumer.Run(ctx)
}

// restore takes up the desks as they were saved. In a cluster they come with the partitions of the units topic.
func (a *app) restore() error {
	if a.cluster != nil {
		return nil
	}
	names, err := a.store.Names(bankPrefix)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	return a.desks.restore(names)
}

// restored implements audience.
func (a *app) restored(d *desks) {
	incidents, faults := d.findings()
	if a.cluster != nil {
		a.cluster.join(a.notifier, d)
	}
	a.metrics.Restore(incidents)
	a.notifier.Resync(incidents, faults)
	a.log.Info().Int("policies", len(d.list())).Int("incidents", len(incidents)).Msg("state restored")
}

// resumed implements audience: the desk may have been stopped before its retrain requests were durable.
func (a *app) resumed(ctx context.Context, d *desk) error {
	for _, i := range d.shown.Load().incidents {
		if err := a.consider(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// gone implements audience.
func (a *app) gone(d *desks) {
	var policies []string
	for _, r := range d.list() {
		policies = append(policies, r.name)
	}
	a.telling.Lock()
	defer a.telling.Unlock()
	a.metrics.Forget(policies)
	a.lookAgain.forget(policies)
	if a.cluster != nil {
		a.notifier.Leave(d.partition)
	}
}

// Changed implements effects. The retrain request comes first, since it must be durable before the bank is saved.
func (a *app) Changed(ctx context.Context, changes []alerts.Change) error {
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
	if ctx.Err() != nil { // the policy may be judged by another instance already, which tells of it
		return context.Cause(ctx)
	}
	a.metrics.Update(changes)
	a.notifier.Update(changes)
	return nil
}

func (a *app) consider(ctx context.Context, i alerts.Incident) error {
	if a.retrain == nil {
		return nil
	}
	decision, err := a.retrain.Consider(ctx, i, a.pipeline.clock(i.Group))
	if err != nil {
		return fmt.Errorf("consider a retraining for incident %s: %w", i.ID, err)
	}
	a.lookAgain.after(i.Group, decision)
	return nil
}

// passed implements audience.
func (a *app) passed(ctx context.Context, d *desk) error {
	for _, i := range d.shown.Load().incidents {
		if !i.Closed && a.lookAgain.due(i.Group, func() time.Time { return d.clock(i.Group) }) {
			if err := a.consider(ctx, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// report logs what a change means to a person.
func (a *app) report(c alerts.Change) {
	switch {
	case c.Fault != nil:
		a.log.Warn().Stringer("group", c.Fault.Group).Interface("streams", c.Fault.Streams).Bool("ended", c.Fault.Ended).
			Msg("telemetry fault")
	case c.Alarm == nil:
		a.log.Info().Str("incident", c.Incident.ID).Stringer("group", c.Incident.Group).Bool("closed", c.Incident.Closed).
			Bool("muted", c.Incident.IsMuted()).Msg("incident")
	case c.Fired || c.Alarm.Resolved:
		a.log.Warn().Str("alarm", c.Alarm.ID).Str("incident", c.Alarm.Incident).Stringer("group", c.Alarm.Group).
			Str("signal", c.Alarm.Signal).Str("cause", string(c.Alarm.Cause)).Bool("resolved", c.Alarm.Resolved).
			Float64("score", c.Alarm.Score).Msg("drift")
	}
}

// Summaries implements view.
func (a *app) Summaries() []*bank.Summary { return a.pipeline.summaries() }

// Course implements view.
func (a *app) Course(g ingest.Group) pages.Course { return a.pipeline.scores.Of(g) }

// groups lists the groups that are watched.
func (a *app) groups() []ingest.Group {
	var out []ingest.Group
	for _, p := range a.pipeline.summaries() {
		for i := range p.Groups {
			out = append(out, p.Groups[i].Group)
		}
	}
	return out
}

// Alarms implements view.
func (a *app) Alarms() []alerts.Alarm {
	var out []alerts.Alarm
	for _, r := range a.pipeline.all() {
		out = append(out, r.shown.Load().alarms...)
	}
	return out
}

// Incidents implements view.
func (a *app) Incidents() []alerts.Incident {
	var out []alerts.Incident
	for _, r := range a.pipeline.all() {
		out = append(out, r.shown.Load().incidents...)
	}
	return out
}

// Faults implements view.
func (a *app) Faults() []alerts.Fault {
	var out []alerts.Fault
	for _, r := range a.pipeline.all() {
		out = append(out, r.shown.Load().faults...)
	}
	return out
}

// Ready implements view. Alone, the state was restored before the server started; in a cluster it is with the assignment.
func (a *app) Ready() error {
	if err := a.consumer.Ready(); err != nil || a.cluster == nil {
		return err
	}
	return a.cluster.ready()
}

// RetrainRequest implements view.
func (a *app) RetrainRequest(ctx context.Context, id string) (retrain.Request, error) {
	if a.retrain == nil {
		return retrain.Request{}, retrain.ErrUnknownRequest
	}
	return a.retrain.Request(ctx, id)
}

// Deliveries implements view.
func (a *app) Deliveries(ctx context.Context, request string, limit int) ([]retrain.Delivery, error) {
	if a.retrain == nil {
		return nil, nil
	}
	return a.retrain.Deliveries(ctx, request, limit)
}

// openDeadLetters opens the topic for refused records where one is configured, else the directory.
func openDeadLetters(cfg *Config, log zerolog.Logger) (ingest.DeadLetters, error) {
	letters := cfg.Ingest.DeadLetters
	if letters.Topic != "" {
		return ingest.NewKafkaDeadLetters(cfg.Ingest.Kafka, letters.Topic, log)
	}
	return ingest.NewFileDeadLetters(letters.Directory, letters.MaxSize, log)
}

func buildInfoMetric() prometheus.Collector {
	b := readBuildInfo()
	g := prometheus.NewGaugeVec(
		prometheus.GaugeOpts{Name: MetricBuildInfo, Help: "Which build runs, always 1."}, []string{"version", "revision", "goversion"})
	g.WithLabelValues(b.Version, b.Revision, b.Go).Set(1)
	return g
}
