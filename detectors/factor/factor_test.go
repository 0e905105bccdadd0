package factor

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

// world is an environment with three observations and two actions, an agent in it, and what a test can change.
type world struct {
	start  float64 // mean of the first observation
	bias   float64 // of the policy, for the second action
	pull   float64 // of the dynamics
	worth  float64 // of the first observation
	noise  float64 // of the sensors
	delay  bool    // of the sensors, by one step
	frozen bool    // of the second observation
	zero   float64 // of the sensor of the first observation
	goesOn bool    // units are parts of one episode
}

func healthy() world { return world{pull: .9, worth: 1} }

// told returns units of a world, in the form in which a bank keeps them.
func (w world) told(seed uint64, n int) []Told {
	rng := rand.New(rand.NewPCG(seed, 9))
	units := make([]Told, n)
	for i := range units {
		s := &ingest.Steps{Names: []string{"x", "y", "z"}}
		o := [3]float64{w.start + rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()}
		late := o
		for t := range 40 {
			seen := o
			if w.delay {
				seen, late = late, o
			}
			for k := range seen {
				seen[k] += w.noise * rng.NormFloat64()
			}
			if w.frozen {
				seen[1] = 0
			}
			seen[0] += w.zero
			a := 0
			if seen[0]+w.bias+.7*rng.NormFloat64() > 0 {
				a = 1
			}
			reward := w.worth*o[0] - .5*float64(a) + .1*rng.NormFloat64()
			number := int32(t)
			if w.goesOn {
				number++
			}
			s.At, s.Actions = append(s.At, number), append(s.Actions, int32(a))
			s.Rows = append(s.Rows, float32(seen[0]), float32(seen[1]), float32(seen[2]), float32(reward))
			push := 1 - 2*float64(a)
			o = [3]float64{w.pull*o[0] + .4*push + .1*rng.NormFloat64(), .8*o[1] + .3*o[0] + .1*rng.NormFloat64(), .5*o[2] + .3*push + .2*rng.NormFloat64()}
		}
		units[i] = Told{s, []ingest.Count{{Name: "left", N: 20}, {Name: "right", N: 20}}, true, rng.Uint64()}
	}
	return units
}

// The laws of a healthy baseline are learned once, as that takes seconds under the race detector.
var learnt = sync.OnceValue(func() *Model {
	var l Laws
	l.Freeze(healthy().told(1, 400), 0, defaultBytes)
	return l.Model
})

// observe scores a unit and adds it to the laws.
func observe(l *Laws, t Told, ordinal int64) {
	var m Memory
	l.Observe(m.told(l.Model, t), ordinal)
}

func lawsOf(t *testing.T) *Laws {
	t.Helper()
	m := learnt()
	if m == nil {
		t.Fatal("no laws were learnt")
	}
	return &Laws{Model: m}
}

func TestTheLawThatMovedIsNamed(t *testing.T) {
	base := lawsOf(t)
	for name, c := range map[string]struct {
		turn  func(*world)
		cause Cause
		moved Factor
	}{
		"other starts":          {func(w *world) { w.start = 1 }, ByEnvironment, Start},
		"another policy":        {func(w *world) { w.bias = .5 }, ByPolicy, Policy},
		"another preference":    {func(w *world) { w.bias = .2 }, ByPolicy, Policy},
		"other dynamics":        {func(w *world) { w.pull = .8 }, ByEnvironment, Dynamics},
		"another reward":        {func(w *world) { w.worth = .8 }, ByReward, Reward},
		"noisy sensors":         {func(w *world) { w.noise = .5 }, ByObservations, Dynamics},
		"late sensors":          {func(w *world) { w.delay = true }, ByObservations, Dynamics},
		"a sensor that is dead": {func(w *world) { w.frozen = true }, ByObservations, Dynamics},
		"a shifted sensor":      {func(w *world) { w.zero = 1 }, ByObservations, Start},
	} {
		l := *base
		w := healthy()
		c.turn(&w)
		for i, u := range w.told(2, 100) {
			observe(&l, u, int64(i))
		}
		v := l.Judge(0)
		if v.Cause != c.cause || !v.Factors[c.moved].Moved {
			t.Errorf("%s: %s (%d), want %s with %s: %+v", name, v.Cause, v.Broken, c.cause, c.moved, v.Factors)
		}
	}
}

