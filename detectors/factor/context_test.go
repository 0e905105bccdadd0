package factor

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
)

var bySegment = []string{"labels.segment"}

// visitor returns a decision for a visitor of a segment whose observation is one number.
func visitor(segment string, action int32, reward float64) *ingest.Unit {
	u := &ingest.Unit{Length: 1, ActionKind: ingest.ActionCategory, Actions: []ingest.Count{{Name: "a"}, {Name: "b"}}}
	u.Actions[action].N = 1
	u.Reward.Add(reward)
	u.Steps = &ingest.Steps{Names: []string{"age"}, At: []int32{0}, Actions: []int32{action}, Rows: []float32{7, float32(reward)}}
	if segment != "" {
		u.Labels = []ingest.Label{{Name: "labels.other", Value: "x"}, {Name: "labels.segment", Value: segment}}
	}
	return u
}

func TestInContext(t *testing.T) {
	u := visitor("new", 1, 2)
	in := InContext(u, bySegment, false)
	if row := in.Steps.Row(0); len(row) != 3 || row[0] != 7 || row[1] <= 0 || row[1] >= 1 || row[2] != 2 || !in.Steps.Sound(2) {
		t.Errorf("the step is %v of %q", row, in.Steps.Names)
	}
	if len(u.Steps.Names) != 1 {
		t.Error("the unit itself has changed")
	}
	code := func(segment string) float32 {
		return InContext(visitor(segment, 0, 0), bySegment, false).Steps.Row(0)[1]
	}
	if code("new") != in.Steps.Row(0)[1] || code("guest") == code("new") || code("") != 0 {
		t.Errorf("the numbers of labels are %v, %v, %v", code("new"), code("guest"), code(""))
	}
	if got := InContext(u, nil, false); got != u {
		t.Error("without labels to split by, the unit is another one")
	}
}

// A decision without observations has a step of its action and reward if that is asked for.
func TestInContextOfNothing(t *testing.T) {
	u := visitor("", 0, 2)
	u.Steps, u.Actions = nil, u.Actions[:1]
	if got := InContext(u, nil, false); got != u {
		t.Error("a bare decision has a step that nobody asked for")
	}
	if s := InContext(u, nil, true).Steps; s == nil || len(s.Names) != 0 || !slices.Equal(s.Row(0), []float32{2}) || !s.Sound(1) {
		t.Errorf("the steps are %+v", s)
	}
	u.ActionKind, u.Actions = ingest.ActionNumeric, nil
	u.Numeric = []ingest.NamedMoments{{Signal: "outcome.x"}, {Signal: "action.0"}}
	u.Numeric[1].Add(.5)
	if s := InContext(u, nil, true).Steps; s == nil || s.Numbers != 1 || !slices.Equal(s.Row(0), []float32{.5, 2}) || !s.Sound(0) {
		t.Errorf("the steps of a number are %+v", s)
	}
	u.Numeric[1].Add(.7)
	if s := InContext(u, nil, true).Steps; s != nil {
		t.Errorf("the steps of two numbers are %+v", s)
	}
}

// A decision without observations has the step of its labels; other units without steps have none.
func TestInContextWithoutObservations(t *testing.T) {
	u := visitor("new", 0, 2)
	u.Steps, u.Actions = nil, u.Actions[:1]
	if s := InContext(u, bySegment, false).Steps; s == nil || len(s.Names) != 1 || !slices.Equal(s.Row(0)[1:], []float32{2}) || !s.Sound(1) {
		t.Errorf("the steps are %+v", s)
	}
	for name, change := range map[string]func(u *ingest.Unit){
		"no label":    func(u *ingest.Unit) { u.Labels = nil },
		"two steps":   func(u *ingest.Unit) { u.Length = 2 },
		"two actions": func(u *ingest.Unit) { u.Actions = []ingest.Count{{Name: "a"}, {Name: "b"}} },
		"no reward":   func(u *ingest.Unit) { u.Reward = ingest.Moments{} },
		"numbers":     func(u *ingest.Unit) { u.ActionKind = ingest.ActionNumeric },
	} {
		other := *u
		change(&other)
		if InContext(&other, bySegment, false).Steps != nil {
			t.Errorf("%s: there are steps", name)
		}
	}
}

