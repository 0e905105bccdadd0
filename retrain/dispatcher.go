package retrain

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/target"
)

// requestLifetime is how long a request may wait for its delivery. After that, the drift should be judged again.
const requestLifetime = 24 * time.Hour

// dispatcher delivers open requests, one at a time per target. The queue determines when to look at a request,
// roughly in the order of their times; all other state is in the ledger. So another dispatcher can continue, and
// several can share the work.
type dispatcher struct {
	ledger   *ledger.Ledger
	targets  map[string]target.Target  // by name
	adapters map[string]target.Adapter // by target
	queue    *ledger.Queue
	stopping chan struct{} // closed when run must not begin anything more
	failed   chan error    // the first error of the ledger
	metrics  *metrics
	log      zerolog.Logger
}

func newDispatcher(l *ledger.Ledger, targets []target.Target, adapters map[string]target.Adapter, m *metrics, log zerolog.Logger) (*dispatcher, error) {
	c := &dispatcher{
		ledger: l, targets: map[string]target.Target{}, adapters: adapters, failed: make(chan error, 1), metrics: m, log: log,
	}
	for _, t := range targets {
		c.targets[t.Name] = t
	}
	var err error
	c.queue, err = ledger.NewQueue(l, targets, c.deliver, c.fail, log)
	return c, err
}

// run delivers until the context ends, and finishes the attempts in flight. An error of the ledger ends it, because
// an attempt that cannot be recorded must not be made. After ErrSuspended it may be called again.
func (c *dispatcher) run(ctx context.Context) error {
	if len(c.targets) == 0 {
		<-ctx.Done()
		return nil
	}
	c.stopping = make(chan struct{})
	select {
	case err := <-c.failed:
		c.log.Debug().Err(err).Msg("earlier deliveries failed")
	default:
	}
	suspended := c.ledger.Away()
	work := context.WithoutCancel(ctx) // attempts in flight must not be cut short
	if err := c.ledger.Patiently(ctx, func() error { return c.queue.Start(work) }); err != nil {
		return fmt.Errorf("start the queue: %w", err)
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-c.failed:
	case <-suspended:
		err = ledger.ErrSuspended
	}
	close(c.stopping)
	return errors.Join(err, c.queue.Stop(work))
}

// fail ends run.
func (c *dispatcher) fail(err error) {
	select {
	case c.failed <- err:
	default: // one is enough
	}
}

// deliver makes an attempt if one is due. It returns when the next one is due, and whether the request is still
// open.
func (c *dispatcher) deliver(ctx context.Context, request string) (again time.Time, open bool, err error) {
	m, due, open, err := c.ledger.Order(ctx, request)
	if err != nil || !open || time.Now().Before(due) {
		return due, open, err
	}
	select {
	case <-c.stopping:
		return due, true, nil // nothing new begins
	default:
	}
	if err := c.attempt(ctx, c.targets[m.Target], m); err != nil {
		return time.Time{}, false, err
	}
	_, again, open, err = c.ledger.Order(ctx, request)
	return again, open, err
}

// attempt makes one delivery. A shutdown does not interrupt it: the receiver may already have the order, and only
// its answer shows whether it does. The target's timeout bounds the attempt.
func (c *dispatcher) attempt(ctx context.Context, t target.Target, m target.Message) error {
	ctx = context.WithoutCancel(ctx)
	token, err := reportTokenOf(ctx, c.ledger, m.ID)
	if err != nil {
		return err
	}
	m.Token = token
	attempt, err := c.ledger.Begin(ctx, m.ID, t)
	if err != nil || attempt == 0 {
		return err
	}
	started := time.Now()
	o := c.send(ctx, m)
	now := time.Now()
	c.metrics.delivered(t.Name, o.Result, now.Sub(started))
	then := follow(o, attempt, now, m.Expires, rand.Float64())
	c.report(t, m, attempt, o, then)
	// The receiver may have the order: without this entry it would be sent again.
	return c.ledger.Insist(func() error { return c.ledger.Finish(ctx, t, m.ID, attempt, o, then, now) })
}

// send makes the target's adapter send m. If the adapter panics, the order is given up, because it would otherwise
// be sent again and again.
func (c *dispatcher) send(ctx context.Context, m target.Message) (o target.Attempt) {
	defer func() {
		if p := recover(); p != nil {
			c.log.Error().Str("target", m.Target).Str("request", m.ID).Bytes("stack", debug.Stack()).Msgf("panic: %v", p)
			o = target.Attempt{Result: target.ResultInvalid, Err: fmt.Sprintf("panic: %v", p)}
		}
	}()
	return c.adapters[m.Target].Send(ctx, m)
}

func (c *dispatcher) report(t target.Target, m target.Message, attempt int, o target.Attempt, then ledger.Step) {
	event := c.log.Warn()
	text := "failed to deliver a webhook, retrying"
	switch {
	case then.Disable:
		event, text = c.log.Error(), "webhook target responded with 410 Gone and is disabled until its name or URL changes"
	case then.State == ledger.StateDelivered:
		event, text = c.log.Info(), "webhook delivered"
	case then.State == ledger.StateDeadLetter:
		event, text = c.log.Error(), "failed to deliver a webhook, giving up"
	default:
		event = event.Time("next_attempt", then.Retry)
	}
	event.Str("target", t.Name).Str("request", m.ID).Int("attempt", attempt).Str("result", string(o.Result)).
		Int("status", o.Status).Str("error", o.Err).Msg(text)
}

// follow returns the step that follows the outcome of an attempt (from 1). The jitter, in [0, 1), spreads retries.
// Success ends the request; 410 disables the target; a body that must not be sent is given up. Anything else is
// sent again, unless the request expires first: after the schedule's delay, or the receiver's Retry-After if that
// is longer.
func follow(o target.Attempt, attempt int, now, expires time.Time, jitter float64) ledger.Step {
	switch o.Result {
	case target.ResultDelivered:
		return ledger.Step{State: ledger.StateDelivered}
	case target.ResultGone:
		return ledger.Step{State: ledger.StateDeadLetter, Disable: true}
	case target.ResultInvalid: // such as a body from a build without contracts
		return ledger.Step{State: ledger.StateDeadLetter, Reason: o.Err}
	}
	retry := now.Add(max(retryDelay(attempt, jitter), o.RetryAfter))
	if !retry.Before(expires) {
		return ledger.Step{State: ledger.StateDeadLetter, Reason: fmt.Sprintf("%d attempts failed, most recently with %s; the request expires before the next attempt", attempt, o.Result)}
	}
	return ledger.Step{State: ledger.StateOpen, Retry: retry}
}

// retryDelay returns the time between an attempt (from 1) and the next one. It follows the schedule that Standard
// Webhooks 1.0.0 recommends, repeats the last delay, and lengthens each by up to a fifth so that receivers are not hit
// in step.
func retryDelay(attempt int, jitter float64) time.Duration {
	schedule := [...]time.Duration{
		5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour,
	}
	delay := schedule[min(max(attempt, 1), len(schedule))-1]
	return delay + time.Duration(jitter*float64(delay)/5)
}