// In a task without episodes, units have no start. There, a shifted sensor moves the dynamics and the reward together.
// Another reward function or environment moves only one of them, or one further than the other.
func TestTheLawThatMovedInATaskWithoutEpisodes(t *testing.T) {
	begin := healthy()
	begin.goesOn = true
	var base Laws
	base.Freeze(begin.told(1, 400), 0, defaultBytes)
	for name, c := range map[string]struct {
		turn  func(*world)
		cause Cause
	}{
		"nothing":        {func(*world) {}, Unknown},
		"another policy": {func(w *world) { w.bias = .5 }, ByPolicy},
		"other dynamics": {func(w *world) { w.pull = .8 }, ByEnvironment},
		"another reward": {func(w *world) { w.worth = .8 }, ByReward},
		"another reward in a slightly different world": {func(w *world) { w.worth, w.pull = .5, .8 }, ByReward},
		"a shifted sensor": {func(w *world) { w.zero = .3 }, ByObservations},
	} {
		l, w := base, begin
		c.turn(&w)
		for i, u := range w.told(2, 100) {
			observe(&l, u, int64(i))
		}
		v := l.Judge(0)
		if v.Cause != c.cause || v.Factors[Start].Moved {
			t.Errorf("%s: %s (%d), want %s: %+v", name, v.Cause, v.Broken, c.cause, v.Factors)
		}
	}
}

// In 20 windows of 100 healthy units, no law moves: at a chance of 4e-4 per window, at least one would in .8 %.
func TestHealthyUnitsMoveNoLaw(t *testing.T) {
	moveNoLaw(t, lawsOf(t), healthy().told(3, 2000), 100)
}

// moveNoLaw checks that no law has moved in any window of the units.
func moveNoLaw(t *testing.T, l *Laws, units []Told, window int) {
	t.Helper()
	for i, u := range units {
		observe(l, u, int64(i))
		if (i+1)%window != 0 {
			continue
		}
		for f, m := range l.Judge(int64(i + 1 - window)).Factors {
			if m.Moved {
				t.Errorf("units to %d: %s has moved: %+v", i, Factor(f), m)
			}
		}
	}
}

// If a policy chooses another action in the same situations, the example shows how often it chooses the action.
func TestExamplesAreOfTheSameSituations(t *testing.T) {
	l := lawsOf(t)
	w := healthy()
	w.bias = -.8
	for i, u := range w.told(4, 100) {
		observe(l, u, int64(i))
	}
	for _, e := range l.Judge(0).Examples {
		if e.Factor == Policy && (!e.Share || e.Actual == e.Expected || e.Name != "left" && e.Name != "right" ||
			(e.Name == "right") != (e.Actual < e.Expected)) {
			t.Errorf("%+v", e)
		}
	}
}

// Preferences are only decisive if actions are no more unusual than before.
func TestUnusualActionsOutweighPreferences(t *testing.T) {
	unusual := Shift{Coordinate: Coordinate{Factor: Policy, part: partPolicy}, Spread: true, Effect: .8, Z: 6}
	likes := Shift{Coordinate: Coordinate{Factor: Policy, part: partPreference, Index: 1}, Effect: 3, Z: 12}
	var m Movement
	if !m.take(unusual, 3) || m.take(likes, 3) || m.Foremost != unusual {
		t.Errorf("%+v, want %+v to stay the foremost", m, unusual)
	}
	m, unusual.Z = Movement{}, 3
	if !m.take(unusual, 3) || m.Moved || !m.take(likes, 3) || !m.Moved || m.Foremost != likes {
		t.Errorf("%+v, want %+v to be the foremost", m, likes)
	}
}

