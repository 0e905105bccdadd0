package ingest_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/assemble"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

// decisionUnits returns the units that an assembler makes of random events, nearly all of which are decisions.
func decisionUnits(rng *rand.Rand, n int) (units []*ingest.Unit) {
	decisionEvents(rng, n, func(a *assemble.Assembler, e *ingest.Event) {
		a.Fold(e, func(u *ingest.Unit) { u.Reading, u.Run = 7, e.Pos.Offset/30; units = append(units, u) })
	})
	return units
}

func decisionEvents(rng *rand.Rand, n int, fold func(*assemble.Assembler, *ingest.Event)) {
	a := assemble.New(assemble.Config{}, assemble.NewMetrics(prometheus.NewRegistry()))
	for i := range int64(n) {
		e := ingest.Event{
			Pos: ingest.Position{Offset: 3 * i, Record: rng.Int32N(2)}, TS: i * 1_000_000, Policy: fmt.Sprint("policy-", rng.IntN(5)), Env: "prod",
			AgentID: fmt.Sprint("agent-", rng.IntN(50)), EpisodeID: fmt.Sprint(i), Length: -1, Terminated: rng.IntN(20) > 0,
			HasReward: rng.IntN(20) > 0, Reward: rng.NormFloat64(), Versions: ingest.Versions{Policy: fmt.Sprint(i / 100)},
			Action: ingest.Action{Kind: ingest.ActionCategory, Category: fmt.Sprint("action-", rng.IntN(1+rng.IntN(30)))},
		}
		switch rng.IntN(20) {
		case 0:
			e.Reward = []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), -math.MaxFloat64, 5e-324}[rng.IntN(6)]
		case 1:
			e.Action = ingest.Action{Kind: ingest.ActionNumeric, Values: []float64{rng.Float64(), 0}}
		case 2:
			e.Action = ingest.Action{}
		case 3:
			e.ActionProb = ingest.Prob{P: .5, Known: true}
		case 4:
			e.Observation = []ingest.Value{{Name: "x", X: rng.NormFloat64()}, {Name: "y"}}
		case 5:
			e.EpisodeID = fmt.Sprint(i - 1) // delivered again
		}
		if rng.IntN(10) > 0 {
			e.Outcomes = []ingest.Value{{Name: "clicked", X: float64(rng.IntN(2))}, {Name: "sold", X: rng.Float64()}}
		}
		fold(a, &e)
	}
}

// Decisions are written in the same way as their units.
func TestUnitSequenceWritesDecisionsAsUnits(t *testing.T) {
	var units, decisions ingest.UnitSequence
	apart, n := 0, 0
	decisionEvents(rand.New(rand.NewPCG(4, 4)), 5000, func(a *assemble.Assembler, e *ingest.Event) {
		same := func(u *ingest.Unit, got []byte) {
			if want := units.Append(nil, u); !slices.Equal(got, want) {
				t.Fatalf("%x is written, want %x, of\n%s", got, want, ingesttest.Text(u))
			}
			if n++; n%700 == 0 {
				units.Reset()
				decisions.Reset()
			}
		}
		if e.Pos.Offset%5 == 0 { // a number that is its outer deciles too, and may be 0
			e.Action = ingest.Action{Kind: ingest.ActionNumeric, Values: []float64{float64(e.Pos.Offset % 2)}, Scalar: true}
		}
		emit := func(u *ingest.Unit) { same(u, decisions.Append(nil, u)) }
		a.FoldApart(e, emit, func(d *ingest.Decision) {
			apart++
			d.Reading, d.Run = e.Pos.Offset/1000, e.Pos.Offset/30
			same(d.Unit(), decisions.AppendDecision(nil, d))
		})
	})
	if apart < 2000 || apart > n-500 {
		t.Errorf("%d of %d units are decisions", apart, n)
	}
}

