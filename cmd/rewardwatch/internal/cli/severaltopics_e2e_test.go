//go:build e2e

package cli

import (
	"testing"

	"github.com/rewardwatch/rewardwatch/deploy/deploytest"
)

// apacheKafka starts a real broker.
func apacheKafka(t *testing.T) (address string) {
	t.Helper()
	ports := deploytest.FreePorts(t, 2)
	deploytest.StartKafka(t, "../../../..", ports[0], ports[1])
	return "127.0.0.1:" + ports[0]
}

// TestE2ETwoTopicsOnApacheKafka kills a service that reads two topics of a real broker.
func TestE2ETwoTopicsOnApacheKafka(t *testing.T) {
	testTwoTopics(t, newStall(t, apacheKafka(t)), 2).interrupt(t)
}

// TestE2EWhatIsSentOnOnApacheKafka kills a service that forwards telemetry by its key, on a real broker.
func TestE2EWhatIsSentOnOnApacheKafka(t *testing.T) {
	testTwoTopics(t, newApartStall(t, apacheKafka(t)), 2).interrupt(t)
}
