//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/retrain"
)

// lakeRecipes are the recipes of a policy on the frozen lake. What idle trains has learnt nothing.
var lakeRecipes = map[string]string{
	"base.yaml": `
contract:
  objective: "{{ policy }} finds its way"
  owner: lake@example.org
config: {algorithm: q_learning, env_version: "1", episodes: 6000, learning_rate: 0.1, discount: 0.99, seed: 1}
`,
	"lake.yaml": `
parent: base
contract:
  hypothesis: "{{ signals }} moved as the lake did: what is learnt on lake {{ versions.after.env_version }} finds the way there"
  expected: mean return > 0.3 over 300 episodes within 1h
config:
  env_version: "{{ versions.after.env_version }}"
`,
	"idle.yaml": `
parent: lake
config: {episodes: 0}
`,
}

// lakeRun is a policy on a frozen lake that moves, and all that sees to its retraining.
type lakeRun struct {
	*watched
	policyFile, tokenFile string
}

// lake starts a service whose incidents order retrainings by a recipe, once a person has approved, and a policy that knows the
// first lake.
func (s setting) lake(t *testing.T, recipe string) *lakeRun {
	t.Helper()
	dir := t.TempDir()
	r := &lakeRun{policyFile: filepath.Join(dir, "policy.json"), tokenFile: filepath.Join(dir, "token")}
	recipes := filepath.Join(dir, "recipes")
	write(t, r.tokenFile, "a secret of the tests\n")
	for name, text := range lakeRecipes {
		write(t, filepath.Join(recipes, name), text)
	}
	r.train(t, nil, []byte(`{"data": {"id": "rr_first", "config": {
		"algorithm": "q_learning", "env_version": "1", "episodes": 6000, "learning_rate": 0.1, "discount": 0.99, "seed": 2}}}`))

	f := fleet{
		env: "FrozenLake-v1", policy: "walker-" + recipe, agents: 2, topic: "lake-" + recipe, partitions: 2, policyFile: r.policyFile,
		phases: []phase{{Episodes: 700}, {Episodes: 200, Versions: map[string]string{"env_version": "2"}}, {Episodes: 600}},
	}
	s.broker.createTopic(t, f.topic, f.partitions)
	r.watched = &watched{fleet: f, broker: s.broker, trainer: startReceiver(t)}
	r.service = newService(t, s.binary, s.broker.address, f.topic, f.topic, r.trainer, nil)
	replaceIn(t, r.service.config, filepath.Join(root, "deploy", "recipes"), recipes)
	replaceIn(t, r.service.config, "recipe: checkout-ranker, target: trainer, cooldown: 24h",
		fmt.Sprintf("recipe: %s, target: trainer, cooldown: 0s, approval: true", recipe))
	replaceIn(t, r.service.config, "  targets:", "  breaker: {after: 1, pause: 7d}\n  targets:")
	replaceIn(t, r.service.config, "  listen:", fmt.Sprintf("  token_file: %q\n  listen:", r.tokenFile))
	r.trainer.job = func(d delivery) { r.retrain(t, d) }
	r.service.start(t)
	r.agent = startAgent(t, s.broker, f)
	return r
}

// train runs the training job with an order, and gives the version that it has made. Where there are headers of a webhook, the
// job verifies its signature with Python's library of Standard Webhooks.
func (r *lakeRun) train(t *testing.T, headers map[string]string, order []byte) string {
	args := []string{"train.py", "--policy-file", r.policyFile}
	if headers != nil {
		text, err := json.Marshal(headers)
		if err != nil {
			t.Error(err)
		}
		args = append(args, "--secret", webhookSecret, "--headers", string(text))
	}
	job := pythonCommand(t, "cmd/rewardwatch/e2e", args...)
	job.Stdin = bytes.NewReader(order)
	var stderr bytes.Buffer
	job.Stderr = &stderr
	out, err := job.Output()
	if err != nil {
		t.Errorf("the training job failed: %v\n%s", err, &stderr)
	}
	return strings.TrimSpace(string(out))
}

// retrain is what the trainer does with an order: it runs the job, and tells of it.
func (r *lakeRun) retrain(t *testing.T, d delivery) {
	id, headers := d.order.Data.ID, map[string]string{}
	for name := range d.head {
		headers[strings.ToLower(name)] = d.head.Get(name)
	}
	r.report(t, id, map[string]string{"state": retrain.JobStarted, "by": "trainer"})
	version := r.train(t, headers, d.body)
	r.report(t, id, map[string]string{"state": retrain.JobSucceeded, "version": version, "log": "trained", "by": "trainer"})
}

// report calls the service back, as a job does.
func (r *lakeRun) report(t *testing.T, id string, what map[string]string) {
	body, err := json.Marshal(what)
	if err != nil {
		t.Error(err)
		return
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+r.service.address+"/api/v1/retrain-requests/"+id+"/status", bytes.NewReader(body))
	if err != nil {
		t.Error(err)
		return
	}
	token, err := os.ReadFile(r.tokenFile)
	if err != nil {
		t.Error(err)
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("a report was answered %s", resp.Status)
	}
}

// run runs a command of the binary against the service.
func (r *lakeRun) run(t *testing.T, args ...string) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), r.service.binary, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("rewardwatch %v: %v\n%s%s", args, err, out, &stderr)
	}
	return string(out)
}

