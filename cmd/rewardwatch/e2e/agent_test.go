//go:build e2e

package e2e

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// python is the interpreter with the packages of requirements.txt.
func python() string {
	return cmp.Or(os.Getenv("REWARDWATCH_E2E_PYTHON"), filepath.Join(root, ".cache/venv/bin/python"))
}

// pythonCommand returns a command that runs python with the package rewardwatch available, from a directory of the
// repository.
func pythonCommand(t *testing.T, directory string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), python(), args...)
	cmd.Dir = filepath.Join(root, directory)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join(root, "ingest/emitters/python"), "PYTHONDONTWRITEBYTECODE=1")
	return cmd
}

// phase is a series of episodes with the same physics, in the form that agent.py reads.
type phase struct {
	Episodes int               `json:"episodes"`
	Physics  map[string]any    `json:"physics,omitempty"`
	Versions map[string]string `json:"versions,omitempty"`
}

// phaseDone is what agent.py prints when the broker has all events of a phase.
type phaseDone struct {
	Phase    int     `json:"phase"`
	Episodes int     `json:"episodes"`
	Steps    int     `json:"steps"`
	Mean     float64 `json:"mean"` // of the returns
	SD       float64 `json:"sd"`
	Waiting  int     `json:"waiting"` // number of events that the broker has not acknowledged
	Lost     int     `json:"lost"`
}

// fleet is a number of agents with one policy in one environment, writing to one topic.
type fleet struct {
	env, policy string
	agents      int
	topic       string
	partitions  int
	phases      []phase
	policyFile  string // file of the policy, for FrozenLake-v1
}

// episodes returns the number of episodes of the first n phases.
func (f fleet) episodes(n int) int {
	total := 0
	for _, p := range f.phases[:n] {
		total += p.Episodes
	}
	return total
}

// agent is a running agent.py.
type agent struct {
	stdin io.WriteCloser
	done  <-chan phaseDone
}

func startAgent(t *testing.T, b *broker, f fleet) *agent {
	t.Helper()
	args := []string{
		"agent.py", "--brokers", b.address, "--topic", f.topic, "--env", f.env, "--policy", f.policy,
		"--agents", strconv.Itoa(f.agents),
	}
	if f.policyFile != "" {
		args = append(args, "--policy-file", f.policyFile)
	}
	for _, p := range f.phases {
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, "--phase", string(text))
	}
	cmd := pythonCommand(t, "cmd/rewardwatch/e2e", args...)
	log := createLog(t, "agent.log")
	cmd.Stderr = log
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v (`make test` makes the environment of this python)", err)
	}
	done := make(chan phaseDone, len(f.phases))
	finished := make(chan error, 1)
	go func() {
		finished <- follow(cmd, stdout, done)
	}()
	t.Cleanup(func() {
		_ = stdin.Close() // an agent that waits for its next phase ends, because its process is killed with the test's context
		if err := <-finished; err != nil && !t.Failed() {
			t.Errorf("agent: %v", err)
		}
		logTail(t, log.Name())
	})
	return &agent{stdin: stdin, done: done}
}

// follow passes on what the agent prints and waits for its end.
func follow(cmd *exec.Cmd, stdout io.Reader, done chan<- phaseDone) error {
	defer close(done)
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		var d phaseDone
		if err := json.Unmarshal(lines.Bytes(), &d); err != nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			return fmt.Errorf("it says %q: %w", lines.Text(), err)
		}
		done <- d
	}
	return cmd.Wait()
}

// acting is the maximum duration of a phase, which simulates thousands of steps. If an agent dies, its end is noticed
// immediately.
const acting = 15 * time.Minute

// wait returns when the broker has all events of the current phase.
func (a *agent) wait(t *testing.T) phaseDone {
	t.Helper()
	select {
	case d, ok := <-a.done:
		if !ok || d.Waiting > 0 || d.Lost > 0 {
			t.Fatalf("the agent failed: %+v", d)
		}
		t.Logf("phase %d: %d episodes, %d steps, return %.1f (sd %.1f)", d.Phase, d.Episodes, d.Steps, d.Mean, d.SD)
		return d
	case <-time.After(acting):
		t.Fatalf("the agent did not finish its phase within %s", acting)
	}
	return phaseDone{}
}

// proceed starts the next phase.
func (a *agent) proceed(t *testing.T) {
	t.Helper()
	if _, err := io.WriteString(a.stdin, "\n"); err != nil {
		t.Fatalf("start the agent's next phase: %v", err)
	}
}

// createLog creates a file for the output of a process.
func createLog(t *testing.T, name string) *os.File {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	return log
}
