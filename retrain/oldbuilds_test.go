package retrain

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/recipe"
	"github.com/rewardwatch/rewardwatch/retrain/retraintest"
	"github.com/rewardwatch/rewardwatch/retrain/target"
)

// A contract that is empty once its templates are filled opens no request, and the service continues.
func testOrderThatBreaksItsPromise(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		directory := t.TempDir()
		check(t, os.CopyFS(directory, os.DirFS("recipe/testdata/recipes")))
		base, err := os.ReadFile(filepath.Join(directory, "base.yaml"))
		check(t, err)
		ownerless := strings.Replace(string(base), "ranking@shop.example", `"{{ group.env }}"`, 1)
		check(t, os.WriteFile(filepath.Join(directory, "base.yaml"), []byte(ownerless), 0o600))
		r.recipes, err = recipe.Load(directory, []string{"env"})
		check(t, err)
		r.run()
		inc := retraintest.Incident("i1", "ranker")
		inc.Group = ingest.NewGroup("ranker")
		for range 2 {
			d := r.consider(inc)
			if d.Reason != ledger.InvalidOrder || d.Request != "" || !strings.Contains(d.Detail, "/data/contract/owner") {
				t.Errorf("decision %+v, want invalid_order with its place", d)
			}
		}
		r.pass(time.Hour)
		requests, err := r.Requests(t.Context(), 10)
		check(t, err)
		if len(requests) != 0 || len(r.receiver.seen()) != 0 {
			t.Errorf("%d requests, %d deliveries, want none", len(requests), len(r.receiver.seen()))
		}
		decisions, err := r.Decisions(t.Context(), "i1", 10)
		check(t, err)
		if len(decisions) != 1 || decisions[0].Reason != ledger.InvalidOrder {
			t.Errorf("recorded %+v, want invalid_order once", decisions)
		}
		delete(r.recipes, "ranker")
		if d := r.consider(retraintest.Incident("i2", "ranker")); d.Reason != ledger.InvalidOrder || !strings.Contains(d.Detail, `unknown recipe "ranker"`) {
			t.Errorf("without its recipe: %+v, want invalid_order", d)
		}
	})
}

// writeOldLedger creates a ledger with only the first migration, and an open request.
func writeOldLedger(t *testing.T, cfg ledger.Config) {
	t.Helper()
	migrated(t, cfg, "0001_ledger.sql")
	now := time.Now()
	put(t, cfg, `
		INSERT INTO requests (id, incident, policy, trigger_key, target, state, reason, body, attempts, opened_at, expires_at, next_attempt_at)
		VALUES ('rr_old', 'i0', 'ranker', 'k', 'trainer', 'open', '', $1, 0, $2, $3, $2)`,
		[]byte(`{"type":"retrain.requested","data":{"id":"rr_old"}}`), now.UnixMilli(), now.Add(requestLifetime).UnixMilli())
	put(t, cfg, `INSERT INTO history (request, at, state, reason) VALUES ('rr_old', $1, 'open', '')`, now.UnixMilli())
}

// A ledger of a build without recipes is upgraded. Requests that it would still have sent have no contract, and are
// given up unsent.
func testRequestOfABuildBeforeRecipes(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		old := func(t *testing.T) ledger.Config {
			cfg := on(t)
			writeOldLedger(t, cfg)
			return cfg
		}
		r := newRig(t, old, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") })
		r.run()
		r.pass(time.Hour)
		if q := r.request(); q.State != ledger.StateDeadLetter || q.Recipe != "" || !strings.Contains(q.Reason, recipe.SchemaFile) {
			t.Errorf("request %+v, want a dead letter", q)
		}
		if got := r.results(); len(got) != 1 || got[0] != target.ResultInvalid {
			t.Errorf("results %v, want invalid", got)
		}
		r.stop() // otherwise it would be sent
		if d := r.consider(retraintest.Incident("i1", "ranker")); d.Reason != ledger.Opened {
			t.Errorf("the next incident: %+v, want opened", d)
		}
	})
}

func testRequestByItsID(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		id := r.consider(retraintest.Incident("i1", "ranker")).Request
		q, err := r.Request(t.Context(), id)
		check(t, err)
		if q.ID != id || q.Recipe != "ranker" || q.Origin != "i1" {
			t.Errorf("request %+v", q)
		}
		leaves, err := recipe.LeavesOfOrder(q.Order)
		check(t, err)
		unfilled := r.recipes["ranker"].Leaves()
		var changed []string
		for _, d := range recipe.Differences(unfilled, leaves) {
			changed = append(changed, d.Path)
		}
		const want = "config.ranges config.ranges[0].first config.ranges[0].last config.ranges[0].partition config.run contract.hypothesis contract.objective"
		if got := strings.Join(changed, " "); got != want {
			t.Errorf("filling the recipe has changed %s, want %s", got, want)
		}
		for _, unknown := range []string{"rr_none", "", "a\x00b"} {
			if _, err := r.Request(t.Context(), unknown); !errors.Is(err, ledger.ErrUnknownRequest) {
				t.Errorf("%q: %v", unknown, err)
			}
		}
	})
}
