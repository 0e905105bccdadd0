package factor

import (
	"math"
	"testing"
)

var nan = math.NaN()

// The policy of a learner is the cause if its law stands out and nothing else can have moved.
func TestWhatIsLeftIsThePolicy(t *testing.T) {
	left := func(edit func(*Verdict)) *Verdict {
		v := &Verdict{Episodes: 50}
		for f := range v.Factors {
			v.Factors[f].Support, v.Factors[f].Foremost.Z = .8, 2
		}
		v.Factors[Policy].Foremost.Z = -5
		edit(v)
		return v
	}
	for name, c := range map[string]struct {
		edit func(*Verdict)
		want Cause
	}{
		"nothing else has moved":      {func(*Verdict) {}, ByPolicy},
		"the policy is on new ground": {func(v *Verdict) { v.Factors[Policy].Support = .2 }, ByPolicy},
		"there are no dynamics":       {func(v *Verdict) { v.Factors[Dynamics] = Movement{Support: nan} }, ByPolicy},
		"the policy has not moved":    {func(v *Verdict) { v.Factors[Policy].Foremost.Z = 3.9 }, Unknown},
		"too few episodes":            {func(v *Verdict) { v.Episodes = 49 }, Unknown},
		"the dynamics may have moved": {func(v *Verdict) { v.Factors[Dynamics].Foremost.Z = -3 }, Unknown},
		"the starts may have moved":   {func(v *Verdict) { v.Factors[Start].Foremost.Z = 3 }, Unknown},
		"the dynamics are not judged": {func(v *Verdict) { v.Factors[Dynamics].Support = .4 }, Unknown},
		"the rewards are not judged":  {func(v *Verdict) { v.Factors[Reward].Support = .4 }, Unknown},
		"the laws tell another cause": {func(v *Verdict) { v.Cause = ByReward }, ByReward},
		"laws have moved, but which?": {func(v *Verdict) { v.Factors[Reward].Moved = true }, Unknown},
	} {
		v := left(c.edit)
		v.Learn()
		if !v.Learns || v.Cause != c.want || v.Factors[Policy].Moved != (c.want == ByPolicy) {
			t.Errorf("%s: %s, want %s: %+v", name, v.Cause, c.want, v.Factors)
		}
	}
}

// The policy of a learner follows its environment. If the dynamics have moved, it adapts to them; if they only stand
// out, the policy is not the cause unless its law has moved much further.
func TestALearnerThatFollowsIsNotTheCause(t *testing.T) {
	moved := Shift{Z: 6, Effect: .7}
	for name, c := range map[string]struct {
		edit func(v *Verdict, policy, dynamics *Movement)
		want Cause
	}{
		"unusual actions":               {func(_ *Verdict, _, _ *Movement) {}, ByPolicy},
		"it likes an action more":       {func(_ *Verdict, policy, _ *Movement) { policy.Foremost.Coordinate.part = partPreference }, Unknown},
		"the dynamics move a little":    {func(_ *Verdict, _, dynamics *Movement) { dynamics.Foremost = Shift{Z: 3.7, Effect: .41} }, Unknown},
		"they move in few episodes":     {func(_ *Verdict, _, dynamics *Movement) { dynamics.Foremost = Shift{Z: 2.9, Effect: .6} }, Unknown},
		"they move far less":            {func(_ *Verdict, _, dynamics *Movement) { dynamics.Foremost = Shift{Z: 3.7, Effect: -.2} }, ByPolicy},
		"they move no more than chance": {func(_ *Verdict, _, dynamics *Movement) { dynamics.Foremost = Shift{Z: 2.9, Effect: .45} }, ByPolicy},
		"they have moved":               {func(_ *Verdict, _, dynamics *Movement) { dynamics.Moved, dynamics.Foremost = true, moved }, ByEnvironment},
		"they have moved slightly": {func(v *Verdict, _, dynamics *Movement) {
			dynamics.Moved, dynamics.Foremost, v.Slight = true, moved, true
		}, ByPolicy},
		"on new ground": {func(_ *Verdict, _, dynamics *Movement) {
			dynamics.Moved, dynamics.Foremost, dynamics.Support = true, moved, .6
		}, Unknown},
		"on new ground, but far": {func(_ *Verdict, policy, dynamics *Movement) {
			policy.Foremost.Effect, dynamics.Moved, dynamics.Foremost, dynamics.Support = 4, true, Shift{Z: 9, Effect: 1.7}, .4
		}, ByEnvironment},
		"far where hardly any step is in support": {func(_ *Verdict, policy, dynamics *Movement) {
			policy.Foremost.Effect, dynamics.Moved, dynamics.Foremost, dynamics.Support = 4, true, Shift{Z: 9, Effect: 1.7}, .2
		}, Unknown},
		"a broken policy goes elsewhere": {func(_ *Verdict, policy, dynamics *Movement) {
			policy.Foremost.Effect, dynamics.Moved, dynamics.Foremost = 6, true, moved
		}, ByPolicy},
		"a broken policy likes an action": {func(_ *Verdict, policy, _ *Movement) {
			policy.Foremost = Shift{Z: 12, Effect: 6, Coordinate: Coordinate{part: partPreference}}
		}, ByPolicy},
		"rewards have moved as well": {func(v *Verdict, _, dynamics *Movement) {
			v.Cause, v.Factors[Reward] = Unknown, Movement{Moved: true, Foremost: Shift{Z: 7, Effect: .75}}
			dynamics.Moved, dynamics.Foremost = true, moved
		}, Unknown},
	} {
		v := &Verdict{Episodes: 100, Cause: ByPolicy}
		policy, dynamics := &v.Factors[Policy], &v.Factors[Dynamics]
		*policy = Movement{Moved: true, Foremost: Shift{Z: 6, Effect: .8}, Support: .9}
		dynamics.Support = .9
		c.edit(v, policy, dynamics)
		if v.Learn(); v.Cause != c.want {
			t.Errorf("%s: %s, want %s", name, v.Cause, c.want)
		}
	}
}
