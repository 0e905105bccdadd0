package alerts

import (
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
)

// A reward that no longer measures an outcome is a different reward function, unless something else has changed.
func TestAnOutcomeScattersAtTheSameReward(t *testing.T) {
	scatters := drift("outcome.rating", 100)
	scatters.Effect = finding.Effect{Quantity: signals.GivenReward, SpreadRatio: 1.4, StandardShift: .1, CurrentUnits: 80}
	quiet := moves("outcome.rating", .5, 1)
	scatters.Shifts = []finding.Shift{moves("return", 6, 1), quiet, moves("action.brief", 1, 0), moves("observation.topic", 1, 0)}
	effect := func(edit func(*finding.Effect)) finding.Finding {
		f := scatters
		edit(&f.Effect)
		return f
	}
	for name, c := range map[string]struct {
		f    finding.Finding
		want Cause
	}{
		"scatters":                  {scatters, CauseRewardFunction},
		"the outcome moved":         {but(scatters, 1, func(s *finding.Shift) { s.Z = 4 }), CauseUnknown},
		"the outcome varies":        {but(scatters, 1, func(s *finding.Shift) { s.SpreadZ = 4 }), CauseUnknown},
		"actions moved":             {but(scatters, 2, func(s *finding.Shift) { s.Z = 6 }), CauseUnknown},
		"observations moved":        {but(scatters, 3, func(s *finding.Shift) { s.Z = 6 }), CauseUnknown},
		"nothing else to compare":   {only(scatters, 0, 1), CauseUnknown},
		"without the outcome":       {only(scatters, 0, 2, 3), CauseUnknown},
		"another quantity":          {effect(func(e *finding.Effect) { e.Quantity = "mean" }), CauseUnknown},
		"few":                       {effect(func(e *finding.Effect) { e.CurrentUnits = 20 }), CauseUnknown},
		"it scatters less":          {effect(func(e *finding.Effect) { e.SpreadRatio = .7 }), CauseUnknown},
		"it is lower at the reward": {effect(func(e *finding.Effect) { e.StandardShift = -.8 }), CauseUnknown},
	} {
		v := verdict{cause: CauseUnknown, causes: []RankedCause{{Cause: CausePolicy, Weight: 1}}, evidence: []string{"unknown"}}.orSwapped(&c.f)
		if v.cause != c.want {
			t.Errorf("%s: %s, want %s", name, v.cause, c.want)
		}
		if c.want == CauseRewardFunction && (v.causes[0].Cause != c.want || !strings.HasPrefix(v.evidence[0], "outcome.rating varies more for the same reward, by a factor of 1.4 over 80 ")) {
			t.Errorf("%s: causes %v, evidence %q", name, v.causes, v.evidence)
		}
	}
	known := verdict{cause: CausePolicy}
	if v := known.orSwapped(&scatters); v.cause != CausePolicy {
		t.Errorf("a known cause becomes %s", v.cause)
	}
}

// only returns a finding with some of its shifts.
func only(f finding.Finding, which ...int) finding.Finding {
	shifts := f.Shifts
	f.Shifts = nil
	for _, k := range which {
		f.Shifts = append(f.Shifts, shifts[k])
	}
	return f
}
