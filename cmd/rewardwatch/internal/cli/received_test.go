package cli

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
)

// send posts a batch, and returns the status and the body of the response.
func (p *process) send(t *testing.T, id, body string) (int, string) {
	t.Helper()
	return p.post(t, "telemetry", body, http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {id}})
}

// Telemetry received over HTTP is judged once, even if it is sent again after the service was killed.
func TestReceivedTelemetryIsJudgedOnce(t *testing.T) {
	t.Parallel()
	t.Run("over Kafka", func(t *testing.T) {
		t.Parallel()
		receivesOnce(t, serviceConfig(t, startBroker(t, 2)), func(p *process, t *testing.T) { p.killMember(t) })
	})
	t.Run("without Kafka", func(t *testing.T) {
		t.Parallel()
		cfg, _ := localConfig(t)
		receivesOnce(t, cfg, func(p *process, _ *testing.T) { p.kill() })
	})
}

func receivesOnce(t *testing.T, cfg string, kill func(*process, *testing.T)) {
	t.Helper()
	var batches [3]strings.Builder
	for i := range 300 {
		fmt.Fprintf(&batches[i%3], `{"policy":"p","agent_id":"a-%d","episode":{"r":%d,"l":1}}`+"\n", i%7, i)
	}
	service := startService(t, cfg)
	for i := range batches {
		if code, answer := service.send(t, fmt.Sprint("batch-", i), batches[i].String()); code != http.StatusOK || !strings.Contains(answer, `"accepted":100`) {
			t.Fatalf("batch %d: %d %s", i, code, answer)
		}
	}
	testkit.Eventually(t, "all units", func() bool { return service.units() == 300 })
	kill(service, t)
	service = startService(t, cfg)
	for i := range batches {
		if code, answer := service.send(t, fmt.Sprint("batch-", i), batches[i].String()); code != http.StatusOK {
			t.Fatalf("batch %d again: %d %s", i, code, answer)
		}
	}
	if code, answer := service.send(t, "batch-3", `[{"policy":"p","agent_id":"a-1","episode":{"r":1,"l":1}}, {}]`); code != http.StatusOK || !strings.Contains(answer, `"reason":"missing_policy"`) {
		t.Fatalf("the last batch: %d %s", code, answer)
	}
	testkit.Eventually(t, "the last unit", func() bool { return service.units() >= 301 })
	if n := service.units(); n != 301 {
		t.Errorf("%d units, want 301", n)
	}
	service.interrupt(t)
}
