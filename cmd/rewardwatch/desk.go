package main

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// effects is told what has changed. Changed returns when what must not be lost, such as a retrain request, is durable;
// it is told the same change again after a crash, and must not act on it twice.
type effects interface {
	Changed(ctx context.Context, changes []alerts.Change) error
}

// desk judges one policy: its bank makes findings of units, its book makes alarms and incidents of findings. Replay
// and service use the same desk; one goroutine owns it. What the status page and the API show is published beside.
type desk struct {
	policy  *bank.Policy
	book    *alerts.Book
	effects effects
	shown   atomic.Pointer[shown]
	unsaved bool // the book has changed since it was last saved
}

// shown is the book of a desk as last published; immutable.
type shown struct {
	alarms    []alerts.Alarm
	incidents []alerts.Incident
	faults    []alerts.Fault
}

func newDesk(name string, cfg bank.Config, limit *bank.StreamLimit, effects effects) *desk {
	d := &desk{policy: bank.NewPolicy(name, cfg, limit), book: alerts.NewBook(), effects: effects}
	d.publish()
	return d
}

// observe judges one unit and passes on what it changed.
func (d *desk) observe(ctx context.Context, u *ingest.Unit, now time.Time) error {
	return d.apply(ctx, d.policy.Observe(u, now))
}

// proceed passes on what a calibration in the background has led to.
func (d *desk) proceed(ctx context.Context) error {
	return d.apply(ctx, d.policy.Proceed())
}

// tick looks for silence.
func (d *desk) tick(ctx context.Context, now time.Time) error {
	return d.apply(ctx, d.policy.Tick(now))
}

func (d *desk) apply(ctx context.Context, found []bank.Finding) error {
	var changes []alerts.Change
	for _, f := range found {
		changes = append(changes, d.book.Apply(f)...)
	}
	return d.tell(ctx, changes)
}

// errUntold ends the service: what it holds has changed, and nobody could be told.
var errUntold = errors.New("act on a change of policy")

// tell passes on what has changed in the book.
func (d *desk) tell(ctx context.Context, changes []alerts.Change) error {
	if len(changes) == 0 {
		return nil
	}
	d.unsaved = true
	d.publish()
	if err := d.effects.Changed(ctx, changes); err != nil {
		return fmt.Errorf("%w: %w", errUntold, err)
	}
	return nil
}

// publish makes the present state what page, API and metrics show.
func (d *desk) publish() {
	d.policy.Publish()
	s := &shown{incidents: d.book.Incidents(), faults: d.book.Faults()}
	for _, i := range s.incidents {
		s.alarms = append(s.alarms, i.Alarms...)
	}
	d.shown.Store(s)
}

// deskState is the snapshot of a desk: bank and book together, so that neither is ahead of the other.
type deskState struct {
	Policy, Book []byte
}

func (d *desk) snapshot() ([]byte, error) {
	var policy, book, out bytes.Buffer
	if err := d.policy.Snapshot(&policy); err != nil {
		return nil, err
	}
	if err := d.book.Snapshot(&book); err != nil {
		return nil, err
	}
	if err := gob.NewEncoder(&out).Encode(deskState{policy.Bytes(), book.Bytes()}); err != nil {
		return nil, fmt.Errorf("write the state of a policy: %w", err)
	}
	return out.Bytes(), nil
}

func (d *desk) restore(snapshot []byte, now time.Time) error {
	var state deskState
	if err := gob.NewDecoder(bytes.NewReader(snapshot)).Decode(&state); err != nil {
		return fmt.Errorf("read the state of a policy: %w", err)
	}
	if err := d.policy.Restore(bytes.NewReader(state.Policy), now); err != nil {
		return err
	}
	if err := d.book.Restore(bytes.NewReader(state.Book)); err != nil {
		return err
	}
	d.publish()
	return nil
}
