package factor

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// swing returns units of a pendulum without noise. A law can only approximate it. broken is the share of steps that push
// right regardless of the angle.
func swing(seed uint64, n int, broken, gravity float64) []Told {
	rng := rand.New(rand.NewPCG(seed, 9))
	units := make([]Told, n)
	for i := range units {
		s := &ingest.Steps{Names: []string{"x", "y", "speed"}}
		angle, speed := .5*rng.NormFloat64(), .3*rng.NormFloat64()
		for t := range 40 {
			a := 0
			if rng.Float64() < broken || angle+.5*speed+.7*rng.NormFloat64() < 0 {
				a = 1
			}
			s.At, s.Actions = append(s.At, int32(t)), append(s.Actions, int32(a))
			s.Rows = append(s.Rows, float32(math.Cos(angle)), float32(math.Sin(angle)), float32(speed), float32(math.Cos(angle)+.1*rng.NormFloat64()))
			speed += .1*(2*float64(a)-1) + gravity*math.Sin(angle)
			angle += speed * .5
		}
		units[i] = Told{s, []ingest.Count{{Name: "left", N: 20}, {Name: "right", N: 20}}, true, rng.Uint64()}
	}
	return units
}

// A policy that no longer pushes against the angle moves the dynamics a little, because their law is not exact. Weaker or
// stronger gravity moves them much further, even beside another policy.
func TestAnotherPolicyMovesDynamicsSlightly(t *testing.T) {
	var base Laws
	base.Freeze(swing(1, 400, 0, -.1), 0, defaultBytes)
	for name, c := range map[string]struct {
		broken, gravity float64
		slight          bool
		want            Cause
	}{
		"nothing":                     {0, -.1, false, Unknown},
		"a broken policy":             {.6, -.1, true, ByPolicy},
		"more gravity":                {0, -.12, false, ByEnvironment},
		"more gravity, worse policy":  {.3, -.15, false, ByEnvironment},
		"less gravity, broken policy": {.6, -.05, false, ByEnvironment},
	} {
		l := base
		for i, u := range swing(2, 100, c.broken, c.gravity) {
			observe(&l, u, int64(i))
		}
		v := l.Judge(0)
		v.Learn()
		if v.Slight != c.slight || v.Cause != c.want {
			t.Errorf("%s: slight %v, %s, want %v, %s: %+v", name, v.Slight, v.Cause, c.slight, c.want, v.Factors)
		}
	}
}
