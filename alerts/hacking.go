package alerts

import (
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
)

// orHacking names reward hacking in place of the cause of a finding whose rewards got better while an outcome with a
// direction got worse: what the policy is rewarded for is no longer what is wanted of it (Skalse et al. 2022, "Defining
// and characterizing reward hacking").
//
// A cause that explains both by itself stands: wrong telemetry or sensors, a reward function that scores otherwise, and
// an environment with a new version, or whose laws say that it changed. If the outcome is only worse than its reward
// tells, but not in itself, rewards may just be larger numbers; then the policy must have changed as well.
func (v verdict) orHacking(f *finding.Finding, laws *lawsNote) verdict {
	if care(v.cause) > care(CauseEnvironment) || laws.cause == CauseEnvironment ||
		slices.Contains(f.Changed, string(CauseEnvironment)) || slices.Contains(f.Changed, string(CauseRewardFunction)) {
		return v
	}
	gain := foremostOf(f.Shifts, func(s *finding.Shift) bool {
		return (s.Signal == "return" || s.Signal == "reward") && clearlyBetter(s) > 0
	})
	loss := foremostOf(f.Shifts, func(s *finding.Shift) bool { return signals.IsOutcome(s.Signal) && clearlyBetter(s) < 0 })
	if gain < 0 || loss < 0 && (v.cause != CausePolicy || !worseThanItsReward(f)) {
		return v
	}
	seen := []string{changeOf(f, gain) + ", which is better", f.Signal + " is worse than in the baseline at the same reward"}
	if loss >= 0 {
		seen[1] = changeOf(f, loss) + ", which is worse"
	}
	rest := slices.DeleteFunc(slices.Clone(v.evidence), func(e string) bool {
		return strings.HasPrefix(seen[0], e) || strings.HasPrefix(seen[1], e)
	})
	v.evidence = keepFirst(append(seen, rest...), maxEvidence)
	v.cause, v.causes = CauseRewardHacking, ahead(CauseRewardHacking, v.evidence, v.causes)
	return v
}

// worseThanItsReward reports whether a finding is of an outcome that became worse than its reward tells.
func worseThanItsReward(f *finding.Finding) bool {
	own := foremostOf(f.Shifts, func(s *finding.Shift) bool { return s.Signal == f.Signal })
	return own >= 0 && f.Effect.Quantity == signals.GivenReward && float64(f.Shifts[own].Better)*f.Effect.MeanShift < 0
}

// clearlyBetter returns 1 if the main quantity of a signal clearly got better, -1 if it got worse, else 0.
func clearlyBetter(s *finding.Shift) int {
	if s.Quantity != signals.MainQuantity(s.Signal) || !clearly(s.Z) {
		return 0
	}
	if s.Z < 0 {
		return -s.Better
	}
	return s.Better
}
