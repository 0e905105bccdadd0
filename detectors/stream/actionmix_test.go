package stream

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// The expected scores of a mix follow the formulas, with the counts of all units computed from scratch for each unit.
func TestActionMixAgainstPlainCounts(t *testing.T) {
	s := newActing(6, 0, 3, zipf(40))
	var units []ActionCounts
	for range 60 {
		units = append(units, s.unit())
	}
	base := map[string]int64{}
	for _, u := range units {
		for _, a := range u {
			base[a.Name] += a.N
		}
	}
	for _, form := range MixForms() {
		mixAgainstPlainCounts(t, form, units, base, s.unit)
	}
}

func mixAgainstPlainCounts(t *testing.T, form MixForm, units []ActionCounts, base map[string]int64, next func() ActionCounts) {
	m := NewActionMix(form, units, base)
	want, plain := int(form.Part*60), plainMix
	switch {
	case form.flat:
		want, plain = 0, plainFlat
	case form.Inside:
		want, plain = recentUnits, plainRecent
	case form.Odds > 0:
		plain = plainRepeats
	}
	if m.Window != want {
		t.Fatalf("%s: a window of %d units, want %d", form.Name, m.Window, want)
	}
	mixScores(t, m, units, func(unit ActionCounts, window, baseline []ActionCounts) float64 {
		return plain(m, unit, window, baseline)
	}, next)
}

func mixScores(
	t *testing.T, m *ActionMix, units []ActionCounts, plain func(unit ActionCounts, window, baseline []ActionCounts) float64,
	next func() ActionCounts,
) {
	for i, x := range m.Baseline(units) {
		var window, others []ActionCounts
		for k := range units {
			switch back := (i - k + len(units)) % len(units); {
			case back >= 1 && back <= m.Window:
				window = append(window, units[k])
			case back > m.Window:
				others = append(others, units[k])
			}
		}
		if want := plain(units[i], window, others); math.Abs(x-want) > 1e-9 {
			t.Fatalf("%s: unit %d of the baseline has %v, want %v", m.form.Name, i, x, want)
		}
	}
	window := slices.Clone(units[len(units)-m.Window:])
	for range 30 {
		unit := next()
		if x, want := m.Observe(unit), plain(unit, window, units); math.Abs(x-want) > 1e-9 {
			t.Fatalf("%s: a unit has %v, want %v", m.form.Name, x, want)
		}
		window = append(window, unit)[1+len(window)-m.Window:]
	}
}

// plainCount returns the number of steps of the units with an action, and the number of steps.
func plainCount(units []ActionCounts, name string) (n, all float64) {
	for _, u := range units {
		for _, a := range u {
			all += float64(a.N)
			if a.Name == name {
				n += float64(a.N)
			}
		}
	}
	return n, all
}

func plainShare(m *ActionMix, baseline []ActionCounts, name string) float64 {
	b, total := plainCount(baseline, name)
	return (b + m.Prior.Each) / (total + m.Prior.All)
}

func plainMix(m *ActionMix, unit ActionCounts, window, baseline []ActionCounts) float64 {
	k, sum := float64(len(m.Base)), 0.0
	for _, a := range unit {
		r, steps := plainCount(window, a.Name)
		sum += float64(a.N) * math.Log((k+r/plainShare(m, baseline, a.Name))/(k+steps))
	}
	return sum / 3
}

func plainRepeats(m *ActionMix, unit ActionCounts, window, baseline []ActionCounts) float64 {
	names := map[string]bool{}
	for _, u := range window {
		for _, a := range u {
			names[a.Name] = true
		}
	}
	mass, sum := 0.0, 0.0
	for name := range names {
		mass += plainShare(m, baseline, name)
	}
	for _, a := range unit {
		odds := 1.0
		if names[a.Name] {
			odds = m.form.Odds
		}
		sum += float64(a.N) * math.Log(odds/(1+(m.form.Odds-1)*mass))
	}
	return sum / 3
}

// plainRecent adds the steps of the unit one by one, to the window and to an empty window.
func plainRecent(m *ActionMix, unit ActionCounts, window, baseline []ActionCounts) float64 {
	likelihood := func(window []ActionCounts) float64 {
		k, ratio := float64(len(m.Base)), 1.0
		for _, a := range unit {
			for range a.N {
				r, steps := plainCount(window, a.Name)
				ratio *= (k + r/plainShare(m, baseline, a.Name)) / (k + steps)
				window = append(slices.Clone(window), ActionCounts{{Name: a.Name, N: 1}})
			}
		}
		return ratio
	}
	return math.Log((likelihood(window)+likelihood(nil))/2) / 3
}

