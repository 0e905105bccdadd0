package reach

import (
	"math"
	"math/rand/v2"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/rarity"
)

// halvedWithin is the number of rare values that would have been expected, without the change, by the time at which half
// their rate is to be found.
const halvedWithin = 200

// ofRare returns the smallest falls of the rate of rare values that are found, with the baseline alone, and the number of
// units from which the rate must be known so that half of it is found. Until then, half the rate cannot be told from
// that of an unlucky baseline.
func ofRare(t *rarity.Test) []finding.Reach {
	if t.Spend == 0 {
		return nil
	}
	rate := float64(t.Novel) / float64(t.Units)
	now := t.Grown(0, 0)
	out := ofRate(smallest(1, func(lost float64) finder { return rarer{now, rate * (1 - lost)} }))
	half := finding.Reach{Units: twoDigits(halvedWithin / rate), Size: math.NaN(), OfRate: true}
	for doublings := range t.Doublings + 1 {
		if findsHalf(t, doublings, half.Units) < finding.ReachProbability {
			continue
		}
		half.Size = .5
		if doublings > 0 {
			half.Known = int32(min(math.MaxInt32, t.Units<<doublings))
		}
		break
	}
	return append(out, half)
}

// findsHalf returns the probability that half the rate is found within so many units, once the units have doubled so many
// times. The number of rare values among them varies: it is one of the three of Gauss and Hermite's quadrature.
func findsHalf(t *rarity.Test, doublings, within int) float64 {
	rate := float64(t.Novel) / float64(t.Units)
	more := rate * float64(t.Units<<doublings-t.Units)
	sd := math.Sqrt(more * (1 - rate) * t.Factor)
	sum := 0.0
	for _, at := range [...]struct{ by, weight float64 }{{-math.Sqrt(3), 1. / 6}, {0, 2. / 3}, {math.Sqrt(3), 1. / 6}} {
		novel := max(0, int(math.Round(more+at.by*sd)))
		sum += at.weight * rarer{t.Grown(doublings, novel), rate / 2}.findsWithin(float64(within))
	}
	return sum
}

// rarer is a test whose rare values occur at a lower rate.
type rarer struct {
	test *rarity.Test
	rate float64
}

// rarerRuns is the number of runs of which the share that finds a change is taken. The random numbers are the same each
// time, so that a smaller rate is found no later.
const rarerRuns = 500

// findsWithin implements finder. The walks begin at 0, and the limits of the rate stay as they are, so that the change is
// found at least as often. It jumps from one rare value to the next.
func (r rarer) findsWithin(n float64) float64 {
	rng := rand.New(rand.NewPCG(1, 0))
	found := 0
	for range rarerRuns {
		if r.finds(rng, int(n)) {
			found++
		}
	}
	return float64(found) / rarerRuns
}

func (r rarer) finds(rng *rand.Rand, within int) (found bool) {
	walks := r.test.Walks
	run := rand.New(rand.NewPCG(rng.Uint64(), 0)) // of its own, or the runs of two rates would differ after the first
	for units := 0; units < within; units++ {
		usual := within // values until the next rare one
		if r.rate > 0 {
			usual = int(min(float64(usual), math.Log(1-run.Float64())/math.Log1p(-r.rate)))
		}
		usual = min(usual, within-units)
		for i := range walks {
			if w := &walks[i]; w.Param < 0 && w.Height > 0 {
				if w.Walk += usual * w.Usual; w.Walk >= w.Height {
					return true
				}
				w.Walk = max(0, w.Walk+w.Rare)
			}
		}
		units += usual
	}
	return false
}

// twoDigits rounds a number up to two digits.
func twoDigits(x float64) int {
	unit := math.Pow(10, math.Floor(math.Log10(x))-1)
	return int(math.Ceil(x/unit) * unit)
}
