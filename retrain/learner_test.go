package retrain

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/outcome"
	"github.com/rewardwatch/rewardwatch/retrain/recipe"
	"github.com/rewardwatch/rewardwatch/retrain/retraintest"
)

// ordering changes the recipe of the trigger to another kind of order.
func (r *rig) ordering(kind recipe.Kind) {
	r.t.Helper()
	dir := r.t.TempDir()
	for _, file := range []string{"base.yaml", "ranker.yaml"} {
		text, err := os.ReadFile(filepath.Join("recipe/testdata/recipes", file))
		check(r.t, err)
		if file == "base.yaml" { // the other recipe inherits it
			text = append([]byte("order: "+string(kind)+"\n"), text...)
		}
		check(r.t, os.WriteFile(filepath.Join(dir, file), text, 0o600))
	}
	recipes, err := recipe.Load(dir, []string{"env"})
	check(r.t, err)
	r.recipes = recipes
}

// The other orders have the same contract, ledger and closing as a retraining. Their targets receive the kind, and
// only the job reports which version counts: it may be the live one.
func testOrdersOfALearner(t *testing.T, on storage) {
	for _, kind := range recipe.Kinds() {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, on)
			r.ordering(kind)
			r.LearnsBy(func(policy string) bool { return policy == "ranker" })
			q := r.delivered()
			if q.Kind != ledger.Kind(kind) || q.Recipe != "ranker" {
				t.Errorf("request %+v, want the kind %s", q, kind)
			}
			var told struct {
				Type string
				Data struct {
					Order    recipe.Kind
					Contract recipe.Contract
				}
			}
			check(t, json.Unmarshal(r.receiver.seen()[0].body, &told))
			wantType, wantOrder := recipe.EventOrdered, kind
			if kind == recipe.Retrain {
				wantType, wantOrder = recipe.EventRequested, ""
			}
			if told.Type != wantType || told.Data.Order != wantOrder || told.Data.Contract.Owner != "ranking@shop.example" {
				t.Errorf("%s: the receiver saw %+v", kind, told)
			}
			if v, found := r.Awaited(t.Context(), "ranker"); !found || v.Reported != (kind != recipe.Retrain) || v.Version != "" {
				t.Errorf("%s: awaited %+v, %t", kind, v, found)
			}
			q, err := r.Report(t.Context(), q.ID, Report{State: JobSucceeded, Version: "v2"})
			check(t, err)
			if v, found := r.Awaited(t.Context(), "ranker"); q.State != ledger.StateVerifying || !found || v.Version != "v2" {
				t.Errorf("%s: %s, awaited %+v", kind, q.State, v)
			}
			q, err = r.Conclude(t.Context(), q.ID, outcome.Verdict{State: ledger.StateMet, Evidence: "as expected"})
			check(t, err)
			if q.State != ledger.StateMet {
				t.Errorf("%s: %s", kind, q.State)
			}
		})
	}
}

// Such an order is refused for a policy that does not learn continuously.
func testOrdersNeedALearner(t *testing.T, on storage) {
	for name, learns := range map[string]func(string) bool{"unknown": nil, "frozen": func(string) bool { return false }} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, on)
			r.ordering(recipe.Freeze)
			r.LearnsBy(learns)
			d, err := r.Consider(t.Context(), retraintest.Incident("i1", "ranker"), time.Time{})
			check(t, err)
			if d.Reason != ledger.InvalidOrder || !strings.Contains(d.Detail, "learning: continuous") {
				t.Errorf("%s: %+v", name, d)
			}
			if all, err := r.Requests(t.Context(), 10); err != nil || len(all) != 0 {
				t.Errorf("%s: %d requests, %v", name, len(all), err)
			}
		})
	}
}
