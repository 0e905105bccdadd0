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

// learningModes are the methods that the tables compare.
var learningModes = []watch.Learning{watch.LearningFrozen, watch.LearningContinuous}

// Agents that learn, healthy and changed, under each mode, and beside an alert on a moving mean.
func TestBenchLearning(t *testing.T) {
	const runs, units = 50, 4000
	fmt.Printf("\n### Healthy learners, %d runs of %d episodes from the first one on, one false alarm in %d\n\n", runs, units, learningBudget)
	fmt.Println("| learner | learning | incidents | allowed | of signals | alerts of the moving mean |\n| --- | --- | --- | --- | --- | --- |")
	for _, mode := range learningModes {
		healthyRow("Q-learning", mode, liveHealthy(mode, newLake, 10_000, runs, units))
		healthyRow("Thompson sampling", mode, liveHealthy(mode, newShelf, 10_000, runs, units))
	}
	fmt.Println("\n### Changes after 2,500 episodes of learning, 20 runs, found within 300 episodes\n\n| learner | change | learning | found | median delay | right | unknown | wrong | moving mean |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	for i, c := range lakeChanges {
		for _, mode := range learningModes {
			changeRow("Q-learning", c.name, mode, liveChange(mode, newLake, c, 20_000+100*uint64(i), 20, 2500, 300))
		}
	}
	for i, c := range shelfChanges {
		for _, mode := range learningModes {
			changeRow("Thompson sampling", c.name, mode, liveChange(mode, newShelf, c, 30_000+100*uint64(i), 20, 2500, 300))
		}
	}
}

func healthyRow(learner string, mode watch.Learning, h healthyLearner) {
	var of []string
	for _, s := range slices.Sorted(maps.Keys(h.signals)) {
		of = append(of, fmt.Sprintf("`%s` %d", s, h.signals[s]))
	}
	fmt.Printf("| %s | `%s` | %d | %d | %s | %d |\n", learner, mode, h.incidents, h.units/learningBudget, strings.Join(of, ", "), h.moving)
}

func changeRow(learner, change string, mode watch.Learning, f foundLearner) {
	delay := "-"
	if len(f.delays) > 0 {
		slices.Sort(f.delays)
		delay = fmt.Sprintf("%.0f", f.delays[len(f.delays)/2])
	}
	fmt.Printf("| %s | %s | `%s` | %d of %d | %s | %d | %d | %d | %d |\n", learner, change, mode, f.found, 20-f.before, delay, f.right, f.unknown, f.wrong, f.moving)
}
