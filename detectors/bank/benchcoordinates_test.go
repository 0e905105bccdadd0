//go:build benchdetection

package bank

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/watch"
)

// How the delay of the law of the dynamics for a change in one component of the observation grows with the number of
// components.
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

// coordinateDelay returns the number of changed episodes until the law alarms, 0 for never, and whether it was judged
// before.
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
