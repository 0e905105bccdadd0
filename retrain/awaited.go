package retrain

import (
	"context"
	"sync"
	"time"
)

// The ledger is asked at most so often which outcomes are awaited, as other instances may have changed them, and for so long.
const (
	awaitedEvery   = 2 * time.Second
	awaitedTimeout = 2 * time.Second
)

// Verification is a retraining whose outcome is awaited: its order was delivered.
type Verification struct {
	Request  string
	Policy   string
	Group    map[string]string // whose units decide; empty where those of all groups do
	Version  string            // policy_version whose telemetry decides, "" where the job has said nothing of itself yet
	Expected Expected
	Since    time.Time // when it came into its present state
	Due      time.Time // when the units must have come; zero while there is no version
}

// awaited is what the ledger said last of the requests whose outcome is awaited. It is safe for concurrent use.
type awaited struct {
	mu       sync.Mutex
	asked    time.Time // zero where it is to be asked at once
	byPolicy map[string]Verification
}

// forget has the ledger asked again, as this instance has just changed a request.
func (a *awaited) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = time.Time{}
}

// Awaited gives the retraining of a policy whose outcome is awaited, as it was in the ledger a moment ago: it is asked for those
// of all policies at once. A job that has told of its start is left alone until it tells of its end. While the ledger cannot be
// reached its last answer holds.
func (d *Desk) Awaited(ctx context.Context, policy string) (Verification, bool) {
	a := &d.awaited
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := time.Now(); now.Sub(a.asked) >= awaitedEvery {
		a.asked = now
		ctx, cancel := context.WithTimeout(ctx, awaitedTimeout)
		defer cancel()
		all, err := d.lookForAwaited(ctx)
		if err != nil {
			d.log.Warn().Err(err).Msg("The ledger cannot be asked which retrainings wait for their outcome, trying again")
		} else {
			a.byPolicy = all
		}
	}
	v, found := a.byPolicy[plain(policy)]
	return v, found
}

func (d *Desk) lookForAwaited(ctx context.Context) (map[string]Verification, error) {
	requests, err := list(ctx, d.ledger, "requests", scanRequest, selectRequests+`
		WHERE closed_at IS NULL AND kind = 'retrain' AND state IN ('delivered', 'verifying')`)
	if err != nil {
		return nil, err
	}
	all := make(map[string]Verification, len(requests))
	for _, q := range requests {
		v, err := d.verification(ctx, q)
		if err != nil {
			return nil, err
		}
		if v.Expected.Over > 0 { // a build before contracts expected nothing
			all[q.Policy] = v
		}
	}
	return all, nil
}

func (d *Desk) verification(ctx context.Context, q Request) (Verification, error) {
	o, err := q.terms()
	if err != nil {
		return Verification{}, err
	}
	history, err := d.History(ctx, q.ID)
	if err != nil {
		return Verification{}, err
	}
	v := Verification{
		Request: q.ID, Policy: q.Policy, Group: o.Group, Version: q.NewVersion, Expected: o.Contract.Expected,
		Since: history[len(history)-1].At,
	}
	if q.State == StateVerifying {
		v.Due = q.DueAt.Add(-verdictMargin)
	}
	return v, nil
}
