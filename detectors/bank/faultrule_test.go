package bank

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// rulesFound returns the findings of one signal, as new states and rules.
func rulesFound(found []finding.Finding, signal string) []string {
	var out []string
	for _, f := range found {
		if f.Signal == signal && f.Kind == finding.StreamChanged {
			out = append(out, fmt.Sprintf("%s %s", f.To, f.Reason))
		}
	}
	return out
}

// A fault that changes to another rule is reported once, by the signal itself and by the one that shares it.
func TestFindingsFollowTheFaultRule(t *testing.T) {
	cfg := episodes(1e9)
	cfg.Baseline.Units = 100
	p, a := newBank(cfg), newAgent(310)
	a.feed(p, 120)
	var found []finding.Finding
	stuck := func(u *ingest.Unit) {
		u.Reward, u.RewardQ10, u.RewardQ90, u.Return = ingest.Moments{}, -1.5, -1.5, -1.5*float64(u.Length)
		u.LongestConstant, u.ConstantReward = u.Length, -1.5
		for range u.Length {
			u.Reward.Add(-1.5)
		}
	}
	vanished := func(u *ingest.Unit) { u.Reward, u.HasReturn, u.Return = ingest.Moments{}, false, 0 }
	for _, phase := range []func(*ingest.Unit){stuck, vanished, nil} {
		a.edit = phase
		found = append(found, a.feed(p, 30)...)
		p = restored(t, p)
		found = append(found, a.feed(p, 20)...)
	}
	for _, signal := range []string{"reward", "return"} {
		want := []string{"telemetry_fault constant", "telemetry_fault missing", "ok "}
		if got := rulesFound(found, signal); !slices.Equal(got, want) {
			t.Errorf("%s: found %q, want %q", signal, got, want)
		}
	}
	if s := stateOf(t, p, "reward"); s.State != finding.OK {
		t.Errorf("reward is %s (%s)", s.State, s.Fault)
	}
}
