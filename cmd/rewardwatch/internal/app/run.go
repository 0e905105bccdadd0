package app

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/secrets"
)

// Limits on the duration of a shutdown, counted from the signal: until the last policy begins to be saved, and in
// total. Work that a shutdown cuts short is read again at the next start.
const (
	saveTimeout = 15 * time.Second
	stopTimeout = 20 * time.Second
)

// ErrNotStarted ends a run that could not open something that its configuration names.
var ErrNotStarted = errors.New("cannot start")

// Run restores the state, serves, and reads until ctx ends or a part fails. It then closes the app.
func (a *App) Run(ctx context.Context) error {
	err := a.run(ctx)
	return errors.Join(err, a.Close())
}

func (a *App) run(ctx context.Context) error {
	defer a.Pipeline.Memory.Hold()() // otherwise garbage would take as much memory again
	ctx, end := context.WithCancel(ctx)
	defer end()
	saving, saved := endsAfter(ctx, saveTimeout)
	defer saved()
	stopping, stopped := endsAfter(ctx, stopTimeout)
	defer stopped()
	if err := a.restore(ctx); err != nil {
		if ctx.Err() != nil {
			err = nil // an orderly shutdown
		} else {
			err = fmt.Errorf("%w: %w", ErrNotStarted, err)
		}
		end()
		return errors.Join(err, a.Pipeline.Stop(), a.Server.Stop(stopping))
	}
	a.Server.Open()
	// Deliveries and notifications continue until the workers have judged and saved everything that was read.
	outward, stopOutward := context.WithCancel(context.WithoutCancel(ctx))
	defer stopOutward()
	var dispatchers sync.WaitGroup
	failed := make(chan error, 2) // one for each dispatcher, so that neither blocks
	a.dispatcher(outward, &dispatchers, failed, "alertmanager", a.notifier.Run)
	dispatchers.Go(func() { a.Pipeline.WatchMemory(outward) })
	dispatchers.Go(func() { a.Pipeline.ExpireUnused(outward) })
	dispatchers.Go(func() { secrets.Run(outward, a.cfg.Secrets, a.stale, a.log) })
	if a.retrain != nil {
		a.dispatcher(outward, &dispatchers, failed, "retrain", a.retrain.Run)
	}
	if a.guards != nil {
		dispatchers.Go(func() { a.guards.Run(outward) })
	}
	if a.audit != nil {
		dispatchers.Go(func() { a.audit.Run(outward) })
	}

	err := a.read(ctx, failed)
	end()
	err = errors.Join(err, a.Pipeline.StopBy(saving))
	stopOutward()
	dispatchers.Wait()
	err = errors.Join(err, a.Server.Stop(stopping))
	if a.audit != nil {
		a.audit.Finish(stopping)
	}
	return err
}

// endsAfter returns a context that ends once d has passed since ctx ended.
func endsAfter(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	after, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(d):
			end()
		case <-after.Done():
		}
	})
	return after, func() { stop(); end() }
}

// dispatcher runs a part that notifies other systems.
func (a *App) dispatcher(ctx context.Context, wg *sync.WaitGroup, failed chan<- error, name string, run func(context.Context) error) {
	wg.Go(func() {
		if err := run(ctx); err != nil && ctx.Err() == nil {
			failed <- fmt.Errorf("%s: %w", name, err)
		}
	})
}

// read consumes until ctx ends or something fails, and returns once the consumer has saved its work.
func (a *App) read(ctx context.Context, failed <-chan error) error {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- a.consume(reading) }()
	var err error
	select {
	case err = <-done:
		return err
	case err = <-failed:
	case err = <-a.Server.Failed():
	case <-a.Pipeline.Failed(): // Stop returns the error
	case <-ctx.Done():
	}
	stop()
	return errors.Join(err, <-done)
}

// consume reads until ctx ends, and returns once everything that it read is saved.
func (a *App) consume(ctx context.Context) error {
	if a.sender == nil {
		return a.judge(ctx)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var sending sync.WaitGroup
	var failed error
	sending.Go(func() {
		defer stop()
		failed = a.sender.writer.Run(ctx, a.sender.consumer.Run)
	})
	err := a.judge(ctx)
	stop()
	sending.Wait()
	return errors.Join(err, failed)
}

// judge reads the telemetry that is judged here.
func (a *App) judge(ctx context.Context) error {
	if a.cluster != nil {
		return a.cluster.Run(ctx, a.consumer)
	}
	return a.consumer.Run(ctx)
}

// restore restores the saved workers. In a cluster they arrive with the partitions of the units topic.
func (a *App) restore(ctx context.Context) error {
	if a.cluster != nil {
		return nil
	}
	names, err := a.store.Names(engine.BankPrefix)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	a.Server.WaitsFor(fmt.Sprintf("restoring the state of %d policies", len(names)))
	return a.workers.Restore(ctx, names)
}

// ledgerPatience is how long a policy may wait for the ledger before the service reports that it is not ready.
const ledgerPatience = 15 * time.Second
