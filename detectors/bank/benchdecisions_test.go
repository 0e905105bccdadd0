//go:build benchdetection

package bank

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/capacity"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Decisions that arrive fast and are judged in blocks.
func TestBenchDecisions(t *testing.T) {
	for _, rate := range []float64{16, 400} {
		title := fmt.Sprintf("Blocks of decisions, %g a second, N = 4,000 blocks", rate)
		promiseHead(title, "rewards of the decisions, decisions of a block")
		var all []float64
		for i, c := range decisionProcesses(rate) {
			ratios, size := c.measure(t, 3800+uint64(i), *baselinesFlag, 4000, 20_000)
			promiseRow(fmt.Sprintf("%s, %d", c.name, size), 500, ratios)
			all = append(all, ratios...)
		}
		slices.Sort(all)
		promiseRow("all", 500, all)
	}
}

// The delays of changes of decisions, one by one and in blocks, at the default budget.
func TestBenchDecisionDelays(t *testing.T) {
	fmt.Printf("\n### Decisions, one by one and in blocks, m = 500, one false alarm in 30 days, %d runs\n\n"+
		"| decisions a second | a unit | %s |\n%s|\n", *baselinesFlag,
		"reward +1 sd | clicks 20% -> 5% | sales 3.8% -> 1.9% | actions .5 .3 .2 -> .2 .3 .5 | alarms before the change",
		"| --- | --- | --- | --- | --- | --- | --- ")
	for _, rate := range []float64{1, 10, 20, 100, 1000} {
		delaysRow(t, rate, false)
		if rate > 10 {
			delaysRow(t, rate, true)
		}
	}
}

func delaysRow(t testing.TB, rate float64, joined bool) {
	const before, most = 300, 50_000 // in units, in decisions
	changes := []func(*decider){
		func(d *decider) { d.shift = 1 }, func(d *decider) { d.click = .05 }, func(d *decider) { d.sale = .019 },
		func(d *decider) { d.shares = []float64{.2, .3, .5} },
	}
	cfg := watch.DefaultConfig()
	cfg.Baseline.Blocks = joined
	cfg.FalseAlarms.Per = watch.Per{Amount: 30 * 86400 * rate, Unit: watch.PerEpisodes}
	took, early, size := make([][]float64, len(changes)), 0, 1
	for run := range *baselinesFlag {
		d := newDecider(uint64(3900+rate), uint64(run), rate)
		d.sale = .038
		p := newBank(cfg)
		d.accepted(t, p)
		size = max(1, p.groups[0].Blocks.Size)
		if len(alarmsIn(d.feed(p, before*size))) > 0 {
			early++
			continue
		}
		var saved bytes.Buffer
		if err := p.Snapshot(&saved); err != nil {
			t.Fatal(err)
		}
		for i, change := range changes {
			changed, p := *d, newBank(cfg)
			if err := p.Restore(bytes.NewReader(saved.Bytes()), time.Time{}); err != nil {
				t.Fatal(err)
			}
			changed.next = slices.Clone(d.next)
			change(&changed)
			took[i] = append(took[i], float64(changed.untilAlarm(p, most)))
		}
	}
	fmt.Printf("| %g | %d |", rate, size)
	for _, n := range took {
		m, se := mean(n)
		found := 0
		for _, x := range n {
			if x <= most {
				found++
			}
		}
		fmt.Printf(" %.0f ± %.0f, %.1f s", m, se, m/rate)
		if found < len(n) {
			fmt.Printf(" (%d of %d within %d)", found, len(n), most)
		}
		fmt.Print(" |")
	}
	fmt.Printf(" %d |\n", early)
}

// untilAlarm returns the number of decisions up to the first alarm; most+1 if there is none.
func (d *decider) untilAlarm(p *Policy, most int) int {
	for i := 1; i <= most; i++ {
		if len(alarmsIn(p.Observe(d.unit(), time.Time{}))) > 0 {
			return i
		}
	}
	return most + 1
}

// The CPU time per decision in the bank, one by one and in blocks, with the groups in turn.
func TestBenchDecisionCost(t *testing.T) {
	const rounds = 500
	fmt.Print("\n### A decision in the bank, ratio of blocks to one by one, in one run\n\n| groups | a block | ratio |\n| --- | --- | --- |\n")
	for _, groups := range []int{40, 400} {
		var took [2]time.Duration
		size := 0
		for joined := range took {
			d := newDecider(3990, uint64(groups), 0)
			if joined == 1 {
				d.rate = 100_000
			}
			p := NewPolicy("ranker", decisionsConfig(), capacity.NewStreamLimit(100_000))
			next := func() *ingest.Unit {
				u := d.unit()
				u.Group = ingest.NewGroup("ranker", ingest.Label{Name: "env", Value: fmt.Sprint(d.made % int64(groups))})
				return u
			}
			for p.groups == nil || len(p.groups) < groups || !p.groups[groups-1].Warmup.Done {
				p.Observe(next(), time.Time{})
			}
			size = max(size, p.groups[0].Blocks.Size)
			units := make([]*ingest.Unit, groups*100)
			for range rounds * groups / len(units) {
				for i := range units {
					units[i] = next()
				}
				start := cpu(t)
				for _, u := range units {
					p.Observe(u, time.Time{})
				}
				took[joined] += cpu(t) - start
			}
		}
		fmt.Printf("| %d | %d | %.3f (%.0f to %.0f ns) |\n", groups, size, float64(took[1])/float64(took[0]),
			float64(took[0].Nanoseconds())/float64(rounds*groups), float64(took[1].Nanoseconds())/float64(rounds*groups))
	}
}
