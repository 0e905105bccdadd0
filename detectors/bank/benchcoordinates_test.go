//go:build benchdetection

package bank

import (
	"fmt"
	"slices"
	"testing"

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

// How much later the law of the dynamics finds a change of one component of the observation, the more there are.
func TestBenchCoordinates(t *testing.T) {
	const runs, after = 10, 300
	fmt.Printf("\n### One of k components moves by 1 sd, %d runs, found by `law.dynamics` within %d episodes\n\n", runs, after)
	fmt.Println("| `learning` | steps | k | found | median delay | judged |\n| --- | --- | --- | --- | --- | --- |")
	for _, mode := range []watch.Learning{watch.LearningFrozen, watch.LearningContinuous} {
		for _, steps := range []int{10, 40} {
			for _, k := range []int{1, 2, 4, 8} {
				var delays []int
				judged := 0
				for run := range uint64(runs) {
					delay, is := coordinateDelay(t, mode, k, steps, 9000+run, after)
					if is {
						judged++
					}
					if delay > 0 {
						delays = append(delays, delay)
					}
				}
				delay := "-"
				if slices.Sort(delays); len(delays) > 0 {
					delay = fmt.Sprint(delays[len(delays)/2])
				}
				fmt.Printf("| `%s` | %d | %d | %d of %d | %s | %d |\n", mode, steps, k, len(delays), runs, delay, judged)
			}
		}
	}
}

// coordinateDelay returns after how many changed episodes the law alarms, 0 if never, and whether it was judged before.
func coordinateDelay(t *testing.T, mode watch.Learning, k, steps int, seed uint64, after int) (delay int, judged bool) {
	cfg := episodes(4000)
	cfg.Learning = mode
	a, p, shift := newAgent(seed), newBank(cfg), 0.
	coordinates(a, k, steps, &shift)
	a.feed(p, 700)
	judged = stateOf(t, p, "law.dynamics").Branches > 0
	shift = 1
	for i := range after {
		if slices.Contains(alarmsIn(a.feed(p, 1)), "law.dynamics") {
			return i + 1, judged
		}
	}
	return 0, judged
}
