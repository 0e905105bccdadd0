package factor

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

const (
	mazeSide  = 6
	mazeGoal  = mazeSide*mazeSide - 1
	mazeSteps = 40
)

// maze is an agent that walks to the last cell of a grid, whose cells are numbered at random. Its fields are what a
// test can change.
type maze struct {
	clever  float64 // share of steps towards the goal; the others are random
	slips   float64 // share of steps in a random direction
	shut    bool    // whether the door from the cell beside the goal is shut
	worth   float64 // of the goal
	toll    float64 // of a step
	near    bool    // whether episodes start in the rows in which they otherwise do not
	late    bool    // whether the observation is that of the step before
	dead    bool    // whether the observation is always the same
	noise   float64 // share of observations of a random cell
	renamed float32 // added to the numbers of cells
}

func calm() maze { return maze{clever: .7, slips: .2, worth: 1, toll: .1} }

// numbered returns the numbers of the cells.
func numbered() []int { return rand.New(rand.NewPCG(77, 7)).Perm(mazeSide * mazeSide) }

func (w maze) told(seed uint64, n int) []Told {
	rng, number := rand.New(rand.NewPCG(seed, 9)), numbered()
	units := make([]Told, n)
	for i := range units {
		at := rng.IntN(mazeGoal / 2)
		if w.near {
			at += mazeGoal / 2
		}
		s := &ingest.Steps{Names: []string{"state"}}
		before, over := at, false
		for t := 0; t < mazeSteps && !over; t++ {
			a := w.acts(rng, at)
			next := w.moves(rng, at, a)
			reward := -w.toll
			if over = next == mazeGoal; over {
				reward += w.worth
			}
			seen := float32(number[at])
			switch {
			case w.late:
				seen = float32(number[before])
			case w.dead:
				seen = 3
			case rng.Float64() < w.noise:
				seen = float32(rng.IntN(mazeGoal))
			}
			s.At, s.Actions = append(s.At, int32(t)), append(s.Actions, int32(a))
			s.Rows = append(s.Rows, seen+w.renamed, float32(reward))
			before, at = at, next
		}
		units[i] = Told{s, []ingest.Count{{Name: "up", N: 9}, {Name: "down", N: 9}, {Name: "left", N: 9}, {Name: "right", N: 9}}, over, rng.Uint64()}
	}
	return units
}

// acts returns the action of a step: down or right, towards the goal, or any direction.
func (w maze) acts(rng *rand.Rand, at int) int {
	row, column := at/mazeSide, at%mazeSide
	switch {
	case rng.Float64() >= w.clever:
		return rng.IntN(4)
	case row < mazeSide-1 && (column == mazeSide-1 || rng.IntN(2) == 0):
		return 1
	default:
		return 3
	}
}

func (w maze) moves(rng *rand.Rand, at, a int) int {
	if w.shut && at == mazeGoal-1 && a == 3 {
		return at
	}
	if rng.Float64() < w.slips {
		a = rng.IntN(4)
	}
	inside := func(x int) int { return min(max(x, 0), mazeSide-1) }
	return inside(at/mazeSide+[]int{-1, 1, 0, 0}[a])*mazeSide + inside(at%mazeSide+[]int{0, 0, -1, 1}[a])
}

// mapped returns the laws of a calm maze.
var mapped = sync.OnceValue(func() *Model {
	var l Laws
	l.Freeze(calm().told(1, 500), 0, defaultBytes)
	return l.Model
})

func lawsOfStates(t *testing.T) *Laws {
	t.Helper()
	m := mapped()
	if m == nil || !m.Vocabulary.tabular() {
		t.Fatal("no laws of discrete states were learnt")
	}
	return &Laws{Model: m}
}

