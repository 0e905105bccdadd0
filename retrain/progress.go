package retrain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/outcome"
	"github.com/rewardwatch/rewardwatch/retrain/recipe"
	"github.com/rewardwatch/rewardwatch/retrain/target"
)

// keptLog is how many bytes of a job's log are kept: those at its end, which shows failures.
const keptLog = 16 << 10

// The states in a Report.
const (
	JobStarted   = "started"
	JobSucceeded = "succeeded"
	JobFailed    = "failed"
)

// Report is a job's report on its status.
type Report struct {
	State   string // JobStarted, JobSucceeded or JobFailed
	Version string // policy_version that the job has produced; required if it succeeded
	Error   string // why it has failed
	Log     string // its output, of which only the end is kept
	By      string // who reports
}

// ByTelemetry is the reporter of a version that no job has reported, but that the telemetry shows.
const ByTelemetry = "telemetry"

// ErrOtherVersion means that a job has already reported another version.
var ErrOtherVersion = errors.New("a different version was reported before")

// ErrBadReport means that a report is incomplete or contradicts itself.
var ErrBadReport = errors.New("bad report")

func (r Report) check() error {
	switch {
	case r.State != JobStarted && r.State != JobSucceeded && r.State != JobFailed:
		return fmt.Errorf("%w: state must be %s, %s or %s, not %q", ErrBadReport, JobStarted, JobSucceeded, JobFailed, r.State)
	case r.State == JobSucceeded && r.Version == "":
		return fmt.Errorf("%w: version must be the policy_version that the job produced", ErrBadReport)
	case r.State != JobSucceeded && r.Version != "":
		return fmt.Errorf("%w: only a job that has %s can report a version", ErrBadReport, JobSucceeded)
	}
	return nil
}

// Report records a job's report. It may arrive before the response to the delivery, and more than once. The version
// that a job reports replaces one that the telemetry has shown; if a job has reported another version, the error is
// ErrOtherVersion.
func (d *Desk) Report(ctx context.Context, id string, r Report) (ledger.Request, error) {
	if err := r.check(); err != nil {
		return ledger.Request{}, err
	}
	return d.change(ctx, id, func(tx *ledger.Tx, q ledger.Request, now time.Time) (ledger.Move, error) {
		m := ledger.Move{By: r.By, Log: tail(r.Log, keptLog), From: []ledger.State{ledger.StateOpen, ledger.StateDelivered}}
		switch r.State {
		case JobStarted:
			m.To, m.Due = ledger.StateRunning, now.Add(d.completesWithin(q.Target))
		case JobFailed:
			m.To, m.Why = ledger.StateFailed, r.Error
			m.From = append(m.From, ledger.StateRunning)
		case JobSucceeded:
			m.From = append(m.From, ledger.StateRunning)
			if q.Kind == ledger.KindRollback && q.Recipe == "" { // it has no contract to verify
				m.To, m.Version, m.Why = ledger.StateMet, r.Version, "version "+r.Version+" is live again"
				return m, nil
			}
			o, err := recipe.ReadTerms(q.Order)
			if err != nil {
				return ledger.Move{}, err
			}
			m.To, m.Version, m.Why = ledger.StateVerifying, r.Version, "the job produced version "+r.Version
			m.Due = now.Add(o.Contract.Expected.Duration() + ledger.VerdictMargin)
			if m.Once, err = replaces(ctx, tx, id, r); m.Once {
				m.From = append(m.From, ledger.StateVerifying)
			}
			return m, err
		}
		return m, nil
	})
}

// replaces reports whether the version of a report replaces the one that the request is verified with.
func replaces(ctx context.Context, tx *ledger.Tx, id string, r Report) (bool, error) {
	version, by, err := tx.Verified(ctx, id)
	switch {
	case err != nil:
		return false, err
	case version == "" || version == ledger.Plain(r.Version):
		return false, nil
	case by != ByTelemetry || r.By == ByTelemetry:
		return false, fmt.Errorf("%w: %s, not %s", ErrOtherVersion, version, r.Version)
	}
	return true, nil
}

// completesWithin returns how long a job of the target may take.
func (d *Desk) completesWithin(name string) time.Duration {
	t, known := d.cfg.target(name)
	if !known {
		return time.Duration(target.DefaultCompletesWithin)
	}
	return time.Duration(t.CompletesWithin)
}

// Conclude closes a request with its outcome.
func (d *Desk) Conclude(ctx context.Context, id string, v outcome.Verdict) (ledger.Request, error) {
	return d.change(ctx, id, func(*ledger.Tx, ledger.Request, time.Time) (ledger.Move, error) {
		return ledger.Move{By: ledger.ByService, Why: v.Evidence, Shown: v.Observed, From: []ledger.State{ledger.StateVerifying}, To: v.State}, nil
	})
}

// Verb is what a person does with a request.
type Verb string

// The verbs, with their methods.
const (
	VerbApprove  Verb = "approve"
	VerbReject   Verb = "reject"
	VerbWithdraw Verb = "withdraw"
	VerbResend   Verb = "resend"
)

// To returns the state that a verb leads to.
func (v Verb) To() ledger.State {
	switch v {
	case VerbReject:
		return ledger.StateRejected
	case VerbWithdraw:
		return ledger.StateWithdrawn
	}
	return ledger.StateOpen
}

