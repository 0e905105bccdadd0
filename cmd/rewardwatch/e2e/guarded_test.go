//go:build e2e

package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/deploy/deploytest"
	"github.com/rewardwatch/rewardwatch/detectors/metrics"
)

const examples = "ingest/emitters/python/examples/"

// guardedConfig configures a service without Kafka, with the guards of the examples.
const guardedConfig = `
ingest: {log: {directory: %[1]q}, dead_letters: {directory: %[2]q}}
checkpoint: {directory: %[3]q, every: 1s}
policies:
  - {match: offers, guards: {limits: [{name: refunds, actions: [refund_all], share: 0.05}]}}
  - {match: lake, guards: {limits: [{name: exploration, outcome: explored, share: 0.1}]}}
  - {match: taxi, guards: {limits: [{name: stops, actions: ["4", "5"], share: 0.25}]}}
http: {listen: %[4]q}
`

// TestE2EGuardedAgents runs the examples of agents with a guard. The guard trips, the agents obey until a person
// releases it, and then explore again.
func TestE2EGuardedAgents(t *testing.T) {
	s := guardedService(t, build(t))
	t.Run("bandit", func(t *testing.T) {
		a := s.guarded(t, "guarded_bandit.py")
		a.trips(t)
		s.obeyed(t, "offers")
		s.releases(t, "offers", "refunds")
		if did := a.says(t, false); did["steps"] == 0 || did["refunds"] > 1 { // the guard may be released during a refund
			t.Errorf("while it was held, it did %v", did)
		}
		if did := a.says(t, true); did["refunds"] == 0 { // nothing was repaired
			t.Errorf("before its guard tripped again, it did %v", did)
		}
	})
	t.Run("Q-learner", func(t *testing.T) {
		a := s.guarded(t, "guarded_qlearning.py")
		a.trips(t)
		s.judges(t, "lake", 150) // number of episodes until it explores little
		s.obeyed(t, "lake")
		s.releases(t, "lake", "exploration")
		if did := a.says(t, false); did["steps"] == 0 || did["explored"]+did["learned"] > 0 {
			t.Errorf("while it was held, it did %v", did)
		}
		s.judges(t, "lake", 300)
		select {
		case more := <-a.lines:
			t.Errorf("it keeps the limit now, and its guard says %+v", more)
		default:
		}
	})
}

// guardedService starts a service with the guards of the examples.
func guardedService(t *testing.T, binary string) *service {
	t.Helper()
	dir := t.TempDir()
	s := &service{
		binary: binary, config: filepath.Join(dir, "rewardwatch.yml"),
		address: "127.0.0.1:" + deploytest.FreePorts(t, 1)[0], log: createLog(t, "rewardwatch.log"),
	}
	text := fmt.Sprintf(guardedConfig, filepath.Join(dir, "telemetry"), filepath.Join(dir, "dead-letters"), filepath.Join(dir, "checkpoints"), s.address)
	if err := os.WriteFile(s.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.kill(t)
		logTail(t, s.log.Name())
	})
	s.start(t)
	return s
}

// tallied is a line of an example's output: whether it is held now, and what it did before.
type tallied struct {
	Held   bool
	State  string
	Before map[string]int
}

// guarded is an example that runs until the test ends.
type guarded struct{ lines <-chan tallied }

// guarded runs an example against the service.
func (s *service) guarded(t *testing.T, script string) guarded {
	t.Helper()
	cmd := pythonCommand(t, examples, script)
	cmd.Env = append(cmd.Env, "REWARDWATCH_URL=http://"+s.address)
	return follows(t, cmd, script)
}