// Units that are written as differences from previous units are read with every bit.
func TestSimUnitSequenceKeepsEveryBit(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var q ingest.UnitSequence
	for range 5 {
		units := append(decisionUnits(rng, 1000), &ingest.Unit{}, fullUnit(), extremeUnit(), fullUnit())
		var b []byte
		whole := 0
		q.Reset()
		for _, u := range units {
			b = q.Append(b, u)
			whole += len(ingest.AppendUnit(nil, u))
		}
		if 4*len(b) > 3*whole {
			t.Errorf("%d units take %d bytes, and %d if each is written whole", len(units), len(b), whole)
		}
		var back ingest.UnitSequence
		for i, want := range units {
			var got *ingest.Unit
			var err error
			if got, b, err = back.Cut(b); err != nil {
				t.Fatalf("unit %d: %v", i, err)
			}
			if got, want := ingesttest.Text(got), ingesttest.Text(want); got != want {
				t.Fatalf("unit %d is\n%s\nwant\n%s", i, got, want)
			}
		}
		if len(b) > 0 {
			t.Fatalf("%d bytes are left", len(b))
		}
	}
}

// A decision with a field that no other decision has is written completely, so that none of its fields can be lost.
func TestUnitSequenceKeepsEveryFieldOfADecision(t *testing.T) {
	plain := func() *ingest.Unit { return decisionUnits(rand.New(rand.NewPCG(2, 2)), 40)[5] }
	for name, change := range map[string]func(u *ingest.Unit){
		"end":         func(u *ingest.Unit) { u.End = ingest.EndTruncated },
		"mixed":       func(u *ingest.Unit) { u.Mixed = true },
		"shadow":      func(u *ingest.Unit) { u.Shadow = true },
		"versions":    func(u *ingest.Unit) { u.Versions.Env = "2" },
		"start":       func(u *ingest.Unit) { u.StartTS-- },
		"end time":    func(u *ingest.Unit) { u.EndTS++ },
		"first":       func(u *ingest.Unit) { u.First.Offset-- },
		"last":        func(u *ingest.Unit) { u.Last.Record++ },
		"rank":        func(u *ingest.Unit) { u.Ord++ },
		"reading":     func(u *ingest.Unit) { u.Reading++ },
		"run":         func(u *ingest.Unit) { u.Run-- },
		"partition":   func(u *ingest.Unit) { u.Pos.Partition, u.First.Partition, u.Last.Partition = 3, 3, 3 },
		"length":      func(u *ingest.Unit) { u.Length++ },
		"return":      func(u *ingest.Unit) { u.Return++ },
		"none":        func(u *ingest.Unit) { u.HasReturn = false },
		"reward":      func(u *ingest.Unit) { u.Reward.Positive++ },
		"M2":          func(u *ingest.Unit) { u.Reward.M2 = 1 },
		"no number":   func(u *ingest.Unit) { u.Reward.NonFinite++ },
		"deciles":     func(u *ingest.Unit) { u.RewardQ90++ },
		"constant":    func(u *ingest.Unit) { u.ConstantReward++ },
		"run length":  func(u *ingest.Unit) { u.LongestConstant++ },
		"profile":     func(u *ingest.Unit) { u.Profile = []float32{u.Profile[0], 1} },
		"course":      func(u *ingest.Unit) { u.ProfileSteps++ },
		"kind":        func(u *ingest.Unit) { u.ActionKind = ingest.ActionNumeric },
		"kinds":       func(u *ingest.Unit) { u.MixedActionKinds = true },
		"action":      func(u *ingest.Unit) { u.Actions = []ingest.Count{{Name: "other", N: 1, Reward: u.Return}} },
		"actions":     func(u *ingest.Unit) { u.Actions = append(u.Actions, ingest.Count{Name: "other"}) },
		"its reward":  func(u *ingest.Unit) { u.Actions = []ingest.Count{{Name: "other", N: 1, Reward: 1}} },
		"no action":   func(u *ingest.Unit) { u.Actions = nil },
		"signal":      func(u *ingest.Unit) { u.Numeric = []ingest.NamedMoments{{Signal: "x"}} },
		"signals":     func(u *ingest.Unit) { u.Numeric = nil },
		"events":      func(u *ingest.Unit) { u.Events++ },
		"backwards":   func(u *ingest.Unit) { u.Backwards++ },
		"duplicates":  func(u *ingest.Unit) { u.Duplicates++ },
		"late":        func(u *ingest.Unit) { u.Late++ },
		"abandoned":   func(u *ingest.Unit) { u.Abandoned++ },
		"unfinished":  func(u *ingest.Unit) { u.Unfinished += 3 },
		"probability": func(u *ingest.Unit) { u.Propensity = &ingest.Propensity{Steps: 1} },
		"steps":       func(u *ingest.Unit) { u.Steps = &ingest.Steps{Names: []string{"x"}} },
	} {
		var q, back ingest.UnitSequence
		u := plain()
		change(u)
		units := []*ingest.Unit{plain(), plain(), u, plain()}
		var b []byte
		for _, u := range units {
			b = q.Append(b, u)
		}
		for i, want := range units {
			var got *ingest.Unit
			var err error
			if got, b, err = back.Cut(b); err != nil || ingesttest.Text(got) != ingesttest.Text(want) {
				t.Errorf("%s: unit %d is\n%s\nwant\n%s\n%v", name, i, ingesttest.Text(got), ingesttest.Text(want), err)
				break
			}
		}
	}
}

