package retrain

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// keptLog bounds what is kept of a job's log, in bytes: its end, where failures are told.
const keptLog = 16 << 10

// verdictMargin is for how long a request still waits for its verdict once the time of its contract is over: units that are
// on their way may decide it.
const verdictMargin = time.Hour

// The states that a job reports.
const (
	JobStarted   = "started"
	JobSucceeded = "succeeded"
	JobFailed    = "failed"
)

// Report is what a job tells of itself.
type Report struct {
	State   string // JobStarted, JobSucceeded or JobFailed
	Version string // policy_version that the job has made; needed where it has succeeded
	Error   string // why it has failed
	Log     string // what it printed; its end is kept
	By      string // who tells
}

// ByTelemetry tells of a version where no job does.
const ByTelemetry = "telemetry"

// ErrOtherVersion says that a job has told of another version before.
var ErrOtherVersion = errors.New("another version was told of before")

// ErrBadReport says what is missing in a report.
var ErrBadReport = errors.New("bad report")

func (r Report) check() error {
	switch {
	case r.State != JobStarted && r.State != JobSucceeded && r.State != JobFailed:
		return fmt.Errorf("%w: state must be %s, %s or %s, not %q", ErrBadReport, JobStarted, JobSucceeded, JobFailed, r.State)
	case r.State == JobSucceeded && r.Version == "":
		return fmt.Errorf("%w: version must name the policy_version that the job has made", ErrBadReport)
	case r.State != JobSucceeded && r.Version != "":
		return fmt.Errorf("%w: only a job that has %s has a version", ErrBadReport, JobSucceeded)
	}
	return nil
}

// Report takes in what a job tells of itself. It may come before the answer to the delivery, and any number of times. The version
// that a job tells of replaces one that telemetry has shown; where a job has told of another one it is ErrOtherVersion.
func (d *Desk) Report(ctx context.Context, id string, r Report) (Request, error) {
	if err := r.check(); err != nil {
		return Request{}, err
	}
	return d.change(ctx, id, func(tx *sql.Tx, q Request, now time.Time) (move, error) {
		m := move{by: r.By, log: tail(r.Log, keptLog), from: []State{StateOpen, StateDelivered}}
		switch r.State {
		case JobStarted:
			m.to, m.due = StateRunning, now.Add(d.completesWithin(q.Target))
		case JobFailed:
			m.to, m.why = StateFailed, r.Error
			m.from = append(m.from, StateRunning)
		case JobSucceeded:
			m.from = append(m.from, StateRunning)
			if q.Kind == KindRollback { // of which nothing more is expected
				m.to, m.version, m.why = StateMet, r.Version, "version "+r.Version+" is live again"
				return m, nil
			}
			o, err := q.terms()
			if err != nil {
				return move{}, err
			}
			m.to, m.version, m.why = StateVerifying, r.Version, "the job made version "+r.Version
			m.due = now.Add(o.Contract.Expected.within() + verdictMargin)
			if m.once, err = replaces(ctx, tx, id, r); m.once {
				m.from = append(m.from, StateVerifying)
			}
			return m, err
		}
		return m, nil
	})
}

// replaces reports whether the version of a report takes the place of the one that the request is verified with.
func replaces(ctx context.Context, tx *sql.Tx, id string, r Report) (bool, error) {
	var version, by string
	err := tx.QueryRowContext(ctx, `
		SELECT r.new_version, h.by_whom FROM requests r JOIN history h ON h.request = r.id
		WHERE r.id = $1 AND r.state = $2 AND h.state = r.state ORDER BY h.seq DESC LIMIT 1`, id, StateVerifying).Scan(&version, &by)
	switch err := found(err); {
	case err != nil:
		return false, fmt.Errorf("look for the version: %w", err)
	case version == "" || version == plain(r.Version):
		return false, nil
	case by != ByTelemetry || r.By == ByTelemetry:
		return false, fmt.Errorf("%w: %s, not %s", ErrOtherVersion, version, r.Version)
	}
	return true, nil
}

// completesWithin is how long a job of the target may take.
func (d *Desk) completesWithin(target string) time.Duration {
	t, known := d.cfg.target(target)
	if !known {
		return time.Duration(defaultCompletesWithin)
	}
	return time.Duration(t.CompletesWithin)
}

// Verdict is what the telemetry of the new version says of a retraining.
type Verdict struct {
	State    State // StateMet, StateMissed or StateInconclusive
	Evidence string
}

// Conclude closes a request whose outcome is known.
func (d *Desk) Conclude(ctx context.Context, id string, v Verdict) (Request, error) {
	return d.change(ctx, id, func(*sql.Tx, Request, time.Time) (move, error) {
		return move{by: byService, why: v.Evidence, from: []State{StateVerifying}, to: v.State}, nil
	})
}

// Verb is what a person does with a request.
type Verb string

// The verbs, with the methods that they stand for.
const (
	VerbApprove Verb = "approve"
	VerbReject  Verb = "reject"
	VerbResend  Verb = "resend"
)

// To gives the state that a verb leads to.
func (v Verb) To() State {
	if v == VerbReject {
		return StateRejected
	}
	return StateOpen
}

// move gives the move of a verb.
func (v Verb) move(by, why string, now time.Time) move {
	m := move{by: by, why: why, to: v.To(), due: now.Add(requestLifetime)}
	switch v {
	case VerbApprove:
		m.from = []State{StateAwaitingApproval}
	case VerbReject:
		m.from = unfinishedStates()
	case VerbResend:
		m.from = []State{StateDeadLetter, StateDelivered}
	}
	return m
}