// plainFlat computes the flatter baseline from the shares of all actions.
func plainFlat(m *ActionMix, unit ActionCounts, _, baseline []ActionCounts) float64 {
	all, steps := 0.0, 0.0
	for name := range m.Base {
		all += math.Sqrt(plainShare(m, baseline, name))
		n, _ := plainCount(baseline, name)
		steps += n
	}
	unseen := m.Prior.All/m.Prior.Each - float64(len(m.Base))
	all += unseen * math.Sqrt(m.Prior.Each/(steps+m.Prior.All))
	sum := 0.0
	for _, a := range unit {
		p := plainShare(m, baseline, a.Name)
		sum += float64(a.N) * math.Log(math.Sqrt(p)/all/p)
	}
	return sum / 3
}

// Given the past, the scores of a unit are logarithms of likelihood ratios, whose mean over all possible units is 1.
func TestMixesAreLikelihoodRatios(t *testing.T) {
	base := map[string]int64{"a": 500, "b": 300, "c": 150, "d": 50}
	names := []string{"a", "b", "c", "d"}
	window := []ActionCounts{{{Name: "a", N: 1}, {Name: "b", N: 2}}, {{Name: "d", N: 2}, {Name: "c", N: 1}}, {{Name: "d", N: 3}}}
	for _, form := range MixForms() {
		if !form.Inside && !form.flat {
			continue // its window is longer than this one
		}
		m := &ActionMix{Window: form.window(100, 300), form: form}
		m.prepare(base, ActionPrior{Each: .5, All: 2})
		for _, unit := range window {
			m.add(unit)
		}
		mean := 0.0
		for i := range 64 { // all units of three steps
			p, counts := 1.0, map[string]int64{}
			for _, at := range []int{i % 4, i / 4 % 4, i / 16} {
				p *= (float64(base[names[at]]) + .5) / 1002
				counts[names[at]]++
			}
			var unit ActionCounts
			for _, name := range names {
				if counts[name] > 0 {
					unit = append(unit, ingest.Count{Name: name, N: counts[name]})
				}
			}
			mean += p * math.Exp(3*m.Again().Observe(unit))
		}
		if math.Abs(mean-1) > 1e-12 {
			t.Errorf("%s: a mean of %v", form.Name, mean)
		}
	}
}

// Observing units must not allocate, or millions of units would create garbage.
func TestMixesDoNotAllocate(t *testing.T) {
	s := newActing(14, 0, 20, zipf(1000))
	var units []ActionCounts
	for range 500 {
		units = append(units, s.unit())
	}
	base := map[string]int64{}
	for _, u := range units {
		for _, a := range u {
			base[a.Name] += a.N
		}
	}
	for _, form := range MixForms() {
		m, i := NewActionMix(form, units, base), 0
		observe := func() {
			m.Observe(units[i%len(units)])
			i++
		}
		for range 5000 {
			observe()
		}
		if n := testing.AllocsPerRun(2000, observe); n != 0 {
			t.Errorf("%s: %v allocations a unit", form.Name, n)
		}
	}
}

// Independent steps each count as evidence; the steps of a policy that repeats its actions count less.
func TestDesignEffectOfHeldActions(t *testing.T) {
	const steps, units = 20, 2000
	for _, held := range []float64{0, .5, .8} {
		rng := rand.New(rand.NewPCG(3, 4))
		all := make([]ActionCounts, units)
		for i := range all {
			counts, last := map[int]int64{}, 0
			for k := range steps {
				if k == 0 || rng.Float64() >= held {
					last = rng.IntN(30)
				}
				counts[last]++
			}
			for a, n := range counts {
				all[i] = append(all[i], ingest.Count{Name: fmt.Sprint(a), N: n})
			}
		}
		want := 1.0
		for k := 1; k < steps; k++ {
			want += 2 * float64(steps-k) / steps * math.Pow(held, float64(k))
		}
		if got := designEffect(all); math.Abs(got/want-1) > .05 {
			t.Errorf("held with probability %v: a design effect of %.2f, want %.2f", held, got, want)
		}
	}
	one := []ActionCounts{{{Name: "a", N: 5}}, {{Name: "a", N: 5}}}
	if got := designEffect(one); got != 1 {
		t.Errorf("one action: %v", got)
	}
	if got := designEffect([]ActionCounts{{{Name: "a", N: 1}}, {{Name: "b", N: 1}}}); got != 1 {
		t.Errorf("single steps: %v", got)
	}
}