// Saved laws from an older build have no preferences, and still give the same verdicts.
func TestLawsWithoutPreferences(t *testing.T) {
	w := healthy()
	w.bias = .2
	units := w.told(2, 100)
	wire := lawsOf(t).Wire()
	of := len(learnt().names) - 1
	wire.Model.Scores = wire.Model.Scores[:2*of]
	old := wire.Live()
	for i, u := range units {
		observe(&old, u, int64(i))
	}
	if n := len(old.Recent[0].Mean); n != of {
		t.Errorf("units have %d scores, want %d", n, of)
	}
	if v := old.Judge(0); v.Cause != Unknown || v.Factors[Policy].Moved {
		t.Errorf("%s: %+v", v.Cause, v.Factors)
	}
}

// Restored laws give the same verdicts as those that were never saved.
func TestLawsAreSaved(t *testing.T) {
	l := lawsOf(t)
	units := healthy().told(5, 260)
	for i, u := range units[:130] {
		observe(l, u, int64(i))
	}
	wire := l.Wire()
	again := wire.Live()
	for i, u := range units[130:] {
		observe(l, u, int64(130+i))
		observe(&again, u, int64(130+i))
	}
	if len(l.Recent) != recentUnits {
		t.Fatalf("%d units are kept, want %d", len(l.Recent), recentUnits)
	}
	if got, want := again.Judge(100), l.Judge(100); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if ingesttest.Text(again.Wire()) != ingesttest.Text(l.Wire()) {
		t.Error("it is saved in another way once it was read")
	}
}

// If there are too many observations, those whose changes can be explained are chosen, and the others are ignored.
func TestSimObservationsAreChosenByWhatTheyExplain(t *testing.T) {
	wide := func(w world, seed uint64, n int) []Told {
		rng := rand.New(rand.NewPCG(seed, 8))
		units := w.told(seed, n)
		for i := range units {
			s := units[i].Steps
			out := &ingest.Steps{At: s.At, Actions: s.Actions}
			for k := range 29 {
				out.Names = append(out.Names, "noise"+strconv.Itoa(k))
			}
			out.Names = append(out.Names, s.Names...)
			for j := range s.At {
				for range 29 {
					out.Rows = append(out.Rows, float32(rng.NormFloat64()))
				}
				out.Rows = append(out.Rows, s.Row(j)...)
			}
			units[i].Steps = out
		}
		return units
	}
	l := &Laws{}
	l.Freeze(wide(healthy(), 1, 300), 0, defaultBytes)
	if l.Model == nil || l.Model.Bytes() > defaultBytes {
		t.Fatalf("the laws do not keep to their memory: %+v", l.Model)
	}
	if n := len(l.Model.Vocabulary.Names); n < 5 || n == 32 {
		t.Errorf("%d of 32 components were chosen", n)
	}
	w := healthy()
	w.pull = .8
	for i, u := range wide(w, 2, 100) {
		observe(l, u, int64(i))
	}
	wire := l.Wire()
	again := wire.Live()
	if v, saved := l.Judge(0), again.Judge(0); v.Cause != ByEnvironment || saved.Cause != ByEnvironment {
		t.Errorf("the cause is %s, and %s once saved: %+v", v.Cause, saved.Cause, v.Factors)
	}
}

func TestSimModelsKeepToTheirMemory(t *testing.T) {
	v := vocabulary(8, 0, 3)
	if m := Learn(v, walkers(7, 120), 16<<10); m != nil {
		t.Errorf("a model of %d bytes is learnt, where there is no room for the scores", m.Bytes())
	}
	for _, bytes := range []int{128 << 10, 160 << 10, defaultBytes} {
		m := Learn(v, walkers(7, 120), bytes)
		if got := m.Bytes(); got > bytes {
			t.Errorf("%d bytes, want at most %d", got, bytes)
		}
	}
}

