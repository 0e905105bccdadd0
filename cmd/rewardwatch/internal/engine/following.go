package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/retrain/outcome"
)

// follow makes the worker report the outcomes of retrainings to a. Call it before the first unit.
func (d *Worker) follow(a outcome.Audience) {
	d.outcome.Tell(a)
	d.Policy.Witness(d.outcome.Witness)
}

// conclude reports what the units so far have shown about retrainings, and carries out the consequences.
func (d *Worker) conclude(ctx context.Context) error {
	met, err := d.outcome.Conclude(ctx)
	return d.consequences(ctx, met, err)
}

// concludeOverdue does the same for a retraining whose time has expired.
func (d *Worker) concludeOverdue(ctx context.Context, now time.Time) error {
	met, err := d.outcome.ConcludeOverdue(ctx, now)
	return d.consequences(ctx, met, err)
}

func (d *Worker) consequences(ctx context.Context, met *outcome.Retraining, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", errUntold, err)
	case met == nil:
		return nil
	}
	return d.promoteVersion(ctx, met)
}

// promoteVersion makes the groups of a retraining that met its goal warm up a new baseline, unless they have started
// one since its version appeared. It closes their open incidents.
func (d *Worker) promoteVersion(ctx context.Context, met *outcome.Retraining) error {
	if err := d.apply(ctx, d.Policy.Settle()); err != nil {
		return err
	}
	d.Policy.Publish()
	for _, g := range d.Policy.Summary().Groups {
		if !met.Counts(g.Group) || met.HasBaseline(&g) {
			continue
		}
		err := d.restart(ctx, g.Group, alerts.Decision{
			Kind: alerts.Reset, By: byService, Why: fmt.Sprintf("policy_version %s met the success criteria of retraining %s", met.Version, met.Request), At: d.outcome.Now(),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// byService is the author of decisions that no person makes.
const byService = "rewardwatch"
