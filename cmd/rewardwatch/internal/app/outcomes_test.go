package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api/apitest"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/config"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/retrain"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/outcome"
)

// The service writes outcomes to the ledger, and takes the configured actions once.
func TestOutcomeInTheLedger(t *testing.T) {
	incident := apitest.SomeView().Opened[0]
	policy := incident.Group.Policy
	incident.Cause = alerts.CauseEnvironment
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.LoadForService(testkit.WriteConfig(t, fmt.Sprintf("retrain: {ledger: {sqlite: %s}, recipes: ../config/testdata/recipes, rollback: t, "+
		"targets: [{name: t, webhook: \"http://127.0.0.1:1\", secret_file: %s}], triggers: [{on: incident, recipe: ranker, target: t}]}",
		filepath.Join(dir, "ledger.db"), secret)))
	if err != nil {
		t.Fatal(err)
	}
	a := &App{cfg: cfg, log: zerolog.Nop()}
	ctx := t.Context()
	if v, found := a.Awaited(ctx, policy); found {
		t.Errorf("without a ledger %+v is awaited", v)
	}
	if a.retrain, err = retrain.Open(ctx, cfg.Retrain, cfg.Recipes, zerolog.Nop(), prometheus.NewRegistry()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.retrain.Close(); err != nil {
			t.Error(err)
		}
	}()
	decision, err := a.retrain.Consider(ctx, incident, time.Now())
	if err != nil || decision.Reason != ledger.Opened {
		t.Fatalf("decision %+v, %v", decision, err)
	}
	id := decision.Request
	if awaited, err := a.Appeared(ctx, id, "v3"); !awaited || err != nil {
		t.Errorf("appeared: %t, %v", awaited, err)
	}
	if v, found := a.Awaited(ctx, policy); !found || v.Request != id || v.Version != "v3" {
		t.Errorf("awaited %+v", v)
	}
	missed, met := outcome.Verdict{State: ledger.StateMissed, Evidence: "it fell"}, outcome.Verdict{State: ledger.StateMet, Evidence: "it rose"}
	for range 2 {
		if follows, err := a.Concluded(ctx, id, missed); follows != outcome.Compares || err != nil {
			t.Errorf("missed: %d follows, %v", follows, err)
		}
		if err := a.Worsened(ctx, outcome.Setback{Request: id, To: "v2", Evidence: "it fell below"}); err != nil {
			t.Error(err)
		}
	}
	if err := a.Worsened(ctx, outcome.Setback{Request: "rr_of_another_ledger", To: "v2", Evidence: "it fell below"}); err != nil {
		t.Errorf("a request that the ledger does not know: %v, want it passed over", err)
	}
	if err := a.Worsened(ctx, outcome.Setback{Request: id, Evidence: "it fell below"}); err != nil {
		t.Errorf("where the version before is unknown: %v", err)
	}
	if follows, err := a.Concluded(ctx, id, met); follows != outcome.NothingFollows || err != nil {
		t.Errorf("met after all: %d follows, %v", follows, err)
	}
	if all, err := a.retrain.Requests(ctx, 10); err != nil || len(all) != 2 {
		t.Errorf("%d requests, %v; want the retraining and one rollback", len(all), err)
	}
}

// An order to freeze requires a policy that learns continuously. Its outcome has no consequences, since it has not made
// a version.
func TestOrdersOfALearnerHaveNoConsequences(t *testing.T) {
	dir := t.TempDir()
	for file, text := range map[string]string{
		"secret":              "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
		"recipes/freeze.yaml": "order: freeze\ncontract: {objective: o, hypothesis: h, owner: w, expected: mean return > 1 over 200 episodes within 1h}\n",
	} {
		file = filepath.Join(dir, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, state := range []ledger.State{ledger.StateMet, ledger.StateMissed} {
		cfg, err := config.LoadForService(testkit.WriteConfig(t, fmt.Sprintf("retrain: {ledger: {sqlite: %[1]s/%[2]s.db}, recipes: %[1]s/recipes, rollback: t, "+
			"targets: [{name: t, webhook: \"http://127.0.0.1:1\", secret_file: %[1]s/secret}]}\n"+
			"policies: [{match: frozen}, {match: \"*\", learning: continuous}]", dir, state)))
		if err != nil {
			t.Fatal(err)
		}
		a := &App{cfg: cfg, log: zerolog.Nop()}
		if a.retrain, err = retrain.Open(t.Context(), cfg.Retrain, cfg.Recipes, zerolog.Nop(), prometheus.NewRegistry()); err != nil {
			t.Fatal(err)
		}
		a.retrain.LearnsBy(a.learns)
		ask := retrain.Ask{Policy: "frozen", Recipe: "freeze", Target: "t", By: "ann", Why: "it unlearns"}
		if _, err := a.retrain.Ask(t.Context(), ask); !errors.Is(err, retrain.ErrBadAsk) {
			t.Errorf("a frozen policy: %v", err)
		}
		ask.Policy = "learner"
		q, err := a.retrain.Ask(t.Context(), ask)
		if err == nil {
			_, err = a.retrain.Report(t.Context(), q.ID, retrain.Report{State: retrain.JobSucceeded, Version: "v1"})
		}
		if err != nil {
			t.Fatal(err)
		}
		if follows, err := a.Concluded(t.Context(), q.ID, outcome.Verdict{State: state, Evidence: "seen"}); follows != outcome.NothingFollows || err != nil {
			t.Errorf("%s: %d follows, %v", state, follows, err)
		}
		if q, err = a.retrain.Request(t.Context(), q.ID); q.State != state || err != nil {
			t.Errorf("%s, %v, want %s", q.State, err, state)
		}
		if err := a.retrain.Close(); err != nil {
			t.Error(err)
		}
	}
}
