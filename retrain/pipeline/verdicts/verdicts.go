// Package verdicts computes how much data a gate needs, so that a pipeline whose gate could never decide is rejected
// before anything is trained.
package verdicts

import (
	"fmt"
	"sort"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/gate"
)

const (
	// LeastBaseline is the smallest baseline that the service accepts, in episodes.
	LeastBaseline = 50
	// leastSeeds is the minimum number of seeds of an evaluation.
	leastSeeds = 2
	// usual is the default number of evaluation episodes for each environment and seed if no gate decides on them.
	usual = 20
	// most bounds the default number of episodes. For a small baseline, a gate would need tens of thousands.
	most = 200
	// ample is a baseline that is large enough: a gate then needs no more units than the baseline has to find a version
	// to be the same.
	ample = 500
)

// Needed returns the number of episodes after which a gate finds half of all unchanged versions to be the same, with a
// baseline of this many independent episodes and one judged signal. It returns 0 if no number is enough.
func Needed(baseline int) int {
	return int(detectors.UnitsToEquivalence(int64(baseline), 1, 1, gate.MeansError))
}

// Gate describes the data on which a gate decides.
type Gate struct {
	Skipped, Passes           bool // the pipeline has no gate, or the gate passes without a verdict
	Baseline, Seeds, Episodes int
	Sent, Others              bool // whether the generated evaluation sends its episodes, and whether something else sends episodes instead
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

// Episodes returns the default number of evaluation episodes for each environment and seed. If a gate decides on them,
// it is the number that the gate needs to find an unchanged version to be the same, up to a limit.
func Episodes(decides bool, baseline, seeds int) int {
	if !decides {
		return usual
	}
	return min(most, max(usual, (Needed(baseline)+seeds-1)/seeds))
}