// follows starts a script that prints what it did.
func follows(t *testing.T, cmd *exec.Cmd, script string) guarded {
	t.Helper()
	log := createLog(t, script+".log")
	cmd.Stderr = log
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines, ended := make(chan tallied, 1000), make(chan struct{})
	go func() {
		defer close(ended)
		defer close(lines)
		for in := bufio.NewScanner(stdout); in.Scan(); {
			var line tallied
			if err := json.Unmarshal(in.Bytes(), &line); err != nil {
				t.Errorf("%s says %q: %v", script, in.Text(), err)
			}
			lines <- line
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		<-ended
		_ = cmd.Wait() // it ends with an interrupt
		logTail(t, log.Name())
	})
	return guarded{lines}
}

// next returns the next line of the example.
func (g guarded) next(t *testing.T) tallied {
	t.Helper()
	select {
	case line, running := <-g.lines:
		if !running {
			t.Fatal("it has ended")
		}
		return line
	case <-time.After(patience):
		t.Fatal("it says nothing more")
	}
	return tallied{}
}

// says returns what the example did before it was held, or before it was released.
func (g guarded) says(t *testing.T, held bool) map[string]int {
	t.Helper()
	line := g.next(t)
	if line.Held != held {
		t.Fatalf("it says %+v, want held: %t", line, held)
	}
	return line.Before
}

// trips waits until the guard of the example trips. Before the example has read the first state, it is held as well.
func (g guarded) trips(t *testing.T) {
	t.Helper()
	if g.next(t).Held {
		g.says(t, false)
	}
	if did := g.says(t, true); did["steps"] == 0 {
		t.Errorf("before its guard tripped, it did %v", did)
	}
}

// releases releases a guard as a person would.
func (s *service) releases(t *testing.T, policy, guard string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), s.binary, "guard", "release", policy, guard, "--why", "a test", "--server", "http://"+s.address)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("release: %v\n%s", err, out)
	}
}

// judges waits until the given number of episodes of a policy has been judged.
func (s *service) judges(t *testing.T, policy string, episodes float64) {
	t.Helper()
	eventually(t, fmt.Sprint(episodes, " episodes of ", policy), func() error {
		n, err := s.largest(metrics.MetricUnits, map[string]string{"policy": policy})
		if err == nil && n < episodes {
			err = fmt.Errorf("%g are judged", n)
		}
		return err
	})
}

// judgesMore waits until the given number of further episodes of a policy has been judged.
func (s *service) judgesMore(t *testing.T, policy string, episodes float64) {
	t.Helper()
	n, err := s.largest(metrics.MetricUnits, map[string]string{"policy": policy})
	if err != nil {
		t.Fatal(err)
	}
	s.judges(t, policy, n+episodes)
}

// obeyed waits until the service has counted 100 consecutive steps within the limit of a policy whose guard has
// tripped. Steps that were in progress when it tripped may still violate the limit; there are more of these on a busy
// machine.
func (s *service) obeyed(t *testing.T, policy string) {
	t.Helper()
	broken, since := -1., 0. // number of steps that violated the limit, and number of steps when the last one of them was seen
	eventually(t, policy+" is held", func() error {
		var g wire.Guards
		body, err := get("http://" + s.address + "/api/v1/guards/" + policy)
		if err == nil {
			err = json.Unmarshal(body, &g)
		}
		if err != nil {
			return err
		}
		steps := g.Guards[0].Values
		if now := math.Round(steps * float64(g.Guards[0].Mean)); now != broken {
			broken, since = now, steps
		}
		if g.State != "hold" || steps < since+100 {
			return fmt.Errorf("the state is %s, and the last of %g steps that broke the limit is among the first %g of %g", g.State, broken, since, steps)
		}
		return nil
	})
}

