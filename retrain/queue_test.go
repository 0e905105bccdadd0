package retrain

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/retraintest"
	"github.com/rewardwatch/rewardwatch/retrain/target"
)

// jobs counts the jobs in the queue.
func (r *rig) jobs() (n int) {
	r.t.Helper()
	check(r.t, r.ledger.Update(r.t.Context(), func(tx *ledger.Tx) error {
		return tx.QueryRowContext(r.t.Context(), `SELECT count(*) FROM river_job`).Scan(&n)
	}))
	return n
}

// change executes a statement on the ledger.
func (r *rig) change(statement string, args ...any) {
	r.t.Helper()
	check(r.t, r.ledger.Update(r.t.Context(), onlyStatement(statement, args...)))
}

func testHangingTargetHoldsUpNoOther(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on, retraintest.Hang)
		other, trigger := r.cfg.Targets[0], r.cfg.Triggers[0]
		other.Name, trigger.Target, trigger.Policies = "other", "other", []string{"bidder"}
		r.cfg.Targets, r.cfg.Triggers = append(r.cfg.Targets, other), append([]Trigger{trigger}, r.cfg.Triggers...)
		r.reopen()
		r.run()
		r.consider(retraintest.Incident("i1", "ranker"))
		r.pass(lateness)
		id := r.consider(retraintest.Incident("i2", "bidder")).Request
		r.pass(lateness)
		if q, err := r.Request(t.Context(), id); err != nil || q.State != ledger.StateDelivered {
			t.Errorf("request %+v, %v, want delivered while another target hangs", q, err)
		}
	})
}

func testFinishedJobsAreDropped(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		ctx, cancel := contextWithCancel(t)
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		r.consider(retraintest.Incident("i1", "ranker"))
		r.pass(lateness)
		if q := r.request(); q.State != ledger.StateDelivered {
			t.Errorf("request %+v, want delivered", q)
		}
		r.pass(ledger.KeptJobs + time.Minute)
		cancel()
		check(t, <-done)
		if n := r.jobs(); n != 0 {
			t.Errorf("%d jobs are kept", n)
		}
	})
}

// A request has no job if a build without the queue opened it, and a job that no process works on if a process has
// died.
func testRequestWithoutAJob(t *testing.T, on storage) {
	for name, lose := range map[string]string{
		"it is gone":          `DELETE FROM river_job`,
		"only a wake waits":   `UPDATE river_job SET kind = 'wake', args = '{}'`,
		"its process is dead": `UPDATE river_job SET state = 'running', attempted_at = created_at`,
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, on)
			r.consider(retraintest.Incident("i1", "ranker"))
			r.change(lose)
			r.reopen()
			r.run()
			r.pass(lateness)
			if q := r.request(); q.State != ledger.StateDelivered {
				t.Errorf("%s: request %+v, want delivered", name, q)
			}
			r.pass(time.Hour)
			if n := len(r.receiver.seen()); n != 1 {
				t.Errorf("%s: %d arrivals, want 1", name, n)
			}
		})
	}
}

func testRequestWithTwoJobs(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on, func(http.ResponseWriter, *http.Request) { <-time.After(10 * time.Second) })
		id := r.consider(retraintest.Incident("i1", "ranker")).Request
		check(t, r.ledger.Update(t.Context(), func(tx *ledger.Tx) error { return r.dispatcher.queue.Add(t.Context(), tx, id, "trainer") }))
		other, _ := r.another()
		defer func() { check(t, other.Close()) }()
		ctx, cancel := contextWithCancel(t)
		done := make(chan error, 1)
		go func() { done <- runSeldom(ctx, t, other) }()
		r.run()
		r.pass(time.Hour)
		cancel()
		check(t, <-done)
		if n := len(r.receiver.seen()); n != 1 {
			t.Errorf("%d arrivals, want 1", n)
		}
	})
}

// The queue polls once a second, but a request that this process opens is delivered at once.
func testRequestIsDeliveredAtOnce(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		ctx, cancel := contextWithCancel(t)
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		defer func() { cancel(); check(t, <-done) }()
		r.pass(ledger.FetchEvery * 5 / 4)
		r.consider(retraintest.Incident("i1", "ranker"))
		r.pass(ledger.FetchEvery / 20)
		if n := len(r.receiver.seen()); n != 1 {
			t.Errorf("%d arrivals within %s, want 1", n, ledger.FetchEvery/20)
		}
	})
}

func testJobOfAnUnknownTarget(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		r.consider(retraintest.Incident("i1", "ranker"))
		r.cfg.Targets[0].Name, r.cfg.Triggers[0].Target = "other", "other"
		r.reopen()
		if n := r.jobs(); n != 0 {
			t.Errorf("%d jobs of a target that is no longer configured", n)
		}
	})
}

// panicking is an adapter with a bug.
type panicking struct{}

func (panicking) Send(context.Context, target.Message) target.Attempt { panic("index out of range") }

func testOrderThatPanicsIsGivenUp(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		r.dispatcher.adapters["trainer"] = panicking{}
		r.run()
		r.consider(retraintest.Incident("i1", "ranker"))
		r.pass(lateness)
		if q := r.request(); q.State != ledger.StateDeadLetter || q.Reason != "panic: index out of range" || q.Attempts != 1 {
			t.Errorf("request %+v, want a dead letter after one attempt", q)
		}
	})
}

// A retry is made when it is due, whatever the time zone of the machine is.
func testRetriesInAnyZone(t *testing.T, on storage) {
	defer func(zone *time.Location) { time.Local = zone }(time.Local)
	for name, hours := range map[string]int{"Tokyo": 9, "New York": -5} {
		time.Local = time.FixedZone(name, hours*3600)
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, on, retraintest.Status(500))
			ctx, cancel := contextWithCancel(t)
			done := make(chan error, 1)
			go func() { done <- r.Run(ctx) }()
			r.consider(retraintest.Incident("i1", "ranker"))
			r.pass(20 * time.Second)
			if q := r.request(); q.State != ledger.StateDelivered || q.Attempts != 2 {
				t.Errorf("request %+v in %s, want it delivered by its second attempt", q, name)
			}
			cancel()
			check(t, <-done)
		})
	}
}

// The lease of a process that was killed while its clock was ahead does not prevent retries.
func testLeaseOfTheDead(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on, retraintest.Status(500))
		if r.cfg.Ledger.OnPostgreSQL() {
			return // another instance may hold it
		}
		later := time.Now().Add(time.Hour).UTC()
		r.change(`INSERT INTO river_leader (name, leader_id, elected_at, expires_at) VALUES ('default', 'the dead', $1, $1)`, later)
		r.reopen()
		ctx, cancel := contextWithCancel(t)
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		r.consider(retraintest.Incident("i1", "ranker"))
		r.pass(20 * time.Second)
		if q := r.request(); q.State != ledger.StateDelivered {
			t.Errorf("request %+v, want delivered", q)
		}
		cancel()
		check(t, <-done)
	})
}
