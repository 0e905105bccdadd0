package finding

import (
	"math"
	"testing"
)

// The more often versions come, the weaker is the evidence of one that changed at an onset, and of one that did
// not.
func TestEvidenceOfAPace(t *testing.T) {
	for _, c := range []struct {
		chance, changed, unchanged float64
		rare                       bool
	}{
		{0, 5, -.5, true},
		{.001, 5, -.5 + .001, true},
		{.05, math.Log(20), -.5 + .0513, true},
		{.25, math.Log(4), -.5 + .2877, false},
		{.5, math.Log(2), 0, false},
		{1, 0, 0, false},
	} {
		p := Pace{Every: 250, Chance: c.chance}
		if got := p.Changed(); math.Abs(got-c.changed) > 1e-3 {
			t.Errorf("chance %v: changed %v nats, want %v", c.chance, got, c.changed)
		}
		if got := p.Unchanged(); math.Abs(got-c.unchanged) > 1e-3 {
			t.Errorf("chance %v: unchanged %v nats, want %v", c.chance, got, c.unchanged)
		}
		words := ", as about every 250 episodes"
		if c.rare {
			words = ""
		}
		if got := p.Words(Episodes()); p.Rare() != c.rare || got != words {
			t.Errorf("chance %v: rare %v, words %q", c.chance, p.Rare(), got)
		}
	}
}

func TestPaceOfACause(t *testing.T) {
	p := Paces{Policy: Pace{Every: 1}, Env: Pace{Every: 2}, Reward: Pace{Every: 3}}
	for changed, want := range map[string]float64{"policy": 1, "environment": 2, "reward_function": 3, "telemetry": 0} {
		if got := p.Of(changed).Every; got != want {
			t.Errorf("%s: every %v, want %v", changed, got, want)
		}
	}
}
