package retrain

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/rs/zerolog"
)

// How the queue works.
const (
	fetchEvery   = time.Second      // how often a target's queue is looked at, as nobody tells of a new job
	fetchPause   = time.Millisecond // between two looks at it, at least, while there are jobs
	keptJobs     = time.Minute      // for how long a finished job is kept: the ledger knows what became of it
	mostAttempts = 1 << 14          // of a job whose process dies each time: its request expires before
)

// delivery is the job of an open request. All else of the request stands in the ledger.
type delivery struct {
	Request string `json:"request"`
}

// Kind implements river.JobArgs.
func (delivery) Kind() string { return "delivery" }

// queueOf names the queue of a target, whose name may have characters that no queue may have.
func queueOf(target string) string {
	sum := sha256.Sum256([]byte(target))
	return "target-" + hex.EncodeToString(sum[:8])
}

// wallClock has the queue count time as the ledger does, by the clock of the process and not by that of the database.
type wallClock struct{}

func (wallClock) NowUTC() time.Time { return time.Now().UTC() }
func (w wallClock) NowUTCOrNil() *time.Time {
	now := w.NowUTC()
	return &now
}

// newQueue makes the queue of the ledger, in which one order of each target is worked on at a time.
func newQueue(l *ledger, targets []Target, work river.Worker[delivery], log zerolog.Logger) (*river.Client[*sql.Tx], error) {
	queues := map[string]river.QueueConfig{}
	for _, t := range targets {
		queues[queueOf(t.Name)] = river.QueueConfig{MaxWorkers: 1}
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, work)
	queue, err := river.NewClient(l.jobs(l.db), &river.Config{
		ID:                          rand.Text(),
		Queues:                      queues,
		Workers:                     workers,
		FetchPollInterval:           fetchEvery,
		FetchCooldown:               fetchPause,
		JobTimeout:                  -1, // an attempt has the timeout of its target, and its record may have to wait for the ledger
		RescueStuckJobsAfter:        time.Duration(maxTimeout) + claimMargin,
		CompletedJobRetentionPeriod: keptJobs,
		MaxAttempts:                 mostAttempts,
		Logger:                      queueLog(log),
		Test:                        river.TestConfig{Time: wallClock{}}, // there is no other place for a clock
	})
	if err != nil {
		return nil, fmt.Errorf("make the queue: %w", err)
	}
	return queue, nil
}

// queueLog passes on what the queue warns of, in part: it looks every second, and says each time that the ledger cannot be reached.
func queueLog(log zerolog.Logger) *slog.Logger {
	log = log.Level(max(log.GetLevel(), zerolog.WarnLevel)).Sample(&zerolog.BurstSampler{Burst: 5, Period: time.Minute})
	return slog.New(zerolog.NewSlogHandler(log))
}

// migrateQueue brings the tables of the queue up to date. On PostgreSQL each of its migrations needs a transaction of its own; that of
// the ledger keeps other instances away meanwhile.
func (l *ledger) migrateQueue(ctx context.Context, tx *sql.Tx) error {
	migrator, err := rivermigrate.New(l.jobs(l.db), &rivermigrate.Config{Logger: queueLog(zerolog.Nop())})
	if err != nil {
		return err
	}
	if l.shared {
		_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	} else {
		_, err = migrator.MigrateTx(ctx, tx, rivermigrate.DirectionUp, nil) //nolint:staticcheck // deprecated for PostgreSQL; SQLite has one connection, which is that of tx
	}
	if err != nil {
		return fmt.Errorf("migrate the queue: %w", err)
	}
	return nil
}

// enqueue has a request delivered once the transaction is committed.
func (c *courier) enqueue(ctx context.Context, tx *sql.Tx, request, target string) error {
	_, err := c.queue.InsertTx(ctx, tx, delivery{request}, &river.InsertOpts{Queue: queueOf(target)})
	if err != nil {
		return fmt.Errorf("enqueue the delivery of %s: %w", request, err)
	}
	return nil
}

// enqueueAll gives a job to the open requests that have none which waits: those of a build before the queue or of a backup, and
// those whose jobs a process that has died was working on. A request may have two jobs, of which the ledger lets one make an attempt.
func (c *courier) enqueueAll(ctx context.Context) error {
	return c.ledger.update(ctx, func(tx *sql.Tx) error {
		jobless, err := joblessRequests(ctx, tx)
		if err != nil {
			return fmt.Errorf("look for requests without a job: %w", err)
		}
		for request, target := range jobless {
			if err := c.enqueue(ctx, tx, request, target); err != nil {
				return err
			}
		}
		if !c.ledger.shared { // the lease of a process that has died would hold until it ends, by whatever clock that had
			if _, err := tx.ExecContext(ctx, `DELETE FROM river_leader`); err != nil {
				return fmt.Errorf("end the lease of the process before: %w", err)
			}
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM river_job WHERE state IN ('available', 'scheduled', 'retryable')
			AND args ->> 'request' NOT IN (SELECT id FROM requests WHERE state = 'open')`)
		if err != nil {
			return fmt.Errorf("drop the jobs of requests that are not open: %w", err)
		}
		return nil
	})
}

// joblessRequests gives the targets of open requests that no job waits for, by request.
func joblessRequests(ctx context.Context, tx *sql.Tx) (map[string]string, error) {
	rows, err := tx.QueryContext(ctx, `SELECT id, target FROM requests WHERE state = 'open' AND id NOT IN (
		SELECT args ->> 'request' FROM river_job WHERE state IN ('available', 'scheduled', 'retryable'))`)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // its error is that of rows.Err
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
	courier *courier
}

// Work implements river.Worker: it makes the attempt that is due, and has the job come back when the next one is.
func (d deliverer) Work(ctx context.Context, job *river.Job[delivery]) error {
	again, open, err := d.courier.deliver(ctx, job.Args.Request)
	switch {
	case err != nil:
		d.courier.fail(err)
		return err
	case open:
		return river.JobSnooze(max(time.Until(again), 0))
	}
	return nil
}

// NextRetry implements river.Worker. A job that was lost with its process comes back soon: the ledger says when its request is due.
func (deliverer) NextRetry(*river.Job[delivery]) time.Time { return time.Now().UTC().Add(time.Second) }
