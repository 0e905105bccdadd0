package offpolicy

import (
	"fmt"
	"math"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// ErrorRate is the probability that the interval of a value ever misses it, and the probability that an estimate
// ever names the policy or the world as changed although it is not. Both hold at all units simultaneously.
const ErrorRate = .05

// TunedUnits is the number of units for which confidence sequences are tuned to be narrowest.
const TunedUnits = 500

// The support that an estimate needs. With an effective sample size below LeastEffective, the central limit theorem
// does not apply. If fewer than leastComplete of the units have usable probabilities, the other units may differ
// from them. A mean weight that is significantly more than supportMargin from 1 means that the other policy takes
// actions that today's policy does not take, or that the probabilities are not those of the actions.
const (
	LeastEffective = 50
	leastComplete  = .9
	supportMargin  = .05
	supportError   = .01 // the probability that an estimate is ever withheld wrongly by its mean weight
)

// Estimate compares what the policy that acted has earned with what the reference would have earned, over the units
// of now, and both with the baseline. Dependence between units widens the intervals by the factor. It returns nil
// if no unit has usable probabilities.
func Estimate(baseline, now *Running, factor float64) *finding.OffPolicy {
	reference, before, sums := finding.ReferenceTarget, &baseline.Target, &now.Target
	if complete := leastComplete * float64(now.Units); float64(sums.N) < complete && now.Frequencies.N >= sums.N {
		reference, before, sums = finding.ReferenceFrequencies, &baseline.Frequencies, &now.Frequencies
	}
	if sums.N == 0 || before.N == 0 {
		return nil
	}
	nan := math.NaN()
	none := finding.PartOfChange{Mean: nan, Low: nan, High: nan}
	out := &finding.OffPolicy{
		Reference: reference, Units: sums.N, PerStep: now.PerStep, Effective: sums.Effective(), MeanWeight: sums.Weight.Mean,
		Actual: sums.Return.Mean, Baseline: before.Value.Mean,
		Value: nan, Low: nan, High: nan, SelfNormalized: nan, World: none, Policy: none,
	}
	c := comparison{before: before, now: sums, factor: max(1, factor)}
	if out.Why = c.unsupported(now.Units, reference); out.Why != "" {
		out.Shown = finding.NoSupport
		return out
	}
	out.SelfNormalized, out.Value = sums.SelfNormalized(), sums.DoublyRobust()
	width := c.width(before.Value, sums.Value, 0, ErrorRate)
	out.Low, out.High = out.Value-width, out.Value+width
	out.World = c.part(before.Value, sums.Value, ErrorRate/2)
	out.Policy = c.part(before.Gap, sums.Gap, ErrorRate/2)
	out.Shown, out.Why = c.shown(out)
	return out
}

// comparison compares recent units with those of the baseline.
type comparison struct {
	before, now *Sums
	factor      float64
}

// unsupported returns why there is no estimate, or "" if there is one. units is the number of all units.
func (c *comparison) unsupported(units int64, reference string) string {
	n, weight := c.now.N, c.now.Weight
	if float64(n) < leastComplete*float64(units) {
		needed := "action_prob"
		if reference == finding.ReferenceTarget {
			needed += " and target_prob"
		}
		return fmt.Sprintf("only %d of %d contain a valid %s for every action", n, units, needed)
	}
	if ess := c.now.Effective() / c.factor; ess < LeastEffective {
		return fmt.Sprintf("the effective sample size is %.0f, below the required %d", math.Floor(ess), LeastEffective)
	}
	v := c.factor * weight.variance(n)
	width := halfWidth(v/float64(n), v/TunedUnits, supportError)
	switch {
	case weight.Mean+width < 1-supportMargin:
		return fmt.Sprintf("the mean weight is %s, significantly below 1: it takes actions that the current policy does not take", finding.Figure(weight.Mean))
	case weight.Mean-width > 1+supportMargin:
		return fmt.Sprintf("the mean weight is %s, significantly above 1: the logged probabilities do not match the actions", finding.Figure(weight.Mean))
	}
	return ""
}

// width returns the half-width of the confidence sequence of the mean now, less that of m units of the baseline;
// with m = 0, of the mean now alone. It uses the larger of the two variances, because that of a few equal values
// would be 0.
func (c *comparison) width(before, now Moments, m int64, alpha float64) float64 {
	base := before.variance(c.before.N)
	v := max(base, now.variance(c.now.N))
	frozen := 0.
	if m > 0 {
		frozen = base / float64(m)
	}
	return halfWidth(c.factor*(v/float64(c.now.N)+frozen), c.factor*(v/TunedUnits+frozen), alpha)
}

func (c *comparison) part(before, now Moments, alpha float64) finding.PartOfChange {
	change, width := now.Mean-before.Mean, c.width(before, now, c.before.N, alpha)
	return finding.PartOfChange{Mean: change, Low: change - width, High: change + width}
}

// negligible is the relative size of a change that may be due to rounding.
const negligible = 1e-9

// moved reports whether a mean has changed significantly.
func (c *comparison) moved(before, now Moments, alpha float64) bool {
	p := c.part(before, now, alpha)
	return excludesZero(p) && math.Abs(p.Mean) > negligible*max(math.Abs(before.Mean), math.Abs(now.Mean), math.Abs(c.before.Return.Mean))
}

func excludesZero(p finding.PartOfChange) bool { return p.Low > 0 || p.High < 0 }

// shown returns what the estimate shows and, if it is undecided, why. A change of the reference's value is a change
// of the world, because the reference is the same policy. If the reference is not the accepted policy, the
// remaining change may also be a change of the world that does not affect the reference. It counts as a change of
// the policy only if today's policy acts significantly differently than in the baseline.
func (c *comparison) shown(o *finding.OffPolicy) (finding.Shown, string) {
	world := c.moved(c.before.Value, c.now.Value, ErrorRate/2)
	policy := c.moved(c.before.Gap, c.now.Gap, ErrorRate/2)
	if policy && o.Reference == finding.ReferenceFrequencies && !c.actsOtherwise() {
		if !world {
			return finding.Undecided, "current actions and probabilities match those of the baseline: only target_prob could show a difference"
		}
		policy = false
	}
	switch {
	case world && policy:
		return finding.ShownBoth, ""
	case world:
		return finding.ShownWorld, ""
	case policy:
		return finding.ShownPolicy, ""
	}
	return finding.Undecided, "neither part of the change is significant yet"
}

// actsOtherwise reports whether the actions, measured by their rewards in the baseline, or their probabilities have
// changed significantly.
func (c *comparison) actsOtherwise() bool {
	return c.moved(c.before.LogProb, c.now.LogProb, ErrorRate/4) || c.moved(c.before.Direct, c.now.Direct, ErrorRate/4)
}
