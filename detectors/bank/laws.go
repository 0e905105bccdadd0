package bank

import (
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors/baseline"
	"github.com/rewardwatch/rewardwatch/detectors/factor"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// collectedFactor is the memory of a baseline's steps, relative to that of the laws learned from them.
const collectedFactor = 8

// lawMemory returns the maximum memory, in bytes, of the laws, of all steps of a baseline, and of the steps of a unit.
func (g *group) lawMemory() (laws, steps, unit int) {
	laws = int(g.cfg.Causes.Memory)
	steps = collectedFactor * laws
	return laws, steps, baseline.ToldBytes(steps, g.cfg.Baseline.Units)
}

// learnLaws learns the laws of the steps from the collected units, and makes the scores under them quantities.
func (g *group) learnLaws() {
	laws, _, unit := g.lawMemory()
	told, places := g.Warmup.Told()
	g.Laws.Freeze(told, unit, laws)
	g.SetLaws(&g.Laws)
	held := g.Laws.HeldOut(told, laws)
	for f := range factor.Factors {
		lessons := baseline.LessonsOfLaw(f, held, places, g.times(), g.cfg.Learning.Learns())
		signal := signals.Law(f.String())
		if _, found := g.Find(signal); !found && lessons.None() {
			continue
		}
		if s := g.stream(signal); s != nil {
			lessons.Become(s)
		}
	}
}

// mostBranches returns the maximum number of branches after the next freeze, which may learn the first laws.
func (g *group) mostBranches() int {
	actions := 0
	if i, found := g.Find(signals.Action); found {
		actions = len(g.Streams[i].Quantities)
	}
	if !g.Warmup.Done && g.Warmup.Kind() == ingest.ActionCategory {
		shares := stream.NewActionShares(g.Warmup.ChooseActions())
		actions = len(shares.Names) + len(shares.Mixes)
	}
	n := g.MostBranches(actions)
	for f := range factor.Factors {
		if _, found := g.Find(signals.Law(f.String())); !found && g.Warmup.KeepsSteps() {
			n += baseline.MostOfLaw(f, g.cfg.Learning.Learns()) * stream.MostCandidates
		}
	}
	return n
}

// followLaws stores the scores of a unit under the laws of the baseline, unless a fault may have falsified them.
func (g *group) followLaws(rules []string, ordinal int64) {
	if !anyRule(rules) {
		g.Laws.Observe(g.Scores(), ordinal)
	}
}

// keepSteps stores the steps of a unit for the laws of the next baseline.
func (g *group) keepSteps(u *ingest.Unit, rules []string) {
	laws, steps, _ := g.lawMemory()
	if laws == 0 {
		return
	}
	var told factor.Told
	if u.Steps != nil && !anyRule(rules) {
		told = factor.Of(u)
	}
	g.Warmup.KeepSteps(told, steps, g.cfg.Baseline.Units)
}

func anyRule(rules []string) bool {
	return slices.ContainsFunc(rules, func(rule string) bool { return rule != "" })
}
