package retrain

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/model"

	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/outcome"
	"github.com/rewardwatch/rewardwatch/retrain/retraintest"
	"github.com/rewardwatch/rewardwatch/retrain/target"
)

// missed returns a delivered retraining that made things worse.
func (r *rig) missed() ledger.Request {
	r.t.Helper()
	q := r.delivered()
	_, err := r.Report(r.t.Context(), q.ID, Report{State: JobSucceeded, Version: "v3"})
	check(r.t, err)
	q, err = r.Conclude(r.t.Context(), q.ID, outcome.Verdict{State: ledger.StateMissed, Evidence: "not as expected"})
	check(r.t, err)
	return q
}

func testRollback(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		r.cfg.Rollback = "trainer"
		r.reopen()
		q := r.missed()
		for range 2 {
			check(t, r.RollBack(t.Context(), outcome.Setback{Request: q.ID, To: "v2", Evidence: "it fell from 12 to 3"}))
		}
		r.pass(soon)
		all, err := r.Requests(t.Context(), 10)
		check(t, err)
		if len(all) != 2 {
			t.Fatalf("%d requests, want the retraining and one rollback", len(all))
		}
		back := all[0]
		if back.ID == q.ID {
			back = all[1]
		}
		var told rollback
		check(t, json.Unmarshal(back.Order, &told))
		want := rollbackVersions{From: "v3", To: "v2"}
		if back.Kind != ledger.KindRollback || back.OriginKind != ledger.OriginOutcome || back.Parent != q.ID || back.State != ledger.StateDelivered ||
			told.ID != back.ID || told.Request != q.ID || told.Versions != want || told.Group["env"] != "prod-eu" ||
			!slices.Equal(told.Evidence, []string{"it fell from 12 to 3"}) {
			t.Errorf("rollback %+v, telling %+v", back, told)
		}
		if seen := r.receiver.seen(); len(seen) != 2 || seen[1].id != back.ID || seen[1].verify != nil || !strings.Contains(string(seen[1].body), EventRollback) {
			t.Errorf("the receiver saw %+v", seen)
		}
		byWord, _, err := r.Search(t.Context(), ledger.Filter{Text: "fell", Limit: 10})
		check(t, err)
		if len(byWord) != 1 || byWord[0].ID != back.ID {
			t.Errorf("a word of its evidence finds %+v", byWord)
		}
		for parent, want := range map[string]int{q.ID: 1, back.ID: 0} {
			if next, _, err := r.Search(t.Context(), ledger.Filter{Parent: parent, Limit: 10}); err != nil || len(next) != want || want == 1 && next[0].ID != back.ID {
				t.Errorf("after %s came %+v, %v", parent, next, err)
			}
		}
		if v, found := r.Awaited(t.Context(), "ranker"); found {
			t.Errorf("the outcome of a rollback is awaited: %+v", v)
		}
		back, err = r.Report(t.Context(), back.ID, Report{State: JobSucceeded, Version: "v2"})
		check(t, err)
		if back.State != ledger.StateMet || back.ClosedAt.IsZero() {
			t.Errorf("rollback %+v, want met", back)
		}
	})
}

func testRollbackWithoutATarget(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		q := r.missed()
		check(t, r.RollBack(t.Context(), outcome.Setback{Request: q.ID, To: "v2", Evidence: "it fell from 12 to 3"}))
		if got := r.request(); got.ID != q.ID {
			t.Errorf("requests %+v, want the retraining alone", got)
		}
	})
}

