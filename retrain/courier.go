package retrain

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/riverqueue/river"
	"github.com/rs/zerolog"
)

// requestLifetime is how long a request may wait for its delivery. A drift that is older is better judged anew.
const requestLifetime = 24 * time.Hour

// courier delivers open requests, for each target one at a time. The queue says when to look at a request, about in the order in which
// they fall due, and all else of it stands in the ledger: another courier goes on where one ended, and several share the work.
type courier struct {
	ledger   *ledger
	targets  map[string]Target  // by name
	adapters map[string]adapter // by target
	queue    *river.Client[*sql.Tx]
	stopping chan struct{} // closed when run is to begin nothing more
	failed   chan error    // holds the first error of the ledger
	metrics  *metrics
	log      zerolog.Logger
}

func newCourier(l *ledger, targets []Target, adapters map[string]adapter, m *metrics, log zerolog.Logger) (*courier, error) {
	c := &courier{
		ledger: l, targets: map[string]Target{}, adapters: adapters, failed: make(chan error, 1), metrics: m, log: log,
	}
	for _, t := range targets {
		c.targets[t.Name] = t
	}
	var err error
	c.queue, err = newQueue(l, targets, deliverer{courier: c}, log)
	return c, err
}

// run delivers until the context ends, finishing the attempts in flight. An error of the ledger ends it: what cannot
// be recorded must not be sent.
func (c *courier) run(ctx context.Context) error {
	if len(c.targets) == 0 {
		<-ctx.Done()
		return nil
	}
	c.stopping = make(chan struct{})
	work := context.WithoutCancel(ctx) // or what is on its way would be cut short
	if err := c.ledger.patiently(ctx, func() error { return c.start(work) }); err != nil {
		return fmt.Errorf("start the queue: %w", err)
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-c.failed:
	}
	close(c.stopping)
	return errors.Join(err, c.queue.Stop(work))
}

// start starts the queue, which has to be stopped where that has failed, or it would not start another time.
func (c *courier) start(ctx context.Context) error {
	err := c.queue.Start(ctx)
	if err != nil {
		err = errors.Join(err, c.queue.Stop(ctx))
	}
	return err
}

// fail ends run.
func (c *courier) fail(err error) {
	select {
	case c.failed <- err:
	default: // one is enough
	}
}

// deliver makes an attempt where one is due, and says when the next one is and whether the request is still open.
func (c *courier) deliver(ctx context.Context, request string) (again time.Time, open bool, err error) {
	m, due, open, err := c.ledger.order(ctx, request)
	if err != nil || !open || time.Now().Before(due) {
		return due, open, err
	}
	select {
	case <-c.stopping:
		return due, true, nil // nothing is begun any more
	default:
	}
	if err := c.attempt(ctx, c.targets[m.target], m); err != nil {
		return time.Time{}, false, err
	}
	_, again, open, err = c.ledger.order(ctx, request)
	return again, open, err
}

// attempt makes one delivery. It is not cut short by a shutdown: the receiver may have the order already, and only the
// answer tells. The target's timeout bounds it.
func (c *courier) attempt(ctx context.Context, t Target, m message) error {
	ctx = context.WithoutCancel(ctx)
	attempt, err := c.ledger.begin(ctx, m.id, t)
	if err != nil || attempt == 0 {
		return err
	}
	started := time.Now()
	o := c.send(ctx, m)
	now := time.Now()
	c.metrics.delivered(t.Name, o.result, now.Sub(started))
	then := follow(o, attempt, now, m.expires, rand.Float64())
	c.report(t, m, attempt, o, then)
	return c.ledger.finish(ctx, t, m.id, attempt, o, then, now)
}

// send has the target's adapter speak to it. An order over which that panics would be sent again and again: it is given up.
func (c *courier) send(ctx context.Context, m message) (o outcome) {
	defer func() {
		if p := recover(); p != nil {
			c.log.Error().Str("target", m.target).Str("request", m.id).Bytes("stack", debug.Stack()).Msgf("panic: %v", p)
			o = outcome{result: ResultInvalid, err: fmt.Sprintf("panic: %v", p)}
		}
	}()
	return c.adapters[m.target].send(ctx, m)
}

func (c *courier) report(t Target, m message, attempt int, o outcome, then step) {
	event := c.log.Warn()
	text := "webhook not delivered; will be sent again"
	switch {
	case then.disable:
		event, text = c.log.Error(), "webhook target answered 410 Gone and is disabled: nothing is sent to it until its name or URL changes"
	case then.state == StateDelivered:
		event, text = c.log.Info(), "webhook delivered"
	case then.state == StateDeadLetter:
		event, text = c.log.Error(), "webhook not delivered; given up"
	default:
		event = event.Time("next_attempt", then.retry)
	}
	event.Str("target", t.Name).Str("request", m.id).Int("attempt", attempt).Str("result", string(o.result)).
		Int("status", o.status).Str("error", o.err).Msg(text)
}

// step is what follows from an attempt.
type step struct {
	state   State     // StateOpen: send again at retry
	retry   time.Time // valid where the request stays open
	reason  string
	disable bool // the target wants no more deliveries
}

// follow decides what follows from the outcome of an attempt (from 1). The jitter, in [0, 1), spreads retries. Success
// ends the request; 410 disables the target; a body that must not be sent is given up; all else is sent again after the schedule's delay, or the receiver's
// Retry-After where that is longer, unless the request expires before.
func follow(o outcome, attempt int, now, expires time.Time, jitter float64) step {
	switch o.result {
	case ResultDelivered:
		return step{state: StateDelivered}
	case ResultGone:
		return step{state: StateDeadLetter, disable: true}
	case ResultInvalid: // as one of a build before contracts
		return step{state: StateDeadLetter, reason: o.err}
	}
	retry := now.Add(max(retryDelay(attempt, jitter), o.retryAfter))
	if !retry.Before(expires) {
		return step{state: StateDeadLetter, reason: fmt.Sprintf("%d attempts failed, the last as %s; expires before the next", attempt, o.result)}
	}
	return step{state: StateOpen, retry: retry}
}

// retryDelay is the time between an attempt (from 1) and the next one: the schedule that Standard Webhooks 1.0.0
// recommends, its last delay repeated, each lengthened by up to a fifth so that receivers are not hit in step.
func retryDelay(attempt int, jitter float64) time.Duration {
	schedule := [...]time.Duration{
		5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour,
	}
	delay := schedule[min(max(attempt, 1), len(schedule))-1]
	return delay + time.Duration(jitter*float64(delay)/5)
}
