package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
)

// tenantsConfig returns the configuration of a service without Kafka with two tenants, each with a token for its agents
// and one for its people.
func tenantsConfig(t *testing.T) (cfgFile string) {
	t.Helper()
	dir := t.TempDir()
	var tokens []string
	for _, name := range []string{"shop-agents", "shop-viewer", "games-agents", "games-viewer"} {
		of, role, _ := strings.Cut(name, "-")
		tokens = append(tokens, fmt.Sprintf("{name: %s, role: %s, tenant: %s, token_file: %q}", name, role, of, testkit.WriteFile(t, strings.Repeat(name, 4))))
	}
	return testkit.WriteConfig(t, fmt.Sprintf(`
ingest:
  log: {directory: %q}
  dead_letters: {directory: %q}
checkpoint: {directory: %q, every: 1s}
tenants:
  - {name: shop, labels: {team: shop}}
  - {name: games, labels: {team: games}, quota: {policies: 2}}
http: {listen: "127.0.0.1:0", require_token: true, token_file: %q, tokens: [%s]}
`, filepath.Join(dir, "telemetry"), filepath.Join(dir, "dead-letters"), filepath.Join(dir, "checkpoints"), testkit.WriteFile(t, strings.Repeat("platform", 4)),
		strings.Join(tokens, ", ")))
}

// as sends a request with the token of a name.
func (p *process) as(t *testing.T, name, method, path, body string) (status int, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+p.address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+strings.Repeat(name, 4))
	r.Header.Set("Content-Type", "application/x-ndjson")
	return answerTo(t, r)
}

// policiesOf returns the policies that the holder of a token can see.
func (p *process) policiesOf(t *testing.T, name string) (out []string) {
	t.Helper()
	var answer struct{ Baselines []wire.Baseline } // of each group, including those without one
	if status, said := p.as(t, name, http.MethodGet, "/api/v1/baselines", ""); status != http.StatusOK || json.Unmarshal([]byte(said), &answer) != nil {
		t.Fatalf("%s: %d %s", name, status, said)
	}
	for _, s := range answer.Baselines {
		out = append(out, s.Policy)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// In the whole service, agents of a tenant can only send its telemetry, its people can only see its policies, and what
// exceeds its quota is reported.
func TestServiceOfTenants(t *testing.T) {
	if testing.Short() {
		t.Skip("starts the service")
	}
	t.Parallel()
	cfgFile := tenantsConfig(t)
	p := startService(t, cfgFile)
	defer p.interrupt(t)
	record := func(team, policy string, n int) string {
		return fmt.Sprintf(`{"ts":%q,"policy":%q,"agent_id":"a","episode_id":"%d","step":0,"reward":%d,"terminated":true,"labels":{"team":%q}}`+"\n",
			time.Now().Add(time.Duration(n-1000)*time.Second).UTC().Format(time.RFC3339), policy, n, n%5, team)
	}
	for _, tt := range []struct {
		agents            string
		accepted, refused int
		body              string
	}{
		{"shop-agents", 2, 0, record("shop", "ranker", 1) + record("shop", "offers", 2)},
		{"games-agents", 1, 1, record("games", "pong", 1) + record("shop", "ranker", 3)},
		{"games-agents", 0, 1, `{"policy":"games:pong","reward":1}`},
		{"games-agents", 4, 0, record("games", "chess", 1) + record("games", "go", 1) + record("games", "go", 2) + record("games", "pong", 2)},
	} {
		var got struct{ Accepted, Refused int }
		_, said := p.as(t, tt.agents, http.MethodPost, "/api/v1/telemetry", tt.body)
		if err := json.Unmarshal([]byte(said), &got); err != nil || got.Accepted != tt.accepted || got.Refused != tt.refused {
			t.Fatalf("%s: %s, %v; want %d accepted, %d rejected", tt.agents, said, err, tt.accepted, tt.refused)
		}
	}
	all := []string{"games:chess", "games:pong", "shop:offers", "shop:ranker"}
	testkit.Eventually(t, "all policies", func() bool { return slices.Equal(p.policiesOf(t, "platform"), all) })
	if got := p.policiesOf(t, "games-viewer"); !slices.Equal(got, all[:2]) {
		t.Errorf("games sees %v", got)
	}
	if got := p.policiesOf(t, "shop-viewer"); !slices.Equal(got, all[2:]) {
		t.Errorf("shop sees %v", got)
	}
	if status, _ := p.as(t, "shop-viewer", http.MethodGet, "/metrics", ""); status != http.StatusForbidden {
		t.Errorf("metrics for a tenant: %d", status)
	}
	_, metrics := p.as(t, "platform", http.MethodGet, "/metrics", "")
	for _, want := range []string{
		`rewardwatch_tenant_refused_total{kind="policies",tenant="games"} 2`, `rewardwatch_tenant_used{kind="policies",tenant="games"} 2`,
		`rewardwatch_tenant_policy_info{policy="shop:ranker",tenant="shop"} 1`, `rewardwatch_tenant_refused_total{kind="policies",tenant="shop"} 0`,
	} {
		if !strings.Contains(metrics, want+"\n") {
			t.Errorf("no %s", want)
		}
	}
}
