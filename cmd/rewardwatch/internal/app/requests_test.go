package app

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine"
	"github.com/rewardwatch/rewardwatch/retrain"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

func TestPolicyThatIsNotWatchedIsNotRetrained(t *testing.T) {
	requests := watchedRequests{willing{}, &engine.Settings{Policies: []engine.PolicyConfig{{Match: "checkout-*"}}}}
	if q, err := requests.Ask(t.Context(), retrain.Ask{Policy: "checkout-ranker"}); err != nil || q.Policy != "checkout-ranker" {
		t.Errorf("%+v, %v", q, err)
	}
	_, err := requests.Ask(t.Context(), retrain.Ask{Policy: "chekout-ranker"})
	if !errors.Is(err, retrain.ErrBadAsk) || !strings.Contains(err.Error(), "no entry in policies matches") {
		t.Errorf("a misspelt policy: %v", err)
	}
}

// willing opens every request.
type willing struct{ api.RequestDesk }

func (willing) Ask(_ context.Context, a retrain.Ask) (ledger.Request, error) {
	return ledger.Request{Policy: a.Policy}, nil
}
