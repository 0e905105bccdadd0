package bank

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// coordinates gives an agent's units steps with k components of the observation. Each is moved by the action and has
// its own noise, to which shift adds in the first component, in standard deviations.
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

// The mean over all components hides the shift of one component, which does not exceed what is tolerated while the
// policy learns. The component that moved most reveals it, and is stable as long as nothing changes.
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

// For a frozen policy, whose mean scores have no tolerance, the component that moved most uses no share of the budget.
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

// visitors gives an agent's units single decisions about visitors with k independent features. shift, in standard
// deviations, is added to the first feature.
func visitors(a *agent, k int, shift *float64) {
	names := make([]string, k)
	for c := range names {
		names[c] = fmt.Sprintf("o%d", c)
	}
	a.edit = func(u *ingest.Unit) {
		act, reward := a.rng.IntN(2), a.rng.NormFloat64()
		s := &ingest.Steps{Names: names, At: []int32{0}, Actions: []int32{int32(act)}}
		u.Numeric = make([]ingest.NamedMoments, k)
		for c := range k {
			x := a.rng.NormFloat64()
			if c == 0 {
				x += *shift
			}
			s.Rows = append(s.Rows, float32(x))
			n := &u.Numeric[c]
			n.Signal = "observation." + names[c]
			n.Add(x)
			n.Q10, n.Q90 = x, x
		}
		s.Rows = append(s.Rows, float32(reward))
		u.Length, u.Reward, u.Return, u.End, u.Steps = 1, ingest.Moments{}, reward, ingest.EndTerminated, s
		u.Reward.Add(reward)
		u.RewardQ10, u.RewardQ90 = reward, reward
		u.Actions = []ingest.Count{{Name: "left"}, {Name: "right"}}
		u.Actions[act].N, u.Actions[act].Reward = 1, reward
	}
}

// While the policy learns, visitors who differ in one of many features are found soon. They are found equally soon if
// the bank is restored in between, since it saves the preceding visitors, who choose the judged feature.
func TestVisitorsWhoAreOthersInOneWayAreFoundWhileLearning(t *testing.T) {
	const k, within, before = 8, 100, 15
	cfg, shift := episodes(4000), 0.
	cfg.Learning = watch.LearningContinuous
	a, p := newAgent(992), newBank(cfg)
	visitors(a, k, &shift)
	if alarms := alarmsIn(a.feed(p, 900)); slices.Contains(alarms, "law.start") {
		t.Errorf("alarms of %q before the change", alarms)
	}
	shift = 1
	a.feed(p, before)
	again := resumed(t, p, cfg)
	for i := range within {
		u := a.unit()
		first, second := alarmsIn(p.Observe(u, time.Time{})), alarmsIn(again.Observe(u, time.Time{}))
		if !slices.Equal(first, second) {
			t.Fatalf("alarms of %q after %d units, and of %q by the restored bank", first, before+i+1, second)
		}
		if slices.Contains(first, "law.start") {
			t.Logf("after %d units", before+i+1)
			return
		}
	}
	t.Errorf("no alarm of law.start within %d units", before+within)
}

// A law of single decisions whose scores move slowly raises no alarm while the policy learns. The same shift raises one
// soon if it is sudden, and equally soon after a restart, since the tolerance depends on the preceding units.
func TestSlowShiftsOfRewardsAreTolerated(t *testing.T) {
	const within, before = 60, 17
	cfg, shift, earned := episodes(4000), 0., 0.
	cfg.Learning = watch.LearningContinuous
	a, p := newAgent(994), newBank(cfg)
	visitors(a, 3, &shift)
	edit := a.edit
	a.edit = func(u *ingest.Unit) {
		edit(u)
		u.Return += earned
		u.Steps.Rows[3] += float32(earned)
		u.Reward = ingest.Moments{}
		u.Reward.Add(u.Return)
		u.RewardQ10, u.RewardQ90 = u.Return, u.Return
	}
	a.feed(p, 800)
	for range 2000 {
		if earned += .25 / 2000; slices.Contains(alarmsIn(p.Observe(a.unit(), time.Time{})), "law.reward") {
			t.Fatalf("an alarm at rewards that are higher by %v", earned)
		}
	}
	earned++
	a.feed(p, before)
	again := resumed(t, p, cfg)
	for i := before; i < within; i++ {
		u := a.unit()
		first, second := alarmsIn(p.Observe(u, time.Time{})), alarmsIn(again.Observe(u, time.Time{}))
		if want, got := quantityOf(p, "law.reward", signals.LawMean).Rank(), quantityOf(again, "law.reward", signals.LawMean).Rank(); !slices.Equal(want.Branches, got.Branches) {
			t.Fatalf("after %d units the walks are %+v, want %+v", i+1, got.Branches, want.Branches)
		}
		if !slices.Equal(first, second) {
			t.Fatalf("alarms of %q after %d units, and of %q by the restored bank", first, i+1, second)
		}
		if slices.Contains(first, "law.reward") {
			t.Logf("after %d units", i+1)
			return
		}
	}
	t.Errorf("no alarm of law.reward within %d units", within)
}

// A copy of the tests of a law, as simulations and gates use it, tolerates what the law does: its walks are the same.
func TestCopiesTolerateSlowShifts(t *testing.T) {
	cfg, shift := episodes(4000), 0.
	cfg.Learning = watch.LearningContinuous
	a, p := newAgent(994), newBank(cfg)
	visitors(a, 3, &shift)
	a.feed(p, 800)
	q := quantityOf(p, "law.reward", signals.LawMean)
	q.Reset()
	again, rose := q.Again(), false
	for i := range int64(1000) {
		r := stream.Reading{X: a.rng.NormFloat64() + .2*float64(i)/1000}
		if i >= 900 {
			r.X++
		}
		q.Observe(&r, 1000+i, false)
		again.Test(r, 1000+i, false)
		want, got := q.Rank().Branches, again.Rank().Branches
		if !slices.Equal(want, got) {
			t.Fatalf("after %d units the walks are %+v, want %+v", i+1, got, want)
		}
		rose = rose || q.Reached()
	}
	if !rose {
		t.Error("no walk has reached its threshold")
	}
}