// Approve lets a request leave that waits for it.
func (d *Desk) Approve(ctx context.Context, id, by, why string) (Request, error) {
	return d.do(ctx, id, VerbApprove, by, why)
}

// Reject ends a request that is not finished. A receiver that has the order already is not told.
func (d *Desk) Reject(ctx context.Context, id, by, why string) (Request, error) {
	return d.do(ctx, id, VerbReject, by, why)
}

// The errors of Approve and Resend beside those of the others.
var (
	ErrTargetDisabled = errors.New("its target answered 410 Gone: nothing is sent to it until its name or URL changes")
	ErrUnknownTarget  = errors.New("its target is no longer configured")
	ErrUnfinished     = errors.New("the policy has another request that is not finished")
)

// Resend delivers a request again, under the same id: one that was given up, or one that the receiver has lost.
func (d *Desk) Resend(ctx context.Context, id, by, why string) (Request, error) {
	return d.do(ctx, id, VerbResend, by, why)
}

func (d *Desk) do(ctx context.Context, id string, v Verb, by, why string) (Request, error) {
	return d.change(ctx, id, func(_ *sql.Tx, _ Request, now time.Time) (move, error) { return v.move(by, why, now), nil })
}

// DoSeen does it for a person who has seen so many entries of the request's history. Where there are others by now nothing is done, and
// it is a *StateError: states recur, so that the state alone does not tell.
func (d *Desk) DoSeen(ctx context.Context, id string, seen int, v Verb, by, why string) (Request, error) {
	return d.change(ctx, id, func(tx *sql.Tx, _ Request, now time.Time) (move, error) {
		var entries int
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM history WHERE request = $1`, plain(id)).Scan(&entries); err != nil {
			return move{}, fmt.Errorf("count the history: %w", err)
		}
		if entries != seen {
			state, err := stateOf(ctx, tx, id)
			return move{}, cmp.Or[error](err, &StateError{Request: id, State: state, To: v.To()})
		}
		m := v.move(by, why, now)
		m.once = true
		return m, nil
	})
}

// change applies the move that decide makes of a request, and gives the request as it is then. What becomes open is delivered
// at once.
func (d *Desk) change(ctx context.Context, id string, decide func(*sql.Tx, Request, time.Time) (move, error)) (Request, error) {
	q, err := d.requestPatiently(ctx, id)
	if err != nil {
		return Request{}, err
	}
	changed := false
	err = d.ledger.update(ctx, func(tx *sql.Tx) error {
		now := time.Now()
		changed = false
		if err := endOverdue(ctx, tx, now); err != nil {
			return err
		}
		m, err := decide(tx, q, now)
		if err != nil {
			return err
		}
		m.id, m.at = id, now
		if m.to == StateOpen {
			if err := d.mayOpen(ctx, tx, q); err != nil {
				return err
			}
		}
		changed, err = m.apply(ctx, tx)
		if err == nil && changed && m.to == StateOpen {
			err = d.courier.enqueue(ctx, tx, id, q.Target)
		}
		return err
	})
	if err != nil {
		return Request{}, fmt.Errorf("request %s: %w", id, err)
	}
	q, err = d.requestPatiently(ctx, id)
	if err == nil && changed {
		d.log.Info().Str("request", id).Str("policy", q.Policy).Str("state", string(q.State)).Str("reason", q.Reason).Msg("retrain request")
		d.awaited.forget()
	}
	return q, err
}

// requestPatiently gives a request as Request does, and waits while the ledger cannot be reached.
func (d *Desk) requestPatiently(ctx context.Context, id string) (q Request, err error) {
	err = d.ledger.patiently(ctx, func() error {
		q, err = d.Request(ctx, id)
		return err
	})
	return q, err
}

// mayOpen says what speaks against delivering a request that exists.
func (d *Desk) mayOpen(ctx context.Context, tx *sql.Tx, q Request) error {
	target, known := d.cfg.target(q.Target)
	if !known {
		return fmt.Errorf("%w: %s", ErrUnknownTarget, q.Target)
	}
	disabled, err := isDisabled(ctx, tx, target)
	if err != nil {
		return err
	}
	if disabled {
		return ErrTargetDisabled
	}
	other, err := unfinishedOf(ctx, tx, q.Policy)
	if err == nil && other != "" && other != q.ID {
		err = fmt.Errorf("%w: %s", ErrUnfinished, other)
	}
	return err
}

// terms are what of an order is needed to judge the retraining.
type terms struct {
	Group    map[string]string `json:"group"`
	Versions *versionPair      `json:"versions"`
	Contract Contract          `json:"contract"`
}

// versions gives the policy_versions that were there before the retraining, the one that was live when it was ordered last.
func (t terms) versions() []string {
	if t.Versions == nil {
		return nil
	}
	both := []string{t.Versions.Before.Policy, t.Versions.After.Policy}
	return slices.DeleteFunc(both, func(version string) bool { return version == "" })
}

// terms reads them. A request of a build before contracts has none.
func (r Request) terms() (terms, error) {
	var out terms
	if err := json.Unmarshal(r.Order, &out); err != nil {
		return terms{}, fmt.Errorf("read the order of %s: %w", r.ID, err)
	}
	return out, nil
}

// tail gives the end of a text, from the beginning of a character.
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
