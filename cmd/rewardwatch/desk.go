package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	pages "github.com/rewardwatch/rewardwatch/cmd/rewardwatch/console"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// effects is told what has changed. Changed returns when what must not be lost, such as a retrain request, is durable;
// it is told the same change again after a crash, and must not act on it twice.
type effects interface {
	Changed(ctx context.Context, changes []alerts.Change) error
}

// desk judges one policy: its bank makes findings of units, its book makes alarms and incidents of findings. Replay
// and service use the same desk; one goroutine owns it. What console and API show is published beside.
type desk struct {
	name     string
	policy   *bank.Policy
	book     *alerts.Book
	closing  closing
	effects  effects
	outcomes outcomes // nil where no retraining is followed
	shown    atomic.Pointer[shown]
	scores   *pages.Scores                              // nil where no page shows them
	resumed  bool                                       // from a checkpoint
	load     func(parts []string) (ingest.Parts, error) // of its checkpoint; not needed where no group is ever evicted
}

// shown is the book of a desk as last published; immutable.
type shown struct {
	alarms    []alerts.Alarm
	incidents []alerts.Incident
	faults    []alerts.Fault
}

func newDesk(name string, cfg bank.Config, limit *bank.StreamLimit, effects effects) *desk {
	d := &desk{name: name, policy: bank.NewPolicy(name, cfg, limit), book: alerts.NewBook(), effects: effects}
	d.publish()
	return d
}

// observe judges one unit and passes on what it changed.
func (d *desk) observe(ctx context.Context, u *ingest.Unit, now time.Time) error {
	if d.policy.Has(u) {
		return nil
	}
	if err := d.comeBack(u.Group); err != nil {
		return err
	}
	d.closing.now = now
	return d.apply(ctx, d.policy.Observe(u, now))
}

// proceed passes on what a calibration in the background has led to.
func (d *desk) proceed(ctx context.Context) error {
	return d.apply(ctx, d.policy.Proceed())
}

// tick looks for silence, and for a retraining whose time is over.
func (d *desk) tick(ctx context.Context, now time.Time) error {
	d.closing.now = now
	if err := d.apply(ctx, d.policy.Tick(now)); err != nil {
		return err
	}
	return d.concludeOverdue(ctx, now)
}

func (d *desk) apply(ctx context.Context, found []bank.Finding) error {
	var changes []alerts.Change
	for _, f := range found {
		changes = append(changes, d.book.Apply(f)...)
	}
	if err := d.tell(ctx, changes); err != nil {
		return err
	}
	return d.conclude(ctx)
}

// errUntold ends the service: what it holds has changed, and nobody could be told.
var errUntold = errors.New("act on a change of policy")

// tell passes on what has changed in the book.
func (d *desk) tell(ctx context.Context, changes []alerts.Change) error {
	if len(changes) == 0 {
		return nil
	}
	d.publish()
	if err := d.effects.Changed(ctx, changes); err != nil {
		return fmt.Errorf("%w: %w", errUntold, err)
	}
	return nil
}

// publish makes the present state what console, API and metrics show.
func (d *desk) publish() {
	d.policy.Publish()
	if d.scores != nil {
		d.scores.Observe(d.policy.Summary())
	}
	s := &shown{incidents: d.book.Incidents(), faults: d.book.Faults()}
	for _, i := range s.incidents {
		s.alarms = append(s.alarms, i.Alarms...)
	}
	d.shown.Store(s)
}

// changes gives the parts of the desk's checkpoint that have changed since saved, and the names of those that are gone.
// Bank, book and closing are one checkpoint, so that none is ahead of the others.
func (d *desk) changes() (changed ingest.Parts, gone []string, err error) {
	for _, group := range d.policy.Missing() {
		if err := d.comeBack(group); err != nil {
			return nil, nil, err
		}
	}
	changed, gone, err = d.policy.Changes()
	if err != nil {
		return nil, nil, err
	}
	book, err := d.book.Changes()
	maps.Copy(changed, book)
	return changed, gone, errors.Join(err, d.closing.changes(changed))
}

// saved says that what changes gave last is durable.
func (d *desk) saved() {
	d.policy.Saved()
	d.book.Saved()
	d.closing.saved()
}

// lost has changes give all parts.
func (d *desk) lost() {
	d.policy.Lost()
	d.book.Lost()
	d.closing.changed = true
}

func (d *desk) restore(parts ingest.Parts, now time.Time) error {
	if err := errors.Join(d.policy.Resume(parts, now), d.book.Resume(parts)); err != nil {
		return err
	}
	d.resumed = true
	d.publish()
	return d.closing.resume(parts, d.policy.Summary().Groups)
}