// move returns the move of a verb.
func (v Verb) move(by, why string, now time.Time) ledger.Move {
	m := ledger.Move{By: by, Why: why, To: v.To(), Due: now.Add(requestLifetime)}
	switch v {
	case VerbApprove:
		m.From = []ledger.State{ledger.StateAwaitingApproval}
	case VerbReject:
		m.From = ledger.UnfinishedStates()
	case VerbWithdraw:
		m.From = []ledger.State{ledger.StateQueued, ledger.StateAwaitingApproval, ledger.StateOpen}
	case VerbResend:
		m.From = []ledger.State{ledger.StateDeadLetter, ledger.StateDelivered}
	}
	return m
}

// Approve releases a request that waits for approval.
func (d *Desk) Approve(ctx context.Context, id, by, why string) (ledger.Request, error) {
	return d.do(ctx, id, VerbApprove, by, why)
}

// Reject ends an unfinished request. It does not notify a receiver that already has the request.
func (d *Desk) Reject(ctx context.Context, id, by, why string) (ledger.Request, error) {
	return d.do(ctx, id, VerbReject, by, why)
}

// Withdraw ends a request that has not been delivered. A delivery attempt in progress is not interrupted.
func (d *Desk) Withdraw(ctx context.Context, id, by, why string) (ledger.Request, error) {
	return d.do(ctx, id, VerbWithdraw, by, why)
}

// The errors of Approve and Resend, besides those of the other methods.
var (
	ErrTargetDisabled = errors.New("its target responded with 410 Gone and is disabled until its name or URL changes")
	ErrUnknownTarget  = errors.New("the target of the request is no longer configured")
	ErrUnfinished     = errors.New("the policy has another unfinished request")
)

// Resend delivers a request again with the same id, if its delivery failed or the receiver has lost it.
func (d *Desk) Resend(ctx context.Context, id, by, why string) (ledger.Request, error) {
	return d.do(ctx, id, VerbResend, by, why)
}

func (d *Desk) do(ctx context.Context, id string, v Verb, by, why string) (ledger.Request, error) {
	return d.change(ctx, id, func(_ *ledger.Tx, _ ledger.Request, now time.Time) (ledger.Move, error) {
		return v.move(by, why, now), nil
	})
}

// DoSeen applies a verb for a person who has seen the given number of entries of the request's history. If the
// history has changed since, it does nothing and returns a *StateError. The state alone would not show that,
// because states recur.
func (d *Desk) DoSeen(ctx context.Context, id string, seen int, v Verb, by, why string) (ledger.Request, error) {
	return d.change(ctx, id, func(tx *ledger.Tx, _ ledger.Request, now time.Time) (ledger.Move, error) {
		entries, err := tx.Entries(ctx, id)
		if err != nil {
			return ledger.Move{}, err
		}
		if entries != seen {
			state, untracked, err := tx.State(ctx, id)
			return ledger.Move{}, cmp.Or[error](err, &ledger.StateError{Request: id, State: state, Untracked: untracked, To: v.To()})
		}
		m := v.move(by, why, now)
		m.Once = true
		return m, nil
	})
}

// change applies the move that decide returns for a request, and returns the changed request. A request that becomes
// open is delivered at once.
func (d *Desk) change(ctx context.Context, id string, decide func(*ledger.Tx, ledger.Request, time.Time) (ledger.Move, error)) (ledger.Request, error) {
	q, err := d.requestPatiently(ctx, id)
	if err != nil {
		return ledger.Request{}, err
	}
	changed := false
	err = d.ledger.Update(ctx, func(tx *ledger.Tx) error {
		now := time.Now()
		changed = false
		if err := tx.EndOverdue(ctx, now); err != nil {
			return err
		}
		m, err := decide(tx, q, now)
		if err != nil {
			return err
		}
		m.Id, m.At = id, now
		if m.To == ledger.StateOpen {
			if err := d.mayOpen(ctx, tx, q); err != nil {
				return err
			}
		}
		changed, err = m.Apply(ctx, tx)
		if err == nil && changed && m.To == ledger.StateOpen {
			err = d.dispatcher.queue.Add(ctx, tx, id, q.Target)
		}
		return err
	})
	if err != nil {
		return ledger.Request{}, fmt.Errorf("request %s: %w", id, err)
	}
	q, err = d.requestPatiently(ctx, id)
	if err == nil && changed {
		d.log.Info().Str("request", id).Str("policy", q.Policy).Str("state", string(q.State)).Str("reason", q.Reason).Msg("retrain request")
		d.awaited.forget()
	}
	return q, err
}

// requestPatiently returns a request as Request does, for callers that have just changed it. It waits while the ledger
// is unavailable.
func (d *Desk) requestPatiently(ctx context.Context, id string) (q ledger.Request, err error) {
	err = d.ledger.Patiently(ctx, func() error {
		q, err = d.ledger.Current(ctx, id)
		return err
	})
	return q, err
}

// mayOpen returns an error if an existing request must not be delivered.
func (d *Desk) mayOpen(ctx context.Context, tx *ledger.Tx, q ledger.Request) error {
	target, known := d.cfg.target(q.Target)
	if !known {
		return fmt.Errorf("%w: %s", ErrUnknownTarget, q.Target)
	}
	disabled, err := tx.IsDisabled(ctx, target)
	if err != nil {
		return err
	}
	if disabled {
		return ErrTargetDisabled
	}
	other, err := tx.Unfinished(ctx, q.Policy)
	if err == nil && other != "" && other != q.ID {
		err = fmt.Errorf("%w: %s", ErrUnfinished, other)
	}
	return err
}

// tail returns the end of a text, beginning with a whole character.
func tail(text string, most int) string {
	if len(text) <= most {
		return text
	}
	text = text[len(text)-most:]
	for i := range text {
		if text[i]&0xc0 != 0x80 {
			return text[i:]
		}
	}
	return ""
}
