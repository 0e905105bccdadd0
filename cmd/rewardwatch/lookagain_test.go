package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain"
)

// retraining has an app consider incidents, and do nothing else.
type retraining struct {
	memory
	app app
}

func (r *retraining) Changed(ctx context.Context, changes []alerts.Change) error {
	for _, c := range changes {
		if c.Incident == nil {
			continue
		}
		if err := r.app.consider(ctx, *c.Incident); err != nil {
			return err
		}
	}
	return nil
}

func (r *retraining) resumed(ctx context.Context, d *desk) error { return r.app.resumed(ctx, d) }
func (r *retraining) passed(ctx context.Context, d *desk) error  { return r.app.passed(ctx, d) }

// newRetraining orders a retraining of a drift that has lasted for two minutes.
func newRetraining(t *testing.T) *retraining {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	recipes, err := retrain.LoadRecipes("testdata/recipes", []string{"env"})
	if err != nil {
		t.Fatal(err)
	}
	desk, err := retrain.Open(t.Context(), retrain.Config{
		Ledger:   retrain.LedgerConfig{SQLite: filepath.Join(t.TempDir(), "ledger.db")},
		Targets:  []retrain.Target{{Name: "trainer", Webhook: "http://127.0.0.1:1/", SecretFile: secret}},
		Triggers: []retrain.Trigger{{On: retrain.OnIncident, Lasting: model.Duration(2 * time.Minute), Recipe: "ranker", Target: "trainer"}},
	}, recipes, zerolog.Nop(), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := desk.Close(); err != nil {
			t.Error(err)
		}
	})
	return &retraining{memory: *newMemory(), app: app{retrain: desk, log: zerolog.Nop()}}
}

func (r *retraining) pipeline(t *testing.T) *alone {
	cfg := DefaultConfig()
	p := newAlone(t.Context(), &cfg, r, r, prometheus.NewRegistry())
	r.app.pipeline = p.pipeline
	return p
}

func (r *retraining) requests(t *testing.T) int {
	t.Helper()
	all, err := r.app.retrain.Requests(t.Context(), 10)
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// waits reports whether it was decided that an incident has not lasted yet.
func (r *retraining) waits(t *testing.T, incident string) bool {
	t.Helper()
	decisions, err := r.app.retrain.Decisions(t.Context(), incident, 10)
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(decisions, func(d retrain.Recorded) bool { return d.Reason == retrain.NotLasted })
}

// A drift orders its retraining once it has lasted, though nothing of the incident changes any more, and the service was started anew.
func TestDriftThatLastsIsLookedAtAgain(t *testing.T) {
	for name, restart := range map[string]bool{"at once": false, "after a restart": true} {
		t.Run(name, func(t *testing.T) {
			r := newRetraining(t)
			p := r.pipeline(t)
			f, newest := p.drift(t)
			incident := p.all()[0].desk.shown.Load().incidents[0]
			if opened := time.Unix(0, incident.Opened.TS); newest.Sub(opened) > time.Minute {
				t.Fatalf("the incident opened at %s, too long before %s", opened, newest)
			}
			eventually(t, "a decision to wait", func() bool { return r.waits(t, incident.ID) })
			if n := r.requests(t); n != 0 {
				t.Fatalf("%d requests before it has lasted", n)
			}
			if restart {
				if err := p.Stop(); err != nil {
					t.Fatal(err)
				}
				r.app.lookAgain = lookAgain{}
				p = r.pipeline(t)
				if err := p.desks.restore([]string{bankPrefix + "ranker"}); err != nil {
					t.Fatal(err)
				}
				f = p.assign(0)
			}
			for i := range int64(2) { // as the drift goes on
				e := summaryEvent(0, 560+i, "ranker", newest.Add(3*time.Minute+time.Duration(i)*time.Second))
				e.Return = -4
				if err := f.Process(t.Context(), []ingest.Event{e}); err != nil {
					t.Fatal(err)
				}
			}
			eventually(t, "a request", func() bool { return r.requests(t) == 1 })
			if err := p.Stop(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestLookAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, g, other := lookAgain{}, ingest.NewGroup("p"), ingest.NewGroup("q")
		at := time.Now().Add(time.Hour)
		clock := func(t time.Time) func() time.Time { return func() time.Time { return t } }
		until := func(at time.Time) retrain.Decision { return retrain.Decision{Reason: retrain.NotLasted, Again: at} }
		l.after(g, until(at))
		if l.due(g, clock(at.Add(-1))) || !l.due(g, clock(at)) || l.due(g, clock(time.Time{})) || l.due(other, clock(at)) {
			t.Error("it is due where it must not be, or the other way round")
		}
		l.after(other, until(time.Now().Add(-time.Second)))
		if !l.due(other, clock(time.Time{})) {
			t.Error("without a clock, the world's does not hold")
		}
		for _, reason := range []retrain.Reason{retrain.OpenRequest, retrain.Cooldown, retrain.BreakerOpen, retrain.TargetDisabled} {
			l.after(other, retrain.Decision{Reason: reason})
			if l.due(other, clock(at)) {
				t.Errorf("%s: due at once", reason)
			}
			time.Sleep(heldEvery)
			if !l.due(other, clock(time.Unix(1, 0))) {
				t.Errorf("%s: not due after a minute", reason)
			}
		}
		l.forget([]string{"p"})
		l.after(other, retrain.Decision{Reason: retrain.Opened})
		if l.due(g, clock(at)) || l.due(other, clock(at)) {
			t.Error("what was taken out is due")
		}
	})
}
