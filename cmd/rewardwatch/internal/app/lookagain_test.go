package app

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api/apitest"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/config"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine/enginetest"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
	"github.com/rewardwatch/rewardwatch/retrain"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// retraining makes an app consider incidents, and nothing else.
type retraining struct {
	enginetest.Memory
	app App
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

func (r *retraining) Resumed(ctx context.Context, d *engine.Worker) error {
	return r.app.Resumed(ctx, d)
}

func (r *retraining) Passed(ctx context.Context, d *engine.Worker) error { return r.app.Passed(ctx, d) }

// newRetraining returns a retraining that is ordered once a drift has lasted for two minutes.
func newRetraining(t *testing.T) *retraining {
	t.Helper()
	desk, _ := apitest.OpenLedger(t, retrain.Trigger{On: retrain.OnIncident, Lasting: model.Duration(2 * time.Minute), Recipe: "ranker", Target: "trainer"})
	return &retraining{Memory: *enginetest.NewMemory(), app: App{cfg: &config.Config{}, retrain: desk, log: zerolog.Nop()}}
}

func (r *retraining) pipeline(t *testing.T) *enginetest.Alone {
	cfg := engine.DefaultSettings()
	p := enginetest.NewAlone(t.Context(), &cfg, r, r, prometheus.NewRegistry())
	r.app.Pipeline = p.Pipeline
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

// waits reports whether it was decided that an incident has not lasted long enough yet.
func (r *retraining) waits(t *testing.T, incident string) bool {
	t.Helper()
	decisions, err := r.app.retrain.Decisions(t.Context(), incident, 10)
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(decisions, func(d ledger.Recorded) bool { return d.Reason == ledger.NotLasted })
}

// A drift orders its retraining once it has lasted long enough, even if the incident does not change any more and the
// service was restarted.
func TestDriftThatLastsIsLookedAtAgain(t *testing.T) {
	for name, restart := range map[string]bool{"at once": false, "after a restart": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRetraining(t)
			p := r.pipeline(t)
			f, newest := p.Drift(t)
			incident := p.All()[0].Worker.Shown.Load().Incidents[0]
			if opened := time.Unix(0, incident.Opened.TS); newest.Sub(opened) > time.Minute {
				t.Fatalf("the incident opened at %s, too long before %s", opened, newest)
			}
			testkit.Eventually(t, "a decision to wait", func() bool { return r.waits(t, incident.ID) })
			if n := r.requests(t); n != 0 {
				t.Fatalf("%d requests before it has lasted", n)
			}
			if restart {
				if err := p.Stop(); err != nil {
					t.Fatal(err)
				}
				r.app.lookAgain = lookAgain{}
				p = r.pipeline(t)
				if err := p.Workers.Restore(t.Context(), []string{engine.BankPrefix + "ranker"}); err != nil {
					t.Fatal(err)
				}
				f = p.Feed(0)
			}
			for i := range int64(2) { // as the drift continues
				e := ingesttest.Episode(0, 560+i, "ranker", newest.Add(3*time.Minute+time.Duration(i)*time.Second))
				e.Return = -4
				if err := f.Process(t.Context(), []ingest.Event{e}); err != nil {
					t.Fatal(err)
				}
			}
			testkit.Eventually(t, "a request", func() bool { return r.requests(t) == 1 })
			if err := p.Stop(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