// What happens to a rollback while the policy has another unfinished request, and how that ends.
func testRollbackWaitsItsTurn(t *testing.T, on storage) {
	failed := func(r *rig, id string) {
		_, err := r.Report(r.t.Context(), id, Report{State: JobFailed, Error: "out of memory", By: "trainer"})
		check(r.t, err)
	}
	for _, tc := range []struct {
		name     string
		approval bool
		end      func(r *rig, id string) // of the other request; nil if the rollback does not wait for it
		other    ledger.State
		want     ledger.State
		why      string
	}{
		{"it only waits for its approval", true, nil, ledger.StateWithdrawn, ledger.StateDelivered, ""},
		{"its job fails", false, failed, ledger.StateFailed, ledger.StateDelivered, ""},
		{"a person rejects it", false, func(r *rig, id string) {
			_, err := r.Reject(r.t.Context(), id, "ann", "not now")
			check(r.t, err)
		}, ledger.StateRejected, ledger.StateDelivered, ""},
		{"its job makes a version", false, func(r *rig, id string) {
			_, err := r.Report(r.t.Context(), id, Report{State: JobSucceeded, Version: "v4", By: "trainer"})
			check(r.t, err)
			r.pass(2 * overdueEvery)
			if back := r.rollback(); back.State != ledger.StateQueued {
				r.t.Errorf("while that is verified: %s", back.State)
			}
			_, err = r.Conclude(r.t.Context(), id, outcome.Verdict{State: ledger.StateMissed, Evidence: "not as expected"})
			check(r.t, err)
		}, ledger.StateMissed, ledger.StateWithdrawn, "has made version v4 since"},
		{"the target is gone", false, func(r *rig, id string) {
			check(r.t, r.ledger.Finish(r.t.Context(), r.cfg.Targets[0], id, 99, target.Attempt{Result: target.ResultGone}, ledger.Step{Disable: true}, time.Now()))
			failed(r, id)
		}, ledger.StateFailed, ledger.StateDeadLetter, "410 Gone"},
		{"nothing ends it", false, func(r *rig, _ string) {
			r.stop()
			time.Sleep(queuedLifetime)
			r.run()
		}, ledger.StateRunning, ledger.StateExpired, "for too long"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, on)
				q := r.missed()
				r.close()
				r.cfg.Rollback, r.cfg.Triggers[0].Cooldown, r.cfg.Triggers[0].Approval = "trainer", 0, tc.approval
				r.cfg.Targets[0].CompletesWithin = model.Duration(2 * queuedLifetime)
				r.reopen()
				r.run()
				time.Sleep(time.Second)
				other := r.consider(retraintest.Incident("i2", "ranker")).Request
				r.pass(soon)
				if !tc.approval {
					_, err := r.Report(t.Context(), other, Report{State: JobStarted, By: "trainer"})
					check(t, err)
				}
				setback := outcome.Setback{Request: q.ID, To: "v2", Evidence: "it fell from 12 to 3"}
				for range 2 {
					check(t, r.RollBack(t.Context(), setback))
				}
				r.pass(2 * overdueEvery)
				if tc.end != nil {
					if back := r.rollback(); back.State != ledger.StateQueued || len(r.receiver.seen()) != 2 {
						t.Fatalf("rollback %+v, want queued; the receiver saw %d", back, len(r.receiver.seen()))
					}
					if d := r.consider(retraintest.Incident("i3", "ranker")); d.Reason != ledger.OpenRequest || d.Detail != other {
						t.Errorf("the next incident: %+v, want open_request", d)
					}
					tc.end(r, other)
					if d := r.consider(retraintest.Incident("i4", "ranker")); tc.want == ledger.StateDelivered && (d.Reason != ledger.OpenRequest || d.Detail != r.rollback().ID) {
						t.Errorf("before it is its turn: %+v, want open_request", d)
					}
					r.pass(2 * overdueEvery)
				}
				back := r.rollback()
				if back.State != tc.want || !strings.Contains(back.Reason, tc.why) {
					t.Errorf("rollback %s: %s, want %s: %s", back.State, back.Reason, tc.want, tc.why)
				}
				if o, err := r.Request(t.Context(), other); err != nil || o.State != tc.other || tc.approval && !strings.Contains(o.Reason, "rolled back first") {
					t.Errorf("the other request %+v, %v, want %s", o, err, tc.other)
				}
				seen := r.receiver.seen()
				if told := seen[len(seen)-1].id == back.ID; told != (tc.want == ledger.StateDelivered) {
					t.Errorf("the receiver was told: %t", told)
				}
			})
		})
	}
}

// rollback returns the ledger's only rollback.
func (r *rig) rollback() ledger.Request {
	r.t.Helper()
	all, err := r.Requests(r.t.Context(), 10)
	check(r.t, err)
	all = slices.DeleteFunc(all, func(q ledger.Request) bool { return q.Kind != ledger.KindRollback })
	if len(all) != 1 {
		r.t.Fatalf("%d rollbacks, want 1", len(all))
	}
	return all[0]
}
