package retrain

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/common/model"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// BreakerConfig stops triggers from requesting retrainings that do not help.
type BreakerConfig struct {
	After int            `yaml:"after"` // number of consecutive missed or failed retrainings of a policy that open the breaker (0 for no breaker)
	Pause model.Duration `yaml:"pause"` // pause after the last unsuccessful retraining
}

func defaultBreaker() BreakerConfig {
	return BreakerConfig{After: 2, Pause: model.Duration(7 * 24 * time.Hour)}
}

func (c BreakerConfig) check(report func(path, msg string)) {
	if c.After < 0 {
		report("breaker.after", "must not be negative; 0 disables the breaker")
	}
	if c.Pause <= 0 && c.After > 0 {
		report("breaker.pause", "must be greater than 0")
	}
}

// trippedUntil returns until when each breaker is open that was not closed by a retraining that met its
// expectation. The time may have passed.
func (c BreakerConfig) trippedUntil(failing map[string]time.Time) map[string]time.Time {
	out := make(map[string]time.Time, len(failing))
	for policy, last := range failing {
		out[policy] = last.Add(time.Duration(c.Pause))
	}
	return out
}

// decide returns BreakerOpen if triggers must not order a retraining of the policy now, and no reason otherwise.
func (c BreakerConfig) decide(ctx context.Context, tx *ledger.Tx, policy string, now time.Time) (ledger.Decision, error) {
	failing, err := tx.Failing(ctx, c.After, policy)
	tripped := c.trippedUntil(failing)
	if err != nil || !now.Before(tripped[policy]) {
		return ledger.Decision{}, err
	}
	return ledger.Decision{Reason: ledger.BreakerOpen, Detail: fmt.Sprintf("the last %d retrainings missed their contract or failed; paused until %s, or until a manually requested retraining meets its contract",
		c.After, finding.Stamp(tripped[policy]))}, nil
}