// A baseline of single steps does not learn dynamics. Longer episodes are still judged by the laws that it has learned.
func TestLongerEpisodesThanThoseOfTheBaseline(t *testing.T) {
	short := healthy().told(11, 400)
	for i := range short {
		short[i].Steps.At, short[i].Steps.Actions = short[i].Steps.At[:1], short[i].Steps.Actions[:1]
		short[i].Steps.Rows = short[i].Steps.Rows[:short[i].Steps.Width()]
	}
	var l Laws
	if l.Freeze(short, 0, defaultBytes); l.Model == nil {
		t.Fatal("no laws were learnt")
	}
	for i, u := range (world{start: 1, pull: .9, worth: 1}).told(12, 60) {
		observe(&l, u, int64(i))
	}
	if v := l.Judge(0); v.Broken != Whole || !v.Factors[Start].Moved {
		t.Errorf("%+v, want that episodes start elsewhere and observations are whole", v)
	}
}

// A thinned unit fits into memory even if its steps are consecutive, and keeps its first and last step.
func TestThinnedStepsFit(t *testing.T) {
	for _, c := range []struct{ observations, steps, bytes int }{
		{4, 64, 1 << 10}, {4, 64, 700}, {32, 64, 4 << 10}, {32, 9, 3 << 10}, {4, 64, 1 << 20},
	} {
		s := &ingest.Steps{Names: make([]string, c.observations)}
		for i := range c.steps {
			s.At, s.Actions = append(s.At, int32(i)), append(s.Actions, 0)
			for range s.Width() {
				s.Rows = append(s.Rows, float32(i))
			}
		}
		thin := (Told{Steps: s, Terminated: true}).Thinned(c.bytes).Steps
		if thin.Bytes() > c.bytes {
			t.Errorf("%+v: %d bytes of %d are left", c, thin.Bytes(), s.Bytes())
		}
		if all := s.Bytes() <= c.bytes; all && len(thin.At) != c.steps {
			t.Errorf("%+v: %d steps are left, want all", c, len(thin.At))
		}
		if n := len(thin.At); !thin.Sound(1) || thin.At[0] != 0 || int(thin.At[n-1]) != c.steps-1 || thin.Row(n - 1)[0] != float32(c.steps-1) {
			t.Errorf("%+v: steps %v are left", c, thin.At)
		}
	}
}

// The laws ignore the hour and the weekday, which differ each day.
func TestLawsLeaveTheCalendarOut(t *testing.T) {
	steps := func(names []string, rows ...float32) Told {
		return Told{Actions: []ingest.Count{{Name: "a", N: 2}}, Steps: &ingest.Steps{Names: names, At: []int32{0, 1}, Actions: []int32{0, 0}, Rows: rows}}
	}
	all := []Told{
		steps([]string{"weekday"}, 3, .5, 3, .5), // no other observation
		steps([]string{"hour", "x", "time.is_weekend", "y"}, 7, 1, 0, 2, .5, 8, 3, 1, 4, .25),
	}
	v := vocabularyOf(all)
	if !reflect.DeepEqual(v.Names, []string{"x", "y"}) || v.Width != 4 {
		t.Fatalf("vocabulary %+v", v)
	}
	e := v.episode(all[1])
	if len(e) != 2 || !reflect.DeepEqual(e[0].Observation, []float32{1, 2}) || !reflect.DeepEqual(e[0].Next, []float32{3, 4}) || e[1].Reward != .25 {
		t.Errorf("steps %+v", e)
	}
	if narrow := v.of([]int32{1}); !reflect.DeepEqual(narrow.Names, []string{"y"}) || !reflect.DeepEqual(narrow.Columns, []int32{3}) || narrow.Width != 4 {
		t.Errorf("narrowed to %+v", narrow)
	}
	if v.episode(all[0]) != nil {
		t.Error("a unit of other components has steps")
	}
}

