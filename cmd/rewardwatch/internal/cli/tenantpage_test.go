package cli

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
)

// The service runs with the example of docs/tenants.md. What a tenant sends over HTTP reaches the topic that the page
// names and is judged as the tenant's.
func TestServiceWithTheDocumentedTenants(t *testing.T) {
	t.Parallel()
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "ads-telemetry", "agent-telemetry"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	address := broker.ListenAddrs()[0]
	p := startService(t, documentedTenants(t, address))
	const labeled = `{"policy":"ranker","agent_id":"a","reward":1,"terminated":true,"labels":{"team":"shop"}}`
	testkit.Eventually(t, "the service to be ready", p.ready)
	const path = "/api/v1/telemetry"
	if status, said := p.as(t, "shop-agents", http.MethodPost, path, labeled); status != http.StatusOK {
		t.Errorf("a record of the tenant: %d %s", status, said)
	}
	if status, said := p.as(t, "shop-agents", http.MethodPost, path, `{"policy":"ranker","agent_id":"a","reward":1}`); status != http.StatusBadRequest || !strings.Contains(said, "other_tenant") {
		t.Errorf("a record without its label: %d %s", status, said)
	}
	reader := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{address}, Topic: "agent-telemetry", MaxBytes: 1 << 20, MaxWait: 100 * time.Millisecond})
	defer reader.Close()
	if m, err := reader.ReadMessage(t.Context()); err != nil || strings.TrimSpace(string(m.Value)) != labeled {
		t.Errorf("agent-telemetry has %q, %v", m.Value, err)
	}
	testkit.Eventually(t, "the policy of the tenant", func() bool {
		_, said := p.as(t, "prometheus", http.MethodGet, "/metrics", "")
		return strings.Contains(said, `rewardwatch_tenant_policy_info{policy="shop:ranker",tenant="shop"} 1`)
	})
	p.interrupt(t)
}

// documentedTenants writes the example of docs/tenants.md with the address of a broker, and its files.
func documentedTenants(t *testing.T, broker string) string {
	t.Helper()
	page, err := os.ReadFile("../../../../docs/tenants.md")
	if err != nil {
		t.Fatal(err)
	}
	dir, example := t.TempDir(), strings.Split(strings.Split(string(page), "```yaml")[1], "```")[0]
	example = strings.Replace(example, "kafka:9092", broker, 1)
	example = strings.Replace(example, "\nhttp:\n", fmt.Sprintf("\ncheckpoint: {directory: %q, every: 1s}\nhttp:\n  listen: 127.0.0.1:0\n", filepath.Join(dir, "checkpoints")), 1)
	example = strings.Replace(example, "ingest:\n", fmt.Sprintf("ingest:\n  dead_letters: {directory: %q}\n", filepath.Join(dir, "dead-letters")), 1)
	example = regexp.MustCompile(`token_file: ([a-z-]+)\.token`).ReplaceAllStringFunc(example, func(key string) string {
		name := strings.TrimSuffix(strings.TrimPrefix(key, "token_file: "), ".token")
		return fmt.Sprintf("token_file: %q", testkit.WriteFile(t, strings.Repeat(name, 4)))
	})
	return testkit.WriteConfig(t, example)
}
