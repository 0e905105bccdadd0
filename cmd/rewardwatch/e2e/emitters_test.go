//go:build e2e

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest/feedback"
)

// TestE2EPythonPackage runs the package's own tests.
func TestE2EPythonPackage(t *testing.T) {
	out, err := pythonCommand(t, "ingest/emitters/python", "-m", "unittest", "discover", "-s", "tests").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// inspected is the output of `rewardwatch inspect` for a topic.
type inspected struct {
	Read    int64 `json:"read"`
	Refused []struct {
		Reason  string `json:"reason"`
		Records int64  `json:"records"`
		Message string `json:"message"`
	} `json:"refused"`
	Policies []struct {
		Policy  string           `json:"policy"`
		Events  int64            `json:"events"`
		Ignored map[string]int64 `json:"ignored"`
	} `json:"policies"`
}

// inspect reads a topic like the service.
func (s setting) inspect(t *testing.T, topic string) (found inspected) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), s.binary, "inspect", "--brokers", s.broker.address, "--output", "json", topic)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("inspect: %v\n%s", err, out)
	}
	if err := json.Unmarshal(out, &found); err != nil {
		t.Fatal(err)
	}
	if len(found.Refused) > 0 {
		t.Errorf("of %d records were refused: %+v", found.Read, found.Refused)
	}
	return found
}

// telemetryIsRead: the service reads all events that the Python package sends in each of its ways, over Kafka and HTTP,
// and all events of the examples in other languages. It joins decisions with later feedback.
func (s setting) telemetryIsRead(t *testing.T) {
	t.Run("over Kafka", func(t *testing.T) {
		const topic = "sent-over-kafka"
		s.pythonIsRead(t, s.takesTelemetry(t, topic), topic, "--brokers", s.broker.address, "--topic", topic)
	})
	t.Run("over HTTP", func(t *testing.T) {
		const topic = "sent-over-http"
		service := s.takesTelemetry(t, topic)
		url := "http://" + service.address
		s.pythonIsRead(t, service, topic, "--url", url)
		s.readAll(t, topic, pythonOfThePage(t, url))
		s.readAll(t, topic, inRoot(t, "go", "run", "./ingest/emitters/go", url))
		s.readAll(t, topic, inRoot(t, "node", "ingest/emitters/javascript/send.mjs", url))
	})
}

func (s setting) pythonIsRead(t *testing.T, service *service, topic string, args ...string) {
	t.Helper()
	s.readAll(t, topic, pythonCommand(t, "cmd/rewardwatch/e2e", append([]string{"senders.py"}, args...)...))
	eventually(t, "feedback is joined", func() error {
		matched, err := service.samples(feedback.MetricFeedback, map[string]string{"result": "matched"})
		if err == nil && matched[0] != 30 {
			err = fmt.Errorf("%g records of feedback are, of 30", matched[0])
		}
		return err
	})
}

// pythonOfThePage returns a program made of the Python code in docs/bring-your-telemetry.md.
func pythonOfThePage(t *testing.T, url string) *exec.Cmd {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs", "bring-your-telemetry.md"))
	if err != nil {
		t.Fatal(err)
	}
	var program strings.Builder
	for _, block := range regexp.MustCompile("(?ms)^```python\n(.*?)^```").FindAllStringSubmatch(string(page), -1) {
		program.WriteString(strings.ReplaceAll(block[1], "http://127.0.0.1:9464", url))
	}
	program.WriteString(`
import json
env.reset(seed=1)
env.step(0)
watched(completions=["short", "longer"])
waiting = emitter.flush()
sent = {"cartpole": 1, "shop": 2, "writer": 2}
print(json.dumps({"sent": sent, "waiting": waiting, "lost": emitter.lost}))
`)
	return pythonCommand(t, ".", "-c", program.String())
}

func inRoot(t *testing.T, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = root
	return cmd
}

// takesTelemetry starts a service on a new topic. It receives telemetry over HTTP with the token in
// REWARDWATCH_TOKEN_FILE, and joins the decisions of the policy later with their feedback.
func (s setting) takesTelemetry(t *testing.T, topic string) *service {
	t.Helper()
	s.broker.createTopic(t, topic, 3)
	started := newService(t, s.binary, s.broker.address, topic, topic, startReceiver(t), nil)
	tokenFile := filepath.Join(t.TempDir(), "telemetry.token")
	config, err := os.ReadFile(started.config)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.NewReplacer(
		"policies:\n", "policies:\n  - {match: later, feedback: {key: episode_id, window: 1h, default: {reward: 0}}}\n",
		"http:\n", fmt.Sprintf("http:\n  telemetry_token_file: %q\n", tokenFile),
	).Replace(string(config))
	if err := errors.Join(
		os.WriteFile(started.config, []byte(changed), 0o600),
		os.WriteFile(tokenFile, []byte("a token that agents share between them\n"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	t.Setenv("REWARDWATCH_TOKEN_FILE", tokenFile)
	started.start(t)
	return started
}

// readAll runs a program that prints how many events of each policy it has sent, and that none is lost. The topic must
// contain them.
func (s setting) readAll(t *testing.T, topic string, program *exec.Cmd) {
	t.Helper()
	log := createLog(t, "senders.log")
	program.Stderr = log
	defer logTail(t, log.Name())
	out, err := program.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var said struct {
		Sent          map[string]int64 `json:"sent"` // number of events by policy
		Waiting, Lost int64
	}
	if err := json.Unmarshal(out, &said); err != nil || said.Waiting != 0 || said.Lost != 0 || len(said.Sent) == 0 {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, p := range s.inspect(t, topic).Policies {
		sent, is := said.Sent[p.Policy]
		if is && (p.Events != sent || len(p.Ignored) > 0) {
			t.Errorf("of %s %d events were sent and %d read, of which were ignored: %v", p.Policy, sent, p.Events, p.Ignored)
		}
		delete(said.Sent, p.Policy)
	}
	if len(said.Sent) > 0 {
		t.Errorf("never read: %v", said.Sent)
	}
}
