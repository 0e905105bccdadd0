//go:build benchdetection

package alerts

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/watch"
)

// Agents that learn, healthy and changed, under each mode, and beside an alert on a moving mean.
func TestBenchLearning(t *testing.T) {
	const runs, units = 50, 4000
	for _, mode := range []watch.Learning{watch.LearningContinuous, watch.LearningFrozen} {
		fmt.Printf("\n### Healthy learners, `%s`, %d runs of %d episodes from the first one on, one false alarm in %d\n\n", mode, runs, units, learningBudget)
		fmt.Println("| learner | incidents | allowed | of signals | alerts of the moving mean |\n| --- | --- | --- | --- | --- |")
		healthyRow("Q-learning", liveHealthy(mode, newLake, 10_000, runs, units))
		healthyRow("Thompson sampling", liveHealthy(mode, newShelf, 10_000, runs, units))
		healthyRow("FrozenLake", liveHealthy(mode, newIce, 10_000, runs, units))
		healthyRow("Taxi", liveHealthy(mode, newTaxi, 10_000, runs, units))
		fmt.Printf("\n### Changes after 2,500 episodes of learning, `%s`, %d runs, found within 300 episodes\n\n", mode, changedRuns)
		fmt.Println("| learner | change | found | median delay | right | unknown | wrong | moving mean |\n| --- | --- | --- | --- | --- | --- | --- | --- |")
		for i, c := range lakeChanges {
			changeRow("Q-learning", c.name, liveChange(mode, newLake, c, 20_000+100*uint64(i), changedRuns, 2500, 300))
		}
		for i, c := range shelfChanges {
			changeRow("Thompson sampling", c.name, liveChange(mode, newShelf, c, 30_000+100*uint64(i), changedRuns, 2500, 300))
		}
		for i, c := range iceChanges {
			changeRow("FrozenLake", c.name, liveChange(mode, newIce, c, 40_000+100*uint64(i), changedRuns, 2500, 300))
		}
		for i, c := range taxiChanges {
			changeRow("Taxi", c.name, liveChange(mode, newTaxi, c, 50_000+100*uint64(i), changedRuns, 2500, 300))
		}
	}
}

const changedRuns = 10

func healthyRow(learner string, h healthyLearner) {
	var of []string
	for _, s := range slices.Sorted(maps.Keys(h.signals)) {
		of = append(of, fmt.Sprintf("`%s` %d", s, h.signals[s]))
	}
	fmt.Printf("| %s | %d | %d | %s | %d |\n", learner, h.incidents, h.units/learningBudget, strings.Join(of, ", "), h.moving)
}

func changeRow(learner, change string, f foundLearner) {
	delay := "-"
	if len(f.delays) > 0 {
		slices.Sort(f.delays)
		delay = fmt.Sprintf("%.0f", f.delays[len(f.delays)/2])
	}
	fmt.Printf("| %s | %s | %d of %d | %s | %d | %d | %d | %d |\n", learner, change, f.found, changedRuns-f.before, delay, f.right, f.unknown, f.wrong, f.moving)
}
