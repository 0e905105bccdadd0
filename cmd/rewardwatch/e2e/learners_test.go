//go:build e2e && agents

package e2e

import (
	"cmp"
	"os"
	"path/filepath"
	"testing"
)

// TestPythonAgents runs the Python package with the libraries that learn, and its examples on a real broker.
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
	t.Run("CleanRL", func(t *testing.T) { s.example(t, "cleanrl-cartpole", 400, "cleanrl.py", "--updates=4") })
	t.Run("RLlib", func(t *testing.T) { s.example(t, "rllib-cartpole", 400, "rllib.py", "--iterations=2") })
}

// example runs an example of the package: the service reads at least so many events of its policy, and refuses none.
func (s setting) example(t *testing.T, policy string, least int64, args ...string) {
	s.broker.createTopic(t, policy, 2)
	t.Setenv("REWARDWATCH_TOPIC", policy)
	if out, err := pythonCommand(t, "ingest/emitters/python/examples", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	found := s.inspect(t, policy)
	if len(found.Policies) != 1 || found.Policies[0].Policy != policy || found.Policies[0].Events < least {
		t.Errorf("found %+v, where at least %d events of %s are due", found.Policies, least, policy)
	}
}
