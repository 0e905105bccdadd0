package bank

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/baseline"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// A warm-up whose mix of actions changes steadily is refused, even before any freeze.
func TestActionMixThatMovesOnIsRefused(t *testing.T) {
	const units = 500
	for seed := range uint64(10) {
		a := newAgent(400 + seed)
		g := a.gathered(0)
		for i := range units {
			part := .2 * float64(i) / units
			a.shares = []float64{.5 - part, .3 + part, .2}
			g.gather(a.unit(), time.Time{}, true)
		}
		if !g.refuse() || !strings.HasPrefix(g.Warmup.Trending, "action share of") {
			t.Errorf("seed %d: accepted, or refused for %q", seed, g.Warmup.Trending)
			continue
		}
		if g.Warmup.Units != units/2 {
			t.Errorf("seed %d: %d units are left", seed, g.Warmup.Units)
		}
		if s := g.stream("reward"); !strings.Contains(g.missing(s), "was not stationary over the last 500 episodes; collecting a new baseline, 250 of 500") {
			t.Errorf("seed %d: missing %q", seed, g.missing(s))
		}
	}
}

// At most one in a hundred warm-ups without a change is refused, fewer if quantities depend on each other.
func TestSimHealthyWarmUpsAreAccepted(t *testing.T) {
	const runs = 300
	refused := 0
	for seed := range uint64(runs) {
		if newAgent(500 + seed).gathered(250).refuse() {
			refused++
		}
	}
	t.Logf("%d of %d refused", refused, runs)
	if most := refusedShare*runs + 3*math.Sqrt(runs*refusedShare*(1-refusedShare)); float64(refused) > most {
		t.Errorf("%d of %d healthy warm-ups were refused, want %.1f at most", refused, runs, most)
	}
}

// A recorded baseline whose mean rewards follow a random walk has no promise: it has a trend, or its rewards depend on
// each other too much to be judged. Only some can be distinguished from equally dependent episodes with a constant
// mean, of which the test for a trend refuses one in a hundred.
func TestSimWanderingMeansAreNoBaseline(t *testing.T) {
	const seeds, units = 20, 500
	sd := sdOf(newSimulation(laws()[0], 1600, 0).sample(20_000), "reward", "mean")
	for _, c := range []struct {
		name          string
		step          float64 // of the random walk, in standard deviations of an episode's mean
		keeps         float64 // lag-1 correlation of a level with 19 times the variance of an episode's own mean
		moving, still int     // minimum and maximum number of baselines with a trend
		kept          int     // maximum number of promises that are kept
	}{
		{"random walk", .1, 0, 6, seeds, 0},
		{"AR(1)", 0, .84, 0, 1, 0}, // lag-1 correlation .8 of the means: reduced confidence
		{"independent", 0, 0, 0, 1, seeds},
	} {
		moving, kept := 0, 0
		for seed := range uint64(seeds) {
			s := newSimulation(laws()[0], 1601, seed)
			if c.keeps > 0 {
				s.keeps, s.wander = c.keeps, sd*math.Sqrt(19)
				s.level = s.wander * s.rng.NormFloat64()
			}
			p := newBank(episodes(2000))
			for range units {
				s.shift += c.step * sd * s.rng.NormFloat64()
				p.Learn(s.unit())
			}
			p.Accept(time.Time{})
			promise := &p.groups[0].Promise
			if promise.Confidence == finding.ConfidenceKept {
				kept++
			}
			if slices.ContainsFunc(promise.Caveats, baseline.Moves) {
				moving++
				if promise.Confidence != finding.ConfidenceUnconfirmed {
					t.Errorf("%s: a promise that is %q on %q", c.name, promise.Confidence, promise.Caveats)
				}
			}
		}
		t.Logf("%s: %d of %d have a trend, %d promises are kept", c.name, moving, seeds, kept)
		if moving < c.moving || moving > c.still || kept > c.kept {
			t.Errorf("%s: %d of %d baselines have a trend, want %d to %d; %d promises are kept, want at most %d",
				c.name, moving, seeds, c.moving, c.still, kept, c.kept)
		}
	}
}
