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

	"github.com/parquet-go/parquet-go"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/retrain"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// lakeRecipes are the recipes of a policy on the frozen lake. With the recipe stuck, the trained policy has forgotten
// everything.
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
	"stuck.yaml": `
parent: lake
config: {algorithm: stand}
`,
}

// lakeRun is a policy on a frozen lake that moves, with everything that its retraining needs.
type lakeRun struct {
	*watched
	policyFile, tokenFile string
	silent                bool // whether the job does not report
}

// lake starts a service whose incidents order retrainings with a recipe, once a person has approved them, and a policy
// that has learned the first lake. more holds the phases after that of the new version.
func (s setting) lake(t *testing.T, recipe string, more ...phase) *lakeRun {
	t.Helper()
	dir := t.TempDir()
	r := &lakeRun{policyFile: filepath.Join(dir, "policy.json"), tokenFile: filepath.Join(dir, "token")}
	recipes := filepath.Join(dir, "recipes")
	write(t, r.tokenFile, "a secret of the tests, which nobody guesses\n")
	for name, text := range lakeRecipes {
		write(t, filepath.Join(recipes, name), text)
	}
	r.train(t, nil, []byte(`{"data": {"id": "rr_first", "config": {
		"algorithm": "q_learning", "env_version": "1", "episodes": 6000, "learning_rate": 0.1, "discount": 0.99, "seed": 2}}}`))

	f := fleet{
		env: "FrozenLake-v1", policy: "walker-" + recipe, agents: 2, topic: "lake-" + recipe, partitions: 2, policyFile: r.policyFile,
		phases: []phase{{Episodes: 700}, {Episodes: 200, Versions: map[string]string{"env_version": "2"}}, {Episodes: 600}},
	}
	f.phases = append(f.phases, more...)
	s.broker.createTopic(t, f.topic, f.partitions)
	r.watched = &watched{fleet: f, broker: s.broker, trainer: startReceiver(t)}
	r.service = newService(t, s.binary, s.broker.address, f.topic, f.topic, r.trainer, nil)
	replaceIn(t, r.service.config, filepath.Join(root, "deploy", "recipes"), recipes)
	replaceIn(t, r.service.config, "recipe: checkout-ranker, target: trainer, cooldown: 24h",
		fmt.Sprintf("recipe: %s, target: trainer, cooldown: 0s, approval: true", recipe))
	replaceIn(t, r.service.config, "  targets:", "  breaker: {after: 1, pause: 7d}\n  rollback: trainer\n  targets:")
	replaceIn(t, r.service.config, "  listen:", fmt.Sprintf("  token_file: %q\n  listen:", r.tokenFile))
	r.trainer.job = func(d delivery) { r.retrain(t, d) }
	r.service.start(t)
	r.agent = startAgent(t, s.broker, f)
	return r
}

// train runs the training job with an order, and returns the version that it has made. If headers of a webhook are
// given, the job verifies its signature with the Python library of Standard Webhooks.
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

// retrain does what the trainer does with an order: it runs the job and reports on it, or goes back to the preceding
// version.
func (r *lakeRun) retrain(t *testing.T, d delivery) {
	id, headers := d.order.Data.ID, map[string]string{}
	for name := range d.head {
		headers[strings.ToLower(name)] = d.head.Get(name)
	}
	if d.order.Type == retrain.EventRollback {
		r.report(t, id, http.StatusOK, map[string]string{"state": retrain.JobSucceeded, "version": r.goBack(t), "by": "trainer"})
		return
	}
	if !r.silent {
		r.report(t, id, http.StatusOK, map[string]string{"state": retrain.JobStarted, "by": "trainer"})
	}
	if err := os.Rename(r.policyFile, r.policyFile+".before"); err != nil {
		t.Error(err)
	}
	version := r.train(t, headers, d.body)
	if !r.silent {
		r.report(t, id, http.StatusOK, map[string]string{"state": retrain.JobSucceeded, "version": version, "log": "trained", "by": "trainer"})
	}
}

// goBack restores the policy from before the job, and returns its version.
func (r *lakeRun) goBack(t *testing.T) string {
	var policy struct {
		Version string `json:"policy_version"`
	}
	text, err := os.ReadFile(r.policyFile + ".before")
	if err == nil {
		err = json.Unmarshal(text, &policy)
	}
	if err == nil {
		err = os.WriteFile(r.policyFile, text, 0o600)
	}
	if err != nil {
		t.Error(err)
	}
	return policy.Version
}

