package engine

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
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/order"
)

// Workers is a set of workers: all workers of a standalone instance, or those of one partition of the units topic. They
// wait for the same partitions of the telemetry, and share a checkpoint store.
type Workers struct {
	Pipeline  *Pipeline
	Store     ingest.CheckpointStore
	Partition int32 // of the units topic; 0 in a standalone instance
	Marks     *order.Watermarks

	Ctx     context.Context // ends when the workers must finish their units, save and stop
	end     context.CancelCauseFunc
	work    context.Context // ends when the workers must stop at once without saving
	Abandon context.CancelCauseFunc
	Wg      sync.WaitGroup

	mu       sync.Mutex
	byPolicy map[string]*RunningWorker
	errors   []error // errors that do not end the service: during shutdown, or after losing the partition
}

// NewWorkers returns an empty set of workers, with their checkpoints in store.
func (p *Pipeline) NewWorkers(store ingest.CheckpointStore, partition int32) *Workers {
	d := &Workers{Pipeline: p, Store: store, Partition: partition, Marks: order.NewWatermarks(), byPolicy: map[string]*RunningWorker{}}
	d.Ctx, d.end = context.WithCancelCause(p.Ctx)
	d.work, d.Abandon = context.WithCancelCause(context.WithoutCancel(p.Ctx)) // work that has begun is finished
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sets = append(p.sets, d)
	return d
}

