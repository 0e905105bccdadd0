package cli

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/config"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/ingest/order"
)

// withGames returns the configuration of an instance for two tenants: a shop, whose four policies share a budget, and
// games, of which each instance may judge two policies. more is the rest of the configuration.
func withGames(t *testing.T, broker, more string) (cfgFile string) {
	t.Helper()
	dir := t.TempDir()
	return testkit.WriteConfig(t, fmt.Sprintf(`
ingest:
  kafka: {brokers: [%q]}
  dead_letters: {directory: %q}
checkpoint: {directory: %q, every: 1s}
tenants:
  - {name: shop, policies: ["ranker-*"], quota: {policies: 4}, false_alarms: {budget: 1, per: 8000 episodes}}
  - {name: games, policies: ["bot-*"], quota: {policies: 2, streams: 200}}
policies:
  - match: "*"
    false_alarms: {budget: 1, per: 20000 episodes}
http: {listen: "127.0.0.1:0"}
%s
`, broker, filepath.Join(dir, "dead-letters"), filepath.Join(dir, "checkpoints"), more))
}

const asCluster = "cluster: {units_topic: units, checkpoints_topic: checkpoints}"

// play adds decisions of policies of the games, numbered beginning with from, to the next part of the telemetry.
func (a *fleets) play(from, policies int) {
	part := &a.parts[0]
	for n := range 20 * policies {
		policy := fmt.Sprint("bot-", from+n%policies)
		part.lines = append(part.lines, fmt.Appendf(nil, `{"policy":%q,"agent_id":"a","episode_id":"%d/%d","step":0,"action":"a","reward":%d,"terminated":true,"ts":""}`, policy, from, n, n%5))
		part.keys = append(part.keys, fmt.Sprintf("%06d %s %d", n*5, policy, n))
	}
}

// shown returns what an instance shows for the policies with a prefix.
func (i *instance) shown(prefix string) (policies []string, units int64, promised map[string]float64) {
	promised = map[string]float64{}
	for _, s := range i.Summaries() {
		if !strings.HasPrefix(s.Policy, prefix) {
			continue
		}
		policies = append(policies, s.Policy)
		for _, g := range s.Groups {
			units += g.Units
			promised[s.Policy] = g.Promise.N
		}
	}
	return policies, units, promised
}

// judges returns the policies with a prefix that a process judges.
func (p *process) judges(prefix string) (policies []string) {
	var answer struct{ Baselines []wire.Baseline } // of each group, including those without one
	p.get("/api/v1/baselines", &answer)
	for _, b := range answer.Baselines {
		if strings.HasPrefix(b.Policy, prefix) && !slices.Contains(policies, b.Policy) {
			policies = append(policies, b.Policy)
		}
	}
	return policies
}

// startWithGames starts an instance within the test process.
func startWithGames(t *testing.T, cfgFile string, groups int) *instance {
	t.Helper()
	cfg, err := config.LoadForService(cfgFile)
	if err != nil {
		t.Fatal(err)
	}
	return startInstance(t, *cfg, groups)
}

// shopAlone returns the findings of one instance in the shop without the games, and the promised interval between false
// alarms of each policy.
func shopAlone(t *testing.T) (verdict, map[string]float64) {
	t.Helper()
	broker, f := startBroker(t, 3), newFleets(4)
	for range 4 {
		f.produce(t, broker, 0)
	}
	i := startWithGames(t, withGames(t, broker, ""), 1)
	testkit.Eventually(t, "all units without the games", func() bool { return unitsOf(i) == int64(f.ended) })
	_, _, promised := i.shown("")
	v := verdictOf(t, 0, i)
	i.stop()
	for policy, n := range promised {
		if n != 8000*4 { // a fourth of the budget of the tenant, which is stricter than that of the policy
			t.Fatalf("%s is to have a false alarm in %v units", policy, n)
		}
	}
	if len(v.Incidents) < 4 || len(promised) != 4 {
		t.Fatalf("without the games, it finds %s", v)
	}
	return v, promised
}

// An instance of a cluster dies while a tenant floods it with policies. The other one continues with what both may
// judge of that tenant, and refuses the rest. The other tenant keeps its budget, and the findings are those without the
// neighbor and the death.
func TestTenantsWhenAnInstanceDies(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	t.Parallel()
	want, promised := shopAlone(t)
	broker, f := startBroker(t, 3), newFleets(4)
	f.produce(t, broker, 0)
	dying := startService(t, withGames(t, broker, asCluster))
	left := startWithGames(t, withGames(t, broker, asCluster), 2)
	games := func() []string { policies, _, _ := left.shown("bot-"); return policies }
	testkit.Eventually(t, "the shop on both instances", func() bool {
		shop, _, _ := left.shown("ranker-")
		return len(shop) > 0 && len(dying.judges("ranker-")) > 0
	})
	inTime := func() {
		if behind := time.Since(f.produce(t, broker, writing)); behind > order.WatermarkDelay {
			t.Fatalf("the machine is too slow: what was written while it was read came too late by %s", behind-order.WatermarkDelay)
		}
	}
	f.play(0, 12)
	inTime()
	testkit.Eventually(t, "the games", func() bool { return len(games())+len(dying.judges("bot-")) >= 2 })
	dying.killMember(t, "agent-telemetry", "units")
	f.play(20, 12)
	inTime()
	inTime()
	testkit.Eventually(t, "all units of the shop", func() bool { _, units, _ := left.shown("ranker-"); return units == int64(f.ended) })

	got := verdictOf(t, 0, left)
	_, _, gotPromised := left.shown("ranker-")
	maps.DeleteFunc(got.Units, func(stream string, _ int64) bool { return !strings.HasPrefix(stream, "ranker-") })
	if !maps.Equal(got.Units, want.Units) || !maps.EqualFunc(got.Incidents, want.Incidents, slices.Equal) || !maps.Equal(gotPromised, promised) {
		t.Errorf("found %s with a false alarm in %v\nwant %s with one in %v", got, gotPromised, want, promised)
	}
	if now := games(); len(now) < 2 || len(now) > 2*2 { // those of two instances
		t.Errorf("of the games, %v are judged", now)
	}
	if shop, of := left.refused(t, "shop"), left.refused(t, "games"); shop > 0 || of < 12*20/2 {
		t.Errorf("%d of the shop and %d of the games are beyond quotas", shop, of)
	}
}