// No field of a unit, including those of later builds, is mistaken for a common field of decisions, which is not
// written.
func TestUnitSequenceKnowsTheFieldsOfUnits(t *testing.T) {
	fields := reflect.TypeFor[ingest.Unit]()
	for i := range fields.NumField() {
		if !fields.Field(i).IsExported() || fields.Field(i).Name == "Decisions" {
			continue
		}
		var q, back ingest.UnitSequence
		plain, u := decisionUnits(rand.New(rand.NewPCG(2, 2)), 40)[5], decisionUnits(rand.New(rand.NewPCG(2, 2)), 40)[5]
		reflect.ValueOf(u).Elem().Field(i).Set(reflect.ValueOf(fullUnit()).Elem().Field(i))
		u.First.Partition, u.Last.Partition = u.Pos.Partition, u.Pos.Partition
		if u.Propensity != nil {
			u.Propensity.Actions = nil
		}
		b := q.Append(q.Append(nil, plain), u)
		_, b, err := back.Cut(b)
		if err != nil {
			t.Fatal(err)
		}
		if got, _, err := back.Cut(b); err != nil || ingesttest.Text(got) != ingesttest.Text(u) {
			t.Errorf("%s is not written: %v", fields.Field(i).Name, err)
		}
	}
}

// FuzzUnitSequence looks for bytes that make the sequence panic, take much memory, or return what it writes in another way.
func FuzzUnitSequence(f *testing.F) {
	var q ingest.UnitSequence
	var b []byte
	for _, u := range append(decisionUnits(rand.New(rand.NewPCG(3, 3)), 6), fullUnit()) {
		b = q.Append(b, u)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var in, out, back ingest.UnitSequence
		var again []byte
		var units []*ingest.Unit
		for len(b) > 0 {
			u, rest, err := in.Cut(b)
			if err != nil {
				if !errors.Is(err, ingest.ErrUnitDamaged) {
					t.Fatal(err)
				}
				break
			}
			units, again, b = append(units, u), out.Append(again, u), rest
		}
		for i, want := range units {
			var got *ingest.Unit
			var err error
			if got, again, err = back.Cut(again); err != nil || ingesttest.Text(got) != ingesttest.Text(want) {
				t.Fatalf("unit %d is\n%s, %v, want\n%s", i, ingesttest.Text(got), err, ingesttest.Text(want))
			}
		}
	})
}
