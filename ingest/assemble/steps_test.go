package assemble

import (
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// telling returns a step with two observations and an action that identify its number.
func telling(number int64) ingest.Event {
	e := stepOf(number, float64(number)/2, agentID("a"), episodeID("e"))
	e.Observation = []ingest.Value{{Name: "x", X: float64(number)}, {Name: "y", X: -float64(number)}}
	e.Action = ingest.Action{Kind: ingest.ActionCategory, Category: "action " + strconv.FormatInt(number%3, 10)}
	return e
}

// stepsOf returns the unit of an episode with n steps, each modified by edit.
func stepsOf(n int64, edit func(*ingest.Event)) *ingest.Unit {
	b := newBench(Config{})
	for i := range n {
		e := telling(i)
		e.TS = 1_800_000_000_000_000_000 + i
		e.Terminated = i == n-1
		if edit != nil {
			edit(&e)
		}
		b.feed(e)
	}
	return b.units[0]
}

func TestStepsAreKept(t *testing.T) {
	for _, n := range []int64{1, 2, headSteps, headSteps + 1, 60, 64, 65, 1000, 5000} {
		u := stepsOf(n, nil)
		s := u.Steps
		if s == nil || !s.Sound(len(u.Actions)) || !slices.IsSorted(s.At) || len(s.At) > ingest.MaxKeptSteps {
			t.Fatalf("of %d steps %+v are kept", n, s)
		}
		if n <= headSteps+runs*runSteps && int64(len(s.At)) != n {
			t.Errorf("%d of %d steps are kept, want all", len(s.At), n)
		}
		for i := range min(n, headSteps) {
			if s.At[i] != int32(i) {
				t.Errorf("of %d steps the %d-th one kept is %d", n, i, s.At[i])
			}
		}
		if last := int64(s.At[len(s.At)-1]); last != n-1 {
			t.Errorf("of %d steps the last one kept is %d", n, last)
		}
		for i, at := range s.At {
			x := float32(at)
			if got := s.Row(i); !slices.Equal(got, []float32{x, -x, x / 2}) {
				t.Errorf("step %d is %v", at, got)
			}
			if got, want := u.Actions[s.Actions[i]].Name, "action "+strconv.Itoa(int(at)%3); got != want {
				t.Errorf("step %d has %s, want %s", at, got, want)
			}
		}
	}
}

// In a long episode, runs between its beginning and end are kept with equal probability, runs/n. In 400 episodes, the
// first half of the runs has half of the kept ones, with a standard error of 4 %, or less because each episode keeps a
// fixed number.
func TestKeptRunsAreARandomSample(t *testing.T) {
	const n, episodes = 1017, 400
	early, all := 0, 0
	for i := range int64(episodes) {
		u := stepsOf(n, func(e *ingest.Event) { e.TS += i * 1_000_000_007 })
		for _, at := range u.Steps.At {
			if at >= headSteps && at < n-tailSteps {
				all++
				if at < (n+headSteps)/2 {
					early++
				}
			}
		}
	}
	if share := float64(early) / float64(all); share < .48 || share > .52 {
		t.Errorf("%.3f of the kept steps are in the first half", share)
	}
	if all < episodes*(runs-1)*runSteps {
		t.Errorf("only %d steps are kept", all)
	}
}

// Steps keep only the components that all of them have. They omit those that some steps lack, such as ones that only
// the first step has, and those that only later steps have.
func TestStepsHaveWhatAllObserve(t *testing.T) {
	for name, c := range map[string]struct {
		edit  func(*ingest.Event)
		names []string
		row   []float32 // of step 13
	}{
		"the first one has more": {func(e *ingest.Event) {
			if e.Step == 0 {
				e.Observation = slices.Insert(e.Observation, 1, ingest.Value{Name: "weight", X: 7})
			}
		}, []string{"x", "y"}, []float32{13, -13, 6.5}},
		"one lacks the first": {func(e *ingest.Event) {
			if e.Step == 12 {
				e.Observation = e.Observation[1:]
			}
		}, []string{"y"}, []float32{-13, 6.5}},
		"one lacks the last": {func(e *ingest.Event) {
			if e.Step == 25 {
				e.Observation = e.Observation[:1]
			}
		}, []string{"x"}, []float32{13, 6.5}},
		"one has another": {func(e *ingest.Event) {
			if e.Step == 12 {
				e.Observation = slices.Insert(e.Observation, 0, ingest.Value{Name: "a"})
			}
		}, []string{"x", "y"}, []float32{13, -13, 6.5}},
	} {
		u := stepsOf(30, c.edit)
		if u.Steps == nil || !u.Steps.Sound(len(u.Actions)) || !slices.Equal(u.Steps.Names, c.names) || !slices.Equal(u.Steps.Row(13), c.row) {
			t.Errorf("%s: %+v", name, u.Steps)
		}
	}
}

// Steps with different components are not kept.
func TestStepsThatDifferAreNotKept(t *testing.T) {
	for name, edit := range map[string]func(*ingest.Event){
		"no observation":       func(e *ingest.Event) { e.Observation = nil },
		"other names":          func(e *ingest.Event) { e.Observation[0].Name, e.Observation[1].Name = "z", "zz" },
		"a number that is NaN": func(e *ingest.Event) { e.Observation[1].X = math.NaN() },
		"a number that is too large for four bytes": func(e *ingest.Event) { e.Observation[1].X = 1e39 },
		"no action": func(e *ingest.Event) { e.Action = ingest.Action{} },
		"another kind of action": func(e *ingest.Event) {
			e.Action = ingest.Action{Kind: ingest.ActionNumeric, Values: []float64{1}}
		},
	} {
		u := stepsOf(30, func(e *ingest.Event) {
			if e.Step == 12 {
				edit(e)
			}
		})
		if u.Steps != nil {
			t.Errorf("%s: %+v", name, u.Steps)
		}
		if u.Length != 30 {
			t.Errorf("%s: the unit has %d steps", name, u.Length)
		}
	}
	numeric := stepsOf(30, func(e *ingest.Event) {
		e.Action = ingest.Action{Kind: ingest.ActionNumeric, Values: []float64{float64(e.Step), 7}}
	})
	if s := numeric.Steps; s == nil || s.Numbers != 2 || s.Actions != nil || !slices.Equal(s.Row(3), []float32{3, -3, 3, 7, 1.5}) {
		t.Errorf("steps with numeric actions are %+v", s)
	}
	for name, values := range map[string][]float64{
		"NaN": {math.NaN(), 7}, "infinite": {7, math.Inf(-1)}, "too large for four bytes": {1e39, 7},
		"many": make([]float64, ingest.MaxKeptNumbers+1),
	} {
		u := stepsOf(30, func(e *ingest.Event) {
			e.Action = ingest.Action{Kind: ingest.ActionNumeric, Values: make([]float64, len(values))}
			if e.Step == 12 {
				e.Action.Values = values
			}
		})
		if u.Steps != nil {
			t.Errorf("steps with an action of %s numbers are kept: %+v", name, u.Steps)
		}
	}
	rich := stepsOf(3, func(e *ingest.Event) { e.Reward = 1e39 })
	if s := rich.Steps; s == nil || s.Row(1)[2] != 0 {
		t.Errorf("steps with a reward that is too large for four bytes are %+v", s)
	}
	wide := stepsOf(30, func(e *ingest.Event) {
		for i := range 2 * ingest.MaxKeptObservations {
			e.Observation = append(e.Observation, ingest.Value{Name: strconv.Itoa(i)})
		}
	})
	if s := wide.Steps; s == nil || len(s.Names) != ingest.MaxKeptObservations || s.Names[0] != "x" {
		t.Errorf("of many observations %+v are kept", s)
	}
}

// A missing or late step would make a wrong step seem to follow. Steps may be numbered with gaps, or not at all.
func TestStepsThatDoNotFollowAreNotKept(t *testing.T) {
	for name, c := range map[string]struct {
		numbers []int64
		kept    bool
	}{
		"in order":   {[]int64{0, 1, 2, 3, 4}, true},
		"one late":   {[]int64{0, 1, 3, 2, 4}, false},
		"one lost":   {[]int64{0, 1, 2, 4, 5}, false},
		"every 10th": {[]int64{0, 10, 20, 30, 40}, true},
		"unnumbered": {[]int64{-1, -1, -1, -1, -1}, true},
	} {
		b := newBench(Config{})
		for i, number := range c.numbers {
			e := telling(int64(i))
			e.Step, e.Terminated = number, i == len(c.numbers)-1
			b.feed(e)
		}
		if u := b.units[0]; u.Length != 5 || (u.Steps != nil) != c.kept {
			t.Errorf("%s: %d steps, of which %+v are kept", name, u.Length, u.Steps)
		}
	}
}

// A block of one agent keeps its steps, none of which is the first step of an episode. A block of several agents keeps
// none, because its steps do not follow each other.
func TestBlocksKeepTheStepsOfOneAgent(t *testing.T) {
	names := newNames()
	var own, mixed tally
	for round := range 2 { // the second one in the memory of the first
		var u, all *ingest.Unit
		for i := range int64(BlockSteps) {
			e := telling(i + int64(round)*BlockSteps)
			u, all = own.blockWith(&e, names, true), mixed.blockWith(&e, names, false)
		}
		if all.Steps != nil || mixed.Keeper != nil {
			t.Errorf("a block of all agents holds %+v", all.Steps)
		}
		if u.Steps == nil || len(u.Steps.At) != BlockSteps || !u.Steps.Sound(len(u.Actions)) {
			t.Fatalf("round %d: steps %+v", round, u.Steps)
		}
		for i, n := range u.Steps.At {
			want := telling(int64(i) + int64(round)*BlockSteps)
			if n != int32(i)+1 || u.Steps.Row(i)[0] != float32(want.Observation[0].X) {
				t.Errorf("round %d: step %d is number %d, %v", round, i, n, u.Steps.Row(i))
			}
		}
	}
}

// Whole numbers are categories, unless another action of the episode has a fraction. For example, a throttle that is
// clipped at 1 is sometimes exactly 1, before or after other values. An action with a name makes whole numbers
// categories.
func TestStepsOfWholeNumbers(t *testing.T) {
	whole := func(x float64) ingest.Action {
		return ingest.Action{Kind: ingest.ActionCategory, Category: strconv.FormatFloat(x, 'f', -1, 64), Scalar: true, Values: []float64{x}}
	}
	number := func(x float64) ingest.Action {
		return ingest.Action{Kind: ingest.ActionNumeric, Scalar: true, Values: []float64{x}}
	}
	named := ingest.Action{Kind: ingest.ActionCategory, Category: "stop"}
	for name, c := range map[string]struct {
		at      map[int64]ingest.Action // of 100 steps; the others are whole numbers
		numbers int
		void    bool
	}{
		"whole numbers alone":       {nil, 0, false},
		"a fraction first":          {map[int64]ingest.Action{0: number(.5)}, 1, false},
		"a fraction among the last": {map[int64]ingest.Action{98: number(.5)}, 1, false},
		"a name among the last":     {map[int64]ingest.Action{98: named}, 0, false},
		"a name after a fraction":   {map[int64]ingest.Action{7: number(.5), 50: named}, 0, true},
		"an array":                  {map[int64]ingest.Action{7: {Kind: ingest.ActionNumeric, Values: []float64{1, 2}}}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			action := func(step int64) ingest.Action {
				if a, other := c.at[step]; other {
					return a
				}
				return whole(float64(step % 3))
			}
			u := stepsOf(100, func(e *ingest.Event) { e.Action = action(e.Step) })
			s := u.Steps
			if (s == nil) != c.void {
				t.Fatalf("the steps are %+v", s)
			}
			if s == nil {
				return
			}
			if s.Numbers != c.numbers || !s.Sound(len(u.Actions)) {
				t.Fatalf("%d numbers in %+v", s.Numbers, s)
			}
			for i, at := range s.At {
				want, x := action(int64(at)), float32(at)
				row := []float32{x, -x, x / 2}
				if c.numbers == 1 {
					row = slices.Insert(row, 2, float32(want.Values[0]))
				} else if got := u.Actions[s.Actions[i]].Name; got != want.Category {
					t.Errorf("step %d has %s, want %s", at, got, want.Category)
				}
				if got := s.Row(i); !slices.Equal(got, row) {
					t.Errorf("step %d is %v, want %v", at, got, row)
				}
			}
		})
	}
}
