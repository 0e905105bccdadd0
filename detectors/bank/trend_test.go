package bank

import (
	"math"
	"strings"
	"testing"
	"time"
)

// A warm-up whose mix of actions moves on steadily is refused, also before any freeze.
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
		if s := g.stream("reward"); !strings.Contains(g.missing(s), "was not stationary over the last 500 episodes; collecting again, 250 of 500") {
			t.Errorf("seed %d: missing %q", seed, g.missing(s))
		}
	}
}

// Of warm-ups that stay as they are, one in a hundred is refused at most: quantities depend on one another.
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
