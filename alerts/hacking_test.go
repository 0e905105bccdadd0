package alerts

import (
	"slices"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/factor"
	"github.com/rewardwatch/rewardwatch/detectors/fault"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/progress"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
)

// moves returns the shift of a signal's main quantity that turned by z standard errors at the onset.
func moves(signal string, z float64, better int) finding.Shift {
	return finding.Shift{
		Signal: signal, Quantity: signals.MainQuantity(signal), StandardShift: z / 5, Z: z, StandardError: .2, Units: 50,
		Turn: z, Better: better,
	}
}

// satisfies returns a finding for an outcome that moved by z standard errors while the return got better, with other
// shifts.
func satisfies(z float64, others ...finding.Shift) finding.Finding {
	f := drift("outcome.satisfaction", 100)
	f.Improvement = z > 0
	f.Shifts = append([]finding.Shift{moves("return", 6, 1), moves("outcome.satisfaction", z, 1)}, others...)
	return f
}

// but returns a finding with the i-th shift replaced.
func but(f finding.Finding, i int, edit func(*finding.Shift)) finding.Finding {
	f.Shifts = slices.Clone(f.Shifts)
	edit(&f.Shifts[i])
	return f
}

// parting returns the course of the return and an outcome since the outcome was best.
func parting() *progress.Parting {
	return &progress.Parting{
		Earned: "return", Since: 40, Reward: progress.Moved{From: .5, To: 1.25, Units: 900, Z: 12},
		Outcome: progress.Moved{From: 3.4, To: 2.9, Units: 100, Z: -5.25},
	}
}

// rewardLaw returns the verdict of the laws for a changed reward function.
func rewardLaw() *factor.Verdict {
	return judged(100, factor.ByReward, map[factor.Factor]float64{factor.Reward: 2})
}

func TestRewardHacking(t *testing.T) {
	worse := satisfies(-5)
	provisional, otherReward, otherWorld, mixed, late := worse, worse, worse, worse, worse
	provisional.Provisional = true
	otherReward.Changed, otherReward.After.Reward = []string{"reward_function"}, "r8"
	otherWorld.Changed, otherWorld.After.Env = []string{"environment"}, "42"
	otherBuild := otherWorld
	otherBuild.Paces.Env = finding.Pace{Every: 100, Chance: .5}
	mixed.Mix = segments(-.1, .5)
	late.At = unit(400, 0)
	gradual, elsewhere := late, otherWorld
	gradual.Parting, elsewhere.Parting = parting(), parting()
	undirected := but(worse, 1, func(s *finding.Shift) { s.Better = 0 })
	slight := but(worse, 1, func(s *finding.Shift) { s.Z = -3 })
	fell := but(worse, 0, func(s *finding.Shift) { s.Z, s.Turn = -6, -6 })
	before := but(worse, 0, func(s *finding.Shift) { s.Turn = 0 })
	rare := but(worse, 1, func(s *finding.Shift) { s.Z = 7.9 }) // that more values are rare does not say which way
	cost := but(worse, 1, func(s *finding.Shift) { s.Z, s.Turn, s.Better = 5, 5, -1 })

	residual := satisfies(0, moves("action.flattery", 9, 0))
	residual.Changed, residual.After.Policy = []string{"policy"}, "p2"
	residual.Effect = finding.Effect{Quantity: signals.GivenReward, MeanShift: -.4}
	lessBetter := but(residual, 1, func(s *finding.Shift) { s.Z, s.Turn = 6, 6 })
	unchanged := residual
	unchanged.Changed, unchanged.After, unchanged.Shifts = nil, unchanged.Before, residual.Shifts[:2]
	byLaw := residual
	byLaw.Laws = rewardLaw()
	for name, c := range map[string]struct {
		before   []finding.Finding
		finding  finding.Finding
		hacked   bool
		severity Severity
	}{
		"an outcome gets worse":                        {finding: worse, hacked: true, severity: Critical},
		"a rare outcome gets rarer":                    {finding: rare, hacked: true, severity: Critical},
		"a cost grows":                                 {finding: cost, hacked: true, severity: Critical},
		"on a provisional baseline":                    {finding: provisional, hacked: true, severity: Info},
		"an outcome does not follow, by a new policy":  {finding: residual, hacked: true, severity: Critical},
		"an outcome does not follow, by nothing known": {finding: unchanged, severity: Critical},
		"an outcome gets better, but less so":          {finding: lessBetter, severity: Critical},
		"an outcome does not follow another reward":    {finding: byLaw, severity: Critical},
		"an outcome without a direction":               {finding: undirected, severity: Critical},
		"an outcome that hardly moved":                 {finding: slight, severity: Critical},
		"the outcome gets better as well":              {finding: satisfies(5), severity: Info},
		"the return gets worse as well":                {finding: fell, severity: Critical},
		"the return got better before":                 {finding: before, severity: Critical},
		"long after the onset":                         {finding: late, severity: Critical},
		"long after the onset, but over time":          {finding: gradual, hacked: true, severity: Critical},
		"over time, but in another environment":        {finding: elsewhere, severity: Critical},
		"another version of the reward function":       {finding: otherReward, severity: Critical},
		"another version of the environment":           {finding: otherWorld, severity: Critical},
		"an environment whose version changes often":   {finding: otherBuild, hacked: true, severity: Critical},
		"other users come":                             {finding: mixed, severity: Critical},
		"a fault, which may have made both":            {before: []finding.Finding{faulty("reward", fault.Scale, 60)}, finding: worse, severity: Critical},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewTracker()
			applied(b, append(c.before, c.finding)...)
			i := b.Incidents()[0]
			if hacked := i.Cause == CauseRewardHacking; hacked != c.hacked || i.Severity != c.severity {
				t.Errorf("cause %s (%v), severity %s", i.Cause, i.Evidence, i.Severity)
			}
			if c.hacked && (i.Improvement || i.Causes[0].Cause != CauseRewardHacking) {
				t.Errorf("improvement: %t, causes %+v", i.Improvement, i.Causes)
			}
		})
	}
}

