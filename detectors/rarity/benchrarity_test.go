//go:build benchdetection

package rarity

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors"
)

// heldOver returns the mean number of units to the first false alarm of each walk on a baseline of 500 units with
// the given number of rare ones, as a multiple of what it may spend, over courses of later units at a rate; the
// rates are computed, not simulated.
func heldOver(rng *rand.Rand, rare int, rate, units float64, courses int, known map[Test][3]float64) (ratios [3]float64) {
	for range courses {
		t := *New(detectors.NewRanks(rareSample(500, rare)), 1)
		still := [3]float64{1, 1, 1} // probabilities of no alarm so far
		for more := true; more; {
			rates, have := known[t]
			if !have {
				at := t
				t.Arm(1 / units)
				rates = t.falseAlarmRates(rate)
				t = at
				known[t] = rates
			}
			n := float64(t.Units)
			more = t.grow(rng, rate)
			for i, r := range rates {
				r = max(r, 1e-3/units)
				if more {
					ratios[i] += still[i] * -math.Expm1(-r*n) / r / units / float64(courses)
					still[i] *= math.Exp(-r * n)
				} else {
					ratios[i] += still[i] / r / units / float64(courses)
				}
			}
		}
	}
	return ratios
}

// falseAlarmRates returns the false alarm rates of the walks at a rate.
func (t *Test) falseAlarmRates(p float64) (rates [3]float64) {
	for i := range t.Walks {
		alone := *t
		for k := range alone.Walks {
			if k != i {
				alone.Walks[k].Height = 0
			}
		}
		rates[i] = alone.FalseAlarmRate(p)
	}
	return rates
}

// grow collects as many units as there are and computes the limits again, as refine does. It reports whether they
// may still change.
func (t *Test) grow(rng *rand.Rand, rate float64) bool {
	if !t.Collects() {
		return false
	}
	grown := *t
	for grown.More, grown.MoreNovel = 0, 0; !grown.due(); grown.More++ {
		if rng.Float64() < rate {
			grown.MoreNovel++
		}
	}
	units, rare := t.Units+grown.More, t.Novel+grown.MoreNovel
	if t.strays(rare, units) {
		t.More++ // here the stretches in vain
		return t.More < 10
	}
	t.More = 0
	t.Units, t.Novel = units, rare
	t.Doublings--
	t.limit()
	return true
}

// How many baselines keep the budget of each walk with the levels that its limits have.
func TestBenchRareLevels(*testing.T) {
	const baselines, courses = 400, 40
	fmt.Printf("\n### Limits of rare rates: baselines of 500 units that keep a walk's share of the budget, %d baselines, "+
		"%d courses each\n\n| rate | share of the budget | to nothing | to half | to double |\n| --- | --- | --- | --- | --- |\n",
		baselines, courses)
	for _, units := range []float64{20_000, 825_000} {
		for i, rate := range []float64{.012, .02, .03, .038, .047, .08, .15, .3} {
			rng := rand.New(rand.NewPCG(65, uint64(i)))
			known, kept := map[Test][3]float64{}, [3]float64{}
			for b := 0; b < baselines; {
				rare := 0
				for range 500 {
					if rng.Float64() < rate {
						rare++
					}
				}
				if rare < LeastRare || float64(rare) > MostShare*500 {
					continue // a fall of a larger share is judged by counts
				}
				b++
				for k, ratio := range heldOver(rng, rare, rate, units, courses, known) {
					if ratio >= 1 {
						kept[k] += 1. / baselines
					}
				}
			}
			fmt.Printf("| %.1f%% | one in %.0f |", 100*rate, units)
			for _, share := range kept {
				fmt.Printf(" %.2f ± %.2f |", share, math.Sqrt(share*(1-share)/baselines))
			}
			fmt.Println()
		}
	}
}
