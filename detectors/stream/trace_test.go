package stream

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors"
)

// A trace returns the most recent units: exactly or, for older units of a trace that follows ranks, with a value of the
// same rank. A restored trace returns the same.
func TestTraceKnowsTheLastUnits(t *testing.T) {
	many := make([]float64, 300)
	for i := range many {
		many[i] = float64(i) / 64
	}
	for name, sample := range map[string][]float64{
		"exact": nil, "many points": many, "few points": {0, 1, 1, 2, 5}, "points on both sides": {1.5, 2.5, math.Inf(1)}, "one point": {2},
	} {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(2, 2))
			var ranks *detectors.Ranks
			if sample != nil {
				ranks = detectors.NewRanks(sample)
			}
			tr, all, ordinal := newTrace(ranks), map[int64]float64{}, int64(17)
			for i := range 3000 {
				gap := int64(rng.IntN(4))
				if i%900 == 899 {
					gap += 400 * int64(rng.IntN(4))
				}
				ordinal += 1 + gap
				all[ordinal] = rng.Float64() * float64(rng.IntN(7))
				if rng.IntN(2) == 0 {
					all[ordinal] = math.Round(all[ordinal])
				}
				tr.Add(all[ordinal], ordinal)
				if i%101 == 0 {
					w := tr.wire()
					whole := w.live()
					var err error
					if tr, err = whole.following(ranks); err != nil {
						t.Fatal(err)
					}
				}
				knows(t, &tr, all, ordinal, ordinal-int64(rng.IntN(700)))
			}
		})
	}
}

// knows checks what a trace has recorded since an ordinal.
func knows(t *testing.T, tr *Trace, all map[int64]float64, last, since int64) {
	t.Helper()
	var want []int64
	for o := max(since, last-TrailUnits+1); o <= last; o++ {
		if _, there := all[o]; there {
			want = append(want, o)
		}
	}
	values, ordinals := tr.Since(since)
	if !slices.Equal(ordinals, want) {
		t.Fatalf("values of units %v since %d, want %v", ordinals, since, want)
	}
	for i, o := range ordinals {
		exact := tr.ranks == nil || i >= len(values)-CurrentUnits
		if exact && values[i] != all[o] || !exact && tr.ranks.Slot(values[i]) != tr.ranks.Slot(all[o]) {
			t.Fatalf("unit %d, number %d of %d since %d, has %v, want %v", o, i, len(values), since, values[i], all[o])
		}
	}
	if newest := tr.appendNewest(nil, since); !slices.Equal(newest, values[max(0, len(values)-CurrentUnits):]) {
		t.Fatalf("%d newest values since unit %d, which has %d", len(newest), since, len(values))
	}
}

// If a baseline has more points than two bytes can distinguish, its traces are exact.
func TestTraceOfALargeBaselineIsExact(t *testing.T) {
	sample := make([]float64, 40_000)
	for i := range sample {
		sample[i] = float64(i)
	}
	tr := newTrace(detectors.NewRanks(sample))
	for o := range int64(600) {
		tr.Add(float64(o)+.25, o)
	}
	if values, _ := tr.Since(0); len(values) != TrailUnits || values[0] != 88.25 {
		t.Errorf("%d values, the first %v", len(values), values[0])
	}
}