// request gives the only request there is.
func (r *lakeRun) request() (retrain.Request, error) {
	var ledger struct {
		Requests []retrain.Request `json:"retrain_requests"`
	}
	if err := getJSON("http://"+r.service.address+"/api/v1/retrain-requests", &ledger); err != nil {
		return retrain.Request{}, err
	}
	if len(ledger.Requests) != 1 {
		return retrain.Request{}, fmt.Errorf("there are %d requests", len(ledger.Requests))
	}
	return ledger.Requests[0], nil
}

// becomes returns when the request is in a state.
func (r *lakeRun) becomes(t *testing.T, want retrain.State) (q retrain.Request) {
	t.Helper()
	eventually(t, "the request is "+string(want), func() (err error) {
		if q, err = r.request(); err == nil && q.State != want {
			err = fmt.Errorf("it is %s: %s", q.State, q.Reason)
		}
		return err
	})
	return q
}

// drift has the lake move, and gives the request that waits for its approval.
func (r *lakeRun) drift(t *testing.T) retrain.Request {
	t.Helper()
	r.phase(t)
	if err := r.states(bank.OK); err != nil {
		t.Fatal(err)
	}
	r.agent.proceed(t)
	r.phase(t)
	incident := r.incident(t, "open")
	if incident.Cause != string(alerts.CauseEnvironment) {
		t.Errorf("the cause is %s, where the version of the environment changed", incident.Cause)
	}
	q := r.becomes(t, retrain.StateAwaitingApproval)
	if q.Origin != incident.ID || q.OriginKind != retrain.OriginIncident {
		t.Errorf("the request is of %s %s, and the incident is %s", q.OriginKind, q.Origin, incident.ID)
	}
	if got, _, err := r.trainer.received(); err != nil || len(got) > 0 {
		t.Errorf("webhooks %v before the approval: %v", got, err)
	}
	return q
}

// approve has a person look at the difference and approve; it returns when there is a new version.
func (r *lakeRun) approve(t *testing.T, id string) retrain.Request {
	t.Helper()
	server := "http://" + r.service.address
	if diff := r.run(t, "retrain", "diff", "base", id, "--config", r.service.config, "--server", server); !strings.Contains(diff, `- config.env_version: "1"`) ||
		!strings.Contains(diff, `+ config.env_version: "2"`) {
		t.Errorf("the difference from the base is\n%s", diff)
	}
	r.run(t, "retrain", "approve", id, "--by", "ann", "--why", "the lake has moved", "--server", server, "--token-file", r.tokenFile)
	q := r.becomes(t, retrain.StateVerifying)
	if want := "after-" + id; q.NewVersion != want {
		t.Errorf("the new version is %q, not %q", q.NewVersion, want)
	}
	return q
}

// lakeIsRetrained: the lake moves, a person approves, the job learns the new lake, and its version is proven to have helped.
func (s setting) lakeIsRetrained(t *testing.T) {
	r := s.lake(t, "lake")
	id := r.drift(t).ID
	r.approve(t, id)
	r.exported(t, id)
	r.agent.proceed(t)
	r.phase(t)
	q := r.becomes(t, retrain.StateMet)
	t.Logf("%s: %s", q.State, q.Reason)
	var history struct {
		History []retrain.StateChange `json:"history"`
	}
	if err := getJSON("http://"+r.service.address+"/api/v1/retrain-requests/"+id+"/history", &history); err != nil {
		t.Fatal(err)
	}
	var states []retrain.State
	for _, c := range history.History {
		if c.State != retrain.StateDelivered { // which it never is where the job tells that it has begun before the webhook is answered
			states = append(states, c.State)
		}
	}
	want := []retrain.State{
		retrain.StateAwaitingApproval, retrain.StateOpen, retrain.StateRunning, retrain.StateVerifying, retrain.StateMet,
	}
	if !slices.Equal(states, want) || history.History[1].By != "ann" {
		t.Errorf("the history is %+v", history.History)
	}
	eventually(t, "the new version is the baseline", func() error { return r.states(bank.OK) })
	r.service.stop(t)
}

// lakeIsMissed: the job has learnt nothing, which its version shows, and no further retraining is ordered by itself.
func (s setting) lakeIsMissed(t *testing.T) {
	r := s.lake(t, "idle")
	r.approve(t, r.drift(t).ID)
	r.agent.proceed(t)
	r.phase(t)
	q := r.becomes(t, retrain.StateMissed)
	t.Logf("%s: %s", q.State, q.Reason)
	if err := exactly(1)(r.service.largest(retrain.MetricBreakerOpen, map[string]string{"policy": r.fleet.policy})); err != nil {
		t.Errorf("the breaker: %v", err)
	}
	r.service.stop(t)
}

// exported checks that the experience of the drift can be had: steps of the lake as it is now, in order.
func (r *lakeRun) exported(t *testing.T, id string) {
	t.Helper()
	out := r.run(t, "retrain", "export", id, "--data", "drifted", "--config", r.service.config, "--server", "http://"+r.service.address)
	steps, episodes := 0, map[string]int{}
	for line := range strings.Lines(out) {
		var row struct {
			Episode string `json:"episode_id"`
			Step    int    `json:"step"`
			Env     string `json:"env_version"`
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatalf("a row is %q: %v", line, err)
		}
		if next, begun := episodes[row.Episode]; begun && row.Step != next {
			t.Errorf("step %d of %s comes where %d should", row.Step, row.Episode, next)
		}
		episodes[row.Episode] = row.Step + 1
		steps++
	}
	t.Logf("%d steps of %d episodes were exported", steps, len(episodes))
	if len(episodes) < 10 {
		t.Error("these are too few to learn from")
	}
}

// write makes a file, and its directory.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
