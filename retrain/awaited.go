package retrain

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
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
	Ordered  []string          // policy_versions that the order names, the one that was live last
	Expected Expected
	Since    time.Time // when it came into its present state
	Due      time.Time // when the units must have come; zero while there is no version

	state State
}

// awaited is what the ledger said last of the requests whose outcome is awaited. It is safe for concurrent use.
type awaited struct {
	asking sync.Mutex // held by the one who asks the ledger

	mu       sync.Mutex
	asked    time.Time // when the last answer came, or failed to
	stale    bool      // this instance has changed a request since it began to ask
	byPolicy map[string]Verification
}

// forget has the ledger asked again, as this instance has just changed a request.
func (a *awaited) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stale = true
}

// due reports whether the ledger is to be asked, and takes what has changed until now as asked for.
func (a *awaited) due() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	due := a.stale || time.Since(a.asked) >= awaitedEvery
	a.stale = false
	return due
}

func (a *awaited) of(policy string) (Verification, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	v, found := a.byPolicy[policy]
	return v, found
}

// Awaited gives the retraining of a policy whose outcome is awaited, as it was in the ledger a moment ago: it is asked for those
// of all policies at once. A job that has told of its start is left alone until it tells of its end. While the ledger cannot be
// reached, and while somebody else asks it, its last answer holds.
func (d *Desk) Awaited(ctx context.Context, policy string) (Verification, bool) {
	if d.awaited.asking.TryLock() { // or a ledger that is slow to answer would hold up all policies
		d.askForAwaited(ctx)
		d.awaited.asking.Unlock()
	}
	return d.awaited.of(plain(policy))
}

// askForAwaited asks the ledger where it is time to.
func (d *Desk) askForAwaited(ctx context.Context) {
	a := &d.awaited
	if !a.due() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, awaitedTimeout)
	defer cancel()
	all, err := d.ledger.expecting(ctx)
	maps.DeleteFunc(all, func(_ string, v Verification) bool { return v.state == StateRunning })
	if err != nil {
		d.log.Warn().Err(err).Msg("The ledger cannot be asked which retrainings wait for their outcome, trying again")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = time.Now()
	if err == nil {
		a.byPolicy = all
	}
}

// expecting gives the retrainings that were delivered, that run or that are verified, by policy.
func (l *ledger) expecting(ctx context.Context) (map[string]Verification, error) {
	found, err := list(ctx, l, "awaited requests", scanVerification, `
		SELECT id, policy, state, new_version, due_at, body, (SELECT max(at) FROM history WHERE request = requests.id) FROM requests
		WHERE closed_at IS NULL AND kind = 'retrain' AND state IN ('delivered', 'running', 'verifying')`)
	if err != nil {
		return nil, err
	}
	all := make(map[string]Verification, len(found))
	for _, v := range found {
		if v.Expected.Over > 0 { // a build before contracts expected nothing
			all[v.Policy] = v
		}
	}
	return all, nil
}

func scanVerification(rows *sql.Rows) (Verification, error) {
	var v Verification
	var due, since int64
	var body []byte
	if err := rows.Scan(&v.Request, &v.Policy, &v.state, &v.Version, &due, &body, &since); err != nil {
		return Verification{}, err
	}
	var message struct {
		Data terms `json:"data"`
	}
	if err := json.Unmarshal(body, &message); err != nil {
		return Verification{}, fmt.Errorf("body of %s: %w", v.Request, err)
	}
	order := message.Data
	v.Group, v.Ordered, v.Expected, v.Since = order.Group, order.versions(), order.Contract.Expected, utc(since)
	if v.state == StateVerifying {
		v.Due = utc(due).Add(-verdictMargin)
	}
	return v, nil
}
