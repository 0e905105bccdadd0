// Package verdicts tells how much data a gate needs, so that a pipeline whose gate could never decide is refused before
// anything is trained.
package verdicts

import (
	"fmt"
	"sort"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/gate"
)

const (
	// LeastBaseline is the size of the smallest baseline that the service takes.
	LeastBaseline = 50
	// leastSeeds is how many seeds an evaluation has at least.
	leastSeeds = 2
	// usual is the number of evaluation episodes for each environment and seed where no gate decides by them.
	usual = 20
	// most bounds the episodes that the need of a gate adds: of a small baseline, it would be tens of thousands.
	most = 200
	// ample is a baseline with which a version is found to be the same after no more units than it has.
	ample = 500
)

// Needed returns how many episodes a gate needs until half of all unchanged versions are found to be the same, with a
// baseline of this many independent episodes and one judged signal. It is 0 if no number is enough.
func Needed(baseline int) int {
	return int(detectors.UnitsToEquivalence(int64(baseline), 1, 1, gate.MeansError))
}

// Gate is what a gate decides by.
type Gate struct {
	Skipped, Passes           bool // there is none, or it passes without a verdict
	Baseline, Seeds, Episodes int
	Sent, Others              bool // whether the generated evaluation sends its episodes, and whether others do instead
}

// Faults returns what keeps a gate from deciding, by the path of the value to change.
func Faults(g Gate) map[string]string {
	out := map[string]string{}
	if g.Skipped {
		return out
	}
	if !g.Passes && g.Baseline >= LeastBaseline && Needed(g.Baseline) == 0 {
		least := sort.Search(ample, func(n int) bool { return Needed(n) > 0 })
		out["monitoring.baseline"] = fmt.Sprintf("must be at least %d, and preferably %d: with a smaller baseline, the gate never finds a version to be the same. Alternatively, set gate.undecided: pass or gate.skip: true", least, ample)
	}
	switch {
	case g.Others:
	case !g.Sent:
		out["evaluation.telemetry"] = "must be true, because the gate has no other data of the new version; or set shadow.command, or gate.skip: true"
	case !g.Passes && g.Seeds >= leastSeeds && g.Episodes > 0 && g.Seeds*g.Episodes < gate.LeastTried:
		out["evaluation.episodes"] = fmt.Sprintf("must be at least %d with %d seeds, because the gate judges these episodes and needs at least %d for each environment; omit the key to run enough episodes for the verdict same",
			(gate.LeastTried+g.Seeds-1)/g.Seeds, g.Seeds, gate.LeastTried)
	}
	return out
}

// Episodes returns how many episodes are evaluated for each environment and seed by default: if a gate decides by them, as
// many as it needs to find an unchanged version to be the same.
func Episodes(decides bool, baseline, seeds int) int {
	if !decides {
		return usual
	}
	return min(most, max(usual, (Needed(baseline)+seeds-1)/seeds))
}
