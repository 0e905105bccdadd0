package alerts

import (
	"slices"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/fault"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
)

// moves is the shift of the main quantity of a signal by z standard errors.
func moves(signal string, z float64, better int) finding.Shift {
	return finding.Shift{
		Signal: signal, Quantity: signals.MainQuantity(signal), StandardShift: z / 5, Z: z, StandardError: .2, Units: 50, Better: better,
	}
}

// improves is a finding of a return that got better, with what else moved.
func improves(others ...finding.Shift) finding.Finding {
	f := drift("return", 100)
	f.Improvement = true
	f.Shifts = append([]finding.Shift{moves("return", 6, 1)}, others...)
	return f
}

func TestRewardHacking(t *testing.T) {
	worse := improves(moves("outcome.satisfaction", -5, 1))
	provisional, otherReward, otherWorld, fell := worse, worse, worse, worse
	provisional.Provisional = true
	otherReward.Changed, otherReward.After.Reward = []string{"reward_function"}, "r8"
	otherWorld.Changed, otherWorld.After.Env = []string{"environment"}, "42"
	fell.Shifts = []finding.Shift{moves("return", -6, 1), worse.Shifts[1]}
	cost := improves(moves("outcome.cost", 5, -1))
	residual := improves(moves("action.flattery", 9, 0), moves("outcome.satisfaction", 0, 1))
	residual.Signal, residual.Improvement, residual.Changed, residual.After.Policy = "outcome.satisfaction", false, []string{"policy"}, "p2"
	residual.Effect = finding.Effect{Quantity: signals.GivenReward, MeanShift: -.4}
	unchanged := residual
	unchanged.Changed, unchanged.After = nil, unchanged.Before
	unchanged.Shifts = []finding.Shift{residual.Shifts[0], residual.Shifts[2]}
	for name, c := range map[string]struct {
		before   []finding.Finding
		finding  finding.Finding
		hacked   bool
		severity Severity
	}{
		"an outcome gets worse":                          {finding: worse, hacked: true, severity: Critical},
		"a cost grows":                                   {finding: cost, hacked: true, severity: Critical},
		"on a provisional baseline":                      {finding: provisional, hacked: true, severity: Info},
		"an outcome does not follow, by a new policy":    {finding: residual, hacked: true, severity: Critical},
		"an outcome does not follow, by nothing known":   {finding: unchanged, severity: Critical},
		"an outcome without a direction":                 {finding: improves(moves("outcome.clicks", -5, 0)), severity: Info},
		"an outcome that hardly moved":                   {finding: improves(moves("outcome.clicks", -2, 1)), severity: Info},
		"the outcome gets better as well":                {finding: improves(moves("outcome.clicks", 5, 1)), severity: Info},
		"the return gets worse as well":                  {finding: fell, severity: Info},
		"another version of the reward function":         {finding: otherReward, severity: Info},
		"another version of the environment":             {finding: otherWorld, severity: Info},
		"a fault, which may have made either of the two": {before: []finding.Finding{faulty("reward", fault.Scale, 60)}, finding: worse, severity: Info},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewTracker()
			applied(b, append(c.before, c.finding)...)
			i := b.Incidents()[0]
			if hacked := i.Cause == CauseRewardHacking; hacked != c.hacked || i.Severity != c.severity {
				t.Errorf("cause %s (%v), severity %s", i.Cause, i.Evidence, i.Severity)
			}
			if i.Improvement != (c.severity == Info && c.finding.Improvement) {
				t.Errorf("improvement: %t", i.Improvement)
			}
		})
	}
}

func TestEvidenceOfRewardHacking(t *testing.T) {
	b := NewTracker()
	applied(b, improves(moves("outcome.satisfaction", -5, 1)))
	i := b.Incidents()[0]
	want := []string{
		"mean return rose by 1.2 baseline SD (z = 6.0, 50 units), which is better",
		"mean outcome.satisfaction fell by 1 baseline SD (z = -5.0, 50 units), which is worse",
		"the telemetry contains no actions or observations to compare with",
	}
	if !slices.Equal(i.Evidence, want) {
		t.Errorf("evidence %q, want %q", i.Evidence, want)
	}
	if first := i.Causes[0]; first.Cause != CauseRewardHacking || first.Weight != clearWeight {
		t.Errorf("the first of the causes is %+v", first)
	}
}

// What a person has to look at is not taken back by what is seen later.
func TestRewardHackingStays(t *testing.T) {
	b := NewTracker()
	later := drift("return", 140)
	later.Kind, later.Shifts = finding.StreamUpdated, []finding.Shift{moves("return", 6, 1)}
	applied(b, improves(moves("outcome.satisfaction", -5, 1)), later)
	if i := b.Incidents()[0]; i.Cause != CauseRewardHacking || i.Severity != Critical {
		t.Errorf("cause %s, severity %s", i.Cause, i.Severity)
	}
}
