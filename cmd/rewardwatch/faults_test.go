package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/bank"
)

// Faults of the telemetry itself, as agents and brokers make them, are told as such, and as no drift.
func TestReplayTellsTelemetryFaults(t *testing.T) {
	for rule, c := range map[string]struct {
		signals []string
		spoil   func(event map[string]any) [][]byte // what comes in place of an event
	}{
		bank.FaultDuplicates: {[]string{"action", "episode_length", "return", "reward"}, func(e map[string]any) [][]byte {
			return [][]byte{line(e), line(e)}
		}},
		bank.FaultClockSkew: {[]string{"action", "episode_length", "return", "reward"}, func(e map[string]any) [][]byte {
			if ts, err := time.Parse(time.RFC3339Nano, e["ts"].(string)); err == nil && e["agent_id"] == "a-1" {
				e["ts"] = ts.Add(2 * time.Hour)
			}
			return [][]byte{line(e)}
		}},
		bank.FaultAbandoned: {[]string{"action", "episode_length", "return", "reward"}, func(e map[string]any) [][]byte {
			var agent, episode int
			if _, err := fmt.Sscanf(e["episode_id"].(string), "%d/%d", &agent, &episode); err == nil && episode%2 == 1 {
				e["terminated"] = false
			}
			return [][]byte{line(e)}
		}},
		bank.FaultScale: {[]string{"return", "reward"}, func(e map[string]any) [][]byte {
			e["reward"] = 100 * e["reward"].(float64)
			return [][]byte{line(e)}
		}},
		bank.FaultConstant: {[]string{"return", "reward"}, func(e map[string]any) [][]byte {
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
			config := writeConfig(t, fmt.Sprintf(budgetOfAMillion, 500))
			code, out := verb(t, "replay", "--output", "json", "--config", config, f.file(t))
			r := parseReplay(t, out)
			if code != exitFine || len(r.alarms) > 0 {
				t.Errorf("exit %d, alarms %+v", code, r.alarms)
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

// line writes an event as agents do.
func line(event map[string]any) []byte {
	b, _ := json.Marshal(event) // what was read can be written
	return bytes.TrimSpace(b)
}
