package reach

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/rarity"
)

// foundPlainly is the textbook form of findsWithin: each run draws its own numbers and judges one rare value after
// the other.
func foundPlainly(test *rarity.Test, rate float64, within int) float64 {
	rng, found := rand.New(rand.NewPCG(1, 0)), 0
	for range rarerRuns {
		t, run := *test, rand.New(rand.NewPCG(rng.Uint64(), 0))
		for units, over := 0, false; units < within && !over; units++ {
			usual := within
			if rate > 0 {
				usual = int(min(float64(usual), math.Log(1-run.Float64())/math.Log1p(-rate)))
			}
			usual = min(usual, within-units)
			for i := range t.Walks {
				if w := &t.Walks[i]; w.Param < 0 && w.Height > 0 {
					over = over || w.Walk+usual*w.Usual >= w.Height
					w.Walk = max(0, w.Walk+usual*w.Usual+w.Rare)
				}
			}
			if over {
				found++
			}
			units += usual
		}
	}
	return float64(found) / rarerRuns
}

// armed returns a test armed on a baseline of 500 units, of which the given number has a rare value.
func armed(rare int) *rarity.Test {
	sample := make([]float64, 500)
	for i := range rare {
		sample[i*500/rare] = 1
	}
	test := rarity.New(detectors.NewRanks(sample), 1)
	test.Arm(1. / 20_000)
	return test
}

func TestRarerValuesAreFoundAsOneByOne(t *testing.T) {
	shared, seen := newRuns(), map[bool]int{}
	for _, rare := range []int{6, 25, 100, 160} {
		test := armed(rare)
		for doublings := range 3 {
			grown := test.Grown(doublings, rare<<doublings-rare)
			for _, lost := range []float64{0, .1, .3, .5, .8, 1} {
				rate := float64(rare) / 500 * (1 - lost)
				r := newRarer(grown, rate, shared)
				for _, within := range []int{20, 137, 2000} {
					want := foundPlainly(grown, rate, within)
					got, finds := r.findsWithin(float64(within)), r.finds(float64(within))
					if got != want || finds != (want >= finding.ReachProbability) {
						t.Errorf("%d of 500, doubled %d times, %v lost, %d units: %v and %v, want %v", rare, doublings, lost, within, got, finds, want)
					}
					seen[finds]++
				}
			}
		}
	}
	if seen[true] < 20 || seen[false] < 20 {
		t.Errorf("too few cases of each kind: %v", seen)
	}
}

// Concurrent calibrations use the same numbers. Each finds what it finds alone, even one that needs more numbers,
// and leaves the shared ones as they are.
func TestCalibrationsShareNumbers(t *testing.T) {
	rates := []int{6, 25, 100, 160}
	needy := func(of *runs) float64 { return newRarer(armed(160), .6, of).findsWithin(2000) }
	var want [4]string
	for i, rare := range rates {
		want[i] = fmt.Sprint(ofRare(armed(rare), 1), needy(newRuns()))
	}
	before := *newRuns()
	var all sync.WaitGroup
	for n := range 2 * len(rates) {
		i := n % len(rates)
		all.Go(func() {
			if got := fmt.Sprint(ofRare(armed(rates[i]), 1), needy(newRuns())); got != want[i] {
				t.Errorf("%d of 500 beside others: %s, alone %s", rates[i], got, want[i])
			}
		})
	}
	all.Wait()
	if !reflect.DeepEqual(before, *newRuns()) {
		t.Error("a calibration has changed the shared numbers")
	}
	own := newRuns()
	needy(own)
	if longest := slices.MaxFunc(own.own[:], func(a, b []float64) int { return len(a) - len(b) }); len(longest) == 0 {
		t.Error("no run needed more than the shared numbers")
	}
}