// learnerIsHeld: a Q-learner learns while the ice of its lake becomes more slippery, and later while the sign of its
// reward is reversed. Each time, a guard holds it until a person has repaired the cause and releases it.
//
// The rates are known by construction. 20% of the steps slip under any policy, and 60% on the changed ice; the limit is
// twice the healthy rate. No episode returns less than -0.4, but each that reaches the goal returns less than -0.6 once
// the reward is reversed. As the learner soon avoids the goal, about 10% of its episodes do. It takes about 400
// episodes or more to prove that a limit of 5% is violated.
func (s setting) learnerIsHeld(t *testing.T) {
	const topic, policy = "learner", "learner"
	s.broker.createTopic(t, topic, 1)
	service := newService(t, s.binary, s.broker.address, topic, topic, startReceiver(t), nil)
	replaceIn(t, service.config, `{match: "*", false_alarms:`, `{match: "*", learning: continuous, guards: {limits: [
      {name: slips, outcome: slipped, share: 0.4}, {name: losses, return_below: -0.5, share: 0.01}]}, false_alarms:`)
	service.start(t)
	cmd := pythonCommand(t, "cmd/rewardwatch/e2e", "learner.py", "--url", "http://"+service.address)
	cmd.Env = append(cmd.Env, "REWARDWATCH_BROKERS="+s.broker.address, "REWARDWATCH_TOPIC="+topic)
	world, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	tells := func(line string) {
		t.Helper()
		if _, err := fmt.Fprintln(world, line); err != nil {
			t.Fatal(err)
		}
	}
	a := follows(t, cmd, "learner.py")
	if a.next(t).Held { // until the service knows the policy
		a.says(t, false)
	}
	t.Log("it learns")
	service.judges(t, policy, 300)
	service.learnsAgain(t)
	for _, change := range []struct {
		guard, breaks, repairs string
		signals                []string // any of them
		cause                  string
	}{
		{"slips", `{"grip": 0.4}`, `{"grip": 0.8, "restore": true}`, []string{"law.dynamics", "return"}, string(alerts.CauseEnvironment)},
		// The return falls with the law, and may be proven first.
		{"losses", `{"sign": -1}`, `{"sign": 1, "restore": true}`, []string{"law.reward", "return"}, string(alerts.CauseRewardFunction)},
	} {
		tells(change.breaks)
		if did := a.says(t, true); did["learned"] != did["steps"] {
			t.Errorf("%s: before it was held, it did %v", change.guard, did)
		}
		t.Log("it is held by ", change.guard)
		service.finds(t, change.guard, "", "guard")
		service.finds(t, "", change.cause, change.signals...)
		tells(change.repairs)
		service.judgesMore(t, policy, 100) // or steps that were in progress before the repair could trip it again
		service.releases(t, policy, change.guard)
		if did := a.says(t, false); did["steps"] == 0 || did["learned"]+did["explored"] > 0 {
			t.Errorf("%s: while it was held, it did %v", change.guard, did)
		}
		t.Log("a person has released it")
		service.learnsAgain(t)
	}
	select {
	case more := <-a.lines:
		t.Errorf("all is repaired, and its guard says %+v", more)
	default:
	}
	service.stop(t)
}

// finds waits for an open incident of a guard, or of the telemetry if guard is empty, with its cause and an alarm of
// one of the signals.
func (s *service) finds(t *testing.T, guard, cause string, signals ...string) {
	t.Helper()
	eventually(t, fmt.Sprint("an incident of ", signals), func() error {
		all, err := s.incidents()
		for _, i := range all {
			if i.State == "open" && !i.Provisional && i.Group.Guard == guard && slices.ContainsFunc(signals, i.alarmed) &&
				(cause == "" || i.Cause == cause) {
				t.Logf("%v: %+v", signals, i)
				return nil
			}
		}
		return errors.Join(err, fmt.Errorf("there are %+v", all))
	})
}

// learnsAgain waits until no incident is open.
func (s *service) learnsAgain(t *testing.T) {
	t.Helper()
	eventually(t, "no incident is open", func() error {
		all, err := s.incidents()
		if open := slices.IndexFunc(all, func(i incident) bool { return i.State == "open" }); open >= 0 {
			err = fmt.Errorf("%+v is open", all[open])
		}
		return err
	})
}

// alarmed reports whether a signal has raised an alarm of the incident.
func (i incident) alarmed(signal string) bool {
	for _, a := range i.Alarms {
		if a.Signal == signal {
			return true
		}
	}
	return false
}
