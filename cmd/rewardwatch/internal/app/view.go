package app

import (
	"context"
	"fmt"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/console/plots"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/guard"
	"github.com/rewardwatch/rewardwatch/detectors/history"
	"github.com/rewardwatch/rewardwatch/detectors/metrics"
	"github.com/rewardwatch/rewardwatch/ingest"
)

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

// heldUp returns an error if a policy has been waiting for the ledger for too long.
func heldUp(waiting time.Duration) error {
	if waiting < ledgerPatience {
		return nil
	}
	return fmt.Errorf("a policy has been waiting %s for the ledger of retrain requests", waiting.Round(time.Second))
}
