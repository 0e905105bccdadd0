package bank

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// numbers gives a numeric signal of the given values, the deciles of it by the nearest ranks.
func numbers(signal string, x ...float64) ingest.NamedMoments {
	n := ingest.NamedMoments{Signal: signal}
	for _, v := range x {
		n.Add(v)
	}
	sorted := slices.Sorted(slices.Values(x))
	n.Q10, n.Q90 = sorted[len(sorted)/10], sorted[len(sorted)-1-len(sorted)/10]
	return n
}

// observes makes the agent tell of signals with one normal value a step.
func (a *agent) observes(signals ...string) {
	a.edit = func(u *ingest.Unit) {
		for _, signal := range signals {
			x := make([]float64, u.Length)
			for i := range x {
				x[i] = a.rng.NormFloat64()
			}
			u.Numeric = append(u.Numeric, numbers(signal, x...))
		}
	}
}

// gathered gives a group whose warm-up is of the agent's next units.
func (a *agent) gathered(units int) *group {
	g := newGroup(ingest.NewGroup("ranker"), DefaultConfig(), NewStreamLimit(1000), NewCalibrations())
	for range units {
		g.gather(a.unit(), time.Time{}, true)
	}
	return g
}

// prepared freezes the warm-up without the calibration, and gives what is to be armed.
func (g *group) prepared() portion {
	g.freezeActions()
	for _, s := range g.Streams {
		s.freeze(g.Warmup.Units, &g.cfg, ends{})
	}
	return portion{streams: g.Streams, units: g.Warmup.Units, share: 1}
}

// named lists quantities as signal and name.
func (g *group) named(quantities []*quantity) map[string]bool {
	names := map[string]bool{}
	for _, s := range g.Streams {
		for _, q := range s.Quantities {
			names[s.Signal+" "+q.Name] = slices.Contains(quantities, q)
		}
	}
	return names
}

// The outer deciles of a signal are judged in the class of the signal.
func TestDecilesAreJudgedWithTheirSignal(t *testing.T) {
	a := newAgent(300)
	a.observes("observation.x", "reward_component.y", "action.0")
	g := a.gathered(300)
	of, room := g.prepared(), maxBranches
	first, _ := of.candidates(true, &room)
	other, branches := of.candidates(false, &room)
	for _, decile := range []string{lowDecile, highDecile} {
		for _, signal := range []string{"reward", "action.0"} {
			if !g.named(first)[signal+" "+decile] || g.named(other)[signal+" "+decile] {
				t.Errorf("%s of %s is not judged among the primary signals alone", decile, signal)
			}
		}
		for _, signal := range []string{"observation.x", "reward_component.y"} {
			if g.named(first)[signal+" "+decile] || !g.named(other)[signal+" "+decile] {
				t.Errorf("%s of %s is not judged among the other signals alone", decile, signal)
			}
		}
	}
	if want := 2 * 4 * 10; branches > want || branches < want/2 {
		t.Errorf("%d branches of other signals, want some %d", branches, want)
	}
}

// Deciles that are the mean in every unit of the baseline are left out, and come back with a baseline in which they are not.
func TestDecilesThatRepeatTheMeanAreLeftOut(t *testing.T) {
	a := newAgent(301)
	a.edit = func(u *ingest.Unit) { // single steps
		x := a.rng.NormFloat64()
		u.Length, u.Reward, u.Return, u.RewardQ10, u.RewardQ90 = 1, ingest.Moments{}, x, x, x
		u.Reward.Add(x)
		u.Numeric = []ingest.NamedMoments{numbers("observation.x", x+a.rng.NormFloat64()), numbers("observation.still", 7)}
	}
	g := a.gathered(100)
	g.prepared()
	judged := func(signal, name string) bool {
		i, _ := g.find(signal)
		return g.Streams[i].find(name).Ranks != nil
	}
	for _, signal := range []string{"reward", "observation.x", "observation.still"} {
		if !judged(signal, "mean") || !judged(signal, "sd") {
			t.Errorf("mean or standard deviation of %s are not judged", signal)
		}
		if judged(signal, lowDecile) || judged(signal, highDecile) {
			t.Errorf("deciles of %s that repeat its mean are judged", signal)
		}
	}
	a.edit = nil
	a.observes("observation.x", "observation.still")
	for range 200 {
		g.gather(a.unit(), time.Time{}, true)
	}
	g.prepared()
	for _, signal := range []string{"reward", "observation.x", "observation.still"} {
		if !judged(signal, lowDecile) || !judged(signal, highDecile) {
			t.Errorf("deciles of %s are not judged though they differ from its mean by now", signal)
		}
	}
}

