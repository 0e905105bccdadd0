package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/detectors/fault"
)

// Telemetry faults, as caused by agents and brokers, are reported as such, and not as drift.
func TestSimReplayTellsTelemetryFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	for rule, c := range map[string]struct {
		signals []string
		spoil   func(event map[string]any) [][]byte // what replaces an event
	}{
		fault.Duplicates: {[]string{"action", "episode_length", "return", "reward"}, func(e map[string]any) [][]byte {
			return [][]byte{line(e), line(e)}
		}},
		fault.ClockSkew: {[]string{"action", "episode_length", "return", "reward"}, func(e map[string]any) [][]byte {
			if ts, err := time.Parse(time.RFC3339Nano, e["ts"].(string)); err == nil && e["agent_id"] == "a-1" {
				e["ts"] = ts.Add(2 * time.Hour)
			}
			return [][]byte{line(e)}
		}},
		fault.Abandoned: {[]string{"action", "episode_length", "return", "reward"}, func(e map[string]any) [][]byte {
			var agent, episode int
			if _, err := fmt.Sscanf(e["episode_id"].(string), "%d/%d", &agent, &episode); err == nil && episode%2 == 1 {
				e["terminated"] = false
			}
			return [][]byte{line(e)}
		}},
		fault.Scale: {[]string{"return", "reward"}, func(e map[string]any) [][]byte {
			e["reward"] = 100 * e["reward"].(float64)
			return [][]byte{line(e)}
		}},
		fault.Constant: {[]string{"return", "reward"}, func(e map[string]any) [][]byte {
			e["reward"] = -.125
			return [][]byte{line(e)}
		}},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			f := newFleet(5, 3)
			f.episodes(600)
			sound := len(f.lines)
			f.episodes(150)
			spoilt := f.lines[:sound:sound]
			for _, l := range f.lines[sound:] {
				var event map[string]any
				if err := json.Unmarshal(l, &event); err != nil {
					t.Fatal(err)
				}
				spoilt = append(spoilt, c.spoil(event)...)
			}
			f.lines = spoilt
			config := testkit.WriteConfig(t, fmt.Sprintf(budgetOfAMillion, 500))
			code, out := verb(t, "replay", "--output", "json", "--config", config, f.file(t))
			r := parseReplay(t, out)
			if code != exitDrift || len(r.alarms) > 0 {
				t.Errorf("exit %d, alarms %+v", code, r.alarms)
			}
			for _, signal := range c.signals {
				if r.fault(signal, rule, "begun") == nil {
					t.Errorf("no event of %s: %+v", signal, r.faults)
				}
			}
			var faulty []string
			for _, s := range r.summary.Streams {
				if s.Missing != nil && *s.Missing == "telemetry fault: "+rule {
					faulty = append(faulty, s.Signal)
				}
			}
			if fmt.Sprint(faulty) != fmt.Sprint(c.signals) {
				t.Errorf("signals with the fault %v, want %v", faulty, c.signals)
			}
		})
	}
}

// line returns an event in the form in which agents write it.
func line(event map[string]any) []byte {
	b, _ := json.Marshal(event) // what was decoded can be encoded
	return bytes.TrimSpace(b)
}
