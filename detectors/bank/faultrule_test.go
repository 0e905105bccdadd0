package bank

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// rulesFound lists the findings of one signal as the state and the rule that it went to.
func rulesFound(found []Finding, signal string) []string {
	var out []string
	for _, f := range found {
		if f.Signal == signal && f.Kind == StreamChanged {
			out = append(out, fmt.Sprintf("%s %s", f.To, f.Reason))
		}
	}
	return out
}

// A fault that goes over to another rule is told once, by the signal itself and by the one that shares it.
func TestFindingsFollowTheFaultRule(t *testing.T) {
	cfg := episodes(1e9)
	cfg.Baseline.Units = 100
	p, a := newBank(cfg), newAgent(310)
	a.feed(p, 120)
	var found []Finding
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
	if s := stateOf(t, p, "reward"); s.State != OK {
		t.Errorf("reward is %s (%s)", s.State, s.Fault)
	}
}

// Two rules that hold by turns are one fault, told by the one that says more; the other is told when that has ended.
func TestRulesThatHoldByTurnsDoNotFlap(t *testing.T) {
	w := watch(newSensor(311, normal(-2, .7)), 300)
	s := newSensor(312, normal(-2, .7))
	var told []string
	feed := func(units int) {
		for range units {
			rule := w.observe(s.unit())["reward"]
			if len(told) == 0 || told[len(told)-1] != rule {
				told = append(told, rule)
			}
		}
	}
	feed(1)
	nonFinite := func(u *ingest.Unit) { u.Reward.Add(math.NaN()) }
	s.edit = nonFinite
	feed(10)
	s.edit = func(u *ingest.Unit) {
		switch {
		case s.made%2 == 0:
			u.Reward.Add(math.NaN())
		case s.made%3 == 0:
			u.LongestConstant, u.ConstantReward = 1000, -1.23
		}
	}
	feed(200)
	s.edit = nonFinite
	feed(100)
	s.edit = nil
	feed(50)
	if want := []string{"", FaultNonFinite, FaultConstant, FaultNonFinite, ""}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}
