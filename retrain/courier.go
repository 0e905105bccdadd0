package retrain

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// requestLifetime is how long a request may wait for its delivery. A drift that is older is better judged anew.
const requestLifetime = 24 * time.Hour

// newsEvery is how often a courier looks for requests in a ledger that other instances write to. The instance that opens
// a request delivers it; another one has to find it only where that one ends before it has.
const newsEvery = time.Minute

// courier delivers open requests: for each target one at a time, in the order in which they fall due. All that it must
// not forget stands in the ledger, so a new courier goes on where another one ended, and several share the work.
type courier struct {
	ledger   *ledger
	targets  []Target
	adapters map[string]adapter       // by target
	wake     map[string]chan struct{} // by target; holds a token while there is news
	metrics  *metrics
	log      zerolog.Logger
}

func newCourier(l *ledger, targets []Target, adapters map[string]adapter, m *metrics, log zerolog.Logger) *courier {
	c := &courier{ledger: l, targets: targets, adapters: adapters, wake: map[string]chan struct{}{}, metrics: m, log: log}
	for _, t := range targets {
		c.wake[t.Name] = make(chan struct{}, 1)
	}
	return c
}

// notify says that the target has a new request.
func (c *courier) notify(target string) {
	select {
	case c.wake[target] <- struct{}{}:
	default: // a token is there already
	}
}

// run delivers until the context ends, finishing the attempts in flight. An error of the ledger ends it: what cannot
// be recorded must not be sent.
func (c *courier) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(c.targets))
	var wg sync.WaitGroup
	for i, t := range c.targets {
		wg.Go(func() {
			defer cancel()
			errs[i] = c.serve(ctx, t)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (c *courier) serve(ctx context.Context, t Target) error {
	for {
		m, due, found, err := c.ledger.next(ctx, t.Name)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if !c.await(ctx, t.Name, due, found) {
			continue
		}
		if err := c.attempt(ctx, t, m); err != nil {
			return err
		}
	}
}

// await waits until a message is due and reports true, or reports false when there is news, or may be, or the context has
// ended.
func (c *courier) await(ctx context.Context, target string, due time.Time, found bool) bool {
	var timer, others <-chan time.Time
	if found {
		timer = time.After(time.Until(due))
	}
	if c.ledger.shared {
		others = time.After(newsEvery)
	}
	select {
	case <-ctx.Done():
		return false
	case <-c.wake[target]:
		return false
	case <-others:
		return false
	case <-timer:
		return ctx.Err() == nil // nothing is begun once the context has ended
	}
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
	o := c.adapters[t.Name].send(ctx, m)
	now := time.Now()
	c.metrics.delivered(t.Name, o.result, now.Sub(started))
	then := follow(o, attempt, now, m.expires, rand.Float64())
	c.report(t, m, attempt, o, then)
	return c.ledger.finish(ctx, t, m.id, attempt, o, then, now)
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
