//go:build agents

package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/deploy/deploytest"
)

// looped is a project on one machine, with the service that monitors it and everything that starts its pipeline.
type looped struct {
	dir, binary, address string
	ts                   time.Time // of the next episode in production
	returns              *rand.Rand
}

// compose replaces Docker: it runs the script of a stage in the checkout, with only the environment of the container.
const compose = `#!/bin/sh
set -eu
[ "$1 $2 $3" = "compose --file pipeline/compose.yaml" ] || exit 125
[ "$4" = build ] && exit 0
for script; do :; done
passed=
for name in $(sed -n '/^    environment: &environment$/,/^    [a-z]/s/^      \([A-Z_]*\):$/\1/p' pipeline/compose.yaml); do
  eval "[ -z \"\${$name:-}\" ] || passed=\"\$passed $name='\$$name'\""
done
eval "exec env -i PATH='$PATH' HOME='$PWD' WORK='$PWD/work' PYTHONPATH='EMITTER' OMP_NUM_THREADS=1 $passed \"$script\""
`

// newLooped generates the pipeline of a project with the real binary, and starts the binary with the generated
// configuration.
func newLooped(t *testing.T) *looped {
	t.Helper()
	l := &looped{dir: t.TempDir(), address: "127.0.0.1:" + deploytest.FreePorts(t, 1)[0], ts: time.Now().Add(-96 * time.Hour), returns: rand.New(rand.NewPCG(1, 2))}
	bin := filepath.Join(l.dir, "bin")
	l.binary = filepath.Join(bin, "rewardwatch")
	build := exec.Command("go", "build", "-o", l.binary, "./cmd/rewardwatch")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	emitter, venv := absolute(t, "../../ingest/emitters/python"), absolute(t, "../../.cache/venv-agents/bin")
	l.write(t, "bin/docker", strings.ReplaceAll(compose, "EMITTER", emitter))
	l.write(t, "pipeline.yaml", strings.NewReplacer("ADDRESS", l.address, "DIRECTORY", l.dir).Replace(`
project: cartpole
release: v0.1.0
requirements: [gymnasium==1.2.2, numpy==2.4.6, scipy==1.17.1, stable-baselines3==2.9.2]
environments:
  - {id: CartPole-v1, env: lab}
algorithm: {library: stable-baselines3, name: PPO, hyperparameters: {n_steps: 256, seed: 5}}
training: {steps: 8192, cpu: 1}
evaluation: {telemetry: true, episodes: 12, constraints: [{metric: return, at_least: 25}]}
gate: {within: 10m, every: 1m}
deploy: {command: [cp, work/version, deployed]}
monitoring:
  service: "http://ADDRESS"
  signals: [return]
  baseline: 250
  false_alarms: {budget: 1, per: 20000 episodes}
  expected: mean return >= baseline over 50 episodes within 7d
trigger: {target: make, directory: "DIRECTORY", signals: [return]}
`))
	t.Setenv("PATH", bin+":"+venv+":"+os.Getenv("PATH"))
	l.run(t, "pipeline", "generate", "-o", l.dir, filepath.Join(l.dir, "pipeline.yaml"))
	config := filepath.Join(l.dir, "pipeline", "rewardwatch.yml")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	own := strings.NewReplacer("/var/lib/rewardwatch", l.dir, "# rewardwatch:keep more\n", "# rewardwatch:keep more\nhttp: {listen: \""+l.address+"\"}\n").Replace(string(text))
	l.write(t, "pipeline/rewardwatch.yml", own)
	l.run(t, "validate", config)
	l.serve(t, config)
	return l
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	out, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (l *looped) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(l.dir, name), []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

// run runs a command of the binary, and returns its output.
func (l *looped) run(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(l.binary, args...)
	cmd.Dir = l.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// serve runs the service until the test ends.
func (l *looped) serve(t *testing.T, config string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var log bytes.Buffer
	cmd := exec.CommandContext(ctx, l.binary, "run", "--config", config)
	cmd.Dir, cmd.Stdout, cmd.Stderr = l.dir, &log, &log
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was interrupted
		if t.Failed() {
			stages, _ := os.ReadFile(filepath.Join(l.dir, "work", "stages.log"))
			t.Logf("%s\n%s", stages, log.String())
		}
	})
	l.eventually(t, time.Minute, "the service is ready", func() string { return l.get(t, "/-/ready", nil) })
}

