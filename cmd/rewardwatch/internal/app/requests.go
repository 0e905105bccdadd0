package app

import (
	"context"
	"fmt"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine"
	"github.com/rewardwatch/rewardwatch/retrain"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// RetrainRequests implements view.
func (a *App) RetrainRequests(ctx context.Context, f ledger.Filter) (found []ledger.Request, more bool, err error) {
	if a.retrain == nil {
		return nil, false, nil
	}
	return a.retrain.Search(ctx, f)
}

// RetrainRecords implements view.
func (a *App) RetrainRecords(ctx context.Context, f ledger.Filter, each func(ledger.Record) error) error {
	if a.retrain == nil {
		return nil
	}
	return a.retrain.Records(ctx, f, each)
}

// watchedRequests limits requests to watched policies.
type watchedRequests struct {
	api.RequestDesk
	cfg *engine.Settings
}

// Ask refuses a policy that is not monitored, such as a misspelled name: no worker would judge its new version.
func (w watchedRequests) Ask(ctx context.Context, a retrain.Ask) (ledger.Request, error) {
	if _, watched := w.cfg.Policy(a.Policy); !watched {
		return ledger.Request{}, fmt.Errorf("%w: policy %q is not monitored, because no entry in policies matches it", retrain.ErrBadAsk, a.Policy)
	}
	return w.RequestDesk.Ask(ctx, a)
}

// RetrainRequest implements view.
func (a *App) RetrainRequest(ctx context.Context, id string) (ledger.Request, error) {
	if a.retrain == nil {
		return ledger.Request{}, ledger.ErrUnknownRequest
	}
	return a.retrain.Request(ctx, id)
}

// Deliveries implements view.
func (a *App) Deliveries(ctx context.Context, request string, limit int) ([]ledger.Delivery, error) {
	if a.retrain == nil {
		return nil, nil
	}
	return a.retrain.Deliveries(ctx, request, limit)
}
