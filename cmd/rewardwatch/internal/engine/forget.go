package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/capacity"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Once limits.streams has refused something, groups without a unit for this long are forgotten to make room. Groups
// with and without a baseline have different limits. The workers look for such groups every expireEvery.
const (
	expireWithBaseline = 30 * 24 * time.Hour
	expireWithout      = 24 * time.Hour
	expireEvery        = time.Minute
)

// ExpireUnused periodically checks whether groups must make room, until ctx ends.
func (p *Pipeline) ExpireUnused(ctx context.Context) {
	pulse := time.NewTicker(expireEvery)
	defer pulse.Stop()
	limits := p.tenants.Limits()
	for refused := make([]int64, len(limits)); ; {
		select {
		case <-ctx.Done():
			return
		case now := <-pulse.C:
			for i, l := range limits {
				if n := l.Refused(); n != refused[i] {
					refused[i] = n
					p.expire(ctx, l, now)
				}
			}
		}
	}
}

// expire makes the workers that share a limit forget groups that have not been used for a long time.
func (p *Pipeline) expire(ctx context.Context, limit *capacity.StreamLimit, now time.Time) {
	for _, r := range p.All() {
		if p.tenants.Limit(r.Name) != limit {
			continue
		}
		err := r.Ask(ctx, func(ctx context.Context) error { return r.expire(ctx, now) })
		if err != nil && ctx.Err() == nil && !errors.Is(err, ErrStopping) {
			p.Log.Error().Err(err).Str("policy", r.Name).Msg("failed to forget unused groups")
		}
	}
}

// expire forgets the groups of the worker that have not been used for a long time, and the worker itself if no group is
// left.
func (r *RunningWorker) expire(_ context.Context, now time.Time) error {
	unused := r.Policy.Unused(now, expireWithBaseline, expireWithout)
	if len(unused) == 0 {
		return nil
	}
	r.workers.Pipeline.Metrics.expired.Add(float64(len(unused)))
	r.workers.Pipeline.Log.Info().Str("policy", r.Name).Int("groups", len(unused)).Msg("forgot inactive groups to make room for others")
	r.Policy.Forget(unused)
	r.Publish()
	if len(r.Policy.Summary().Groups) > 0 || r.guards.Tripped() { // otherwise agents would be free again although no one has released them
		return nil
	}
	return r.leaveForGood()
}

// Forget closes the incidents and faults of the policy, and then forgets the policy.
func (r *RunningWorker) Forget(ctx context.Context, decision alerts.Decision) error {
	busy := map[ingest.Group]bool{}
	for _, i := range r.tracker.Incidents() {
		busy[i.Group] = busy[i.Group] || !i.Closed
	}
	for _, f := range r.tracker.Faults() {
		busy[f.Group] = true
	}
	for group, is := range busy {
		if !is {
			continue
		}
		if err := r.restart(ctx, group, decision); err != nil {
			return err
		}
	}
	var all []ingest.Group
	for _, g := range r.Policy.Summary().Groups {
		all = append(all, g.Group)
	}
	r.Policy.Forget(all)
	r.Publish()
	return r.leaveForGood()
}

// forgetfulStore is a store that can forget a checkpoint.
type forgetfulStore interface{ Forget(name string) error }

// leaveForGood removes the checkpoint of the worker, and then the worker, whose goroutine ends after that. A unit that
// arrives later starts the policy from scratch.
func (r *RunningWorker) leaveForGood() error {
	store, can := r.workers.Store.(forgetfulStore)
	if !can {
		return fmt.Errorf("the checkpoint store %T cannot forget checkpoints", r.workers.Store)
	}
	if err := store.Forget(BankPrefix + r.Name); err != nil {
		r.lost() // the worker continues, but parts of its checkpoint may be gone
		return err
	}
	r.workers.mu.Lock()
	delete(r.workers.byPolicy, r.Name)
	r.workers.mu.Unlock()
	close(r.gone)
	r.workers.Pipeline.audience.Forgotten(r.Name)
	return nil
}

// isGone reports whether the worker has left for good.
func (r *RunningWorker) isGone() bool {
	select {
	case <-r.gone:
		return true
	default:
		return false
	}
}

// letGo drops the route to a worker that has left, and the units that were kept for it.
func (d *Delivery) letGo(policy string) {
	if w := d.Known[policy]; w != nil {
		w.next = nil // or routes to workers that have left would keep each other in memory
		if d.recent == w {
			d.recent = nil
		}
	}
	delete(d.Known, policy)
	if d.units != nil {
		d.units.Drop(policy)
		return
	}
	d.forget(func(u *ingest.Unit) bool { return u.Group.Policy == policy })
}

// forgetting is an order to forget a policy. No two orders for one policy are given at the same nanosecond.
type forgetting struct {
	Policy string
	At     int64 // when the order was given, in Unix nanoseconds
}

// mostForgotten is the maximum number of completed orders that a partition remembers, so that it does not repeat them.
const mostForgotten = 256

// forget makes the first stage of the partition drop a policy, before the next batch or snapshot.
func (f *PartitionFeed) forget(o forgetting) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forgotten = append(f.forgotten, o)
}

// isToForget reports whether an order is waiting to be carried out.
func (f *PartitionFeed) isToForget() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.forgotten) > 0
}

// obey makes the first stage forget the policies in the orders. It skips an order that arrives a second time, because
// the policy's open episodes began after it.
func (f *PartitionFeed) obey() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range f.forgotten {
		if slices.Contains(f.obeyed, o) {
			continue
		}
		for _, l := range f.lanes() {
			l.Drop(o.Policy)
		}
		f.obeyed = append(f.obeyed, o)
	}
	f.obeyed = f.obeyed[max(0, len(f.obeyed)-mostForgotten):]
	f.forgotten = nil
}

// Forget drops the open episodes of a policy, as requested at the given time. Calling it again has no effect.
func (t *Telemetry) Forget(policy string, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range t.feeds {
		f.forget(forgetting{Policy: policy, At: at.UnixNano()})
	}
}

// ErrUnknownPolicy is returned for a policy that no worker judges.
var ErrUnknownPolicy = errors.New("policy not found")

// ForgetPolicy makes the worker of a policy forget it, and then drops the policy's open episodes.
func (t *Telemetry) ForgetPolicy(ctx context.Context, policy string, d alerts.Decision) error {
	r := t.pipeline.worker(policy)
	if r == nil {
		return ErrUnknownPolicy
	}
	if err := r.Ask(ctx, func(ctx context.Context) error { return r.Forget(ctx, d) }); err != nil {
		return err
	}
	t.Forget(policy, d.At)
	t.pipeline.Log.Info().Str("policy", policy).Stringer("decision", d).Msg("forgetting a policy on request")
	return nil
}

// Of returns the worker of a policy, or nil if there is none.
func (d *Workers) Of(policy string) *RunningWorker {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.byPolicy[policy]
}