// Where a policy has too many branches, deciles give way to the means of other signals, which is said.
func TestDecilesTakeNoRoomOfMeans(t *testing.T) {
	a := newAgent(302)
	var signals []string
	for i := range 40 {
		signals = append(signals, fmt.Sprintf("observation.%02d", i))
	}
	a.observes(signals...)
	g := a.gathered(500)
	of, room := g.prepared(), maxBranches
	_, first := of.candidates(true, &room)
	chosen, other := of.candidates(false, &room)
	if all := first + other; all > maxBranches || room != maxBranches-all {
		t.Errorf("%d branches, and room for %d more", all, room)
	}
	names, without := g.named(chosen), 0
	for _, signal := range signals {
		i, _ := g.find(signal)
		s := g.Streams[i]
		if !names[signal+" mean"] || !names[signal+" sd"] || s.OverLimit {
			t.Errorf("%s has no room", signal)
		}
		if said := len(s.notes()) == 1 && strings.Contains(s.notes()[0], "q10, q90: not armed"); said == names[signal+" q10"] || said != s.NoDeciles {
			t.Errorf("%s: notes %q", signal, s.notes())
		}
		if s.NoDeciles {
			without++
		}
	}
	if without == 0 || without == len(signals) {
		t.Errorf("%d of %d signals have no deciles", without, len(signals))
	}
}

// Two blocks of values that are all the same make one whose deciles are its mean.
func TestJoinedDeciles(t *testing.T) {
	unit := func(x ...float64) *ingest.Unit {
		return &ingest.Unit{Numeric: []ingest.NamedMoments{numbers("observation.x", x...)}}
	}
	u := joined(unit(.1, .1, .1), unit(.1))
	if n := u.Numeric[0]; n.Q10 != n.Mean || n.Q90 != n.Mean {
		t.Errorf("%+v", n)
	}
	u = joined(unit(0, 10, 20, 30), unit(4, 8))
	if n := u.Numeric[0]; math.Abs(n.Q10-4./3) > 1e-12 || math.Abs(n.Q90-68./3) > 1e-12 || n.N != 6 {
		t.Errorf("%+v", n)
	}
	empty := &ingest.Unit{Numeric: []ingest.NamedMoments{{Signal: "observation.x", Moments: ingest.Moments{NonFinite: 3}}}}
	if n := joined(empty, unit(.3)).Numeric[0]; n.Q10 != .3 || n.Q90 != .3 {
		t.Errorf("%+v", n)
	}
}

// What one signal does below its mean is told as its lower decile.
func TestDecileIsTold(t *testing.T) {
	if got := QuantityWords(lowDecile) + ", " + QuantityWords(highDecile) + ", " + QuantityWords("mean"); got != "10 % quantile, 90 % quantile, mean" {
		t.Error(got)
	}
	low := 0.
	a := newAgent(303)
	a.edit = func(u *ingest.Unit) {
		x := make([]float64, 20)
		for i := range x {
			x[i] = a.rng.NormFloat64()
		}
		n := numbers("observation.x", x...)
		n.Q10 -= low // of values that the mean hardly follows
		u.Numeric = append(u.Numeric, n)
	}
	cfg := episodes(2000)
	cfg.Baseline.Units = 200
	cfg.Signals = []string{"observation.*"}
	p := newBank(cfg)
	for range 200 {
		p.Learn(a.unit())
	}
	p.Accept(time.Time{})
	low = 1
	for _, f := range a.feed(p, 40) {
		if f.To == Drift {
			if f.Signal != "observation.x" || f.Effect.Quantity != lowDecile {
				t.Errorf("%s of %s", f.Effect.Quantity, f.Signal)
			}
			return
		}
	}
	t.Error("a lower decile that fell by more than two standard deviations was not found in 40 units")
}
