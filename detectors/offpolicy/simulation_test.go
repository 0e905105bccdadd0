package offpolicy

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// looked counts the runs in which each of these ever happened, and those that end with an estimate.
type looked struct{ missed, shown, known int }

// looks simulates runs of a baseline and units of the same policy in the same world, and computes the estimate at
// each unit.
func looks(runs, units int, by, accepted acting) (n looked) {
	for run := range runs {
		rng := rand.New(rand.NewPCG(uint64(run), 17))
		f := usual().follow(rng, 500, by, accepted)
		reference := accepted
		if reference == nil {
			reference = usual().always(&f.Reference)
		}
		truth := usual().value(reference)
		missed, shown, known := false, false, false
		for i := range units {
			f.Add(usual().decision(rng, by, accepted), int64(i))
			o := f.Estimate(1)
			if known = o.Known(); known {
				missed = missed || o.Low > truth || o.High < truth
				shown = shown || o.Shown != finding.Undecided
			}
		}
		for count, is := range map[*int]bool{&n.missed: missed, &n.shown: shown, &n.known: known} {
			if is {
				*count++
			}
		}
	}
	return n
}

// However often the estimate is computed, the interval contains the value, and no change is shown if nothing has
// changed.
func TestSimIntervalsHoldAtAllUnits(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	const runs, units = 400, 3000
	other := acting{{.6, .2, .2}, {.2, .6, .2}, {.2, .2, .6}}
	for name, c := range map[string]struct{ by, accepted acting }{
		"light weights, frequencies":          {skilled(.5), nil},
		"heavy weights up to 25, frequencies": {skilled(.96), nil},
		"light weights, target_prob":          {skilled(.5), other},
		"heavy weights up to 20, target_prob": {skilled(.98), other},
	} {
		t.Run(name, func(t *testing.T) {
			n := looks(runs, units, c.by, c.accepted)
			t.Logf("of %d runs, the interval misses in %d, something is shown in %d, and %d end with an estimate", runs, n.missed, n.shown, n.known)
			most := int(runs * (ErrorRate + 3*math.Sqrt(ErrorRate*(1-ErrorRate)/runs)))
			if n.missed > most || n.shown > most {
				t.Errorf("the interval misses in %d of %d runs, and something is shown in %d: want at most %d", n.missed, runs, n.shown, most)
			}
			if n.known < runs*8/10 {
				t.Errorf("%d of %d runs end with an estimate", n.known, runs)
			}
		})
	}
}
