package assemble

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
	"github.com/rewardwatch/rewardwatch/ingest/saved"
)

// wholeEvent returns a random event that is a whole episode.
func wholeEvent(rng *rand.Rand) ingest.Event {
	number := func() float64 {
		if rng.IntN(4) == 0 {
			return []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(-1), math.MaxFloat64, -5e-324}[rng.IntN(6)]
		}
		return rng.NormFloat64()
	}
	e := ingest.Event{
		Pos: ingest.Position{Partition: 1, Offset: rng.Int64N(1e6), Record: rng.Int32N(3)}, TS: rng.Int64N(3) * 1e9, Policy: "p", AgentID: "a",
		Versions: ingest.Versions{Policy: fmt.Sprint(rng.IntN(3))}, Step: rng.Int64N(4) - 1, Length: -1,
		HasReward: rng.IntN(10) > 0, Reward: number(), Terminated: true,
	}
	switch rng.IntN(6) {
	case 0:
	case 1:
		x := float64(rng.IntN(3))
		e.Action = ingest.Action{Kind: ingest.ActionCategory, Category: fmt.Sprint(x), Values: []float64{x}, Scalar: true}
	case 2:
		e.Action = ingest.Action{Kind: ingest.ActionNumeric, Values: []float64{number()}, Scalar: true}
	case 3:
		e.Action = ingest.Action{Kind: ingest.ActionNumeric, Values: []float64{number()}}
	default:
		e.Action = ingest.Action{Kind: ingest.ActionCategory, Category: fmt.Sprint("a", rng.IntN(9))}
	}
	for i := range rng.IntN(4) {
		e.Outcomes = append(e.Outcomes, ingest.Value{Name: fmt.Sprint("o", i+rng.IntN(2)), X: number()})
	}
	switch rng.IntN(12) {
	case 0:
		e.Observation = []ingest.Value{{Name: "0", X: 1}}
	case 1:
		e.RewardComponents = []ingest.Value{{Name: "c", X: 1}}
	case 2:
		e.HasEpisode, e.Return, e.Length = true, 7, 9
	case 3:
		e.ActionProb = ingest.Prob{P: .5, Known: true}
	}
	return e
}

// The unit of a plain event is identical, bit by bit, to the one from a tally of the event, in new and in reused
// memory.
func TestSimPlainUnitIsThatOfATally(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	b, tallied, plain, apart := newBench(Config{}), newBench(Config{}), 0, 0
	var memory ingest.DecisionUnit
	g := &group{}
	fields := reflect.TypeFor[ingest.Event]().NumField()
	for n := range 20_000 {
		e := wholeEvent(rng)
		if n < fields { // covers each field of an event, including those added later
			var full ingest.Event
			ingesttest.Fill(&full)
			e = ingest.Event{HasReward: true, Reward: 1, Step: -1, Length: -1, Terminated: true}
			reflect.ValueOf(&e).Elem().Field(n).Set(reflect.ValueOf(&full).Elem().Field(n))
			e.Action.Kind = min(e.Action.Kind, ingest.ActionNumeric)
		}
		if !isPlain(&e) {
			continue
		}
		plain++
		var sums tally
		sums.begin(&e)
		sums.add(&e, tallied.names)
		sums.keep(&e)
		want := sums.unit(ingest.EndTerminated)
		want.Pos, want.Unfinished = e.Pos, -1
		same := func(got *ingest.Unit) {
			if got, want := ingesttest.Text(got), ingesttest.Text(want); got != want {
				t.Fatalf("the unit of %+v is\n%s\nwant\n%s", e, got, want)
			}
		}
		b.ord = 0
		b.decide(g, "", "", ingest.EndTerminated, &e, same, nil)
		b.ord = 0
		b.decide(g, "", "", ingest.EndTerminated, &e, same, func(d *ingest.Decision) {
			apart++
			same(d.Unit())
			same(memory.Of(d))
		})
	}
	if plain < 5000 || apart < 5000 {
		t.Errorf("only %d events were plain, %d decisions", plain, apart)
	}
}

// Plain events lead to the same state and units as events that are processed step by step. An event with a probability
// but without an action is processed step by step, and the probability is ignored.
func TestSimPlainEventsLeaveTheSameState(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	plain, folded := New(Config{}, NewMetrics(prometheus.NewRegistry())), New(Config{}, NewMetrics(prometheus.NewRegistry()))
	var got, want []string
	apart := 0
	for i := range int64(20_000) {
		e := wholeEvent(rng)
		e.Action, e.ActionProb = ingest.Action{}, ingest.Prob{}
		e.Pos = ingest.Position{Offset: i}
		e.AgentID, e.Env = fmt.Sprint(rng.IntN(300)), fmt.Sprint(rng.IntN(3))
		if e.Terminated = rng.IntN(20) > 0; rng.IntN(5) > 0 {
			e.EpisodeID = fmt.Sprint(rng.Int64N(i + 1))
		}
		emit := func(u *ingest.Unit) { got = append(got, ingesttest.Text(u)) }
		plain.FoldApart(&e, emit, func(d *ingest.Decision) {
			apart++
			emit(d.Unit())
		})
		e.ActionProb = ingest.Prob{P: .5, Known: true}
		folded.Fold(&e, func(u *ingest.Unit) { want = append(want, ingesttest.Text(u)) })
	}
	if len(got) != len(want) || apart < 5000 {
		t.Fatalf("%d units with %d decisions, want %d", len(got), apart, len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("unit %d is\n%s\nwant\n%s", i, got[i], want[i])
		}
	}
	if got, want := saved.Each(plain.recent.oldestFirst(), wireOfEnded), saved.Each(folded.recent.oldestFirst(), wireOfEnded); !reflect.DeepEqual(got, want) {
		t.Error("other episodes are remembered")
	}
	for key, g := range folded.groups {
		same := plain.groups[key]
		if got, want := same.wire(), g.wire(); !reflect.DeepEqual(got, want) {
			t.Errorf("group %q is %+v, want %+v", key, got, want)
		}
		if got, want := same.policy.wire(), g.policy.wire(); !reflect.DeepEqual(got, want) {
			t.Errorf("policy %q is %+v, want %+v", g.policy.Name, got, want)
		}
	}
}