// eventually polls until the answer, which describes what is missing, is empty.
func (l *looped) eventually(t *testing.T, within time.Duration, what string, missing func() string) {
	t.Helper()
	for end := time.Now().Add(within); ; time.Sleep(200 * time.Millisecond) {
		m := missing()
		if m == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: not within %s: %s", what, within, m)
		}
	}
}

func (l *looped) get(t *testing.T, path string, into any) (missing string) {
	t.Helper()
	resp, err := http.Get("http://" + l.address + path)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return resp.Status
	}
	if into == nil {
		return ""
	}
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		t.Fatal(err)
	}
	return ""
}

// produce sends episodes of a version in production.
func (l *looped) produce(t *testing.T, version string, n int, mean float64, apart time.Duration) {
	t.Helper()
	var body bytes.Buffer
	for i := range n {
		r := mean + 5*l.returns.NormFloat64()
		fmt.Fprintf(&body, `{"ts":%q,"policy":"cartpole","policy_version":%q,"env":"lab","agent_id":"a","episode_id":"%s/%d/%d","episode":{"r":%.3f,"l":%d}}`+"\n",
			l.ts.UTC().Format(time.RFC3339Nano), version, version, l.ts.UnixNano(), i, r, 20+i%7)
		l.ts = l.ts.Add(apart)
	}
	resp, err := http.Post("http://"+l.address+"/api/v1/telemetry", "application/x-ndjson", &body)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status)
	}
}

// request waits until the only retrain request is in a state, and returns its id. In the meantime, it calls a function.
func (l *looped) request(t *testing.T, within time.Duration, want string, does func()) (id string) {
	t.Helper()
	l.eventually(t, within, "the retraining is "+want, func() string {
		does()
		var kept struct {
			Requests []struct{ ID, State, Reason string } `json:"retrain_requests"`
		}
		if m := l.get(t, "/api/v1/retrain-requests", &kept); m != "" {
			return m
		}
		if len(kept.Requests) != 1 || kept.Requests[0].State != want {
			return fmt.Sprintf("%+v", kept.Requests)
		}
		id = kept.Requests[0].ID
		return ""
	})
	return id
}

// The generated files close the loop: drift requests a retraining, which starts the pipeline through its target. The
// pipeline trains, evaluates, waits at the gate and deploys, and the version satisfies the contract.
func TestGeneratedTrainingClosesTheLoop(t *testing.T) {
	l := newLooped(t)
	l.produce(t, "v1", 260, 20, 15*time.Minute)
	l.produce(t, "v1", 60, 10, 15*time.Minute)
	id := l.request(t, 10*time.Minute, "verifying", func() {})
	stages, err := os.ReadFile(filepath.Join(l.dir, "work", "stages.log"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(stages)) {
		_, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		names = append(names, name)
	}
	if got := strings.Join(names, " "); got != "train evaluate gate deploy" {
		t.Errorf("the stages were %s", got)
	}
	deployed, err := os.ReadFile(filepath.Join(l.dir, "deployed"))
	if err != nil {
		t.Fatal(err)
	}
	version := strings.TrimSpace(string(deployed))
	verdict := l.run(t, "gate", "cartpole", version, "--server", "http://"+l.address) // it fails unless the version is as good
	met := l.request(t, 5*time.Minute, "met", func() {                                // episodes before the service is informed of the version do not count
		l.ts = time.Now()
		l.produce(t, version, 5, 60, time.Millisecond)
	})
	if met != id {
		t.Errorf("%s is met, not %s", met, id)
	}
	shown := l.run(t, "retrain", "show", id, "--server", "http://"+l.address)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{version, "cartpole pipeline, make on " + host} {
		if !strings.Contains(shown, want) {
			t.Errorf("no %q in\n%s", want, shown)
		}
	}
	t.Logf("%s\n%s", verdict, shown)
}
