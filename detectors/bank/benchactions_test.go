//go:build benchdetection

package bank

import (
	"fmt"
	"math"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
)

// Policies that take one of many actions at each step: the number of incidents without a change, and the delay until a
// replaced policy is found. The delays are those of one baseline each.
func TestBenchActions(*testing.T) {
	laws := []struct {
		name string
		law  actionLaw
	}{{"uniform", uniformActions}, {"Zipf", zipfActions}}
	runs := *baselinesFlag
	fmt.Printf("\n### Many actions, N = %d, m = %d: incidents in %d healthy units, of which the budget allows %.2f\n\n"+
		"| actions | steps of an episode | law | runs | incidents a run | in ten runs, at most |\n| --- | --- | --- | --- | --- | --- |\n",
		actionsN, actionsBaseline, actionsUnits, float64(actionsUnits)/actionsN)
	pooled := 0
	cells := 0
	for _, steps := range []int{1, 20} {
		for _, actions := range []int{10, 18, 30, 80, 1000} {
			for _, l := range laws {
				all, worst, ten := 0, 0, 0
				for run := range runs {
					s := newManyActions(400, uint64(run), steps).follow(l.law, actions)
					n := s.incidents(s.frozen(), actionsUnits)
					if run%10 == 0 {
						ten = 0
					}
					all, ten = all+n, ten+n
					worst = max(worst, ten)
				}
				pooled += all
				cells++
				incidentsRow(fmt.Sprint(actions), fmt.Sprint(steps), l.name, runs, all, fmt.Sprint(worst))
			}
		}
	}
	incidentsRow("all", "", "", cells*runs, pooled, "")
}

func incidentsRow(actions, steps, law string, runs, incidents int, worst string) {
	n := float64(runs)
	fmt.Printf("| %s | %s | %s | %d | %.3f ± %.3f | %s |\n", actions, steps, law, runs, float64(incidents)/n,
		math.Sqrt(float64(incidents))/n, worst)
}

func TestBenchActionsReplaced(*testing.T) {
	fmt.Printf("\n### Many actions, N = %d, m = %d: units until a replaced policy is found\n\n"+
		"| actions | steps of an episode | change | runs | median | 90%% | not within 2000 |\n| --- | --- | --- | --- | --- | --- | --- |\n",
		actionsN, actionsBaseline)
	const longest = 2000
	for _, steps := range []int{1, 20} {
		for _, actions := range []int{10, 18, 30, 80, 1000} {
			for _, c := range []struct {
				name          string
				before, after actionLaw
			}{
				{"uniform to Zipf", uniformActions, permutedZipf},
				{"Zipf with other ranks", zipfActions, permutedZipf},
				{"Zipf to uniform", zipfActions, uniformActions},
				{"uniform over one half", uniformActions, uniformHalf},
			} {
				var delays []float64
				missed := 0
				for run := range *baselinesFlag {
					s := newManyActions(401, uint64(run), steps).follow(c.before, actions)
					d := s.delay(s.frozen(), c.after, actions, longest)
					if d == longest {
						missed++
					}
					delays = append(delays, float64(d))
				}
				q := detectors.Quantiles(delays, .5, .9)
				fmt.Printf("| %d | %d | %s | %d | %.0f | %.0f | %d |\n", actions, steps, c.name, len(delays), q[0], q[1], missed)
			}
		}
	}
}

// The smallest possible delay for a policy of equally frequent actions that continues with one half of them, in
// episodes of one step. It is achieved by Shiryaev-Roberts procedures whose false alarm rate is as promised. One of
// them knows the half, and uses a likelihood ratio of 2 for each of its actions. The others weigh all halves equally;
// one knows the law before the change, the other knows as much as the action mix.
func TestBenchActionsAtBest(*testing.T) {
	fmt.Printf("\n### Many actions, N = %d, m = %d: units at best until a policy that goes on with one half is found\n\n"+
		"| actions | runs | knows the half | knows the law before, median | 90%% | knows the baseline, median | 90%% | false alarms in 2000 |\n"+
		"| --- | --- | --- | --- | --- | --- | --- | --- |\n", actionsN, actionsBaseline)
	runs := 2 * *baselinesFlag
	for _, actions := range []int{18, 30, 80, 1000} {
		var known, learnt []float64
		alarms := 0
		for run := range runs {
			s := newManyActions(402, uint64(run), 1).follow(uniformActions, actions)
			base := map[string]int64{}
			for range actionsBaseline {
				base[s.unit().Actions[0].Name]++
			}
			prior := stream.FitActionPrior(base)
			if actionsAtBest(s, actions, base, prior, 2000) < 2000 {
				alarms++
			}
			s.follow(uniformHalf, actions)
			known = append(known, float64(actionsAtBest(s, actions, nil, stream.ActionPrior{Each: 1, All: float64(actions)}, 2000)))
			learnt = append(learnt, float64(actionsAtBest(s, actions, base, prior, 2000)))
		}
		k, l := detectors.Quantiles(known, .5, .9), detectors.Quantiles(learnt, .5, .9)
		half := math.Ceil(math.Log2(actionsN / (1 - reserve) / 2))
		fmt.Printf("| %d | %d | %.0f | %.0f | %.0f | %.0f | %.0f | %d |\n", actions, runs, half, k[0], k[1], l[0], l[1], alarms)
	}
}

// actionsAtBest returns the delay in units, at most longest, of the procedure that weighs all halves equally. The law
// before the change is that of the prior and the base counts; without base counts, it is uniform.
func actionsAtBest(s *manyActions, actions int, base map[string]int64, prior stream.ActionPrior, longest int) int {
	type since struct {
		seen     map[string]int64 // since a unit
		log, sum float64          // logarithm of the likelihood ratio, and number of steps
	}
	var all []*since
	half := float64(actions / 2)
	for i := range longest {
		a := s.unit().Actions[0].Name
		if all = append(all, &since{seen: map[string]int64{}}); len(all) > actions+200 {
			all = all[1:] // it is long enough to learn the half
		}
		evidence := 0.0
		for _, r := range all {
			after, kinds := 1/half, float64(len(r.seen))
			if r.seen[a] == 0 {
				after = max(0, half-kinds) / (float64(actions) - kinds) / half
			}
			before := prior.Each / prior.All
			if base != nil {
				before = (float64(base[a]+r.seen[a]) + prior.Each) / (actionsBaseline + r.sum + prior.All)
			}
			r.seen[a]++
			r.sum++
			r.log += math.Log(after / before)
			evidence += math.Exp(r.log)
		}
		if evidence >= actionsN/(1-reserve) {
			return i + 1
		}
	}
	return longest
}