func TestEvidenceOfRewardHacking(t *testing.T) {
	f := satisfies(-5, moves("action.flattery", 9, 0), moves("observation.topic", 6, 0))
	f.Changed, f.After.Policy = []string{"policy"}, "p2"
	b := NewTracker()
	applied(b, f)
	i := b.Incidents()[0]
	want := []string{
		"mean return rose by 1.2 baseline SD (z = 6.0, 50 units), which is better",
		"mean outcome.satisfaction fell by 1 baseline SD (z = -5.0, 50 units), which is worse",
		"policy_version changed from p1 to p2 at the onset",
		"mean action.flattery rose by 1.8 baseline SD (z = 9.0, 50 units)",
	}
	if !slices.Equal(i.Evidence, want) {
		t.Errorf("evidence %q, want %q", i.Evidence, want)
	}
}

func TestEvidenceOfGradualRewardHacking(t *testing.T) {
	f := drift("outcome.satisfaction", 100)
	f.Parting = parting()
	f.Shifts = []finding.Shift{moves("return", 1, 1), moves("outcome.satisfaction", -5, 1)}
	b := NewTracker()
	applied(b, f)
	i := b.Incidents()[0]
	want := []string{
		"since unit 40, when outcome.satisfaction was best, mean return went from 0.5 to 1.25, which is better (z = 12.0, 900 units)",
		"since unit 40, when outcome.satisfaction was best, mean outcome.satisfaction went from 3.4 to 2.9, which is worse (z = -5.2, 100 units)",
	}
	if i.Cause != CauseRewardHacking || !slices.Equal(i.Evidence, want) {
		t.Errorf("cause %s, evidence %q, want %q", i.Cause, i.Evidence, want)
	}
}

// An improvement becomes critical. A cause that needs a person is not taken back by later evidence, unless that shows a
// cause that explains both movements.
func TestRewardHackingStays(t *testing.T) {
	b := NewTracker()
	better := drift("return", 95)
	better.Improvement = true
	applied(b, better, satisfies(-5))
	first := b.Incidents()[0]
	if first.Cause != CauseRewardHacking || first.Severity != Critical || first.Improvement {
		t.Errorf("cause %s, severity %s, improvement %t", first.Cause, first.Severity, first.Improvement)
	}
	later := satisfies(-1)
	later.Kind, later.At = finding.StreamUpdated, unit(140, 0)
	applied(b, later)
	if i := b.Incidents()[0]; i.Cause != CauseRewardHacking || i.Causes[0].Cause != CauseRewardHacking || i.Severity != Critical {
		t.Errorf("cause %s of %+v, severity %s", i.Cause, i.Causes, i.Severity)
	}
	later.Laws = rewardLaw()
	applied(b, later)
	if i := b.Incidents()[0]; i.Cause != CauseRewardFunction || i.Causes[0].Cause != CauseRewardFunction {
		t.Errorf("cause %s of %+v, where the laws say it is the reward function", i.Cause, i.Causes)
	}
}
