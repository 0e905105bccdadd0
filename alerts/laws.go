package alerts

import (
	"fmt"
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors/factor"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
)

// From leastJudged units on, the laws of the steps decide the cause. Up to settledJudged units, their evidence is
// called preliminary.
const (
	leastJudged   = 10
	settledJudged = 50
)

// ambiguousBound is the maximum evidence, in nats, from the movements of signals if laws have moved without identifying
// the cause. More would claim more than the steps show.
const ambiguousBound = 1.

// Conditions for the alarm of a law to decide the cause. Scores that scatter widely need more evidence of a new level,
// because a few of them can all be on one side by chance.
const (
	levelZ       = 3. // minimum |z| of the level
	wideVariance = 2. // of normal scores, above which they scatter widely; 1 in the baseline
	wideZ        = 4. // minimum |z| of the level of scores that scatter widely, in their own standard errors
	wideUnits    = 20 // minimum number of such scores
	knownSupport = .5 // minimum share of steps in situations that occur in the baseline
)

// lawsNote is the evidence of the laws of the steps about the cause of a finding.
type lawsNote struct {
	cause     Cause // CauseUnknown if the laws do not identify it
	ambiguous bool  // laws have moved, but do not identify the cause
	learns    bool  // the policy learns, so signals may have moved by design
	evidence  []string
}

// readLaws returns the evidence of the laws.
//
// A reward may depend on outcomes, which belong to the environment. So if outcomes have moved, a different reward for
// the same step is no evidence about the reward function.
//
// A policy that learns adapts to changes. So if another law has raised an alarm, that law determines the cause at once:
// the movements in the first episodes may come from the policy alone.
func readLaws(f *finding.Finding, moved *movements) lawsNote {
	v := f.Laws
	if v == nil || v.Episodes < leastJudged && !v.Learns {
		return lawsNote{cause: CauseUnknown}
	}
	alarmed := alarmedLaw(f, moved)
	if v.Episodes < leastJudged {
		return alarmed
	}
	note := lawsNote{cause: causeOf(v.Cause), learns: v.MovesByDesign()}
	if note.cause == CauseUnknown && !v.Moved() {
		return alarmed
	}
	if v.Learns && alarmed.cause != CauseUnknown && (note.cause == CausePolicy || note.cause == CauseUnknown) {
		note.cause = alarmed.cause
	}
	if note.cause == CauseRewardFunction && moved[outcomes].moved() {
		return lawsNote{cause: CauseUnknown}
	}
	note.ambiguous = v.Moved() && note.cause == CauseUnknown
	if note.cause != CauseUnknown || note.ambiguous {
		note.evidence = lawsWords(v, f.Promise.UnitName())
	}
	return note
}

// alarmedLaw returns the evidence of alarms about laws if no law has moved far enough to decide by itself: the cause if
// all alarms belong to the same cause. It ignores laws whose scores only scatter. It also ignores the law of rewards if
// most steps are in new situations: so few steps remain that they do not represent the others. A policy that follows
// another reward function into new situations therefore leaves the cause to other evidence.
func alarmedLaw(f *finding.Finding, moved *movements) lawsNote {
	note := lawsNote{cause: CauseUnknown, learns: f.Laws.MovesByDesign()}
	for i, s := range f.Shifts {
		law, is := alarmsOfLaws[s.Signal]
		if !is || !s.Drifted || scatters(f.Shifts, s.Signal) {
			continue
		}
		if followsPolicy(f.Laws, s.Signal) {
			continue
		}
		if note.cause != CauseUnknown && note.cause != law.owner || law.owner == CauseRewardFunction && moved[outcomes].moved() {
			return lawsNote{cause: CauseUnknown}
		}
		note.cause = law.owner
		if i == foremostOf(f.Shifts, func(o *finding.Shift) bool { return o.Signal == s.Signal }) {
			note.evidence = append(note.evidence, law.words+": "+changeOf(f, i))
		}
	}
	return note
}

// followsPolicy reports whether the scores of a law may only follow the policy: rewards of mostly new situations, or
// dynamics that moved slightly beside a policy that learns.
func followsPolicy(v *factor.Verdict, signal string) bool {
	switch signal {
	case signals.Law(factor.Reward.String()):
		return v.Factors[factor.Reward].Support < knownSupport
	case signals.Law(factor.Dynamics.String()):
		return v.Learns && v.Slight
	}
	return false
}

// scatters reports whether the scores of a law are spread more widely than in the baseline around a similar level. A
// policy that breaks may end episodes much sooner, and means over fewer steps vary more, although the law is the same.
func scatters(shifts []finding.Shift, signal string) (wider bool) {
	for i := range shifts {
		s := &shifts[i]
		if s.Signal != signal {
			continue
		}
		variance, z, units := s.Variance(), levelZ, 0
		if variance > wideVariance {
			wider, z, units = true, wideZ, wideUnits
		}
		if s.Units >= units && math.Abs(s.Z) >= z*math.Sqrt(max(1, variance)) {
			return false
		}
	}
	return wider
}

