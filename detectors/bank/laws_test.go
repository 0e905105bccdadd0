package bank

import (
	"bytes"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/factor"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// situated gives an agent's units steps with an observation, two actions and a reward. The larger the observation,
// which follows the action, the likelier the second action; bias makes it likelier in any situation.
func situated(a *agent, bias *float64) {
	a.edit = func(u *ingest.Unit) {
		s := &ingest.Steps{Names: []string{"load"}}
		u.Actions = []ingest.Count{{Name: "keep"}, {Name: "shed"}}
		var load ingest.NamedMoments
		load.Signal = "observation.load"
		u.Reward = ingest.Moments{}
		x, total := a.rng.NormFloat64(), 0.
		for i := range u.Length {
			act := 0
			if x+*bias+a.rng.NormFloat64() > 0 {
				act = 1
			}
			reward := -math.Abs(x) - .2*float64(act) + .1*a.rng.NormFloat64()
			s.At, s.Actions = append(s.At, int32(i)), append(s.Actions, int32(act))
			s.Rows = append(s.Rows, float32(x), float32(reward))
			load.Add(x)
			u.Reward.Add(reward)
			total += reward
			u.Actions[act].N++
			u.Actions[act].Reward += reward
			x = .7*x + .3 - .6*float64(act) + .2*a.rng.NormFloat64()
		}
		u.Return = total
		load.Q10, load.Q90 = load.Min, load.Max
		u.Numeric, u.Steps = []ingest.NamedMoments{load}, s
	}
}

// A bank that is saved while it collects a baseline, while it judges, and while it drifts has the same findings as one
// that was never stopped: the laws, their scores and their verdicts are the same.
func TestSimLawsSurviveARestart(t *testing.T) {
	p, restored, bias := newBank(episodes(2000)), newBank(episodes(2000)), 0.
	a := newAgent(910)
	situated(a, &bias)
	var told *factor.Verdict
	for n := range 720 {
		if n == 620 {
			bias = 1.2
		}
		if n == 60 || n == 400 || n == 560 || n == 640 {
			var b bytes.Buffer
			if err := restored.Snapshot(&b); err != nil {
				t.Fatal(err)
			}
			restored = newBank(episodes(2000))
			if err := restored.Restore(&b, time.Time{}); err != nil {
				t.Fatal(err)
			}
		}
		u := a.unit()
		want, got := p.Observe(u, time.Time{}), restored.Observe(u, time.Time{})
		if !alike(t, got, want) {
			t.Fatalf("unit %d: findings %+v, want %+v", n, got, want)
		}
		for _, f := range got {
			if f.Laws != nil {
				told = f.Laws
			}
		}
	}
	if got, want := restored.groups[0].Laws.Wire(), p.groups[0].Laws.Wire(); !alike(t, got, want) {
		t.Error("the laws differ")
	}
	if told == nil || told.Cause != factor.ByPolicy {
		t.Errorf("the laws say %+v, want that the policy has moved", told)
	}
}

// Without memory for laws, steps are not kept, and no law is judged. Moved signals are found as with laws.
func TestSimNoMemoryForLaws(t *testing.T) {
	cfg := episodes(2000)
	without := cfg
	without.Causes.Memory = 0
	if cfg.Hash() != without.Hash() {
		t.Error("the memory of laws changes what a baseline is")
	}
	p, q, bias := newBank(cfg), newBank(without), 0.
	a := newAgent(911)
	situated(a, &bias)
	var with, bare []string
	for n := range 700 {
		if n == 620 {
			bias = 1.2
		}
		u := a.unit()
		with = append(with, alarmsIn(p.Observe(u, time.Time{}))...)
		bare = append(bare, alarmsIn(q.Observe(u, time.Time{}))...)
		if told, _ := q.groups[0].Warmup.Told(); n == 300 && len(told) > 0 {
			t.Error("steps are held")
		}
	}
	if q.groups[0].Laws.Model != nil || p.groups[0].Laws.Model == nil {
		t.Error("laws are learnt without memory, or are not learnt with it")
	}
	if !slices.Contains(with, "law.policy") || !slices.Contains(with, "action") {
		t.Errorf("alarms of %q, want them of the law of the policy and of actions", with)
	}
	if !slices.Contains(bare, "action") || slices.ContainsFunc(bare, signals.IsLaw) {
		t.Errorf("alarms of %q without laws, want one of actions and none of a law", bare)
	}
}
