package cli

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/replay"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/detectors/fault"
)

// shop returns telemetry in which an impression begins an episode and only a click ends it, so that most episodes never
// end. Either one agent serves all visitors, or each visitor is an agent.
func shop(seed uint64, visitors bool, impressions int, rate func(i int) float64) *fleet {
	f, rng := newFleet(seed, 0), rand.New(rand.NewPCG(seed, 11))
	clicks := map[int][]int{} // by the decision with which they arrive
	add := func(i int, event map[string]any) {
		f.ts = f.ts.Add(time.Second)
		event["ts"], event["policy"], event["env"] = f.ts.Format(time.RFC3339Nano), "shop", "prod"
		event["agent_id"] = "server"
		if visitors {
			event["agent_id"] = fmt.Sprint("visitor-", i)
		}
		event["episode_id"] = fmt.Sprint("impression-", i)
		text, _ := json.Marshal(event)
		f.lines = append(f.lines, text)
	}
	for i := range impressions {
		add(i, map[string]any{"step": 0, "action": string(rune('a' + rng.IntN(3)))})
		if rng.Float64() < rate(i) {
			at := i + 1 + int(rng.ExpFloat64()*20)
			clicks[at] = append(clicks[at], i)
		}
		for _, clicked := range clicks[i] {
			add(clicked, map[string]any{"step": 1, "reward": 1 + rng.NormFloat64(), "terminated": true})
		}
		delete(clicks, i)
	}
	return f
}

// If only clicks end an episode and clicks become rarer, replay reports what is not judged. With the proposal of
// inspect, the change is found.
func TestSimReplayTellsOfEpisodesWithoutAnEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	rarer := func(i int) float64 {
		if i < 10_000 {
			return .2
		}
		return .05
	}
	small := testkit.WriteConfig(t, "limits: {open_episodes: 1000}\n")
	for name, c := range map[string]struct {
		visitors bool
		args     []string
	}{
		"one agent":                 {},
		"an agent for each visitor": {visitors: true},
		"few may be open":           {visitors: true, args: []string{"--config", small}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := shop(1, c.visitors, 30_000, rarer).file(t)
			code, out := verb(t, append([]string{"replay", "--output", "json", path}, c.args...)...)
			r := parseReplay(t, out)
			mostly, changed := r.fault("action", fault.MostlyUnfinished, "begun"), r.fault("action", fault.Unfinished, "begun")
			if code != exitDrift || mostly == nil || mostly.Index > 1500 || changed == nil || changed.Index < 12_000 || changed.Index > 13_500 {
				t.Errorf("exit %d, %+v, %+v", code, mostly, changed)
			}
			if len(r.summary.Unfinished) != 1 {
				t.Fatalf("summary %+v", r.summary.Unfinished)
			}
			u := r.summary.Unfinished[0]
			if u.Policy != "shop" || u.Episodes < 25_000 || u.Episodes > 27_000 || u.Share < .88 || u.Share > .92 ||
				u.Usual < .75 || u.Usual > .85 || u.Current < .93 || u.Current > .97 {
				t.Errorf("summary %+v", u)
			}
			_, text := verb(t, append([]string{"replay", path}, c.args...)...)
			if !strings.Contains(text, "Not judged: shop, group env=prod: 26") || !strings.Contains(text, fault.Words(fault.Unfinished, "episodes")) {
				t.Errorf("text\n%s", text)
			}
			proposed := filepath.Join(t.TempDir(), "rewardwatch.yml")
			_, text = verb(t, append([]string{"inspect", "--propose", proposed, path}, c.args...)...)
			if !strings.Contains(text, "\nWARNING: policy shop: without feedback in the configuration, group env=prod: 26") || strings.Contains(text, "100% without") {
				t.Errorf("inspect\n%s", text)
			}
			code, out = verb(t, "replay", "--output", "json", "--config", proposed, path)
			if r = parseReplay(t, out); code != exitDrift || !slices.ContainsFunc(r.alarms, func(a replay.AlarmRecord) bool {
				return a.Signal == "reward" && a.Index > 12_000 && a.Index < 14_000
			}) {
				t.Errorf("as proposed: exit %d, %+v", code, r.alarms)
			}
		})
	}
}

// A constant share of episodes without an end is reported if it is the majority, but is not a change.
func TestSimReplayTellsNoChangeOfEpisodesWithoutAnEnd(t *testing.T) {
	for _, rate := range []float64{.2, .7, 1} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			t.Parallel()
			_, out := verb(t, "replay", "--output", "json", shop(2, true, 10_000, func(int) float64 { return rate }).file(t))
			r := parseReplay(t, out)
			if f := r.fault("action", fault.Unfinished, "begun"); f != nil {
				t.Errorf("a fault without a change: %+v", f)
			}
			if mostly := r.fault("action", fault.MostlyUnfinished, "begun"); (mostly != nil) != (rate < .5) {
				t.Errorf("at a rate of %v: %+v", rate, mostly)
			}
			if told := len(r.summary.Unfinished) > 0; told != (rate < 1) {
				t.Errorf("summary %+v", r.summary.Unfinished)
			}
		})
	}
}
