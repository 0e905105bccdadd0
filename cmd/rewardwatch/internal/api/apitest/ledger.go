// Package apitest provides made-up views, orders and ledgers for tests of the API and of the verbs that call it.
package apitest

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/retrain"
	"github.com/rewardwatch/rewardwatch/retrain/recipe"
	"github.com/rewardwatch/rewardwatch/retrain/target"
)

// OpenLedger opens a ledger for one test, with the target "trainer" and the recipes of the tests. ledger is its
// SQLite file.
func OpenLedger(t *testing.T, trigger retrain.Trigger) (desk *retrain.Desk, ledger string) {
	t.Helper()
	recipes, err := recipe.Load("../config/testdata/recipes", []string{"env"})
	if err != nil {
		t.Fatal(err)
	}
	cfg := retrain.DefaultConfig()
	cfg.Ledger.SQLite = filepath.Join(t.TempDir(), "ledger.db")
	cfg.Recipes = "../config/testdata/recipes"
	cfg.Targets = []target.Target{{
		Name: "trainer", Webhook: "http://127.0.0.1:1/", SecretFile: testkit.WriteFile(t, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n"),
		Timeout: model.Duration(10 * time.Second), CompletesWithin: model.Duration(24 * time.Hour),
	}}
	cfg.Triggers = []retrain.Trigger{trigger}
	if desk, err = retrain.Open(t.Context(), cfg, recipes, zerolog.Nop(), prometheus.NewRegistry()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := desk.Close(); err != nil {
			t.Error(err)
		}
	})
	return desk, cfg.Ledger.SQLite
}
