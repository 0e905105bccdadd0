package engine

import (
	"context"
	"fmt"

	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/detectors/history"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// History returns how the signals of a group of a pipeline went. The worker of the policy copies it between two units, so that it
// waits for a calibration that is running, but no longer than ctx.
func History(ctx context.Context, p *Pipeline, g ingest.Group) (history.Record, error) {
	for _, r := range p.All() {
		if r.Name != g.Policy {
			continue
		}
		var past history.Record
		var part string
		err := r.Ask(ctx, func(context.Context) error {
			past, part = r.Policy.History(g)
			return nil
		})
		if err != nil || part == "" {
			return past, err
		}
		return readHistory(ctx, p, r, part, g)
	}
	return history.Record{}, ErrUnknownPolicy
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
		return history.Record{}, fmt.Errorf("read the past of an evicted group: %w", err)
	}
	return bank.ReadHistory(loaded[part], g)
}
