// Package app assembles the whole service: it opens, runs and closes its parts in order, and acts on the findings of
// the engine.
package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/alerts/alarmmetrics"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/announce"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/audit"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/cluster"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/config"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/console/plots"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/secrets"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/names"
	"github.com/rewardwatch/rewardwatch/ingest/checkpoint"
	"github.com/rewardwatch/rewardwatch/ingest/consumer"
	"github.com/rewardwatch/rewardwatch/ingest/deadletter"
	"github.com/rewardwatch/rewardwatch/retrain"
)

// App is the whole service. New opens its parts. Run runs them until its context ends and stops them in reverse order
// (open.go, run.go). App also implements the effects of all workers (effects.go), and the view of the HTTP server
// (view.go).
//
// It is large because it has one method to open, run and close each part of the service, in order.
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
	metrics  *alarmmetrics.Metrics
	Pipeline *engine.Pipeline
	scores   *plots.Scores
	stale    prometheus.Gauge
	workers  *engine.Workers  // of a standalone instance
	cluster  *cluster.Cluster // nil for a standalone instance
	feeds    *engine.Telemetry
	consumer *consumer.Consumer
	sender   *sender                                    // nil if telemetry is judged in its own partitions
	unitLog  func(topic string, partition int32) string // directory of the log of units of a partition, nil in a cluster
	Server   *api.Server

	telling   sync.Mutex // guards against reports about a worker that has stopped
	lookAgain lookAgain
	approvals approvals
	closers   []closer // opened by New, in that order
	Reloaded  prometheus.Gauge
}

// closer is one named step of a shutdown.
type closer struct {
	name  string
	close func() error
}

// New opens state, ledger and connections. POST /-/reload calls reload. If New fails, it closes everything that it
// opened. ctx is the context of Run: once it ends, New stops waiting for a ledger that cannot be reached.
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

// listen starts the server before anything else is opened, because opening can take minutes, and health checks need an
// answer meanwhile.
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

func (a *App) closeLater(name string, f func() error) {
	a.closers = append(a.closers, closer{name, f})
}

// Close closes all parts in the reverse order of opening. A failure does not skip the rest.
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

func buildInfoMetric() prometheus.Collector {
	b := ReadBuildInfo()
	g := prometheus.NewGaugeVec(
		prometheus.GaugeOpts{Name: names.MetricBuildInfo, Help: "Build information. Always 1."}, []string{"version", "revision", "goversion"})
	g.WithLabelValues(b.Version, b.Revision, b.Go).Set(1)
	return g
}

// consoleMetric exports the URL of the console, so that the dashboards that are shipped ready-made can link to it.
func consoleMetric(url string) prometheus.Collector {
	g := prometheus.NewGaugeVec(
		prometheus.GaugeOpts{Name: names.MetricConsole, Help: "URL of the console. Always 1."}, []string{"url"})
	g.WithLabelValues(strings.TrimRight(url, "/")).Set(1)
	return g
}
