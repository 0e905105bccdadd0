package factor

import (
	"math"
	"math/rand/v2"
	"testing"
)

// An episode has one start, whose largest score is large by chance. The score of the component that preceding episodes
// choose is not: its mean is 0 until a component moves, and then it is the movement of that component.
func TestTheStartThatMovedMost(t *testing.T) {
	const episodes, k = 20_000, 6
	for _, c := range []struct{ shift, least, most float64 }{
		{0, 0, 0},
		{.5, .35, .5}, // other components lead now and then
		{-1, .95, 1},
		{2, 2, 2},
	} {
		rng := rand.New(rand.NewPCG(9, uint64(k)))
		var before []Scored
		mean := 0.
		for i := range episodes + leadUnits {
			u := Scored{Mean: make([]float32, k+1)} // the last one is not a start
			for n := range u.Mean {
				u.Mean[n] = float32(rng.NormFloat64())
			}
			u.Mean[2] += float32(c.shift)
			u.Mean[k] += 9
			s := lead(before, k, &u)
			before = append(before[max(0, len(before)-leadUnits):], u)
			if i < leadUnits {
				continue
			}
			if s.N != 1 {
				t.Fatalf("%d scores", s.N)
			}
			mean += s.Mean / episodes
		}
		if within := 4 / math.Sqrt(episodes); mean < c.least-within || mean > c.most+within {
			t.Errorf("shift %v: mean %.3f, want %v to %v", c.shift, mean, c.least, c.most)
		}
	}
}

// Without preceding units, without scores, and with a single component, nothing leads.
func TestNoStartLeads(t *testing.T) {
	unknown, one := float32(math.NaN()), []Scored{{Mean: []float32{1, -2}}}
	for name, s := range map[string]Scores{
		"no units":       lead(nil, 2, &Scored{Mean: []float32{3, 4}}),
		"one component":  lead(one, 1, &Scored{Mean: []float32{3, 4}}),
		"no start":       lead(one, 2, &Scored{Mean: []float32{3, unknown}}),
		"only unscored":  lead([]Scored{{Mean: []float32{unknown, unknown}}}, 2, &Scored{Mean: []float32{3, 4}}),
		"other episodes": lead([]Scored{{}}, 2, &Scored{Mean: []float32{3, 4}}),
		"no coordinates": lead(one, 2, &Scored{}),
	} {
		if s.N != 0 {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if s := lead(one, 2, &Scored{Mean: []float32{3, 4}}); s.N != 1 || s.Mean != -4 {
		t.Errorf("%+v, want the second component, downwards", s)
	}
}
