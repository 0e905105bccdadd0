package cli

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
)

const lateClicks = `
policies:
  - match: shop
    feedback: {key: episode_id, window: 10m, horizons: [1m], default: {reward: 0}}
`

// lateShop returns telemetry in which every impression is a decision. Its only reward is a later click: a reward of 1
// in a separate record, after 20 seconds on average.
func lateShop(seed uint64, impressions int, rate func(i int) float64) *fleet {
	f, rng := newFleet(seed, 0), rand.New(rand.NewPCG(seed, 12))
	clicks := map[int][]int{} // by the decision with which they arrive
	add := func(i int, event map[string]any) {
		event["ts"], event["policy"], event["env"] = f.ts.Format(time.RFC3339Nano), "shop", "prod"
		event["episode_id"] = fmt.Sprint("impression-", i)
		text, _ := json.Marshal(event)
		f.lines = append(f.lines, text)
	}
	for i := range impressions {
		f.ts = f.ts.Add(time.Second)
		add(i, map[string]any{"action": string(rune('a' + rng.IntN(3))), "agent_id": fmt.Sprint("visitor-", i)})
		if rng.Float64() < rate(i) {
			at := i + 1 + int(rng.ExpFloat64()*20)
			clicks[at] = append(clicks[at], i)
		}
		for _, clicked := range clicks[i] {
			add(clicked, map[string]any{"reward": 1})
		}
		delete(clicks, i)
	}
	return f
}

// If the only rewards are clicks, which arrive late or never, a decrease of clicks is found: soon by the clicks that
// have arrived after a minute, and later by all clicks.
func TestSimReplayFindsFewerClicks(t *testing.T) {
	const change = 10_000
	rarer := func(i int) float64 {
		if i < change {
			return .2
		}
		return .05
	}
	path := lateShop(1, 20_000, rarer).file(t)
	code, out := verb(t, "replay", "--output", "json", "--config", testkit.WriteConfig(t, lateClicks), path)
	r := parseReplay(t, out)
	if code != exitDrift {
		t.Fatalf("exit %d\n%s", code, out)
	}
	found := map[string]int64{}
	for _, a := range r.alarms {
		if a.State != "firing" || a.Signal != "reward" && a.Signal != "return" {
			t.Errorf("%s %s of %s at record %d", a.State, a.Signal, a.Group, a.Index)
		}
		if a.Signal == "reward" {
			found[a.Group["horizon"]] = a.Index
		}
	}
	const first = 1.2 * change // record of the change: decisions and earlier clicks
	if soon, later := found["1m"], found[""]; soon < first || soon > first+1000 || later < soon+500 || later > first+2000 {
		t.Errorf("found at records %v, the change is at about %v", found, first)
	}
}

func TestSimReplayOfSteadyLateClicksIsQuiet(t *testing.T) {
	path := lateShop(2, 10_000, func(int) float64 { return .2 }).file(t)
	if code, out := verb(t, "replay", "--output", "json", "--config", testkit.WriteConfig(t, lateClicks), path); code != exitFine {
		t.Errorf("exit %d\n%s", code, out)
	}
}
