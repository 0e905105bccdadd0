package retrain

import (
	"context"
	"sync"
	"time"

	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// The least time between queries of the ledger for awaited outcomes, which other instances may have changed, and
// the timeout of a query.
const (
	awaitedEvery   = 2 * time.Second
	awaitedTimeout = 2 * time.Second
)

// awaited caches the ledger's last answer about requests whose outcome is awaited. It is safe for concurrent use.
type awaited struct {
	asking sync.Mutex // held during a query of the ledger

	mu       sync.Mutex
	asked    time.Time // when the last query succeeded or failed
	stale    bool      // whether this instance has changed a request since it began the query
	byPolicy map[string]ledger.Verification
}

// forget makes the next use query the ledger, after this instance has changed a request.
func (a *awaited) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stale = true
}

// due reports whether the ledger must be queried. If so, the query covers all changes up to now.
func (a *awaited) due() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	due := a.stale || time.Since(a.asked) >= awaitedEvery
	a.stale = false
	return due
}

func (a *awaited) of(policy string) (ledger.Verification, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	v, found := a.byPolicy[policy]
	return v, found
}

// Awaited returns the retraining of a policy whose outcome is awaited, as recently read from the ledger, for all
// policies at once. A job that has reported its start is left alone until it reports its end. While the ledger is
// unavailable or another goroutine is querying it, Awaited uses the last result.
func (d *Desk) Awaited(ctx context.Context, policy string) (ledger.Verification, bool) {
	if d.awaited.asking.TryLock() { // otherwise a slow ledger would hold up all policies
		d.askForAwaited(ctx)
		d.awaited.asking.Unlock()
	}
	return d.awaited.of(ledger.Plain(policy))
}

// askForAwaited queries the ledger if that is due.
func (d *Desk) askForAwaited(ctx context.Context) {
	a := &d.awaited
	if d.Suspended() != nil || !a.due() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, awaitedTimeout)
	defer cancel()
	all, err := d.ledger.Awaited(ctx)
	if err != nil {
		d.log.Warn().Err(err).Msg("failed to read the retrainings that are waiting for their outcome, retrying")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = time.Now()
	if err == nil {
		a.byPolicy = all
	}
}
