package progress

import (
	"math"
	"math/rand/v2"
	"testing"
)

// rated returns the past of a reward and of an outcome that one unit in ten has, in 60 stretches of 250 units.
// Levels are in standard deviations, by the share of the past. Both depend on the quality of a unit, which depends
// on that of the previous unit.
func rated(seed uint64, carried float64, levels func(at float64) (reward, outcome float64)) (reward, outcome []Point) {
	const stretches, units = 60, 250
	rng := rand.New(rand.NewPCG(seed, 17))
	quality := 0.
	for i := range stretches {
		r, o := Point{First: int64(units * i)}, Point{First: int64(units * i)}
		for k := range units {
			quality = carried*quality + math.Sqrt(1-carried*carried)*rng.NormFloat64()
			ofReward, ofOutcome := levels((float64(i) + float64(k)/units) / stretches)
			add(&r, ofReward+.8*quality+.6*rng.NormFloat64())
			if rng.IntN(10) == 0 {
				add(&o, ofOutcome+.7*quality+.7*rng.NormFloat64())
			}
		}
		reward, outcome = append(reward, r), append(outcome, o)
	}
	return reward, outcome
}

func add(p *Point, x float64) {
	before := p.Mean
	p.Units++
	p.Mean += (x - before) / p.Units
	p.SD = math.Sqrt(((p.Units-1)*p.SD*p.SD + (x-before)*(x-p.Mean)) / p.Units)
}

// since is 0 until a share of the past, and then rises to 1 over another.
func since(at, from, over float64) float64 { return min(1, max(0, (at-from)/over)) }

func TestRewardAndOutcomePart(t *testing.T) {
	const runs = 40
	for name, c := range map[string]struct {
		carried float64
		share   float64 // least share of runs in which they part; 0 if they do not
		levels  func(at float64) (reward, outcome float64)
	}{
		"nothing changes":                    {levels: func(float64) (float64, float64) { return 0, 0 }},
		"nothing changes, long dependence":   {carried: .9, levels: func(float64) (float64, float64) { return 0, 0 }},
		"both get better":                    {levels: func(at float64) (float64, float64) { return at, at }},
		"both get worse":                     {levels: func(at float64) (float64, float64) { return -at, -at }},
		"the outcome gets worse":             {levels: func(at float64) (float64, float64) { return 0, -since(at, .3, .6) }},
		"the reward gets better":             {levels: func(at float64) (float64, float64) { return at, 0 }},
		"the outcome falls after the reward": {levels: func(at float64) (float64, float64) { return since(at, 0, .4), -since(at, .6, .4) }},
		"a step in an outcome that improves": {levels: func(at float64) (float64, float64) { return at, at - 1.4*since(at, .7, 0.001) }},
		"a step while the reward improves":   {levels: func(at float64) (float64, float64) { return at, -.7 * since(at, .8, .001) }},
		"a gradual parting":                  {share: .9, levels: func(at float64) (float64, float64) { return at, -at }},
		"a gradual parting, dependent":       {carried: .5, share: .8, levels: func(at float64) (float64, float64) { return at, -at }},
		"a parting after both have improved": {share: .9, levels: func(at float64) (float64, float64) { return at, since(at, 0, .4) - 1.5*since(at, .4, .6) }},
		"a parting in a fifth of the past":   {share: .4, levels: func(at float64) (float64, float64) { f := since(at, .8, .2); return f, -f }},
	} {
		parted := 0.
		for seed := range uint64(runs) {
			reward, outcome := rated(seed, c.carried, c.levels)
			p := Parted(reward, outcome, 1, 1)
			if p != nil {
				parted++
				if p.Reward.Z < partedZ || p.Outcome.Z > -partedZ || p.Reward.To < p.Reward.From || p.Outcome.To > p.Outcome.From || p.Outcome.Units < levelRated {
					t.Fatalf("%s: %+v", name, p)
				}
			}
			for i := range outcome {
				outcome[i].Mean *= -1
			}
			if turned := Parted(reward, outcome, 1, -1); (turned == nil) != (p == nil) {
				t.Fatalf("%s: %v, and %v if the lower side of the outcome is better", name, p, turned)
			}
		}
		t.Logf("%s: parted in %.0f of %d runs", name, parted, runs)
		if c.share > 0 && parted < c.share*runs-3*math.Sqrt(c.share*(1-c.share)*runs) {
			t.Errorf("%s: parted in %.0f of %d runs, want a share of %v", name, parted, runs, c.share)
		}
		if most := .02 * runs; c.share == 0 && parted > most+3*math.Sqrt(most) {
			t.Errorf("%s: parted in %.0f of %d runs", name, parted, runs)
		}
	}
}

func TestPartedFromWhenTheOutcomeWasBest(t *testing.T) {
	reward, outcome := rated(3, 0, func(at float64) (float64, float64) {
		return since(at, .5, .5), since(at, 0, .3) - 2*since(at, .5, .5)
	})
	p := Parted(reward, outcome, 1, 1)
	if p == nil || p.Since < 15_000*3/10 || p.Since > 15_000*6/10 {
		t.Errorf("parted %+v, where the outcome was best from unit 4,500 to 7,500", p)
	}
}

func TestNothingPartsWithoutEnoughUnits(t *testing.T) {
	reward, outcome := rated(4, 0, func(at float64) (float64, float64) { return 9 * at, -9 * at })
	if p := Parted(reward[:3], outcome[:3], 1, 1); p != nil {
		t.Errorf("%d units part: %+v", 750, p)
	}
	if p := Parted(reward, make([]Point, len(reward)), 1, 1); p != nil {
		t.Errorf("parted without an outcome: %+v", p)
	}
	if p := Parted(make([]Point, len(reward)), outcome, 1, 1); p != nil {
		t.Errorf("parted without a reward: %+v", p)
	}
	if p := Parted(nil, nil, 1, 1); p != nil {
		t.Errorf("parted without a past: %+v", p)
	}
	for i := range outcome {
		outcome[i], reward[i] = Point{Units: 50, Mean: 1}, Point{Units: 250, Mean: 1}
	}
	if p := Parted(reward, outcome, 1, 1); p != nil {
		t.Errorf("constants part: %+v", p)
	}
}