// report calls the service back, like a job.
func (r *lakeRun) report(t *testing.T, id string, want int, what map[string]string) {
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
	if resp.StatusCode != want {
		t.Errorf("a report was answered %s, not %d", resp.Status, want)
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

// request returns the only request of a kind.
func (r *lakeRun) request(kind ledger.Kind) (ledger.Request, error) {
	var kept struct {
		Requests []ledger.Request `json:"retrain_requests"`
	}
	if err := getJSON("http://"+r.service.address+"/api/v1/retrain-requests", &kept); err != nil {
		return ledger.Request{}, err
	}
	found := slices.DeleteFunc(kept.Requests, func(q ledger.Request) bool { return q.Kind != kind })
	if len(found) != 1 {
		return ledger.Request{}, fmt.Errorf("there are %d requests of the kind %s", len(found), kind)
	}
	return found[0], nil
}

// becomes returns the retraining once it is in a state.
func (r *lakeRun) becomes(t *testing.T, want ledger.State) ledger.Request {
	t.Helper()
	return r.ofKind(t, ledger.KindRetrain, want)
}

// ofKind returns the request of a kind once it is in a state.
func (r *lakeRun) ofKind(t *testing.T, kind ledger.Kind, want ledger.State) (q ledger.Request) {
	t.Helper()
	eventually(t, "the "+string(kind)+" is "+string(want), func() (err error) {
		if q, err = r.request(kind); err == nil && q.State != want {
			err = fmt.Errorf("it is %s: %s", q.State, q.Reason)
		}
		return err
	})
	return q
}

// drift moves the lake, and returns the request that waits for approval.
func (r *lakeRun) drift(t *testing.T) ledger.Request {
	t.Helper()
	r.phase(t)
	if err := r.states(finding.OK); err != nil {
		t.Fatal(err)
	}
	r.agent.proceed(t)
	r.phase(t)
	incident := r.incident(t, "open")
	if incident.Cause != string(alerts.CauseEnvironment) {
		t.Errorf("the cause is %s, where the version of the environment changed", incident.Cause)
	}
	q := r.becomes(t, ledger.StateAwaitingApproval)
	if q.Origin != incident.ID || q.OriginKind != ledger.OriginIncident {
		t.Errorf("the request is of %s %s, and the incident is %s", q.OriginKind, q.Origin, incident.ID)
	}
	if got, _, err := r.trainer.received(); err != nil || len(got) > 0 {
		t.Errorf("webhooks %v before the approval: %v", got, err)
	}
	return q
}

// approve looks at the difference and approves, as a person would.
func (r *lakeRun) approve(t *testing.T, id string) {
	t.Helper()
	server := "http://" + r.service.address
	if diff := r.run(t, "retrain", "diff", "base", id, "--config", r.service.config, "--server", server); !strings.Contains(diff, `- config.env_version: "1"`) ||
		!strings.Contains(diff, `+ config.env_version: "2"`) {
		t.Errorf("the difference from the base is\n%s", diff)
	}
	r.run(t, "retrain", "approve", id, "--by", "ann", "--why", "the lake has moved", "--server", server, "--token-file", r.tokenFile)
}

// lakeIsRetrained: the lake moves, a person approves, the job learns the new lake, and its version is proven to have
// helped.
func (s setting) lakeIsRetrained(t *testing.T) {
	r := s.lake(t, "lake", phase{Episodes: 600})
	id := r.drift(t).ID
	r.approve(t, id)
	if q, want := r.becomes(t, ledger.StateVerifying), "after-"+id; q.NewVersion != want {
		t.Errorf("the new version is %q, not %q", q.NewVersion, want)
	}
	r.exported(t, id)
	r.agent.proceed(t)
	r.phase(t)
	q := r.becomes(t, ledger.StateMet)
	t.Logf("%s: %s", q.State, q.Reason)
	var history struct {
		History []ledger.StateChange `json:"history"`
	}
	if err := getJSON("http://"+r.service.address+"/api/v1/retrain-requests/"+id+"/history", &history); err != nil {
		t.Fatal(err)
	}
	var states []ledger.State
	for _, c := range history.History {
		if c.State != ledger.StateDelivered { // never the case if the job reports its start before the webhook is answered
			states = append(states, c.State)
		}
	}
	want := []ledger.State{
		ledger.StateAwaitingApproval, ledger.StateOpen, ledger.StateRunning, ledger.StateVerifying, ledger.StateMet,
	}
	if !slices.Equal(states, want) || history.History[1].By != "ann" {
		t.Errorf("the history is %+v", history.History)
	}
	r.agent.proceed(t) // the baseline consists of the episodes after the proof; a slow machine has read the others by then
	r.phase(t)
	eventually(t, "the new version is the baseline", func() error { return r.states(finding.OK) })
	r.service.stop(t)
}

// lakeIsMissed: the version made by the job is worse than the one before, which shows although the job does not report.
// The policy goes back, no further retraining is ordered automatically, and a report of the job comes too late.
func (s setting) lakeIsMissed(t *testing.T) {
	r := s.lake(t, "stuck", phase{Episodes: 20})
	r.silent = true
	id := r.drift(t).ID
	r.approve(t, id)
	r.becomes(t, ledger.StateDelivered)
	r.trainer.working.Wait()
	r.agent.proceed(t)
	r.phase(t)
	q := r.becomes(t, ledger.StateMissed)
	t.Logf("%s: %s", q.State, q.Reason)
	if want := "after-" + id; q.NewVersion != want {
		t.Errorf("the new version is %q, not %q", q.NewVersion, want)
	}
	r.report(t, id, http.StatusConflict, map[string]string{"state": retrain.JobSucceeded, "version": q.NewVersion, "by": "trainer"})
	if err := exactly(1)(r.service.largest(retrain.MetricBreakerOpen, map[string]string{"policy": r.fleet.policy})); err != nil {
		t.Errorf("the breaker: %v", err)
	}
	back := r.ofKind(t, ledger.KindRollback, ledger.StateMet)
	t.Logf("%s: %s", back.Kind, back.Order)
	if back.Origin != "rollback/"+id || back.Parent != id || back.Reason != "version after-rr_first is live again" {
		t.Errorf("the rollback is %+v", back)
	}
	var told struct {
		Request  string `json:"request"`
		Versions struct{ From, To string }
	}
	if err := json.Unmarshal(back.Order, &told); err != nil {
		t.Fatal(err)
	}
	if told.Request != id || told.Versions.From != "after-"+id || told.Versions.To != "after-rr_first" {
		t.Errorf("the receiver is told %+v", told)
	}
	got, _, err := r.trainer.received()
	if err != nil || len(got) != 2 || got[1].id != back.ID || got[1].order.Type != retrain.EventRollback {
		t.Errorf("webhooks %v: %v", got, err)
	}
	r.agent.proceed(t)
	r.phase(t)
	if version := r.version(t); version != told.Versions.To {
		t.Errorf("version %q is live, not %q", version, told.Versions.To)
	}
	r.service.stop(t)
}

// version returns the policy_version of the most recent unit.
func (r *lakeRun) version(t *testing.T) string {
	t.Helper()
	var shown struct {
		Streams []struct {
			Policy   string `json:"policy"`
			Versions struct {
				Policy string `json:"policy_version"`
			} `json:"versions"`
		} `json:"streams"`
	}
	if err := getJSON("http://"+r.service.address+"/api/v1/streams", &shown); err != nil {
		t.Fatal(err)
	}
	for _, s := range shown.Streams {
		if s.Policy == r.fleet.policy {
			return s.Versions.Policy
		}
	}
	return ""
}

// exported checks that the experience of the drift can be exported: steps of the current lake, in order.
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
	file := filepath.Join(t.TempDir(), "experience.parquet")
	said := r.run(t, "retrain", "export", id, "--data", "drifted", "--format", "parquet", "--out", file, "--config", r.service.config, "--server", "http://"+r.service.address)
	rows, err := parquet.ReadFile[struct {
		Episode string `parquet:"episode_id"`
		Step    int64  `parquet:"step"`
		Env     string `parquet:"env_version"`
	}](file)
	if err != nil || len(rows) != steps || !strings.Contains(said, fmt.Sprintf("%d steps of ", steps)) {
		t.Errorf("%d rows of Parquet, %v; said %q", len(rows), err, said)
	}
	for _, row := range rows {
		if _, known := episodes[row.Episode]; !known || row.Env != "2" {
			t.Fatalf("row %+v of Parquet is not among those of NDJSON", row)
		}
	}
}

// write creates a file and its directory.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
