package ledger

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/retrain/target"
)

// How the queue works.
const (
	FetchEvery   = time.Second      // how often a target's queue is polled for jobs of other processes, and for retries
	fetchPause   = time.Millisecond // minimum between two polls while there are jobs
	KeptJobs     = time.Minute      // how long a finished job is kept: the ledger has its outcome
	mostAttempts = 1 << 14          // of a job whose process dies each time: its request expires before
	lastPriority = 4                // of a wake, the lowest, so that it does not precede the jobs that it wakes the queue for
)

// delivery is the job of an open request. All other state of the request is in the ledger.
type delivery struct {
	Request string `json:"request"`
}

// Kind implements river.JobArgs.
func (delivery) Kind() string { return "delivery" }

// wake is a job without work.
type wake struct{}

// Kind implements river.JobArgs.
func (wake) Kind() string { return "wake" }

// queueOf returns the name of a target's queue. Target names may have characters that queue names may not have.
func queueOf(target string) string {
	sum := sha256.Sum256([]byte(target))
	return "target-" + hex.EncodeToString(sum[:8])
}

// wallClock makes the queue use the clock of the process, as the ledger does, and not that of the database.
type wallClock struct{}

func (wallClock) NowUTC() time.Time { return time.Now().UTC() }
func (w wallClock) NowUTCOrNil() *time.Time {
	now := w.NowUTC()
	return &now
}

// Queue schedules the open requests of a ledger, one at a time per target, roughly in the order of their times.
type Queue struct {
	ledger *Ledger
	client *river.Client[*sql.Tx]

	mu      sync.RWMutex
	started bool // jobs may be inserted outside of a transaction: River's start and stop must not run meanwhile
}

// NewQueue returns the queue of the ledger. It calls deliver to make an attempt; deliver returns when the next one
// follows and whether the request is still open. Its errors go to failed.
func NewQueue(
	l *Ledger, targets []target.Target, deliver func(ctx context.Context, request string) (again time.Time, open bool, err error), failed func(error), log zerolog.Logger,
) (*Queue, error) {
	queues := map[string]river.QueueConfig{}
	for _, t := range targets {
		queues[queueOf(t.Name)] = river.QueueConfig{MaxWorkers: 1}
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, deliverer{deliver: deliver, failed: failed})
	river.AddWorker(workers, river.WorkFunc(func(context.Context, *river.Job[wake]) error { return nil }))
	client, err := river.NewClient(l.jobs(l.db), &river.Config{
		ID:                          rand.Text(),
		Queues:                      queues,
		Workers:                     workers,
		FetchPollInterval:           FetchEvery,
		FetchCooldown:               fetchPause,
		JobTimeout:                  -1, // the target's timeout bounds attempts; recording them may wait
		RescueStuckJobsAfter:        time.Duration(target.MaxTimeout) + ClaimMargin,
		CompletedJobRetentionPeriod: KeptJobs,
		MaxAttempts:                 mostAttempts,
		Logger:                      queueLog(log),
		Test:                        river.TestConfig{Time: wallClock{}}, // there is no other way to set a clock
	})
	if err != nil {
		return nil, fmt.Errorf("create the queue: %w", err)
	}
	return &Queue{ledger: l, client: client}, nil
}

// queueLog logs a sample of the queue's warnings: it polls every second, and warns each time that the ledger is
// unavailable.
func queueLog(log zerolog.Logger) *slog.Logger {
	log = log.Level(max(log.GetLevel(), zerolog.WarnLevel)).Sample(&zerolog.BurstSampler{Burst: 5, Period: time.Minute})
	return slog.New(zerolog.NewSlogHandler(log))
}

// migrateQueue upgrades the tables of the queue. On PostgreSQL, each of its migrations needs its own transaction; the
// ledger's transaction keeps other instances away meanwhile.
func (l *Ledger) migrateQueue(ctx context.Context, tx *Tx) error {
	migrator, err := rivermigrate.New(l.jobs(l.db), &rivermigrate.Config{Logger: queueLog(zerolog.Nop())})
	if err != nil {
		return err
	}
	if l.shared {
		_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	} else {
		_, err = migrator.MigrateTx(ctx, tx.Tx, rivermigrate.DirectionUp, nil) //nolint:staticcheck // deprecated for PostgreSQL; SQLite has one connection, which is that of tx
	}
	if err != nil {
		return fmt.Errorf("migrate the queue: %w", err)
	}
	return nil
}

