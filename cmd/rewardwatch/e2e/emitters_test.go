//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"
)

// TestE2EPythonPackage runs the package's own tests.
func TestE2EPythonPackage(t *testing.T) {
	out, err := pythonCommand(t, "ingest/emitters/python", "-m", "unittest", "discover", "-s", "tests").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// inspected is what `rewardwatch inspect` says of a topic.
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

// inspect reads a topic as the service would.
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

// telemetryIsRead: what the Python package sends in every way that it has, over Kafka and over HTTP, the service reads
// to the last event.
func (s setting) telemetryIsRead(t *testing.T) {
	t.Run("Python over Kafka", func(t *testing.T) {
		const topic = "senders"
		s.broker.createTopic(t, topic, 3)
		s.readAll(t, topic, pythonCommand(t, "cmd/rewardwatch/e2e", "senders.py", "--brokers", s.broker.address, "--topic", topic))
	})
	const topic = "posted"
	s.broker.createTopic(t, topic, 3)
	service := newService(t, s.binary, s.broker.address, topic, topic, startReceiver(t), nil)
	service.start(t)
	t.Run("Python over HTTP", func(t *testing.T) {
		s.readAll(t, topic, pythonCommand(t, "cmd/rewardwatch/e2e", "senders.py", "--url", "http://"+service.address))
	})
}

// readAll runs a program, which says how many events of each policy it has sent, and none that is lost. The topic must
// hold them.
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
		Sent          map[string]int64 `json:"sent"` // events by policy
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
