package assemble

import (
	"cmp"
	"slices"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// A keeper keeps the first headSteps and the last tailSteps steps of a unit, and a random sample of runs of runSteps
// consecutive steps between them. Runs are needed because the law of an observation relates it to the following one.
const (
	headSteps = 17
	tailSteps = 2
	runSteps  = 3
	runs      = (ingest.MaxKeptSteps - headSteps - tailSteps) / runSteps
)

// keeper keeps individual steps of a unit, with the components of the observation that all of them have. All steps must
// have the same kind of action as the first one, and none may be missing or late, because a wrong step would then seem
// to follow. Otherwise, the unit has no individual steps.
type keeper struct {
	Kept   ingest.Steps // head and runs, in order
	Tail   ingest.Steps // newest steps, as a ring buffer
	Void   bool
	Last   int64 // step number of the newest step in the telemetry, negative if it has none
	Stride int64 // difference between the step numbers of the first two steps
	Whole  bool  // all actions so far were whole numbers, which may be categories: steps have both the number and the category

	row []float32 // of the newest step
}

// reset empties the keeper. It keeps the memory for reuse.
func (k *keeper) reset() {
	k.Void, k.Last, k.Stride, k.Whole = false, 0, 0, false
	for _, s := range []*ingest.Steps{&k.Kept, &k.Tail} {
		clear(s.Names)
		*s = ingest.Steps{Names: s.Names[:0], At: s.At[:0], Actions: s.Actions[:0], Rows: s.Rows[:0]}
	}
}

// begun reports whether any steps are kept.
func (k *keeper) begun() bool { return k != nil && len(k.Kept.At) > 0 }

// add adds the next step of the unit, and keeps it if it is selected. number is its number in the unit, from 0, and
// category is the index of its category in Unit.Actions.
func (k *keeper) add(e *ingest.Event, number int64, category int, seed int64) {
	if k.Void || number > 1<<30 {
		return
	}
	if number == 0 && len(k.Kept.At) == 0 {
		k.begin(e)
	}
	if !k.follows(e.Step, number) || !k.fits(e) {
		k.Void = true
		return
	}
	k.settle(&e.Action)
	k.read(e)
	k.put(&k.Tail, int(number%tailSteps), int32(number), category)
	if place := placeOf(number, seed); place >= 0 {
		k.put(&k.Kept, place, int32(number), category)
	}
}

// begin sets the components of the unit's steps from the first one.
func (k *keeper) begin(e *ingest.Event) {
	for _, o := range e.Observation[:min(len(e.Observation), ingest.MaxKeptObservations)] {
		k.Kept.Names = append(k.Kept.Names, o.Name)
	}
	if e.Action.Kind == ingest.ActionNumeric || isWhole(&e.Action) {
		k.Kept.Numbers = len(e.Action.Values)
	}
	k.Whole = isWhole(&e.Action)
}

// isWhole reports whether an action is a whole number. Such a number is a category, unless other actions of the unit
// have fractions.
func isWhole(a *ingest.Action) bool { return a.Kind == ingest.ActionCategory && len(a.Values) == 1 }

// settle decides whether whole numbers were numbers or categories, once a different action shows which.
func (k *keeper) settle(a *ingest.Action) {
	switch {
	case !k.Whole || isWhole(a):
		return
	case a.Kind == ingest.ActionNumeric:
		k.Kept.Actions, k.Tail.Actions = k.Kept.Actions[:0], k.Tail.Actions[:0]
	default:
		k.withoutColumn(len(k.Kept.Names))
		k.Kept.Numbers = 0
	}
	k.Whole = false
}

// withoutColumn removes a number from all kept rows.
func (k *keeper) withoutColumn(at int) {
	width := k.Kept.Width()
	withoutColumn(&k.Kept, at, width)
	withoutColumn(&k.Tail, at, width)
}

// withoutColumn removes a number from all rows, which have the given width.
func withoutColumn(s *ingest.Steps, at, width int) {
	rows := s.Rows[:0]
	for i := range s.At {
		row := s.Rows[i*width : (i+1)*width]
		rows = append(append(rows, row[:at]...), row[at+1:]...)
	}
	s.Rows = rows
}

// follows reports whether a step immediately follows the last one, if the telemetry numbers steps. The step numbers
// must always increase by as much as from the first to the second step.
func (k *keeper) follows(step, number int64) bool {
	by := step - k.Last
	k.Last = step
	switch {
	case step < 0 || number == 0:
		return true
	case number == 1:
		k.Stride = by
	}
	return by > 0 && by == k.Stride
}

// fits reports whether a step has the same components as the previous ones. Components of the observation that it lacks
// are removed from the previous steps.
func (k *keeper) fits(e *ingest.Event) bool {
	switch {
	case e.Action.Kind == ingest.ActionNone:
		return false
	case k.Kept.Numbers > ingest.MaxKeptNumbers,
		e.Action.Kind == ingest.ActionNumeric && (len(e.Action.Values) != k.Kept.Numbers || k.Kept.Numbers == 0),
		e.Action.Kind == ingest.ActionCategory && k.Kept.Numbers > 0 && !k.Whole && (k.Kept.Numbers > 1 || !isWhole(&e.Action)):
		return false
	}
	if k.Kept.Numbers > 0 && slices.ContainsFunc(e.Action.Values, func(x float64) bool { return !ingest.Single(x) }) {
		return false
	}
	return k.observes(e.Observation)
}

// observes starts the row of a step with its observation. It reports whether the step has an observation whose values
// are in the range of single precision. Components that the step lacks are removed from all steps, such as those that
// the telemetry has only in the first step.
func (k *keeper) observes(observation []ingest.Value) bool {
	k.row = k.row[:0]
	for next := 0; len(k.row) < len(k.Kept.Names); next++ {
		name := k.Kept.Names[len(k.row)]
		if next >= len(observation) || observation[next].Name != name {
			next = slices.IndexFunc(observation, func(v ingest.Value) bool { return v.Name == name })
		}
		switch {
		case next < 0:
			k.withoutColumn(len(k.row))
			k.Kept.Names = slices.Delete(k.Kept.Names, len(k.row), len(k.row)+1)
		case !ingest.Single(observation[next].X):
			return false
		default:
			k.row = append(k.row, float32(observation[next].X))
		}
	}
	return len(k.row) > 0
}

// read adds the action and the reward to the row of a step.
func (k *keeper) read(e *ingest.Event) {
	if k.Kept.Numbers > 0 {
		for _, x := range e.Action.Values {
			k.row = append(k.row, float32(x))
		}
	}
	reward := 0.
	if e.HasReward && ingest.Single(e.Reward) {
		reward = e.Reward
	}
	k.row = append(k.row, float32(reward))
}

// put writes a step to the given place.
func (k *keeper) put(s *ingest.Steps, place int, number int32, category int) {
	if place >= len(s.At) {
		place = len(s.At)
		s.At = append(s.At, 0)
		s.Rows = append(s.Rows, k.row...)
		if k.Kept.Numbers == 0 || k.Whole {
			s.Actions = append(s.Actions, 0)
		}
	}
	s.At[place] = number
	copy(s.Rows[place*len(k.row):], k.row)
	if k.Kept.Numbers == 0 || k.Whole {
		s.Actions[place] = int32(category)
	}
}

// placeOf returns the place at which a step is kept, or -1. Runs are sampled uniformly (reservoir sampling, algorithm
// R). The result depends only on the number and the seed.
func placeOf(number, seed int64) int {
	if number < headSteps {
		return int(number)
	}
	run, at := (number-headSteps)/runSteps, int((number-headSteps)%runSteps)
	if run >= runs {
		run = int64(ingest.Mix(uint64(seed)+uint64(run)*ingest.MixStep) % uint64(run+1))
	}
	if run >= runs {
		return -1
	}
	return headSteps + int(run)*runSteps + at
}

// steps returns the kept steps in order, in newly allocated memory, or nil if there are none.
func (k *keeper) steps() *ingest.Steps {
	if !k.begun() || k.Void {
		return nil
	}
	type place struct {
		from *ingest.Steps
		at   int
	}
	places := make([]place, 0, len(k.Kept.At)+tailSteps)
	for i := range k.Kept.At {
		places = append(places, place{&k.Kept, i})
	}
	for i, n := range k.Tail.At {
		if !slices.Contains(k.Kept.At, n) {
			places = append(places, place{&k.Tail, i})
		}
	}
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.from.At[a.at], b.from.At[b.at]) })
	w := k.Kept.Width()
	out := &ingest.Steps{
		Names: slices.Clone(k.Kept.Names), Numbers: k.Kept.Numbers, At: make([]int32, 0, len(places)),
		Rows: make([]float32, 0, w*len(places)),
	}
	if k.Kept.Numbers == 0 || k.Whole {
		out.Actions = make([]int32, 0, len(places))
	}
	for _, p := range places {
		out.At = append(out.At, p.from.At[p.at])
		out.Rows = append(out.Rows, p.from.Rows[p.at*w:(p.at+1)*w]...)
		if k.Kept.Numbers == 0 || k.Whole {
			out.Actions = append(out.Actions, p.from.Actions[p.at])
		}
	}
	if k.Whole {
		withoutColumn(out, len(out.Names), out.Width())
		out.Numbers = 0
	}
	return out
}