// An episode of one step includes components that telemetry reports only with the first step; the laws ignore them.
func TestLawsKnowWhatMostUnitsObserve(t *testing.T) {
	steps := func(names []string, rows ...float32) Told {
		s := &ingest.Steps{Names: names, Rows: rows}
		for i := range len(rows) / s.Width() {
			s.At, s.Actions = append(s.At, int32(i)), append(s.Actions, 0)
		}
		return Told{Actions: []ingest.Count{{Name: "a", N: 2}}, Steps: s}
	}
	short, long := steps([]string{"weight", "x"}, 7, 1, .5), steps([]string{"x"}, 1, .5, 2, .5)
	if v := vocabularyOf([]Told{short, long, long, short, long}); !slices.Equal(v.Names, long.Steps.Names) {
		t.Errorf("vocabulary %+v", v)
	}
}

// Each fold includes units of all hours, so that no hour is scored under laws of other hours only.
func TestFoldsSpreadOverTheBaseline(t *testing.T) {
	for _, n := range []int{100, 500, 1921, 20_000} {
		of, size := foldsOf(n), [folds]int{}
		reach := 2 * folds * max(leastRun+1, n/(folds*passes)+2) // number of successive units that include each fold
		for i, f := range of {
			if size[f]++; i%2 == 1 && of[i-1] != f {
				t.Fatalf("%d units: the pair of unit %d is in two folds", n, i)
			}
			if i >= reach {
				for fold := range folds {
					if !slices.Contains(of[i-reach:i], fold) {
						t.Fatalf("%d units: fold %d has none of the %d units before %d", n, fold, reach, i)
					}
				}
			}
		}
		if least := slices.Min(size[:]); least < n/folds/2 {
			t.Errorf("%d units: the smallest fold has %d", n, least)
		}
	}
}

// junction returns blocks of a traffic light that lets one of two queues pass, with 72 blocks per day, and a capacity
// per step. The number of waiting cars is the negative reward.
func junction(seed uint64, units int, capacity float64) []Told {
	rng := rand.New(rand.NewPCG(seed, 10))
	queues, phase := [2]float64{}, 0
	out := make([]Told, units)
	for i := range out {
		s := &ingest.Steps{Names: []string{"north", "east"}}
		hour := float64(i%72) / 3
		load := 1.5 + 4*math.Exp(-(hour-8)*(hour-8)/4) + 4*math.Exp(-(hour-17)*(hour-17)/6)
		for t := range 20 {
			for k, share := range []float64{1.2, .8} {
				queues[k] += float64(poisson(rng, load*share))
			}
			s.At, s.Rows = append(s.At, int32(t+1)), append(s.Rows, float32(queues[0]), float32(queues[1]))
			next := 0
			if rng.Float64() < 1/(1+math.Exp(.35*(queues[0]-queues[1]))) {
				next = 1
			}
			passing := capacity
			if next != phase {
				passing *= .8
			}
			phase = next
			queues[phase] = max(0, queues[phase]-float64(poisson(rng, passing)))
			s.Actions, s.Rows = append(s.Actions, int32(phase)), append(s.Rows, -float32(queues[0]+queues[1]))
		}
		out[i] = Told{s, []ingest.Count{{Name: "north", N: 12}, {Name: "east", N: 8}}, false, rng.Uint64()}
	}
	return out
}

func poisson(rng *rand.Rand, mean float64) (n int) {
	for p := rng.Float64(); p > math.Exp(-mean); p *= rng.Float64() {
		n++
	}
	return n
}

// Queues that grow because fewer cars can pass are caused by another environment, although the laws of rewards are
// inaccurate for queues longer than any in the baseline.
func TestRewardsOfNewGroundAreNotOfAnotherFunction(t *testing.T) {
	var l Laws
	l.Freeze(junction(3, 576, 21), 0, defaultBytes)
	if l.Model == nil {
		t.Fatal("no laws were learnt")
	}
	for i, u := range junction(4, 144, 8) {
		observe(&l, u, int64(i))
	}
	if v := l.Judge(0); v.Cause == ByReward || !v.Factors[Reward].Moved {
		t.Errorf("cause %s: %+v", v.Cause, v.Factors)
	}
}
