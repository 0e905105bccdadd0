package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// orderPatience limits how long writing an order to the units topic may take.
const orderPatience = 20 * time.Second

// Forget makes all instances forget a policy. It returns once the order is durable. Only the instance that would
// judge the policy knows whether there is one.
func (c *Cluster) Forget(ctx context.Context, p *engine.Pipeline, policy string, d alerts.Decision) error {
	for _, set := range p.Present() {
		if c.Writer.width() > 0 && set.Partition == c.Partition(policy) && set.Of(policy) == nil {
			return engine.ErrUnknownPolicy
		}
	}
	ctx, cancel := context.WithTimeout(ctx, orderPatience)
	defer cancel()
	if err := c.Writer.forget(ctx, ingest.ForgetOrder{Policy: policy, By: d.By, Why: d.Why, At: d.At.UnixNano()}); err != nil {
		return err
	}
	c.Log.Info().Str("policy", policy).Stringer("decision", d).Msg("forgetting a policy on all instances, as requested")
	return nil
}

// forget receives an order from the units topic.
func (r *unitReader) forget(o ingest.ForgetOrder) {
	r.drop(o.Policy, time.Unix(0, o.At))
	if int32(unitPartition(o.Policy, r.partitions)) != r.partition {
		return
	}
	r.forgetting = append(r.forgetting, o)
	r.carryOut()
}

// carryOut makes the workers carry out the orders. An order may fail because the generation ends or its worker cannot
// save. It then remains for the next attempt, and is part of the partition's checkpoint until then.
func (r *unitReader) carryOut() {
	for len(r.forgetting) > 0 {
		o := r.forgetting[0]
		err := r.forgetWorker(o)
		if err != nil && !errors.Is(err, engine.ErrUnknownPolicy) {
			r.Log.Warn().Err(err).Str("policy", o.Policy).Msg("failed to remove a policy, retrying")
			return
		}
		r.Log.Info().Str("policy", o.Policy).Str("by", o.By).Str("why", o.Why).Msg("forgot a policy")
		r.forgetting = r.forgetting[1:]
	}
}

// forgetWorker waits until the worker has forgotten its policy, or until the generation ends: a worker may be waiting
// for its ledger.
func (r *unitReader) forgetWorker(o ingest.ForgetOrder) error {
	worker := r.Workers.Of(o.Policy)
	if worker == nil {
		return engine.ErrUnknownPolicy
	}
	ctx, stop := r.Workers.Marks.WhileOpen(r.Workers.Ctx)
	defer stop()
	if r.Workers.Marks.Ending() {
		return engine.ErrStopping
	}
	done := make(chan error, 1)
	decision := alerts.Decision{Kind: alerts.Reset, By: o.By, Why: o.Why, At: time.Unix(0, o.At)}
	r.Workers.Wg.Go(func() {
		done <- worker.Ask(ctx, func(ctx context.Context) error { return worker.Forget(ctx, decision) })
	})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return engine.ErrStopping
	}
}
