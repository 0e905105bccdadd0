package finding

import "testing"

func TestUnitName(t *testing.T) {
	for _, c := range []struct {
		name                    UnitName
		one, many, sized, count string
	}{
		{UnitName{}, "unit", "units", "units", "1 unit"},
		{Promise{}.UnitNameOf(UnitRef{}), "episode or block", "episodes or blocks", "episodes or blocks", "1 episode or block"},
		{Promise{}.UnitNameOf(UnitRef{Episode: "e1"}), "episode", "episodes", "episodes", "1 episode"},
		{Promise{N: 1, Caveats: []string{DecisionCaveat(20, 3)}}.UnitNameOf(UnitRef{Episode: "e1"}), "block", "blocks", "blocks of 20 decisions", "1 block"},
		{Episodes(), "episode", "episodes", "episodes", "1 episode"},
		{Blocks(39.6), "block", "blocks", "blocks of 40 steps", "1 block"},
		{Blocks(0), "block", "blocks", "blocks", "1 block"},
	} {
		if c.name.One() != c.one || c.name.Many() != c.many || c.name.Sized() != c.sized || c.name.Count(1) != c.count {
			t.Errorf("%q, %q, %q, %q, want %q, %q, %q, %q", c.name.One(), c.name.Many(), c.name.Sized(), c.name.Count(1), c.one, c.many, c.sized, c.count)
		}
		if got := c.name.Count(2); got != "2 "+c.many {
			t.Errorf("two are %q, want %q", got, "2 "+c.many)
		}
	}
}

func TestCommonUnit(t *testing.T) {
	for _, c := range []struct {
		names []UnitName
		want  UnitName
	}{
		{nil, UnitName{}},
		{[]UnitName{Episodes(), Episodes()}, Episodes()},
		{[]UnitName{Blocks(20), Blocks(20)}, Blocks(20)},
		{[]UnitName{Blocks(20), Blocks(40)}, Blocks(0)},
		{[]UnitName{Episodes(), Blocks(20)}, UnitName{}},
	} {
		if got := CommonUnit(c.names...); got != c.want {
			t.Errorf("%v are %s, want %s", c.names, got.Sized(), c.want.Sized())
		}
	}
	for blocks, want := range []UnitName{Episodes(), {}, Blocks(20)} {
		if got := CountedUnit(2, int64(blocks), 20); got != want {
			t.Errorf("2 units, %d of them blocks, are %s, want %s", blocks, got.Many(), want.Many())
		}
	}
	if got := CountedUnit(0, 0, 20); got != (UnitName{}) {
		t.Errorf("no units are %s, want units", got.Many())
	}
	for want, got := range map[string]string{"1 block of 20 steps": Blocks(20).CountSized(1), "2 episodes": Episodes().CountSized(2)} {
		if got != want {
			t.Errorf("counted %q, want %q", got, want)
		}
	}
	if got := Episodes().Title(); got != "Episodes" {
		t.Errorf("title %q, want Episodes", got)
	}
}

// TestPromiseNamesItsUnits reads the name from the caveat that a bank writes, and from the one in older saved
// state.
func TestPromiseNamesItsUnits(t *testing.T) {
	week := "the baseline covers less than two weeks"
	for _, c := range []struct {
		promise Promise
		want    UnitName
	}{
		{Promise{}, UnitName{}},
		{Promise{N: 1000}, Episodes()},
		{Promise{N: 1000, Caveats: []string{week}}, Episodes()},
		{Promise{N: 1000, Caveats: []string{BlockCaveat(80, "one agent", 5), week}}, Blocks(80)},
		{Promise{N: 1000, Caveats: []string{
			"no episode ends: units are blocks of 20 steps of all agents together, and a change is detected after at least about 5 blocks (100 steps)",
		}}, Blocks(20)},
	} {
		if got := c.promise.UnitName(); got != c.want {
			t.Errorf("%+v counts in %s, want %s", c.promise, got.Sized(), c.want.Sized())
		}
	}
}

func TestUnitRefWords(t *testing.T) {
	for _, c := range []struct {
		ref    UnitRef
		name   UnitName
		want   string
		moment string
	}{
		{UnitRef{Ordinal: 7}, UnitName{}, "unit 7", "unit 7"},
		{UnitRef{Ordinal: 7}, Episodes(), "episode 7", "episode 7"},
		{UnitRef{Ordinal: 7, Agent: "a-1"}, Blocks(20), "block 7 (agent a-1)", "block 7"},
		{UnitRef{Ordinal: 7, TS: 1e9, Agent: "a-1", Episode: "e-7"}, UnitName{}, "episode 7 (1970-01-01 00:00:01 UTC, agent a-1, id e-7)", "1970-01-01 00:00:01 UTC"},
	} {
		if got := c.ref.Words(c.name); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
		if got := c.ref.Moment(c.name); got != c.moment {
			t.Errorf("moment %q, want %q", got, c.moment)
		}
	}
}