func TestTheLawOfStatesThatMovedIsNamed(t *testing.T) {
	base := lawsOfStates(t)
	for name, c := range map[string]struct {
		turn  func(*maze)
		cause Cause
		moved Factor
	}{
		"other starts":          {func(w *maze) { w.near = true }, ByEnvironment, Start},
		"another policy":        {func(w *maze) { w.clever = .4 }, ByPolicy, Policy},
		"slippery ground":       {func(w *maze) { w.slips = .4 }, ByEnvironment, Dynamics},
		"one door is shut":      {func(w *maze) { w.shut = true }, ByEnvironment, Dynamics},
		"another goal":          {func(w *maze) { w.worth = .5 }, ByReward, Reward},
		"another toll":          {func(w *maze) { w.toll = .2 }, ByReward, Reward},
		"noisy sensors":         {func(w *maze) { w.noise = .2 }, ByEnvironment, Dynamics}, // like other dynamics
		"late sensors":          {func(w *maze) { w.late = true }, ByObservations, Dynamics},
		"a sensor that is dead": {func(w *maze) { w.dead = true }, ByObservations, Dynamics},
	} {
		l := *base
		w := calm()
		c.turn(&w)
		for i, u := range w.told(2, 100) {
			observe(&l, u, int64(i))
		}
		v := l.Judge(0)
		t.Logf("%s: %+v", name, v.Factors)
		if v.Cause != c.cause || !v.Factors[c.moved].Moved {
			t.Errorf("%s: %s (%d), want %s with %s: %+v", name, v.Cause, v.Broken, c.cause, c.moved, v.Factors)
		}
	}
}

