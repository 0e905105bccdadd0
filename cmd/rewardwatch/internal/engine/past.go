package engine

import (
	"context"
	"fmt"

	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/detectors/history"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// History returns the past values of the signals of a group of a pipeline. The worker of the policy copies them between
// two units. It waits neither for calibrations nor beyond the end of ctx.
func History(ctx context.Context, p *Pipeline, g ingest.Group) (history.Record, error) {
	for _, r := range p.All() {
		if r.Name != g.Policy {
			continue
		}
		past, part, err := r.history(ctx, g)
		if err != nil || part == "" {
			return past, err
		}
		return readHistory(ctx, p, r, part, g)
	}
	return history.Record{}, ErrUnknownPolicy
}

// history calls the bank's History on the worker's goroutine. Unlike Ask, it does not settle the bank: viewing a page
// must not hold up the units of all groups until their baselines are calibrated. A calibration does not change the
// past.
func (r *RunningWorker) history(ctx context.Context, g ingest.Group) (past history.Record, part string, err error) {
	done := make(chan struct{})
	order := func() {
		past, part = r.Policy.History(g)
		close(done)
	}
	select {
	case r.orders <- order:
		<-done
		return past, part, nil
	case <-r.gone:
		return past, "", ErrUnknownPolicy
	case <-ctx.Done():
		return past, "", context.Cause(ctx)
	case <-r.workers.Ctx.Done():
		return past, "", ErrStopping
	}
}

// readHistory reads the past of an evicted group from its checkpoint, as readSample does.
func readHistory(ctx context.Context, p *Pipeline, r *RunningWorker, part string, g ingest.Group) (history.Record, error) {
	select {
	case p.reading <- struct{}{}:
	case <-ctx.Done():
		return history.Record{}, context.Cause(ctx)
	}
	defer func() { <-p.reading }()
	loaded, err := r.workers.Store.LoadParts(BankPrefix+r.Name, []string{part})
	if err != nil {
		return history.Record{}, fmt.Errorf("read the history of an evicted group: %w", err)
	}
	return bank.ReadHistory(loaded[part], g)
}
