//go:build benchdetection

package bank

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Traffic whose mix follows the hour or the day of the week: the number of pages without a change, and the delays of
// changes.
func TestBenchCycles(t *testing.T) {
	const seeds = 3
	fmt.Printf("\n### Cycles, m = 500, one false alarm in 30 days, 500 units in 14.6 hours, three weeks, %d seeds\n\n"+
		"| traffic | a unit | pages | provisional incidents | baseline accepted after (h) |", seeds)
	for _, change := range cycleChanges() {
		fmt.Printf(" %s |", change.name)
	}
	fmt.Println("\n| --- | --- | --- | --- | --- | --- | --- | --- |")
	for _, c := range cycles() {
		var r cycleRun
		for seed := range uint64(seeds) {
			one := newTraffic(c, 900, seed).watch(21 * 24 * time.Hour)
			r.pages, r.trials, r.after = r.pages+one.pages, r.trials+one.trials, r.after+one.after/seeds
		}
		unit := "a decision"
		if c.steps > 1 {
			unit = fmt.Sprintf("%d steps", c.steps)
		}
		fmt.Printf("| %s | %s | %d | %d | %.0f |", c.name, unit, r.pages, r.trials, r.after.Hours())
		for _, change := range cycleChanges() {
			var took []float64
			for seed := range uint64(seeds) {
				took = append(took, newTraffic(c, 910, seed).delays(t, change.change, 8)...)
			}
			m, se := mean(took)
			fmt.Printf(" %.1f ± %.1f |", m, se)
		}
		fmt.Println()
	}
}

// Only the pages, over 24 runs of three weeks that begin at all times of the week, and the number of runs in which
// hours were found to differ.
func TestBenchCyclesPages(*testing.T) {
	const runs, span = 24, 21 * 24 * time.Hour
	fmt.Print("\n### Pages of cycles, 24 runs of three weeks\n\n| traffic | hours differ | pages | allowed | provisional incidents |\n" +
		"| --- | --- | --- | --- | --- |\n")
	for _, c := range cycles()[:9] {
		var all cycleRun
		seasonal, judged := 0, time.Duration(0)
		for i := range uint64(runs) {
			r := newTraffic(c, 9700, i).watch(span)
			all.pages, all.trials, judged = all.pages+r.pages, all.trials+r.trials, judged+span-r.after
			if r.seasonal {
				seasonal++
			}
		}
		fmt.Printf("| %s | %d | %d | %.1f | %d |\n", c.name, seasonal, all.pages, judged.Hours()/24/30, all.trials)
	}
}

// Pages for lifts whose load follows the hour and the week, in the two weeks after each of 21 baselines, as a task that
// never ends and with one decision per call.
func TestBenchLift(*testing.T) {
	const runs = 21
	fmt.Printf("\n### Lifts, %d runs of two weeks\n\n| calls | pages | allowed | provisional incidents |\n"+
		"| --- | --- | --- | --- |\n", runs)
	for _, c := range []struct {
		name string
		unit func(*lift) *ingest.Unit
	}{{"a continuing task", (*lift).block}, {"decisions", (*lift).decision}} {
		pages, trials := 0, 0
		for seed := range uint64(runs) {
			l := newLift(seed, 24*int(seed)+5)
			st, _ := l.watch(func() *ingest.Unit { return c.unit(l) })
			pages, trials = pages+len(st.paged), trials+len(st.opened)
		}
		fmt.Printf("| %s | %d | %.1f | %d |\n", c.name, pages, runs*14/30., trials)
	}
}

// cycleChange is a change of the policy or of the environment.
type cycleChange struct {
	name   string
	change func(*traffic)
}

func cycleChanges() []cycleChange {
	return []cycleChange{
		{"reward -1", func(t *traffic) { t.shift = -1 }},
		{"half of the clicks", func(t *traffic) { t.click = .5 }},
		{"half of the actions a to c", func(t *traffic) { t.turn = .5 }},
	}
}

// delays returns the numbers of units from a change to the page, over changes that begin at the given number of hours
// of a day.
func (t *traffic) delays(tb *testing.T, change func(*traffic), begins int) (took []float64) {
	const most = 3000
	p := newBank(watch.DefaultConfig())
	for len(p.groups) == 0 || !p.groups[0].Warmup.Done {
		p.Observe(t.unit(), time.Time{})
	}
	for range begins {
		for end := t.now + int64(29*time.Hour); t.now < end || p.groups[0].Incident; {
			p.Observe(t.unit(), time.Time{})
		}
		q, after := restored(tb, p), *t
		after.rng = rand.New(rand.NewPCG(uint64(t.made), 7))
		change(&after)
		n := 0
		for ; n < most && !q.groups[0].Incident; n++ {
			q.Observe(after.unit(), time.Time{})
		}
		took = append(took, float64(n))
	}
	return took
}
