package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors"
)

func TestExceedanceByHand(t *testing.T) {
	for name, c := range map[string]struct {
		baseline []float64
		window   int
		d, want  float64
	}{
		"one value against one is always apart":          {[]float64{.4}, 1, 1, 1},
		"between two points it is half way":              {[]float64{.25, .75}, 1, .5, 1},
		"outside of them all the way":                    {[]float64{.25, .75}, 1, .6, .5},
		"two on the same side of a point":                {[]float64{.3}, 2, .6, .09 + .49},
		"a threshold that D can take counts as reached":  {[]float64{.3}, 2, .5, 1},
		"two values below all points, or above":          {[]float64{.2, .9}, 2, 1, .04 + .01},
		"three values, all before the first of the two ": {[]float64{.5, .6}, 3, 1, .125 + .064},
	} {
		t.Run(name, func(t *testing.T) {
			if got := exceedance(c.baseline, c.window, c.d); math.Abs(got-c.want) > 1e-12 {
				t.Errorf("%v, expected %v", got, c.want)
			}
		})
	}
}

// The probability is compared with the share of windows for which the detector itself reports it, at values that D
// can take and at others.
func TestSimExceedanceAgainstTheDetector(t *testing.T) {
	const windows = 30_000
	for _, c := range []struct{ m, window int }{{10, 5}, {30, 20}, {21, 50}, {150, 40}} {
		t.Run(fmt.Sprintf("m=%d window %d", c.m, c.window), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(c.m), uint64(c.window)))
			baseline := plan{seed: 5}.baseline(c.m, c.window, 0)
			reached := make([]float64, windows)
			for i := range reached {
				reached[i], _ = fullWindow(t, baseline, c.window, r).Statistic()
			}
			slices.Sort(reached)
			for _, share := range []float64{.3, .8, .95, .995} {
				taken := reached[int(share*windows)]
				for _, d := range []float64{taken, taken + .3/float64(c.m*c.window)} {
					first, _ := slices.BinarySearch(reached, d)
					got, want := exceedance(baseline, c.window, d), float64(windows-first)/windows
					if math.Abs(got-want) > 4*math.Sqrt(want*(1-want)/windows) {
						t.Errorf("d = %v: chance %v, share of windows %v", d, got, want)
					}
				}
			}
		})
	}
}

func fullWindow(t *testing.T, baseline []float64, window int, r *rand.Rand) *detectors.SlidingKS {
	t.Helper()
	k, err := detectors.NewSlidingKS(baseline, window)
	if err != nil {
		t.Fatal(err)
	}
	for range window {
		k.Add(r.Float64())
	}
	return k
}
