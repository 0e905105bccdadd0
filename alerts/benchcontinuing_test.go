//go:build benchdetection

package alerts

import (
	"fmt"
	"maps"
	"slices"
	"testing"
)

// Measures a thermostat without episodes: its false alarms, and the detection of its changes.
func TestBenchContinuing(t *testing.T) {
	const runs, within = 20, 7
	incidents, allowed, signals := continued(8_000_000, runs, continuedDays)
	fmt.Printf("\n### Continuing task, one false alarm in 30 days, %d runs\n\n", runs)
	fmt.Printf("%d incidents in %d days after the baselines, where %.0f are allowed:", incidents, runs*continuedDays, allowed)
	for _, s := range slices.Sorted(maps.Keys(signals)) {
		fmt.Printf(" `%s` %d", s, signals[s])
	}
	fmt.Printf("\n\n| change | found within %d days | median delay, days | right | unknown | wrong |\n| --- | --- | --- | --- | --- | --- |\n", within)
	changes := append([]learnerChange[*thermostat]{
		{"nothing", "", func(*thermostat) {}},
		{"the policy reacts half as much", CausePolicy, func(t *thermostat) { t.gain = 1 }},
	}, thermostatChanges...)
	for i, c := range changes {
		f := changedTask(c, 8_100_000+1000*uint64(i), runs, within)
		slices.Sort(f.delays)
		fmt.Printf("| %s | %d of %d | %.1f | %d | %d | %d |\n", c.name, f.found, runs, f.delays[f.found/2], f.right, f.unknown, f.wrong)
	}
}
