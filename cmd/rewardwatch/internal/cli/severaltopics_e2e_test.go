//go:build e2e

package cli

import (
	"os"
	"os/exec"
	"testing"

	"github.com/rewardwatch/rewardwatch/deploy/deploytest"
)

// apacheKafka starts a real broker.
func apacheKafka(t *testing.T) (address string) {
	t.Helper()
	dir, ports := t.TempDir(), deploytest.FreePorts(t, 2)
	script := func(verb string) {
		cmd := exec.Command("../../../../deploy/local/kafka/kafka.sh", verb)
		cmd.Env = append(os.Environ(), "KAFKA_DIR="+dir, "KAFKA_PORT="+ports[0], "KAFKA_CONTROLLER_PORT="+ports[1])
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("kafka.sh %s: %v\n%s", verb, err, out)
		}
	}
	t.Cleanup(func() { script("stop") })
	script("start")
	return "127.0.0.1:" + ports[0]
}

// TestE2ETwoTopicsOnApacheKafka kills a service that reads two topics of a real broker.
func TestE2ETwoTopicsOnApacheKafka(t *testing.T) {
	testTwoTopics(t, newStall(t, apacheKafka(t)), 2).interrupt(t)
}

// TestE2EWhatIsSentOnOnApacheKafka kills a service that sends telemetry on by its key, on a real broker.
func TestE2EWhatIsSentOnOnApacheKafka(t *testing.T) {
	testTwoTopics(t, newApartStall(t, apacheKafka(t)), 2).interrupt(t)
}
