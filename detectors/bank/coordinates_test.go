package bank

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// coordinates gives an agent's units steps with k components of the observation. Each is moved by the action, with noise of
// its own, to which shift adds in the first of them, in standard deviations.
func coordinates(a *agent, k, steps int, shift *float64) {
	const noise = .6
	names := make([]string, k)
	for c := range names {
		names[c] = fmt.Sprintf("o%d", c)
	}
	a.edit = func(u *ingest.Unit) {
		s := &ingest.Steps{Names: names}
		u.Length, u.Reward, u.Return = int64(steps), ingest.Moments{}, 0
		u.Actions = []ingest.Count{{Name: "left"}, {Name: "right"}}
		at, columns, rewards := make([]float64, k), make([][]float64, k), []float64{}
		for i := range steps {
			act := a.rng.IntN(2)
			reward := .3 * a.rng.NormFloat64()
			s.At, s.Actions = append(s.At, int32(i)), append(s.Actions, int32(act))
			for c := range at {
				s.Rows = append(s.Rows, float32(at[c]))
				columns[c] = append(columns[c], at[c])
				at[c] = .8*float64(2*act-1) + noise*a.rng.NormFloat64()
			}
			at[0] += noise * *shift
			s.Rows, rewards = append(s.Rows, float32(reward)), append(rewards, reward)
			u.Reward.Add(reward)
			u.Return += reward
			u.Actions[act].N++
			u.Actions[act].Reward += reward
		}
		slices.Sort(rewards)
		u.RewardQ10, u.RewardQ90 = rewards[len(rewards)/10], rewards[len(rewards)-1-len(rewards)/10]
		u.Numeric = make([]ingest.NamedMoments, k)
		for c, x := range columns {
			n := &u.Numeric[c]
			n.Signal = "observation." + names[c]
			for _, v := range x {
				n.Add(v)
			}
			slices.Sort(x)
			n.Q10, n.Q90 = x[len(x)/10], x[len(x)-1-len(x)/10]
		}
		u.Steps = s
	}
}

// The mean over all components hides the shift of one, which is no larger than what is tolerated while the policy learns.
// The component that moved most shows it, and stays where it is while nothing changes.
func TestSimOneOfSeveralComponentsIsFoundWhileLearning(t *testing.T) {
	const before, within = 1500, 60
	for _, mode := range []watch.Learning{watch.LearningVersions, watch.LearningContinuous} {
		for _, k := range []int{2, 6} {
			cfg := episodes(4000)
			cfg.Learning = mode
			a, p, shift := newAgent(990), newBank(cfg), 0.
			coordinates(a, k, 30, &shift)
			a.feed(p, 500)
			if alarms := alarmsIn(a.feed(p, before-500)); slices.Contains(alarms, "law.dynamics") {
				t.Errorf("%s, %d components: alarms of %q before the change", mode, k, alarms)
			}
			p = resumed(t, p, cfg)
			shift = 1
			if alarms := alarmsIn(a.feed(p, within)); !slices.Contains(alarms, "law.dynamics") {
				t.Errorf("%s, %d components: alarms of %q within %d episodes", mode, k, alarms, within)
			}
		}
	}
}

// Of a frozen policy, whose mean scores have no tolerance, the component that moved most takes no share of the budget.
func TestAFrozenPolicyHasNoComponentThatMovedMost(t *testing.T) {
	a, p, shift := newAgent(991), newBank(episodes(4000)), 0.
	coordinates(a, 3, 10, &shift)
	a.feed(p, 520)
	if q := quantityOf(p, "law.dynamics", signals.LawMostMean); q != nil {
		t.Errorf("it has %q", q.Name)
	}
	if q := quantityOf(p, "law.dynamics", signals.LawMean); q == nil || q.Ranks == nil {
		t.Error("it has no law of the dynamics at all")
	}
}
