package app

import (
	"context"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine"
)

// people carries out the decisions of people. The workers of the policies do so themselves, except for forgetting,
// which also affects open episodes.
type people struct {
	*engine.Pipeline
	app *App
}

// Forget implements orders. It drops open episodes only once the policy is forgotten. In a cluster, the order is sent
// over the units topic to the instance that judges the policy and to those that have its open episodes.
func (p people) Forget(ctx context.Context, policy string, d alerts.Decision) (pending bool, err error) {
	if ledger := p.app.retrain; ledger != nil {
		if err := ledger.Suspended(); err != nil { // retrain requests of the policy could not be withdrawn
			return false, err
		}
	}
	if c := p.app.cluster; c != nil {
		return true, c.Forget(ctx, p.Pipeline, policy, d)
	}
	return false, p.app.feeds.ForgetPolicy(ctx, policy, d)
}

// Forgotten implements audience.
func (a *App) Forgotten(policy string) {
	a.telling.Lock()
	defer a.telling.Unlock()
	a.metrics.Forget([]string{policy})
	a.lookAgain.forget([]string{policy})
	a.approvals.forget([]string{policy})
}
