package retrain

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// missed is a retraining that made things worse, and was delivered.
func (r *rig) missed() Request {
	r.t.Helper()
	q := r.delivered()
	_, err := r.Report(r.t.Context(), q.ID, Report{State: JobSucceeded, Version: "v3"})
	check(r.t, err)
	q, err = r.Conclude(r.t.Context(), q.ID, Verdict{State: StateMissed, Evidence: "not as expected"})
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
			check(t, r.RollBack(t.Context(), Setback{Request: q.ID, To: "v2", Evidence: "it fell from 12 to 3"}))
		}
		synctest.Wait()
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
		if back.Kind != KindRollback || back.OriginKind != OriginOutcome || back.Parent != q.ID || back.State != StateDelivered ||
			told.ID != back.ID || told.Request != q.ID || told.Versions != want || told.Group["env"] != "prod-eu" ||
			!slices.Equal(told.Evidence, []string{"it fell from 12 to 3"}) {
			t.Errorf("rollback %+v, telling %+v", back, told)
		}
		if seen := r.receiver.seen(); len(seen) != 2 || seen[1].id != back.ID || seen[1].verify != nil || !strings.Contains(string(seen[1].body), EventRollback) {
			t.Errorf("the receiver saw %+v", seen)
		}
		byWord, _, err := r.Search(t.Context(), Filter{Text: "fell", Limit: 10})
		check(t, err)
		if len(byWord) != 1 || byWord[0].ID != back.ID {
			t.Errorf("a word of its evidence finds %+v", byWord)
		}
		if v, found := r.Awaited(t.Context(), "ranker"); found {
			t.Errorf("the outcome of a rollback is awaited: %+v", v)
		}
		back, err = r.Report(t.Context(), back.ID, Report{State: JobSucceeded, Version: "v2"})
		check(t, err)
		if back.State != StateMet || back.ClosedAt.IsZero() {
			t.Errorf("rollback %+v, want met", back)
		}
	})
}

func testRollbackThatIsNotWanted(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		q := r.missed()
		setback := Setback{Request: q.ID, To: "v2", Evidence: "it fell from 12 to 3"}
		check(t, r.RollBack(t.Context(), setback)) // no target for it
		r.cfg.Rollback, r.cfg.Triggers[0].Cooldown = "trainer", 0
		r.reopen()
		time.Sleep(time.Second)
		r.consider(incident("i2", "ranker"))
		check(t, r.RollBack(t.Context(), setback)) // the next retraining has begun
		all, err := r.Requests(t.Context(), 10)
		check(t, err)
		if len(all) != 2 || all[0].Kind != KindRetrain || all[1].Kind != KindRetrain {
			t.Errorf("requests %+v, want two retrainings", all)
		}
	})
}