// Restore restores the saved workers, on all cores, until ctx ends. It is called once, before the first unit.
func (d *Workers) Restore(ctx context.Context, names []string) error {
	d.Pipeline.Memory.restore(1)
	defer d.Pipeline.Memory.restore(-1)
	errs := make([]error, len(names))
	cores := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for i, name := range names {
		if ctx.Err() != nil {
			errs[i] = context.Cause(ctx)
			break
		}
		cores <- struct{}{}
		wg.Go(func() {
			if err := d.restoreWorker(name); err != nil {
				errs[i] = fmt.Errorf("restore %s: %w", name, err)
			}
			<-cores
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		for _, r := range d.List() { // they have not been started
			r.Policy.Close()
		}
		return err
	}
	d.Pipeline.audience.Restored(d)
	for _, r := range d.List() {
		d.start(r)
	}
	return nil
}

func (d *Workers) restoreWorker(name string) error {
	policy := name[len(BankPrefix):]
	cfg, watched := d.Pipeline.Cfg.Policy(policy)
	if !watched {
		d.Pipeline.Log.Warn().Str("policy", policy).Msg("a saved policy is no longer monitored; its state is kept, but not used")
		return nil
	}
	forgetful, can := d.Store.(forgetfulStore)
	empty := false
	err := lend(d.Store, name, func(parts ingest.Parts) error {
		if empty = can && len(parts) == 0; empty { // a crash interrupted the removal of its checkpoint
			return nil
		}
		judge := d.newWorker(policy, cfg)
		d.Pipeline.Memory.allow()
		if err := judge.restore(parts, time.Now()); err != nil {
			return err
		}
		d.add(policy, judge)
		return nil
	})
	if err == nil && empty {
		return forgetful.Forget(name)
	}
	return err
}

// lendingStore is a store that reads checkpoints one after another into the same memory.
type lendingStore interface {
	Lend(name string, use func(ingest.Parts) error) error
}

// lend calls use with the parts of a checkpoint. use must not keep them.
func lend(store ingest.CheckpointStore, name string, use func(ingest.Parts) error) error {
	if s, can := store.(lendingStore); can {
		return s.Lend(name, use)
	}
	parts, err := store.Load(name)
	if err != nil {
		return err
	}
	return use(parts)
}

// Reasons why a unit is not judged: no entry of the configuration matches its policy, the stream limit is reached, the
// offsets of its policy's baseline are gone, or its record in the units topic cannot be read.
var (
	ErrUnmatched   = errors.New("unmatched")
	errStreamLimit = errors.New("stream_limit")
	errNoBaseline  = errors.New("no_baseline")
	// errTenantPolicies means that the tenant of the policy has reached its maximum number of policies.
	errTenantPolicies = errors.New("tenant_policies")
	ErrDamagedUnit    = errors.New("damaged")
)

// Worker returns the worker of a policy, and starts it if necessary. ErrUnmatched, errStreamLimit and errTenantPolicies
// mean that the policy is not monitored. errPinned and errPinnedGone mean that it has no baseline, temporarily or
// permanently.
func (d *Workers) Worker(ctx context.Context, policy string) (*RunningWorker, error) {
	if r := d.Of(policy); r != nil {
		return r, nil
	}
	cfg, watched := d.Pipeline.Cfg.Policy(policy)
	switch {
	case !watched:
		return nil, ErrUnmatched
	case d.Pipeline.tenants.Limit(policy).Full():
		return nil, errStreamLimit
	case d.Pipeline.tenants.Full(policy, time.Now()):
		return nil, errTenantPolicies
	}
	judge := d.newWorker(policy, cfg)
	if err := d.Pipeline.Recorded.Teach(ctx, judge.Policy, policy, cfg); err != nil {
		judge.Policy.Close()
		return nil, err
	}
	var r *RunningWorker
	var first bool
	if !d.Pipeline.tenants.Admit(policy, func() { r, first = d.add(policy, judge) }) {
		judge.Policy.Close()
		return nil, errTenantPolicies
	}
	if first {
		d.start(r)
	}
	return r, nil
}

func (d *Workers) newWorker(policy string, cfg watch.Config) *Worker {
	judge := NewWorker(policy, cfg, d.Pipeline.tenants.Limit(policy), d.Pipeline.audience)
	judge.NameTopics(d.Pipeline.Source.Topics)
	judge.follow(d.Pipeline.audience)
	judge.Policy.Keep(d.Pipeline.Memory.residents)
	return judge
}

// add adds the worker of a policy. If another partition has just added one, add returns that worker.
func (d *Workers) add(policy string, judge *Worker) (r *RunningWorker, first bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r := d.byPolicy[policy]; r != nil {
		return r, false
	}
	judge.Policy.Share(d.Pipeline.calibrations)
	judge.Policy.InBackground()
	r = newRunningWorker(judge, d)
	d.byPolicy[policy] = r
	return r, true
}

// start starts the goroutine of a worker.
func (d *Workers) start(r *RunningWorker) {
	d.Pipeline.checkFleet(r.Name)
	d.Wg.Go(func() {
		defer r.Policy.Close()
		if err := r.run(); err != nil {
			d.failed(fmt.Errorf("policy %q: %w", r.Name, err))
		}
	})
}

// failed handles the error of a worker. It ends the service, unless the worker was stopping or its partition has a new
// owner; in that case the partition is released. A shutdown that was cut short is not an error.
func (d *Workers) failed(err error) {
	if errors.Is(err, errTooLate) {
		return
	}
	if d.Ctx.Err() == nil && !errors.Is(err, ingest.ErrFenced) {
		d.Pipeline.Fail(err)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.errors = append(d.errors, err)
}

// stop lets every worker finish its units and save its state, waits for all of them, and returns their errors.
func (d *Workers) stop() error {
	d.end(errStopped)
	d.Wg.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	return errors.Join(d.errors...)
}

// ErrGivenUp is the reason for abandoning a worker that does not stop in time.
var ErrGivenUp = errors.New("dropped unsaved state because another instance may now own these policies")

// Leave stops the workers and removes them, because other instances will judge their policies. Workers that do not stop
// in time, for example because they wait for an unreachable ledger, drop everything that they have judged since their
// last save. The next owner judges it again.
func (d *Workers) Leave(patience time.Duration) error {
	stopped := make(chan error, 1)
	go func() { stopped <- d.stop() }()
	var err error
	select {
	case err = <-stopped:
	case <-time.After(patience):
		err = ErrGivenUp
	}
	d.Abandon(ErrGivenUp)
	d.Pipeline.remove(d)
	d.Pipeline.audience.Gone(d)
	return err
}

// Findings returns the incidents and faults of all workers, as last published.
func (d *Workers) Findings() (incidents []alerts.Incident, faults []alerts.Fault) {
	for _, r := range d.List() {
		shown := r.Shown.Load()
		incidents, faults = append(incidents, shown.Incidents...), append(faults, shown.Faults...)
	}
	return incidents, faults
}

// List returns the workers in any order.
func (d *Workers) List() []*RunningWorker {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Values(d.byPolicy))
}
