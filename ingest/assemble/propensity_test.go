package assemble

import (
	"math"
	"reflect"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// acted returns a step with an action and its probabilities. A probability of -2 is unknown.
func acted(number int64, action string, prob, target, reward float64) ingest.Event {
	return stepOf(number, reward, func(e *ingest.Event) {
		e.Action = ingest.Action{Kind: ingest.ActionCategory, Category: action}
		e.ActionProb = ingest.Prob{P: prob, Known: prob != -2}
		e.TargetProb = ingest.Prob{P: target, Known: target != -2}
	})
}

func TestPropensityOfAUnit(t *testing.T) {
	const none = -2
	for _, c := range []struct {
		name  string
		steps []ingest.Event
		want  *ingest.Propensity
	}{
		{"nothing known", []ingest.Event{acted(0, "a", none, none, 1)}, nil},
		{"the probabilities of actions", []ingest.Event{acted(0, "a", .5, none, 3), acted(1, "b", .25, none, 1), acted(2, "a", .5, none, 5)}, &ingest.Propensity{
			Steps: 3, Log: 2*math.Log(.5) + math.Log(.25), Actions: []ingest.InverseProbs{{Sum: 4, Reward: 16}, {Sum: 4, Reward: 4}},
		}},
		{"those of the accepted policy too", []ingest.Event{acted(0, "a", .5, .25, 3), acted(1, "a", .5, 1, 1)}, &ingest.Propensity{
			Steps: 2, Log: 2 * math.Log(.5), Targets: 2, LogTarget: math.Log(.25), Weight: 2.5, WeightedReward: 3.5,
			Actions: []ingest.InverseProbs{{Sum: 4, Reward: 8}},
		}},
		{"an action that the accepted policy never takes", []ingest.Event{acted(0, "a", .5, 0, 3)}, &ingest.Propensity{
			Steps: 1, Log: math.Log(.5), Targets: 1, LogTarget: math.Inf(-1), Actions: []ingest.InverseProbs{{Sum: 2, Reward: 6}},
		}},
		{"none of them a probability", []ingest.Event{
			acted(0, "a", 0, none, 1), acted(1, "a", 1.5, none, 1), acted(2, "a", math.NaN(), none, 1), acted(3, "a", .5, -1, 1),
			acted(4, "a", none, .5, 1), acted(5, "a", .5, 2, 1),
		}, &ingest.Propensity{Invalid: 6}},
		{"a step without an action", []ingest.Event{acted(0, "a", .5, none, 3), stepOf(1, 1, func(e *ingest.Event) {
			e.ActionProb = ingest.Prob{P: .5, Known: true}
		})}, &ingest.Propensity{Steps: 1, Log: math.Log(.5), Actions: []ingest.InverseProbs{{Sum: 2, Reward: 6}}}},
		{"a reward that is no number", []ingest.Event{acted(0, "a", .5, .5, math.NaN())}, &ingest.Propensity{
			Steps: 1, Log: math.Log(.5), Targets: 1, LogTarget: math.Log(.5), Weight: 1, Actions: []ingest.InverseProbs{{Sum: 2}},
		}},
		{"densities", []ingest.Event{stepOf(0, 2, func(e *ingest.Event) {
			e.Action = ingest.Action{Kind: ingest.ActionNumeric, Values: []float64{.5}, Scalar: true}
			e.ActionProb, e.TargetProb = ingest.Prob{P: 4, Known: true}, ingest.Prob{P: 2, Known: true}
		})}, &ingest.Propensity{Steps: 1, Log: math.Log(4), Targets: 1, LogTarget: math.Log(2), Weight: .5, WeightedReward: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(Config{})
			last := int64(len(c.steps))
			b.feed(append(c.steps, stepOf(last, 0, terminated))...)
			b.feed(stepOf(0, 0, terminated)) // reuses the tally
			if got := b.units[0].Propensity; !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
			if got := b.units[1].Propensity; got != nil {
				t.Errorf("the next unit has %+v", got)
			}
		})
	}
}
