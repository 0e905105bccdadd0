package alerts

import (
	"math"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
)

// turned is the z score at which a quantity counts as turned at an onset. More than turnUnits after the onset, the
// newest units say little about it, and reward hacking is no longer named.
const (
	turned    = 3.
	turnUnits = 200
)

// orHacking replaces the cause with reward hacking if the finding is about an outcome that became worse while the
// reward improved: the policy is rewarded for something other than its goal (Skalse et al. 2022, "Defining and
// characterizing reward hacking").
func (v verdict) orHacking(f *finding.Finding, laws *lawsNote) verdict {
	if !signals.IsOutcome(f.Signal) || v.explainsBoth(f, laws) {
		return v
	}
	seen := v.turnedApart(f)
	if len(seen) == 0 {
		seen = f.PartingWords()
	}
	if len(seen) == 0 {
		return v
	}
	if v.cause == CausePolicy {
		seen = append(seen, slices.DeleteFunc(slices.Clone(v.evidence), func(e string) bool {
			return isAgainst(e) || strings.HasPrefix(seen[0], e) || strings.HasPrefix(seen[1], e)
		})...)
	}
	v.evidence = keepFirst(seen, maxEvidence)
	v.cause, v.causes = CauseRewardHacking, ahead(CauseRewardHacking, v.evidence, v.causes)
	return v
}

// turnedApart describes how the reward and the outcome both turned at the onset of the finding, or returns nil if they
// did not.
//
// If the outcome became worse only in relation to the reward, rewards may just be larger numbers. The policy must then
// have changed as well.
func (v *verdict) turnedApart(f *finding.Finding) []string {
	own := foremostOf(f.Shifts, func(s *finding.Shift) bool {
		return s.Signal == f.Signal && s.Quantity == signals.MainQuantity(s.Signal)
	})
	gain := foremostOf(f.Shifts, func(s *finding.Shift) bool {
		return (s.Signal == "return" || s.Signal == "reward") && turnedBetter(s) > 0 && clearly(s.Z)
	})
	if own < 0 || gain < 0 || f.At.Ordinal-f.Onset.Ordinal > turnUnits {
		return nil
	}
	outcome := &f.Shifts[own]
	behind := f.Effect.Quantity == signals.GivenReward && float64(outcome.Better)*f.Effect.MeanShift < 0
	better := changeOf(f, gain) + ", which is better"
	switch side := turnedBetter(outcome); {
	case side < 0 && clearly(outcome.Z):
		return []string{better, changeOf(f, own) + ", which is worse"}
	case side <= 0 && behind && v.cause == CausePolicy:
		return []string{better, f.Signal + " is worse than in the baseline for the same reward"}
	}
	return nil
}

// explainsBoth reports whether the cause by itself explains why rewards and outcomes diverge: wrong telemetry or
// sensors, a reward function that scores differently, an environment with a new version or other laws, or another mix
// of strata.
func (v *verdict) explainsBoth(f *finding.Finding, laws *lawsNote) bool {
	return v.cause.NeedsPerson() || laws.cause.NeedsPerson() || laws.cause == CauseEnvironment ||
		released(f, CauseEnvironment, CauseRewardFunction) || explainedByMix(f, laws)
}

// turnedBetter returns 1 if a signal got better at the onset, -1 if it got worse, 0 if neither is clear, or if its better
// side is not configured.
func turnedBetter(s *finding.Shift) int {
	switch {
	case math.Abs(s.Turn) < turned:
		return 0
	case s.Turn < 0:
		return -s.Better
	}
	return s.Better
}