// foremostOf returns the index of the most prominent of the wanted shifts, or -1 if there is none.
func foremostOf(shifts []finding.Shift, wanted func(*finding.Shift) bool) int {
	most := -1
	for i := range shifts {
		if wanted(&shifts[i]) && (most < 0 || prominence(shifts[i]) > prominence(shifts[most])) {
			most = i
		}
	}
	return most
}

// alarmsOfLaws maps the signal of each law of the steps to the cause of its changes, and to the words for an alarm.
var alarmsOfLaws = map[string]struct {
	owner Cause
	words string
}{
	signals.Law(factor.Policy.String()):   {CausePolicy, "the policy acts differently in the same situations"},
	signals.Law(factor.Start.String()):    {CauseEnvironment, "episodes start in different situations"},
	signals.Law(factor.Dynamics.String()): {CauseEnvironment, "the same actions in the same situations have different effects"},
	signals.Law(factor.Reward.String()):   {CauseRewardFunction, "the same steps earn different rewards"},
}

func causeOf(c factor.Cause) Cause {
	return [...]Cause{CauseUnknown, CausePolicy, CauseEnvironment, CauseRewardFunction, CauseObservations}[c]
}

// hypotheses returns the causes between which evidence is weighed. Broken observations are one of them only if the laws
// show them. They move the same classes as an environment, but they certainly move observations.
func (n *lawsNote) hypotheses() []hypothesis {
	known := hypotheses()
	all := known[:]
	if n.cause == CauseObservations {
		for _, h := range known {
			if h.cause == CauseEnvironment {
				h.cause, h.moves[observations] = CauseObservations, .95
				all = append(all, h)
			}
		}
	}
	return all
}

// score returns the evidence for each cause in nats, relative to the best one. If the laws identify the cause, the
// movements of signals add nothing: a new policy moves observations, and a new world moves actions.
func (n *lawsNote) score(all []hypothesis, moved *movements) []float64 {
	scores := make([]float64, len(all))
	if n.cause != CauseUnknown {
		for i, h := range all {
			if h.cause != n.cause {
				scores[i] = -movementBound
			}
		}
		return scores
	}
	top := math.Inf(-1)
	for i, h := range all {
		scores[i] = h.movement(moved)
		top = max(top, scores[i])
	}
	for i := range scores {
		scores[i] = max(scores[i]-top, -n.bound())
	}
	return scores
}

// tell puts the evidence of the laws first in the evidence of the cause that they identify, or else of the first cause.
func (n *lawsNote) tell(ranked []RankedCause) {
	if len(n.evidence) == 0 {
		return
	}
	for i := range ranked {
		if c := &ranked[i]; c.Cause == n.cause {
			c.Evidence = keepFirst(append(slices.Clone(n.evidence), c.Evidence...), maxEvidence)
			return
		}
	}
	ranked[0].Evidence = keepFirst(append(slices.Clone(n.evidence), ranked[0].Evidence...), maxEvidence)
}

// bound returns the maximum evidence, in nats, from the movements of signals.
func (n *lawsNote) bound() float64 {
	switch {
	case n.learns:
		return 0
	case n.ambiguous:
		return ambiguousBound
	}
	return movementBound
}

// lawsWords describes what each law has done.
func lawsWords(v *factor.Verdict, unit finding.UnitName) []string {
	var out []string
	if v.Broken != factor.Whole && v.Cause == factor.ByObservations {
		out = append(out, brokenWords(v.Broken))
	}
	for f := range factor.Factors {
		if v.Factors[f].Moved {
			out = append(out, movedWords(f, v))
		}
	}
	for _, f := range []factor.Factor{factor.Policy, factor.Dynamics, factor.Reward} {
		if m := &v.Factors[f]; !m.Moved && m.Support >= knownSupport {
			out = append(out, unmovedWords(f))
		}
	}
	if s := v.Factors[factor.Policy].Support; s < knownSupport {
		out = append(out, fmt.Sprintf("only %.0f%% of the steps are in situations that occur in the baseline", 100*s))
	}
	if v.Episodes < settledJudged {
		out[0] = fmt.Sprintf("from %d %s so far: %s", v.Episodes, unit.Many(), out[0])
	}
	return out
}

func brokenWords(b factor.Broken) string {
	switch b {
	case factor.Noisy:
		return "observations fluctuate at random from step to step, as with a noisy sensor"
	case factor.Delayed:
		return "observations respond to the action before the last one, so they arrive late"
	case factor.Shifted:
		return "the same observations have different consequences, as with a sensor that is shifted or scaled"
	default:
		return "an observation that varied is now constant"
	}
}

// movedWords describes a law that has moved, with its example if there is one.
func movedWords(f factor.Factor, v *factor.Verdict) string {
	effect := fmt.Sprintf(" (by %.1f standard deviations)", math.Abs(v.Factors[f].Foremost.Effect))
	for _, e := range v.Examples {
		if e.Factor == f {
			return e.Words() + effect
		}
	}
	return alarmsOfLaws[signals.Law(f.String())].words + effect
}

func unmovedWords(f factor.Factor) string {
	switch f {
	case factor.Policy:
		return "the policy acts as before in the same situations"
	case factor.Dynamics:
		return "the environment responds as before"
	default:
		return "the same steps yield the same rewards as before"
	}
}
