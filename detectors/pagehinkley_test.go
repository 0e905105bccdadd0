package detectors

import (
	"math"
	"math/rand/v2"
	"testing"
)

// plainPageHinkley is the test as its formulas say, with a mean that is summed again for each value.
type plainPageHinkley struct {
	xs                        []float64
	up, down, lowest, highest float64
}

// add returns the larger statistic in units of the threshold.
func (p *plainPageHinkley) add(x float64) float64 {
	p.xs = append(p.xs, x)
	sum := 0.0
	for _, v := range p.xs {
		sum += v
	}
	distance := x - sum/float64(len(p.xs))
	p.up = .9999*p.up + distance - .005
	p.down = .9999*p.down + distance + .005
	if len(p.xs) == 1 {
		p.lowest, p.highest = p.up, p.down
	}
	p.lowest, p.highest = math.Min(p.lowest, p.up), math.Max(p.highest, p.down)
	if len(p.xs) < 30 {
		return 0
	}
	return math.Max(p.up-p.lowest, p.highest-p.down) / 50
}

func TestPageHinkleyAgreesWithItsFormula(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 42))
	alarms := 0
	for name, xs := range map[string][]float64{
		"wandering": wandering(rng, 4000, -2),
		"many ties": tied(rng, 4000),
		"0/1":       zeroOne(rng, 4000),
		"one large": append([]float64{0, 1e6}, make([]float64, 100)...),
	} {
		p, plain := NewPageHinkley(), plainPageHinkley{}
		for i, x := range xs {
			got, want := p.Add(x), plain.add(x)
			if got != (want > 1) || math.Abs(p.Score()-want) > 1e-9*(1+want) {
				t.Fatalf("%s, value %d: drift %v with a score of %v, want %v", name, i, got, p.Score(), want)
			}
			if got {
				alarms++
				plain = plainPageHinkley{}
			}
		}
	}
	if alarms < 5 {
		t.Errorf("%d alarms say little", alarms)
	}
}

func TestPageHinkleyRestoresToTheSameBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 42))
	p := NewPageHinkley()
	for i, x := range wandering(rng, 3000, 0) {
		if i%89 == 0 {
			var restored PageHinkley
			throughGob(t, p, &restored)
			if restored != *p {
				t.Fatalf("after %d values: %+v, restored %+v", i, *p, restored)
			}
			p = &restored
		}
		p.Add(x)
	}
}

func TestPageHinkleyIgnoresWhatIsNoNumber(t *testing.T) {
	p := NewPageHinkley()
	p.Add(2)
	before := *p
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		p.Add(x)
	}
	if *p != before {
		t.Errorf("%+v, want %+v", *p, before)
	}
}

func TestPageHinkleyAllocatesNothing(t *testing.T) {
	p := NewPageHinkley()
	x := 0.0
	if n := testing.AllocsPerRun(1000, func() { p.Add(x); x += .1 }); n != 0 {
		t.Errorf("%v allocations a value", n)
	}
}
