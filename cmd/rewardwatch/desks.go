package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// desks judge together: all policies of an instance that is alone, or those of one partition of the units topic. They wait
// for the same partitions of the telemetry, and their checkpoints are in one store.
type desks struct {
	pipeline  *pipeline
	store     ingest.CheckpointStore
	partition int32 // of the units topic; 0 alone
	marks     *watermarks

	ctx     context.Context // ends when they are to finish what they were given, to save and to stop
	end     context.CancelCauseFunc
	work    context.Context // ends when they are to give up at once and save nothing
	abandon context.CancelCauseFunc
	wg      sync.WaitGroup

	mu       sync.Mutex
	byPolicy map[string]*runningDesk
	errors   []error // of desks that were told to stop
}

// newDesks makes a set without desks, whose checkpoints are in a store.
func (p *pipeline) newDesks(store ingest.CheckpointStore, partition int32) *desks {
	d := &desks{pipeline: p, store: store, partition: partition, marks: newWatermarks(), byPolicy: map[string]*runningDesk{}}
	d.ctx, d.end = context.WithCancelCause(p.ctx)
	d.work, d.abandon = context.WithCancelCause(context.WithoutCancel(p.ctx)) // what has begun is finished
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sets = append(p.sets, d)
	return d
}

// restore makes the desks that were saved, on all cores. It is called once, before the first unit.
func (d *desks) restore(names []string) error {
	errs := make([]error, len(names))
	cores := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for i, name := range names {
		cores <- struct{}{}
		wg.Go(func() {
			if err := d.restoreDesk(name); err != nil {
				errs[i] = fmt.Errorf("restore %s: %w", name, err)
			}
			<-cores
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		for _, r := range d.list() { // they were never started
			r.policy.Close()
		}
		return err
	}
	d.pipeline.audience.restored(d)
	for _, r := range d.list() {
		d.start(r)
	}
	return nil
}

func (d *desks) restoreDesk(name string) error {
	policy := name[len(bankPrefix):]
	cfg, watched := d.pipeline.cfg.policy(policy)
	if !watched {
		d.pipeline.log.Warn().Str("policy", policy).Msg("a saved policy is not watched any more; its state is kept but not used")
		return nil
	}
	parts, err := d.store.Load(name)
	if err != nil {
		return err
	}
	judge := d.newDesk(policy, cfg)
	if err := judge.restore(parts, time.Now()); err != nil {
		return err
	}
	d.add(policy, judge)
	return nil
}

// Why a unit is not judged: no entry of the configuration watches its policy, no more streams are followed, the offsets that
// the baseline of its policy is to be taken from are gone, or its record in the units topic cannot be read.
var (
	errUnmatched   = errors.New("unmatched")
	errStreamLimit = errors.New("stream_limit")
	errNoBaseline  = errors.New("no_baseline")
	errDamagedUnit = errors.New("damaged")
)

// desk finds the desk of a policy, or starts it. errUnmatched and errStreamLimit say that the policy is not watched; errPinned
// and errPinnedGone, that there is no baseline for it, now or for good.
func (d *desks) desk(ctx context.Context, policy string) (*runningDesk, error) {
	d.mu.Lock()
	r := d.byPolicy[policy]
	d.mu.Unlock()
	if r != nil {
		return r, nil
	}
	cfg, watched := d.pipeline.cfg.policy(policy)
	switch {
	case !watched:
		return nil, errUnmatched
	case d.pipeline.limit.Full():
		return nil, errStreamLimit
	}
	judge := d.newDesk(policy, cfg)
	if err := d.pipeline.recorded.teach(ctx, judge.policy, policy, cfg); err != nil {
		judge.policy.Close()
		return nil, err
	}
	r, first := d.add(policy, judge)
	if first {
		d.start(r)
	}
	return r, nil
}

func (d *desks) newDesk(policy string, cfg bank.Config) *desk {
	judge := newDesk(policy, cfg, d.pipeline.limit, d.pipeline.audience)
	judge.follow(d.pipeline.audience)
	judge.policy.Keep(d.pipeline.memory.residents)
	return judge
}

// add takes in the desk of a policy, unless another partition has just brought one, which it gives then.
func (d *desks) add(policy string, judge *desk) (r *runningDesk, first bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r := d.byPolicy[policy]; r != nil {
		return r, false
	}
	judge.policy.Share(d.pipeline.calibrations)
	judge.policy.InBackground()
	r = newRunningDesk(judge, d)
	d.byPolicy[policy] = r
	return r, true
}

// start starts the goroutine of a desk.
func (d *desks) start(r *runningDesk) {
	d.pipeline.checkFleet(r.name)
	d.wg.Go(func() {
		defer r.policy.Close()
		if err := r.run(); err != nil {
			d.failed(fmt.Errorf("policy %q: %w", r.name, err))
		}
	})
}

// failed takes the error of a desk, which ends the service unless the desk was told to stop, or its partition has a later
// owner: then the partition is let go of.
func (d *desks) failed(err error) {
	if d.ctx.Err() == nil && !errors.Is(err, ingest.ErrFenced) {
		d.pipeline.failed(err)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.errors = append(d.errors, err)
}

// stop lets every desk finish what it has been given and save its state, waits for them, and gives their errors.
func (d *desks) stop() error {
	d.end(errStopped)
	d.wg.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	return errors.Join(d.errors...)
}

// errGivenUp is why a desk that does not come to an end is left to itself.
var errGivenUp = errors.New("its policies may be judged elsewhere by now, so it gives up what it has not saved")

// leave stops the desks and forgets them, as others are to judge their policies. Those that do not come to an end in time,
// as they wait for a ledger that cannot be reached, give up what they have judged since they were last saved: the next
// owner judges it again.
func (d *desks) leave(patience time.Duration) error {
	stopped := make(chan error, 1)
	go func() { stopped <- d.stop() }()
	var err error
	select {
	case err = <-stopped:
	case <-time.After(patience):
		err = errGivenUp
	}
	d.abandon(errGivenUp)
	d.pipeline.remove(d)
	d.pipeline.audience.gone(d)
	return err
}

// findings gives the incidents and faults of all desks, as last published.
func (d *desks) findings() (incidents []alerts.Incident, faults []alerts.Fault) {
	for _, r := range d.list() {
		shown := r.shown.Load()
		incidents, faults = append(incidents, shown.incidents...), append(faults, shown.faults...)
	}
	return incidents, faults
}

// list gives the desks in any order.
func (d *desks) list() []*runningDesk {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Values(d.byPolicy))
}