// An agent that learns adapts to changed dynamics of its states, so its policy moves, too. While such a change is only
// suspected, the policy is not called the cause.
func TestWhatAnAgentAdaptsToIsTheCause(t *testing.T) {
	for name, c := range map[string]struct {
		policy, dynamics, z float64 // effects, and how sure that of the dynamics is
		exact               bool
		want                Cause
	}{
		"it adapts":                    {1, 1.5, 9, true, ByEnvironment},
		"it adapts to numbers":         {1, 1.5, 9, false, Unknown},
		"it moves further":             {2, 1.5, 9, true, Unknown},
		"both as far":                  {1.1, 1, 9, true, Unknown},
		"to what is suspected":         {1, 1.5, 3.5, true, Unknown},
		"to numbers that are":          {1, 1.5, 3.5, false, ByPolicy},
		"dynamics are hardly suspect":  {1, 1.5, 2.5, true, ByPolicy},
		"to what it avoids by now":     {1, .6, 3.5, true, Unknown},
		"dynamics hardly differ":       {1, .4, 3.5, true, ByPolicy},
		"dynamics alone are suspected": {0, 1.5, 3.5, true, Unknown},
	} {
		var v Verdict
		v.Factors[Policy] = Movement{Moved: c.policy > 0, Foremost: Shift{Effect: c.policy, Z: 9}, Support: 1}
		v.Factors[Dynamics] = Movement{Moved: c.z > 4, Foremost: Shift{Effect: c.dynamics, Z: c.z}, Support: 1}
		if got := v.cause(c.exact); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// In 40 windows of 50 healthy units, no law of states moves: at a chance of 4e-4 per window, at least one would in 1.6
// %.
func TestHealthyUnitsMoveNoLawOfStates(t *testing.T) {
	moveNoLaw(t, lawsOfStates(t), calm().told(3, 2000), 50)
}

// Laws of states do not depend on where the agent goes: one that acts at random only moves the law of the policy.
func TestSimOtherPoliciesMoveNoOtherLawOfStates(t *testing.T) {
	base := lawsOfStates(t)
	for seed, clever := range []float64{0, .2, .4, .9} {
		l := *base
		w := calm()
		w.clever = clever
		for i, u := range w.told(uint64(30+seed), 200) {
			observe(&l, u, int64(i))
		}
		v := l.Judge(0)
		if v.Factors[Dynamics].Moved || v.Factors[Reward].Moved || v.Factors[Start].Moved || v.Cause != ByPolicy {
			t.Errorf("%v of the steps towards the goal: %s: %+v", clever, v.Cause, v.Factors)
		}
	}
}

// States that the baseline does not include are not in support.
func TestUnknownStatesAreNewGround(t *testing.T) {
	l := lawsOfStates(t)
	w := calm()
	w.renamed = 1000
	for i, u := range w.told(4, 60) {
		observe(l, u, int64(i))
	}
	for _, f := range []Factor{Policy, Dynamics, Reward} {
		if s := l.Support(f); s != 0 {
			t.Errorf("%s: %v of the steps are in support", f, s)
		}
	}
}

// Numbers are states only if they have few values that recur, and if they predict the next one better as states than as
// numbers.
func TestWhichObservationsAreStates(t *testing.T) {
	stock := func(seed uint64, n, most int, of func(int) float32) []Told {
		rng := rand.New(rand.NewPCG(seed, 3))
		units := make([]Told, n)
		for i := range units {
			s, held := &ingest.Steps{Names: []string{"stock"}}, rng.IntN(most)
			for t := range 30 {
				a := rng.IntN(2)
				s.At, s.Actions = append(s.At, int32(t)), append(s.Actions, int32(a))
				s.Rows = append(s.Rows, of(held), float32(-held))
				held = min(max(held+8*a-rng.IntN(9), 0), most)
			}
			units[i] = Told{s, []ingest.Count{{Name: "wait", N: 15}, {Name: "order", N: 15}}, false, rng.Uint64()}
		}
		return units
	}
	count := func(x int) float32 { return float32(x) }
	named := func(x int) float32 { return float32(x * 7919 % 101) }
	for name, c := range map[string]struct {
		units []Told
		want  bool
	}{
		"cells of a maze":      {calm().told(5, 200), true},
		"cells in halves":      {halved(calm().told(5, 200)), false},
		"items in stock":       {stock(6, 200, 100, count), false},
		"items as names":       {stock(6, 200, 100, named), true},
		"too many":             {stock(7, 200, 3000, count), false},
		"hardly seen":          {stock(8, 100, 900, count), false},
		"too few episodes":     {calm().told(5, LeastEpisodes-1), false},
		"one state":            {maze{clever: .7, dead: true}.told(5, 200), false},
		"two columns of cells": {columns(calm().told(5, 200)), true},
	} {
		v := vocabularyOf(c.units)
		if got := v.discrete(v.episodes(c.units)); (got != nil) != c.want {
			t.Errorf("%s: states %v, want any: %v", name, got, c.want)
		}
	}
}

// halved divides the numbers of states by two.
func halved(units []Told) []Told {
	for i := range units {
		for k := range units[i].Steps.At {
			units[i].Steps.Row(k)[0] /= 2
		}
	}
	return units
}

// columns splits the number of a state into two components.
func columns(units []Told) []Told {
	for i := range units {
		s := units[i].Steps
		out := &ingest.Steps{Names: []string{"high", "low"}, At: s.At, Actions: s.Actions}
		for k := range s.At {
			n := int(s.Row(k)[0])
			out.Rows = append(out.Rows, float32(n/mazeSide), float32(n%mazeSide), s.Row(k)[1])
		}
		units[i].Steps = out
	}
	return units
}

// The rank of a result is the share of likelier, or smaller, results plus a random part of its own share. The expected
// values are counted one by one.
func TestRanksInCells(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	for _, values := range [][]float32{nil, {0}} {
		var visits []visit
		for range 500 {
			visits = append(visits, visit{key: rng.Uint64N(9), known: rng.IntN(9) > 0, what: int32(rng.IntN(1+rng.IntN(5))) - 1})
		}
		c := cells{values: values}
		c.fill(slices.Clone(visits), maxCells, leastCell)
		for i := range c.all {
			counts, n := map[int32]int{}, 0
			for _, v := range visits {
				if v.known && v.key == c.all[i].key {
					counts[v.what]++
					n++
				}
			}
			for what := range int32(8) {
				what-- // so that some results never followed
				before := 0
				for other, k := range counts {
					own := counts[what]
					if values == nil && (k > own || k == own && other < what) || values != nil && other < what {
						before += k
					}
				}
				seed := rng.Uint64()
				want := (float64(before) + float64(counts[what]+1)*float64(uniform(seed))) / float64(n+1)
				if got := c.rank(i, what, seed); math.Abs(float64(got)-want) > 1e-6 {
					t.Errorf("of %v the rank of %d is %v, want %v", counts, what, got, want)
				}
			}
		}
	}
}

// If there are too many situations, the most common ones are kept.
func TestCommonSituationsStay(t *testing.T) {
	var visits []visit
	for key := range uint64(20) {
		for range 5 + key*7%20 {
			visits = append(visits, visit{key: key, known: true})
		}
	}
	var all, few cells
	all.fill(slices.Clone(visits), maxCells, leastCell)
	few.fill(slices.Clone(visits), 5, leastCell)
	least := int32(math.MaxInt32)
	for _, c := range few.all {
		least = min(least, c.n)
	}
	above := 0
	for _, c := range all.all {
		if c.n > least {
			above++
		}
	}
	if len(few.all) != 5 || above != 4 || !slices.IsSortedFunc(few.all, func(a, b cell) int { return int(a.key) - int(b.key) }) {
		t.Errorf("%d of 5 situations are left, %d are commoner than the rarest", len(few.all), above)
	}
}

func TestLawsOfStatesKeepToTheirMemory(t *testing.T) {
	v := vocabularyOf(calm().told(5, 200))
	episodes := v.episodes(calm().told(5, 200))
	v.States = v.discrete(episodes)
	whole := Learn(v, episodes, defaultBytes)
	if whole == nil {
		t.Fatal("no laws were learnt")
	}
	least := keptBytes(v.layout()) + 4*len(v.States) + 6*2*sizes*(4*sketchSize+128)
	bytes := (whole.Bytes() + least) / 2
	if m := Learn(v, episodes, bytes); m == nil || m.Bytes() > bytes {
		t.Errorf("the laws do not keep to %d bytes, of %d that they take", bytes, whole.Bytes())
	}
	if m := Learn(v, episodes, least-1); m != nil {
		t.Errorf("laws of %d bytes are learnt in %d", m.Bytes(), least-1)
	}
}

// Restored laws give the same verdicts as those that were never saved. A build without discrete states does not find
// laws in the saved state.
func TestLawsOfStatesAreSaved(t *testing.T) {
	l := lawsOfStates(t)
	numbers, states := WiresOf(l.Model)
	if numbers != nil || states == nil {
		t.Fatal("laws of states are saved as those of numbers")
	}
	again := Laws{Model: LiveOf(numbers, states)}
	for i, u := range calm().told(5, 60) {
		observe(l, u, int64(i))
		observe(&again, u, int64(i))
	}
	if got, want := again.Judge(0), l.Judge(0); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if ingesttest.Text(again.Wire()) != ingesttest.Text(l.Wire()) {
		t.Error("it is saved in another way once it was read")
	}
	if numbers, states := WiresOf(learnt()); numbers == nil || states != nil || LiveOf(numbers, states) == nil {
		t.Error("laws of numbers are not saved as such")
	}
	if numbers, states := WiresOf(nil); numbers != nil || states != nil || LiveOf(nil, nil) != nil {
		t.Error("no laws are saved as some")
	}
}

// Scores of units that the laws were not learned from are standard normal.
func TestSimScoresOfStatesAreNormal(t *testing.T) {
	units := calm().told(12, 800)
	var l Laws
	l.Freeze(units, 0, defaultBytes)
	held := l.HeldOut(units, defaultBytes)
	if len(held) != len(units) {
		t.Fatalf("%d units are held out, want %d", len(held), len(units))
	}
	for f := range Factors {
		n, sum, squares := 0., 0., 0.
		for _, h := range held {
			s := h.Factors[f]
			n += float64(s.N)
			sum += float64(s.N) * s.Mean
			squares += float64(s.N) * s.Square
		}
		mean, square := sum/n, squares/n
		t.Logf("%s: mean %.3f, mean square %.3f over %v", f, mean, square, n)
		// Standard errors of independent scores, with an allowance for what the sketches of the folds miss.
		if math.Abs(mean) > .03+3/math.Sqrt(n) || math.Abs(square-1) > .1+3*math.Sqrt(2/n) {
			t.Errorf("%s: mean %v, mean square %v over %v", f, mean, square, n)
		}
	}
}

// Damaged cells in a snapshot are refused when it is read, and do not cause a panic at the next step.
func TestDamagedCellsAreRefused(t *testing.T) {
	for name, damage := range map[string]func(*ModelWire, *cellsWire){
		"a first result that is not there": func(_ *ModelWire, c *cellsWire) { c.All[len(c.All)-1].From = int32(len(c.Results)) },
		"results before those of the cell": func(_ *ModelWire, c *cellsWire) { c.All[1].From = -1 },
		"a cell that is too small":         func(_ *ModelWire, c *cellsWire) { c.All[0].N = leastCell - 1 },
		"no leaves": func(m *ModelWire, _ *cellsWire) {
			for i := range m.Regressions {
				m.Regressions[i].Leaves = nil
			}
		},
		"no names": func(m *ModelWire, _ *cellsWire) { m.Names = nil },
		"an unknown category": func(m *ModelWire, _ *cellsWire) {
			for i := range m.Regressions {
				if r := &m.Regressions[i]; r.Categories {
					r.Cells.Results[0].What = int32(r.Q)
				}
			}
		},
	} {
		w := lawsOfStates(t).Model.Wire()
		several := slices.IndexFunc(w.Regressions, func(r regressionWire) bool { return len(r.Cells.All) > 1 })
		damage(&w, w.Regressions[several].Cells)
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: it is read", name)
				}
			}()
			w.Live()
		}()
	}
}
