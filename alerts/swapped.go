package alerts

import (
	"fmt"
	"math"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
)

// An outcome scatters more at the same reward if, over at least scatterUnits units, its residuals have at least
// leastScatter times the spread of the baseline and have moved by at most mostMoved standard deviations. The outcome
// itself counts as unchanged up to ownQuiet standard errors. The many quantities of actions, observations and other
// outcomes count as unchanged up to othersQuiet.
const (
	scatterUnits = 40
	leastScatter = 1.15
	mostMoved    = .5
	ownQuiet     = 2.
	othersQuiet  = 3.5
)

// orSwapped names the reward function if the cause is unknown and the outcome scatters more at the same reward,
// although neither the outcome nor actions or observations have changed: the reward no longer measures the outcome,
// even if its distribution is the same.
func (v verdict) orSwapped(f *finding.Finding) verdict {
	e := &f.Effect
	scatters := e.Quantity == signals.GivenReward && e.CurrentUnits >= scatterUnits && e.SpreadRatio >= leastScatter && e.SpreadRatio < math.Inf(1)
	if v.cause != CauseUnknown || !scatters || !(math.Abs(e.StandardShift) <= mostMoved) {
		return v
	}
	own, others := false, false
	for _, s := range f.Shifts {
		most := othersQuiet
		if s.Signal == f.Signal {
			most, own = ownQuiet, true
		}
		switch c, known := classOf(s, true); {
		case !known || c == rewards || c == likeRewards:
		case !(prominence(s) <= most):
			return v
		default:
			others = others || c == actions || c == observations
		}
	}
	if !own || !others { // an unseen change of the policy would explain it as well
		return v
	}
	seen := []string{
		fmt.Sprintf("%s varies more for the same reward, by a factor of %.2g over %s", f.Signal, e.SpreadRatio, f.Promise.UnitName().Count(int64(e.CurrentUnits))),
		f.Signal + " itself, actions and observations did not change",
	}
	v.evidence = keepFirst(append(seen, v.evidence...), maxEvidence)
	v.cause, v.causes = CauseRewardFunction, ahead(CauseRewardFunction, v.evidence, v.causes)
	return v
}
