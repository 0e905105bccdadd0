//go:build e2e && agents

package e2e

import (
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPythonAgents runs the Python package with the libraries that learn, and its examples with a real broker.
func TestPythonAgents(t *testing.T) {
	python, err := filepath.Abs(cmp.Or(os.Getenv("REWARDWATCH_AGENTS_PYTHON"), filepath.Join(root, ".cache/venv-agents/bin/python")))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("REWARDWATCH_E2E_PYTHON", python)
	t.Run("tests", func(t *testing.T) {
		out, err := pythonCommand(t, "ingest/emitters/python/tests", "-m", "unittest", "discover", "-s", "agents").CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	})
	s := setting{broker: startBroker(t, ""), binary: build(t)}
	t.Setenv("REWARDWATCH_BROKERS", s.broker.address)
	t.Run("CleanRL", func(t *testing.T) { s.example(t, "cleanrl-cartpole", 400, examples+"cleanrl.py", "--updates=4") })
	t.Run("RLlib", func(t *testing.T) { s.example(t, "rllib-cartpole", 400, examples+"rllib.py", "--iterations=2") })
	t.Run("Stable-Baselines3", func(t *testing.T) {
		s.example(t, "cartpole", 1024, "docs/examples/cartpole/agent.py", "--training=1024", "--steps=1024", "--steps-after=0")
		s.heavierPole(t)
	})
}

// TestPythonAgentsGuarded runs the example with Stable-Baselines3 and a guard.
func TestPythonAgentsGuarded(t *testing.T) {
	python, err := filepath.Abs(cmp.Or(os.Getenv("REWARDWATCH_AGENTS_PYTHON"), filepath.Join(root, ".cache/venv-agents/bin/python")))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("REWARDWATCH_E2E_PYTHON", python)
	s := guardedService(t, build(t))
	a := s.guarded(t, "guarded_sb3.py")
	a.trips(t)
	s.obeyed(t, "taxi")
	s.releases(t, "taxi", "stops")
	if did := a.says(t, false); did["steps"] == 0 || did["learned"] > 0 || did["stops"] > 1 {
		t.Errorf("while it was held, it did %v", did)
	}
	if did := a.says(t, true); did["learned"] == 0 { // it still explores more than its limit allows
		t.Errorf("before its guard tripped again, it did %v", did)
	}
}

// example runs a script with an agent, and checks that the service reads at least the given number of events of its
// policy and refuses none.
func (s setting) example(t *testing.T, policy string, least int64, script string, args ...string) {
	s.broker.createTopic(t, policy, 2)
	t.Setenv("REWARDWATCH_TOPIC", policy)
	if out, err := pythonCommand(t, filepath.Dir(script), append([]string{filepath.Base(script)}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	found := s.inspect(t, policy)
	if len(found.Policies) != 1 || found.Policies[0].Policy != policy || found.Policies[0].Events < least {
		t.Errorf("found %+v, where at least %d events of %s are due", found.Policies, least, policy)
	}
}

// heavierPole records the telemetry of docs/examples/cartpole again, and checks that the return falls because of the
// environment.
func (s setting) heavierPole(t *testing.T) {
	const folder = "docs/examples/cartpole"
	recorded := filepath.Join(t.TempDir(), "telemetry.ndjson")
	if out, err := pythonCommand(t, folder, "agent.py", "--to", recorded).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), s.binary, "replay", "--output", "json", "--config", filepath.Join(root, folder, "rewardwatch.yml"), recorded)
	out, err := cmd.Output()
	if exit, is := errors.AsType[*exec.ExitError](err); !is || exit.ExitCode() != 1 {
		t.Fatalf("replay: %v, where drift is due\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		var a struct{ Event, State, Signal, Cause string }
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatal(err)
		}
		if a.Event == "alarm" && a.Signal == "return" && a.Cause == "environment" {
			return
		}
	}
	t.Errorf("no alarm of the return because of the environment:\n%s", out)
}
