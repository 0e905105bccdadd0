package main

import (
	"math"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors"
)

// powerRungs have clumps of 2/d^2 and a tail of 2 w d^2, the latter for a window of 100.
func powerRungs(passages func(d float64) float64) []rung {
	var rungs []rung
	for i := range 50 {
		d := .1 + .01*float64(i)
		rungs = append(rungs, rung{d: d, tail: 200 * d * d, passages: passages(d), clump: math.Log(2 / (d * d))})
	}
	return rungs
}

func TestFitClumpFindsAPower(t *testing.T) {
	l, err := fitClump(powerRungs(func(d float64) float64 { return 1e5 * math.Exp(-100*d*d) }))
	if err != nil {
		t.Fatal(err)
	}
	at := math.Exp(l.at + l.slope*(math.Log(.5)-l.mean))
	if math.Abs(l.slope+2) > 1e-9 || math.Abs(at-8) > 1e-9 {
		t.Errorf("slope %v, clump at .5 %v, expected -2 and 8", l.slope, at)
	}
}

func TestFitClumpNeedsTwoThresholds(t *testing.T) {
	for name, passages := range map[string]func(float64) float64{
		"none":                func(float64) float64 { return 0 },
		"one":                 func(d float64) float64 { return 1000 * max(0, 1-1000*math.Abs(d-.2)) },
		"only where too many": func(d float64) float64 { return 1000 * max(0, .14-d) },
	} {
		if l, err := fitClump(powerRungs(passages)); err == nil {
			t.Errorf("%s: %v", name, l)
		}
	}
}

func TestReadOff(t *testing.T) {
	rungs := powerRungs(func(d float64) float64 { return 1e5 * math.Exp(-100*d*d) })
	clump, err := fitClump(rungs)
	if err != nil {
		t.Fatal(err)
	}
	row, err := readOff(rungs, clump, []float64{1e4, 1e5, 1e7})
	if err != nil {
		t.Fatal(err)
	}
	for i, level := range []float64{1e4, 1e5, 1e7} {
		d := row[i]
		if got := 200*d*d + math.Log(2/(d*d)); math.Abs(got-math.Log(level)) > .03 {
			t.Errorf("ARL0 %v: d = %v has a log ARL0 of %v, expected %v", level, d, got, math.Log(level))
		}
	}
	for _, level := range []float64{1, 1e40} {
		if row, err := readOff(rungs, clump, []float64{level}); err == nil {
			t.Errorf("ARL0 %v outside the rungs gave %v", level, row)
		}
	}
}

func TestUnlucky(t *testing.T) {
	for n, want := range map[int]int{199: 2, 1000: 10, 1098: 10, 1099: 11, 5000: 50} {
		if got := (plan{baselines: n}).unlucky(); got != want {
			t.Errorf("of %d: %d, expected %d", n, got, want)
		}
	}
}

func TestRowsRiseWithTheLevelAndFallWithTheBaseline(t *testing.T) {
	p := plan{baselines: 250, length: 40_000, seed: 3}
	levels := []float64{500, 2000, 1e5}
	small, err := p.row(100, 50, levels)
	if err != nil {
		t.Fatal(err)
	}
	large, err := p.row(400, 50, levels)
	if err != nil {
		t.Fatal(err)
	}
	for i := range levels {
		if large[i] >= small[i] || i > 0 && (small[i] <= small[i-1] || large[i] <= large[i-1]) {
			t.Errorf("thresholds %v for 100 points, %v for 400", small, large)
		}
	}
}

// By first passages alone, the share of baselines below the ARL0 that the committed table promises is .01 within
// three standard errors.
func TestSimVerify(t *testing.T) {
	p := plan{baselines: 400, length: 60_000, seed: 11}
	d, ok := detectors.KSThreshold(100, 50, math.Log(1000))
	if !ok {
		t.Fatal("no threshold")
	}
	v := p.verify(100, 50, d, 1000)
	if most := .01*400 + 3*math.Sqrt(.01*.99*400); float64(v.short) > most || v.passages == 0 {
		t.Errorf("%d of 400 baselines fall short, expected at most %.0f; %d passages", v.short, most, v.passages)
	}
	if v = p.verify(100, 50, d-.05, 1000); v.short < 10 {
		t.Errorf("with a threshold that is too low only %d of 400 baselines fall short", v.short)
	}
}
