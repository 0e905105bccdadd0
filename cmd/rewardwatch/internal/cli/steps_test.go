package cli

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
)

// endless writes steps of agents that take turns, in telemetry in which no episode ends. Rewards are an AR(1) process
// with coefficient .5 and variance 1, higher by one from the drift-th step on.
func endless(t *testing.T, agents, steps, drift int) string {
	t.Helper()
	rng, last := rand.New(rand.NewPCG(3, uint64(agents))), make([]float64, agents)
	var b bytes.Buffer
	for i := range steps {
		x := &last[i%agents]
		*x = .5**x + math.Sqrt(.75)*rng.NormFloat64()
		reward := *x
		if i >= drift {
			reward++
		}
		fmt.Fprintf(&b, `{"policy":"p","agent_id":"a%d","reward":%g,"action":%d,"outcomes":{"ok":%d}}`+"\n",
			i%agents, reward, rng.IntN(3), rng.IntN(4)/3)
	}
	path := filepath.Join(t.TempDir(), "steps.ndjson")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReplayOfStepsWithoutEpisodes(t *testing.T) {
	config := testkit.WriteConfig(t, `policies: [{match: "*", false_alarms: {budget: 1, per: 400000 steps}}]`)
	const drift = 35_000
	for _, agents := range []int{1, 20} {
		code, out := verb(t, "replay", "--config", config, "--output", "json", endless(t, agents, 38_000, drift))
		r := parseReplay(t, out)
		if code != exitOf(r.alarms) || len(r.alarms) == 0 { // the reward rises
			t.Fatalf("%d agents: exit %d, alarms %+v", agents, code, r.alarms)
		}
		first := r.alarms[0]
		if first.Signal != "reward" || first.Index < drift || first.Index > drift+1000 {
			t.Errorf("%d agents: alarm of %s at record %d, want one of reward within 1,000 of %d", agents, first.Signal, first.Index, drift)
		}
		if !strings.Contains(strings.Join(first.Promise.Caveats, "; "), "blocks of 20 steps of one agent") {
			t.Errorf("%d agents: caveats %q", agents, first.Promise.Caveats)
		}
	}
}

func TestStepsThatGiveNothingToJudge(t *testing.T) {
	file := endless(t, 1, 5_000, 5_000)
	if code, out := verb(t, "replay", file); code != exitFine || !strings.Contains(out, "Nothing to judge: "+engine.NoUnits) {
		t.Errorf("replay: exit %d\n%s", code, out)
	}
	if code, c := calibrateFiles(t, "", file); code != exitError || !strings.Contains(c.errors, engine.NoUnits) {
		t.Errorf("calibrate: exit %d, %q", code, c.errors)
	}
}
