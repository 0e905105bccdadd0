package stream

import (
	"math"
	"slices"
	"testing"
)

// The scores of a mix by the textbook: counts of all units made again for each.
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
	if want := int(form.Part * 60); m.Window != want {
		t.Fatalf("%s: a window of %d units, want %d", form.Name, m.Window, want)
	}
	plain := func(unit ActionCounts, window, baseline []ActionCounts) float64 {
		if form.Odds > 0 {
			return plainRepeats(m, unit, window, baseline)
		}
		return plainMix(m, unit, window, baseline)
	}
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
			t.Fatalf("%s: unit %d of the baseline has %v, want %v", form.Name, i, x, want)
		}
	}
	window := slices.Clone(units[len(units)-m.Window:])
	for range 30 {
		unit := next()
		if x, want := m.Observe(unit), plain(unit, window, units); math.Abs(x-want) > 1e-9 {
			t.Fatalf("%s: a unit has %v, want %v", form.Name, x, want)
		}
		window = append(window[1:], unit)
	}
}

// plainCount returns how many steps of the units have an action, and how many there are.
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
			odds = m.Odds
		}
		sum += float64(a.N) * math.Log(odds/(1+(m.Odds-1)*mass))
	}
	return sum / 3
}

// Millions of units must leave nothing behind.
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