// Start starts the queue. If that fails, it stops the queue, so that it can start again.
func (q *Queue) Start(ctx context.Context) error {
	err := q.client.Start(ctx)
	if err != nil {
		return errors.Join(err, q.client.Stop(ctx))
	}
	q.setStarted(true)
	return nil
}

// Stop stops the queue and its attempts.
func (q *Queue) Stop(ctx context.Context) error {
	q.setStarted(false)
	return q.client.Stop(ctx)
}

func (q *Queue) setStarted(started bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.started = started
}

// Add schedules the delivery of a request for when the transaction commits. The queue of this process then looks at it
// at once, the queues of others when they poll.
func (q *Queue) Add(ctx context.Context, tx *Tx, request, target string) error {
	_, err := q.client.InsertTx(ctx, tx.Tx, delivery{request}, &river.InsertOpts{Queue: queueOf(target)})
	if err != nil {
		return fmt.Errorf("enqueue the delivery of %s: %w", request, err)
	}
	tx.committed = append(tx.committed, func(ctx context.Context) { q.wake(ctx, target) })
	return nil
}

// wake makes the queue of a target in this process look for jobs. River does so only for jobs that are inserted outside
// of a transaction. If the insertion fails, polling finds the jobs.
func (q *Queue) wake(ctx context.Context, target string) {
	q.mu.RLock()
	defer q.mu.RUnlock()
	if !q.started {
		return
	}
	_, _ = q.client.Insert(ctx, wake{}, &river.InsertOpts{Queue: queueOf(target), Priority: lastPriority})
}

// AddAll adds a job for each open request without a waiting one: for requests from a backup or from a build without
// the queue, and for those whose job a process was working on when it died. A request may have two jobs; the ledger
// lets only one of them make an attempt.
func (q *Queue) AddAll(ctx context.Context) error {
	return q.ledger.Update(ctx, func(tx *Tx) error {
		if err := q.addIn(ctx, tx); err != nil {
			return err
		}
		if !q.ledger.shared { // otherwise the lease of a dead process would last until it expires, by that process's clock
			if _, err := tx.ExecContext(ctx, `DELETE FROM river_leader`); err != nil {
				return fmt.Errorf("release the lease of the previous process: %w", err)
			}
		}
		_, err := tx.ExecContext(ctx, `DELETE FROM river_job WHERE state IN ('available', 'scheduled', 'retryable')
			AND args ->> 'request' NOT IN (SELECT id FROM requests WHERE state = 'open')`)
		if err != nil {
			return fmt.Errorf("delete the jobs of requests that are no longer open: %w", err)
		}
		return nil
	})
}

// AddJobless adds a job for each open request without a waiting one.
func (q *Queue) AddJobless(ctx context.Context) error {
	return q.ledger.Update(ctx, func(tx *Tx) error { return q.addIn(ctx, tx) })
}

func (q *Queue) addIn(ctx context.Context, tx *Tx) error {
	jobless, err := joblessRequests(ctx, tx)
	if err != nil {
		return fmt.Errorf("find requests without a job: %w", err)
	}
	for request, target := range jobless {
		if err := q.Add(ctx, tx, request, target); err != nil {
			return err
		}
	}
	return nil
}

// joblessRequests returns the targets of open requests without a waiting job, by request.
func joblessRequests(ctx context.Context, tx *Tx) (map[string]string, error) {
	rows, err := tx.QueryContext(ctx, `SELECT id, target FROM requests WHERE state = 'open' AND id NOT IN (
		SELECT args ->> 'request' FROM river_job WHERE kind = 'delivery' AND state IN ('available', 'scheduled', 'retryable'))`)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // rows.Err returns its error
	out := map[string]string{}
	for rows.Next() {
		var id, target string
		if err := rows.Scan(&id, &target); err != nil {
			return nil, err
		}
		out[id] = target
	}
	return out, rows.Err()
}

// deliverer is the worker of the queue.
type deliverer struct {
	river.WorkerDefaults[delivery]
	deliver func(ctx context.Context, request string) (again time.Time, open bool, err error)
	failed  func(error)
}

// Work implements river.Worker: it makes the next attempt, and reschedules the job for the one after.
func (d deliverer) Work(ctx context.Context, job *river.Job[delivery]) error {
	again, open, err := d.deliver(ctx, job.Args.Request)
	switch {
	case err != nil:
		d.failed(err)
		return err
	case open:
		return river.JobSnooze(max(time.Until(again), 0))
	}
	return nil
}

// NextRetry implements river.Worker. A job whose process has died returns soon: the ledger has the time of the next
// attempt.
func (deliverer) NextRetry(*river.Job[delivery]) time.Time { return time.Now().UTC().Add(time.Second) }
