package cli

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// decisions returns decisions of a policy that takes b with a probability, while the accepted policy takes a and b
// equally often. They change after two thirds.
func decisions(takesB, earns float64) (all []message) {
	rng := rand.New(rand.NewPCG(3, 5))
	start := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	const n = 2400
	for i := range n {
		p, mean := .5, 1.
		if i >= n*2/3 {
			p, mean = takesB, earns
		}
		action, prob := "a", 1-p
		if rng.Float64() < p {
			action, prob, mean = "b", p, mean-.8
		}
		at := start.Add(time.Duration(i) * time.Second)
		all = append(all, message{topic: "agent-telemetry", at: at, value: js(object{
			"policy": "ranker", "episode_id": fmt.Sprint("e", i), "ts": at.Format(time.RFC3339), "action": action, "action_prob": prob,
			"target_prob": .5, "reward": mean + .2*rng.NormFloat64(), "terminated": true,
		})})
	}
	return all
}

// An incident whose estimate shows that the environment has changed orders from the trigger for that cause, and one
// whose estimate shows that the policy has changed orders from the other trigger.
func TestOffPolicyEstimateChoosesTheTrigger(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	t.Parallel()
	for _, c := range []struct {
		name          string
		takesB, earns float64 // since the change
		shown         finding.Shown
		target        string
	}{
		{"the world pays less for the same actions", .5, .6, finding.ShownWorld, "of-the-world"},
		{"the policy takes the worse action", .9, 1, finding.ShownPolicy, "of-the-policy"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			broker := startBroker(t, 1)
			config, dir := serviceConfig(t, broker), t.TempDir()
			text, err := os.ReadFile(config)
			if err != nil {
				t.Fatal(err)
			}
			secret := filepath.Join(dir, "secret")
			text = append(text, fmt.Sprintf(`
retrain:
  ledger: {sqlite: %q}
  recipes: ../config/testdata/recipes
  targets:
    - {name: of-the-policy, webhook: "http://127.0.0.1:1/", secret_file: %q}
    - {name: of-the-world, webhook: "http://127.0.0.1:1/", secret_file: %[2]q}
  triggers:
    - {on: incident, off_policy: [policy], recipe: ranker, target: of-the-policy, approval: true}
    - {on: incident, off_policy: [world], recipe: ranker, target: of-the-world, approval: true}
`, filepath.Join(dir, "ledger.db"), secret)...)
			if err := errors.Join(os.WriteFile(config, text, 0o600), os.WriteFile(secret, []byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n"), 0o600)); err != nil {
				t.Fatal(err)
			}
			all := decisions(c.takesB, c.earns)
			produceTo(t, broker, all)
			p := startService(t, config)
			var listed struct {
				Requests []ledger.Request `json:"retrain_requests"`
			}
			testkit.Eventually(t, "all units", func() bool { return p.units() == int64(len(all)) })
			testkit.Eventually(t, "a request", func() bool { return p.get("/api/v1/retrain-requests", &listed) && len(listed.Requests) > 0 })
			for _, r := range listed.Requests {
				if r.Target != c.target || r.OriginKind != ledger.OriginIncident {
					t.Errorf("request %+v, want one to %s", r, c.target)
				}
				for _, i := range p.incidents() {
					if i.ID != r.Origin {
						continue
					}
					if o := i.Alarms[0].OffPolicy; o == nil || o.Shown != c.shown {
						t.Errorf("the incident of the request shows %+v, want %s", o, c.shown)
					}
				}
			}
			p.interrupt(t)
		})
	}
}