// keeperWire is the wire form of a keeper.
type keeperWire struct {
	Kept ingest.WireSteps `cbor:"1,keyasint"`
	Tail ingest.WireSteps `cbor:"2,keyasint"`
	Void bool             `cbor:"3,keyasint,omitempty"`

	Last   int64 `cbor:"4,keyasint,omitempty"`
	Stride int64 `cbor:"5,keyasint,omitempty"`
	Whole  bool  `cbor:"6,keyasint,omitempty"`
}

func (k *keeper) wire() *keeperWire {
	if k == nil || len(k.Kept.At) == 0 && !k.Void {
		return nil
	}
	return &keeperWire{ingest.WireSteps(k.Kept), ingest.WireSteps(k.Tail), k.Void, k.Last, k.Stride, k.Whole}
}

func (w *keeperWire) live() *keeper {
	if w == nil {
		return nil
	}
	return &keeper{Kept: ingest.Steps(w.Kept), Tail: ingest.Steps(w.Tail), Void: w.Void, Last: w.Last, Stride: w.Stride, Whole: w.Whole}
}

// valid reports whether a restored keeper satisfies the invariants.
func (k *keeper) valid() bool {
	if k == nil {
		return true
	}
	n, m := len(k.Kept.At), len(k.Tail.At)
	w := k.Kept.Width()
	actions := k.Kept.Numbers == 0 || k.Whole
	return k.Void || n == 0 || n <= headSteps+runs*runSteps && m <= tailSteps && k.Kept.Numbers >= 0 && (!k.Whole || k.Kept.Numbers == 1) && len(k.Kept.Rows) == n*w &&
		len(k.Tail.Rows) == m*w && (!actions || len(k.Kept.Actions) == n && len(k.Tail.Actions) == m)
}
