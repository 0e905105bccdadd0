package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/alerts/tripping"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/detectors/capacity"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/guard"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain/outcome"
)

// effects acts on changes. Changed returns once everything that must not be lost, such as a retrain request, is
// durable. After a crash it receives the same change again, and must not act on it twice.
type effects interface {
	Changed(ctx context.Context, changes []alerts.Change) error
}

// scoreKeeper receives the scores of a policy's streams whenever they are published, until another instance judges the
// policy. It is called by several goroutines.
type scoreKeeper interface {
	Observe(p *finding.Summary)
	Forget(policy string)
}

// Worker judges one policy: its bank turns units into findings, and its tracker turns findings into alarms and
// incidents. Replay and the service use the same worker. One goroutine owns it. The console and the API read only its
// published state.
type Worker struct {
	Name    string
	topics  []string // telemetry topics, by index
	Policy  *bank.Policy
	guards  *guard.Set
	guarded []finding.Finding // findings of guards that have not been reported yet
	tracker *alerts.Tracker
	outcome *outcome.Follower
	effects effects
	Shown   atomic.Pointer[shown]
	scores  scoreKeeper                                // nil if no page shows scores
	room    func(bytes int64) (giveBack func())        // reserves room for another group; nil if there is always room
	resumed bool                                       // restored from a checkpoint
	load    func(parts []string) (ingest.Parts, error) // loads parts of its checkpoint; not needed if no group is ever evicted
}

// shown is the tracker state that a worker last published. It is immutable.
type shown struct {
	Alarms    []alerts.Alarm
	Incidents []alerts.Incident
	Faults    []alerts.Fault
	Guards    *guard.Summary
}

// NewWorker returns a worker that has not judged anything yet.
func NewWorker(name string, cfg watch.Config, limit *capacity.StreamLimit, effects effects) *Worker {
	d := &Worker{Name: name, Policy: bank.NewPolicy(name, cfg, limit), tracker: alerts.NewTracker(), effects: effects}
	d.guards = guard.New(name, cfg.Guards)
	d.Policy.Applying(func(u *ingest.Unit) { d.guarded = append(d.guarded, d.guards.Observe(u)...) })
	d.outcome = outcome.New(name, d.Policy)
	d.Publish()
	return d
}

// NameTopics sets the names of the telemetry topics, by index. With several topics, offsets include the name of theirs.
func (d *Worker) NameTopics(topics []string) { d.topics = topics }

// Observe judges one unit and passes on the resulting changes.
func (d *Worker) Observe(ctx context.Context, u *ingest.Unit, now time.Time) error {
	if d.Policy.Has(u) {
		return nil
	}
	if u.End == ingest.EndOpen {
		return d.apply(ctx, d.Policy.Observe(u, now))
	}
	if !d.Policy.Knows(u.Group) {
		defer d.reserve(u.Group)() // until the group is counted
	}
	if err := d.comeBack(u.Group); err != nil {
		return err
	}
	d.outcome.At(now)
	d.Policy.OneByOne(d.outcome.Open != nil) // to follow a retraining, it must see the units of all groups in order
	return d.apply(ctx, d.Policy.Observe(u, now))
}

// Join adds a decision to the unfinished block of its group, and returns true if nothing else follows from it. Otherwise,
// it changes nothing, and Observe must judge the decision as a unit.
func (d *Worker) Join(decision *ingest.Decision, now time.Time) bool {
	if d.outcome.Open != nil || !d.guards.Idle() {
		return false
	}
	d.outcome.At(now)
	d.Policy.OneByOne(false)
	return d.Policy.Join(decision, now)
}

// reserve waits for room for a group, and reserves it until giveBack is called.
func (d *Worker) reserve(group ingest.Group) (giveBack func()) {
	if d.room == nil {
		return func() {}
	}
	return d.room(d.Policy.Weight(group))
}

// proceed passes on the results of calibrations that ran in the background.
func (d *Worker) proceed(ctx context.Context) error {
	return d.apply(ctx, d.Policy.Proceed())
}

// tick looks for silence, and for a retraining whose time has expired.
func (d *Worker) tick(ctx context.Context, now time.Time) error {
	d.outcome.At(now)
	if err := d.apply(ctx, d.Policy.Tick(now)); err != nil {
		return err
	}
	return d.concludeOverdue(ctx, now)
}

func (d *Worker) apply(ctx context.Context, found []finding.Finding) error {
	found, d.guarded = append(d.guarded, found...), nil
	var changes []alerts.Change
	for _, f := range found {
		f.Offsets, f.OnsetOffsets = ingest.Named(d.topics, f.Offsets), ingest.Named(d.topics, f.OnsetOffsets)
		f.Baseline.Offsets = ingest.Named(d.topics, f.Baseline.Offsets)
		changes = append(changes, d.tracker.Apply(f)...)
	}
	changes = tripping.Follow(d.guards, d.tracker, changes)
	if err := d.tell(ctx, changes); err != nil {
		return err
	}
	return d.conclude(ctx)
}

// errUntold ends the service: the worker's state has changed, but the change could not be reported.
var errUntold = errors.New("act on a changed policy")

// tell passes on changes of the tracker.
func (d *Worker) tell(ctx context.Context, changes []alerts.Change) error {
	if len(changes) == 0 {
		return nil
	}
	d.Publish()
	if err := d.effects.Changed(ctx, changes); err != nil {
		return fmt.Errorf("%w: %w", errUntold, err)
	}
	return nil
}

// Publish makes the current state visible to the console, the API and metrics. Incidents are published first, so that a
// reader who finds a unit in a summary also finds the incident that it opened.
func (d *Worker) Publish() {
	s := &shown{Incidents: d.tracker.Incidents(), Faults: d.tracker.Faults(), Guards: d.guards.Summary()}
	for _, i := range s.Incidents {
		s.Alarms = append(s.Alarms, i.Alarms...)
	}
	d.Shown.Store(s)
	d.Policy.Publish()
	if d.scores != nil {
		d.scores.Observe(d.Policy.Summary())
	}
}

// Changes returns the parts of the worker's checkpoint that have changed since saved, and the names of parts that are
// gone. Bank, tracker and outcome share one checkpoint, so that none is ahead of the others.
func (d *Worker) Changes() (changed ingest.Parts, gone []string, err error) {
	for _, group := range d.Policy.Missing() {
		if err := d.comeBack(group); err != nil {
			return nil, nil, err
		}
	}
	changed, gone, err = d.Policy.Changes()
	if err != nil {
		return nil, nil, err
	}
	tracker, err := d.tracker.Changes()
	maps.Copy(changed, tracker)
	return changed, gone, errors.Join(err, d.outcome.Changes(changed), d.guards.Changes(changed))
}

// saved records that the last result of Changes is durable.
func (d *Worker) saved() {
	d.Policy.Saved()
	d.tracker.Saved()
	d.outcome.Saved()
	d.guards.Saved()
}

// lost makes the next call of Changes return all parts.
func (d *Worker) lost() {
	d.Policy.Lost()
	d.tracker.Lost()
	d.outcome.Lost()
	d.guards.Lost()
}

func (d *Worker) restore(parts ingest.Parts, now time.Time) error {
	if err := errors.Join(d.Policy.Resume(parts, now), d.tracker.Resume(parts), d.guards.Resume(parts)); err != nil {
		return err
	}
	d.resumed = true
	d.Publish()
	return d.outcome.Resume(parts, d.Policy.Summary().Groups)
}
