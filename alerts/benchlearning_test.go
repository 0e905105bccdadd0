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

// Measures agents that learn, healthy and changed, in each mode, compared with an alert on a moving mean.
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

// Measures agents that learn and act by frozen versions.
func TestBenchLearningVersions(t *testing.T) { benchVersions(50, 4000) }

// newReleasedLake returns a constructor of learners that act by a frozen version, and release a new one every given
// number of episodes.
func newReleasedLake(every int64) func(seed uint64) *lake {
	return func(seed uint64) *lake {
		l := newLake(seed)
		l.every = every
		return l
	}
}

// benchVersions measures Q-learning that acts by frozen versions. A change after 2,500 episodes coincides with a new
// version, a change after 2,620 is between two versions. A broken learner acts from the next version on.
func benchVersions(runs, units int) {
	const mode = watch.LearningVersions
	fmt.Printf("\n### Healthy learners, `%s`, %d runs of %d episodes from the first one on, one false alarm in %d\n\n", mode, runs, units, learningBudget)
	fmt.Println("| episodes of a version | incidents | of a worse version | policy | unknown | wrong | of a fall that was known | other | allowed | of signals | alerts of the moving mean |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	for _, every := range []int64{20, 50, 100, 250} {
		h := liveReleases(every, 60_000, runs, units)
		right, unknown := h.causes[CausePolicy], h.causes[CauseUnknown]
		fmt.Printf("| %d | %d | %d | %d | %d | %d | %d | %d | %d | %s | %d |\n", every, h.incidents, h.worse, right, unknown, h.worse-right-unknown, h.again, h.false(), h.units/learningBudget, ofSignals(h.signals), h.moving)
	}
	each := []int64{50, 250}
	for _, before := range []int{2500, 2620} {
		fmt.Printf("\n### Changes after %d episodes of learning, `%s`, %d runs, found within 300 episodes\n\n", before, mode, changedRuns)
		fmt.Println("| episodes of a version | change | found | median delay | right | unknown | wrong | moving mean |\n| --- | --- | --- | --- | --- | --- | --- | --- |")
		for _, every := range each {
			for i, c := range lakeChanges {
				seed := 70_000 + uint64(every)*10 + 100*uint64(i)
				changeRow(fmt.Sprint(every), c.name, liveChange(mode, newReleasedLake(every), c, seed, changedRuns, before, 300))
			}
		}
	}
}

const changedRuns = 10

func healthyRow(learner string, h healthyLearner) {
	fmt.Printf("| %s | %d | %d | %s | %d |\n", learner, h.incidents, h.units/learningBudget, ofSignals(h.signals), h.moving)
}

// ofSignals returns the number of incidents by signal.
func ofSignals(incidents map[string]int) string {
	var of []string
	for _, s := range slices.Sorted(maps.Keys(incidents)) {
		of = append(of, fmt.Sprintf("`%s` %d", s, incidents[s]))
	}
	return strings.Join(of, ", ")
}

func changeRow(learner, change string, f foundLearner) {
	delay := "-"
	if len(f.delays) > 0 {
		slices.Sort(f.delays)
		delay = fmt.Sprintf("%.0f", f.delays[len(f.delays)/2])
	}
	fmt.Printf("| %s | %s | %d of %d | %s | %d | %d | %d | %d |\n", learner, change, f.found, changedRuns-f.before, delay, f.right, f.unknown, f.wrong, f.moving)
}
