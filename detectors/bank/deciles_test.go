package bank

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/budget"
	"github.com/rewardwatch/rewardwatch/detectors/capacity"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// numbers returns a numeric signal with the given values and their deciles by nearest rank.
func numbers(signal string, x ...float64) ingest.NamedMoments {
	n := ingest.NamedMoments{Signal: signal}
	for _, v := range x {
		n.Add(v)
	}
	sorted := slices.Sorted(slices.Values(x))
	n.Q10, n.Q90 = sorted[len(sorted)/10], sorted[len(sorted)-1-len(sorted)/10]
	return n
}

// observes adds signals to the agent's units, with one normal value per step.
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

// gathered returns a group whose warm-up consists of the agent's next units.
func (a *agent) gathered(units int) *group {
	cfg := watch.DefaultConfig()
	g := newGroup(ingest.NewGroup("ranker"), &cfg, capacity.NewStreamLimit(1000), budget.NewCalibrations())
	for range units {
		g.gather(a.unit(), time.Time{}, true)
	}
	return g
}

// prepared freezes the warm-up without calibration, and returns what is to be armed.
func (g *group) prepared() budget.Portion {
	g.freezeActions()
	for _, s := range g.Streams {
		s.Freeze(g.Warmup.Units, g.cfg, stream.Ends{})
	}
	return budget.Portion{Streams: g.Streams, Units: g.Warmup.Units, Share: 1}
}

// named returns quantities by signal and name.
func (g *group) named(quantities []*stream.Quantity) map[string]bool {
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
	of, room := g.prepared(), stream.MaxBranches
	first, _ := of.Candidates(true, &room)
	other, branches := of.Candidates(false, &room)
	for _, decile := range []string{signals.LowDecile, signals.HighDecile} {
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

// Deciles that equal the mean in every unit of the baseline are not judged, until a baseline in which they differ.
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
		i, _ := g.Find(signal)
		return g.Streams[i].Find(name).Ranks != nil
	}
	for _, signal := range []string{"reward", "observation.x", "observation.still"} {
		if !judged(signal, "mean") || !judged(signal, "sd") {
			t.Errorf("mean or standard deviation of %s are not judged", signal)
		}
		if judged(signal, signals.LowDecile) || judged(signal, signals.HighDecile) {
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
		if !judged(signal, signals.LowDecile) || !judged(signal, signals.HighDecile) {
			t.Errorf("deciles of %s are not judged though they differ from its mean by now", signal)
		}
	}
}

// If a policy has too many branches, deciles are dropped in favor of the means of other signals, and a note says so.
func TestSimDecilesTakeNoRoomOfMeans(t *testing.T) {
	a := newAgent(302)
	var signals []string
	for i := range 40 {
		signals = append(signals, fmt.Sprintf("observation.%02d", i))
	}
	a.observes(signals...)
	g := a.gathered(500)
	of, room := g.prepared(), stream.MaxBranches
	_, first := of.Candidates(true, &room)
	chosen, other := of.Candidates(false, &room)
	if all := first + other; all > stream.MaxBranches || room != stream.MaxBranches-all {
		t.Errorf("%d branches, and room for %d more", all, room)
	}
	names, without := g.named(chosen), 0
	for _, signal := range signals {
		i, _ := g.Find(signal)
		s := g.Streams[i]
		if !names[signal+" mean"] || !names[signal+" sd"] || s.OverLimit {
			t.Errorf("%s has no room", signal)
		}
		if said := len(s.Notes(finding.Episodes(), false)) == 1 && strings.Contains(s.Notes(finding.Episodes(), false)[0], "q10, q90: not armed"); said == names[signal+" q10"] || said != s.NoDeciles {
			t.Errorf("%s: notes %q", signal, s.Notes(finding.Episodes(), false))
		}
		if s.NoDeciles {
			without++
		}
	}
	if without == 0 || without == len(signals) {
		t.Errorf("%d of %d signals have no deciles", without, len(signals))
	}
}

// A change below a signal's mean is reported as a change of its lower decile.
func TestDecileIsTold(t *testing.T) {
	if got := finding.QuantityWords(signals.LowDecile) + ", " + finding.QuantityWords(signals.HighDecile) + ", " + finding.QuantityWords("mean"); got != "10th percentile, 90th percentile, mean" {
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
		n.Q10 -= low // this hardly changes the mean
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
		if f.To == finding.Drift {
			if f.Signal != "observation.x" || f.Effect.Quantity != signals.LowDecile {
				t.Errorf("%s of %s", f.Effect.Quantity, f.Signal)
			}
			return
		}
	}
	t.Error("a lower decile that fell by more than two standard deviations was not found in 40 units")
}
