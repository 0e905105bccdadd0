package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

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
	a.bell.Ring() // agents do not have to wait for the ledger
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
		return fmt.Errorf("check whether incident %s triggers a retraining: %w", i.ID, err)
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

// report logs a change for people: a beginning as a warning, and an end, which is good news, as information.
func (a *App) report(c alerts.Change) {
	level := func(ended bool) zerolog.Level {
		if ended {
			return zerolog.InfoLevel
		}
		return zerolog.WarnLevel
	}
	switch {
	case c.Fault != nil:
		a.log.WithLevel(level(c.Fault.Ended)).Stringer("group", c.Fault.Group).Interface("streams", c.Fault.Streams).Bool("ended", c.Fault.Ended).
			Msg("telemetry fault")
	case c.Alarm == nil:
		a.log.Info().Str("incident", c.Incident.ID).Stringer("group", c.Incident.Group).Bool("closed", c.Incident.Closed).
			Bool("muted", c.Incident.IsMuted()).Msg("incident")
	case c.Fired || c.Alarm.Resolved:
		a.log.WithLevel(level(c.Alarm.Resolved)).Str("alarm", c.Alarm.ID).Str("incident", c.Alarm.Incident).Stringer("group", c.Alarm.Group).
			Str("signal", c.Alarm.Signal).Str("cause", string(c.Alarm.Cause)).Bool("resolved", c.Alarm.Resolved).
			Float64("score", c.Alarm.Score).Msg("drift")
	}
}