// Laws distinguish the most common values of a label, and continue to work when the configuration begins or stops
// splitting by labels.
func TestKindsOfALabel(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 0))
	var units []Told
	for i := range 600 {
		segment := fmt.Sprintf("common-%d", i%3)
		if i%200 == 0 {
			segment = fmt.Sprintf("rare-%d", i)
		}
		units = append(units, Of(InContext(visitor(segment, int32(rng.IntN(2)), rng.NormFloat64()), bySegment, false)))
	}
	v := vocabularyOf(units)
	if len(v.Kinds) != 1 || len(v.Kinds[0]) != 3 || len(v.Names) != 4 {
		t.Fatalf("kinds %v, components %q", v.Kinds, v.Names)
	}
	ones := func(u *ingest.Unit) (sum float32, known bool) {
		e := v.episode(Of(u))
		if e == nil {
			return 0, false
		}
		for _, x := range e[0].Observation[1:] {
			sum += x
		}
		return sum, e[0].Observation[0] == 7 && e[0].Reward == 1
	}
	for segment, want := range map[string]float32{"common-1": 1, "rare-0": 0, "": 0} {
		if sum, known := ones(InContext(visitor(segment, 0, 1), bySegment, false)); sum != want || !known {
			t.Errorf("%q is %v of the kinds, %t", segment, sum, known)
		}
	}
	if _, known := ones(visitor("common-1", 0, 1)); known {
		t.Error("a step without labels is judged by laws with labels")
	}
	plain := vocabularyOf([]Told{Of(visitor("", 0, 1))})
	if e := plain.episode(Of(InContext(visitor("common-1", 0, 1), bySegment, false))); len(e) != 1 || len(e[0].Observation) != 1 || e[0].Reward != 1 {
		t.Errorf("laws without labels judge %+v", e)
	}
	w := (&Model{Vocabulary: v, baseline: baseline{}}).Wire()
	if again := w.Live(); !slices.EqualFunc(again.Vocabulary.Kinds, v.Kinds, slices.Equal) {
		t.Errorf("saved kinds are %v, want %v", again.Vocabulary.Kinds, v.Kinds)
	}
}

// A decision on a whole number has a category. If more than a twentieth of the decisions have fractions, the laws judge
// numbers.
func TestVocabularyOfWholeNumbers(t *testing.T) {
	decided := func(x float64, whole bool) Told {
		u := &ingest.Unit{Length: 1, ActionKind: ingest.ActionNumeric}
		u.Steps = &ingest.Steps{Names: []string{"age"}, Numbers: 1, At: []int32{0}, Rows: []float32{7, float32(x), 1}}
		if whole {
			u.ActionKind, u.Actions = ingest.ActionCategory, []ingest.Count{{Name: fmt.Sprint(x), N: 1}}
			u.Steps = &ingest.Steps{Names: []string{"age"}, At: []int32{0}, Actions: []int32{0}, Rows: []float32{7, 1}}
		}
		return Of(u)
	}
	of := func(fractions int) (units []Told) {
		for i := range 100 {
			units = append(units, decided(1+.5*float64(i%2), i >= 2*fractions || i%2 == 0))
		}
		return units
	}
	v := vocabularyOf(of(10))
	for _, x := range []float64{1, 1.5} {
		if e := v.episode(decided(x, x == 1)); v.Numbers != 1 || len(e) != 1 || !slices.Equal(e[0].Action, []float32{float32(x)}) || e[0].Reward != 1 || e[0].Observation[0] != 7 {
			t.Errorf("%v is %+v of %d numbers", x, e, v.Numbers)
		}
	}
	if v := vocabularyOf(of(3)); v.Numbers != 0 || v.episode(decided(1, true)) == nil || v.episode(decided(1.5, false)) != nil {
		t.Errorf("with 3 fractions of 100, the vocabulary is %+v", v)
	}
	named := decided(1, true)
	named.Actions[0].Name = "stop"
	if v.episode(named) != nil {
		t.Error("a name is a number")
	}
}

// The law of bare decisions is that of the rewards of each action. It says nothing of rare actions, and is saved.
func TestLawOfBareDecisions(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	unit := func(action string, reward float64) Told {
		u := visitor("", 0, reward)
		u.Steps, u.Actions = nil, []ingest.Count{{Name: action, N: 1}}
		return Of(InContext(u, nil, true))
	}
	var told []Told
	for i := range 500 {
		switch {
		case i%100 == 0:
			told = append(told, unit("rare", 0))
		case rng.IntN(2) == 0:
			told = append(told, unit("low", float64(rng.IntN(2))))
		default:
			told = append(told, unit("high", 10+rng.NormFloat64()))
		}
	}
	var l Laws
	l.Freeze(told, 1<<16, 1<<20)
	if l.Model == nil {
		t.Fatal("there is no law")
	}
	wire := l.Model.Wire()
	again := wire.Live()
	for name, c := range map[string]struct {
		told   Told
		known  bool
		higher bool
	}{
		"as usual":       {unit("high", 10), true, false},
		"higher":         {unit("high", 14), true, true},
		"of another one": {unit("low", 10), true, true},
		"a rare action":  {unit("rare", 0), false, false},
		"a new action":   {unit("new", 0), false, false},
	} {
		want := NewScorer(l.Model).Score(l.Model.Vocabulary.episode(c.told))
		if got := NewScorer(&again).Score(again.Vocabulary.episode(c.told)); got.Factors != want.Factors {
			t.Errorf("%s: scores of %+v once it is restored, want %+v", name, got.Factors, want.Factors)
		}
		z := want.Factors[Reward]
		if known := z.N == 1; known != c.known || known && (z.Mean > 1.5) != c.higher || want.Asked[Reward] != 1 || want.Asked[Dynamics] != 0 {
			t.Errorf("%s: %+v, asked %v", name, want.Factors, want.Asked)
		}
	}
}
