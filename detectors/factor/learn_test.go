package factor

import (
	"math"
	"testing"
)

var nan = math.NaN()

// The policy of a learner is named where its law stands out and nothing else can have moved.
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
