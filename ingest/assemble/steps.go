package assemble

import (
	"cmp"
	"slices"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Of the steps of a unit, the first headSteps are kept, the last tailSteps, and a random sample of runs of runSteps
// between them: the law of an observation needs the one that follows it.
const (
	headSteps = 17
	tailSteps = 2
	runSteps  = 3
	runs      = (ingest.MaxKeptSteps - headSteps - tailSteps) / runSteps
)

// keeper keeps steps of a unit, with the components of the observation that all of them have. Only steps with the kind of
// action of the first one are kept: if others come, the unit has none. Nor has it any if a step is missing or late, since
// another step would seem to follow.
type keeper struct {
	Kept   ingest.Steps // head and runs, in the order of their places
	Tail   ingest.Steps // the newest steps, in turn
	Void   bool
	Last   int64 // number of the newest step in the telemetry, negative if it has none
	Stride int64 // by which the second step's number is larger than the first one's
	Whole  bool  // all actions are whole numbers so far: steps have the number and, as these may be categories, the category

	row []float32 // of the newest step
}

// reset empties the keeper, but keeps its memory.
func (k *keeper) reset() {
	k.Void, k.Last, k.Stride, k.Whole = false, 0, 0, false
	for _, s := range []*ingest.Steps{&k.Kept, &k.Tail} {
		clear(s.Names)
		*s = ingest.Steps{Names: s.Names[:0], At: s.At[:0], Actions: s.Actions[:0], Rows: s.Rows[:0]}
	}
}

// begun reports whether there are steps.
func (k *keeper) begun() bool { return k != nil && len(k.Kept.At) > 0 }

// add keeps a step, whose category is the action with this index, if it is to be kept: number counts the steps of the
// unit from 0.
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

// begin notes what the steps of the unit consist of.
func (k *keeper) begin(e *ingest.Event) {
	for _, o := range e.Observation[:min(len(e.Observation), ingest.MaxKeptObservations)] {
		k.Kept.Names = append(k.Kept.Names, o.Name)
	}
	if e.Action.Kind == ingest.ActionNumeric || isWhole(&e.Action) {
		k.Kept.Numbers = len(e.Action.Values)
	}
	k.Whole = isWhole(&e.Action)
}

// isWhole reports whether an action is a whole number: a category, unless others of its kind have fractions.
func isWhole(a *ingest.Action) bool { return a.Kind == ingest.ActionCategory && len(a.Values) == 1 }

// settle decides whether whole numbers were numbers or categories, once another action tells.
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

// withoutColumn removes a number from each row that has been kept.
func (k *keeper) withoutColumn(at int) {
	width := k.Kept.Width()
	withoutColumn(&k.Kept, at, width)
	withoutColumn(&k.Tail, at, width)
}

// withoutColumn removes a number from each row of a width.
func withoutColumn(s *ingest.Steps, at, width int) {
	rows := s.Rows[:0]
	for i := range s.At {
		row := s.Rows[i*width : (i+1)*width]
		rows = append(append(rows, row[:at]...), row[at+1:]...)
	}
	s.Rows = rows
}

// follows reports whether a step follows the last one, as far as the telemetry numbers steps: by as much as the second
// followed the first.
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

// fits reports whether a step consists of the same as those before, but for components of the observation that it lacks,
// which they lose.
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

// observes begins the row of a step with its observation, and reports whether it has some, of single precision. Components
// that the step lacks are dropped, such as what telemetry gives with the first step alone.
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

// read completes the row of a step.
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

// put writes a step to a place.
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

// placeOf returns the place at which a step is kept, or -1. Runs are sampled evenly (reservoir sampling, algorithm R),
// depending on only the number and the seed.
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

// steps returns the kept steps in order, in newly allocated memory; nil without any.
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

// valid reports whether a snapshot keeps to the bounds that adding relies on.
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
