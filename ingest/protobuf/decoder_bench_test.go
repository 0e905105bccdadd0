package protobuf

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
	"github.com/rewardwatch/rewardwatch/ingest/protobuf/telemetrypb"
	"github.com/rewardwatch/rewardwatch/ingest/telemetry"
	"google.golang.org/protobuf/proto"
)

// short is a step of CartPole.
func short() *telemetrypb.Event {
	return &telemetrypb.Event{
		Policy: "checkout-ranker", Ts: 1795168800123000000, Env: "prod-eu", AgentId: "a-17", EpisodeId: "a-17/881", Step: proto.Int64(12),
		ObservationArray: []float64{.01, -.2, 3.25, .5}, Action: &telemetrypb.Event_ActionIndex{ActionIndex: 1},
		Reward: proto.Float64(-.25), Outcomes: map[string]float64{"conversion": 1},
	}
}

// vary changes the values of an event that differ between steps. i is its index among the events of 80 agents. Its
// numbers have as many digits as those in real logs.
func vary(r *rand.Rand, i int, e *telemetrypb.Event) *telemetrypb.Event {
	number := func() float64 { return math.Round(r.NormFloat64()*1e4) / 1e4 }
	agent, step := i%80, i/80%50
	e.Ts += int64(i) * 1e6
	e.AgentId, e.EpisodeId = fmt.Sprintf("a-%d", agent), fmt.Sprintf("a-%d/%d", agent, 881+i/80/50)
	e.Step, e.Terminated = proto.Int64(int64(step)), step == 49
	e.Reward = proto.Float64(number())
	switch e.Action.(type) {
	case *telemetrypb.Event_ActionIndex:
		e.Action = &telemetrypb.Event_ActionIndex{ActionIndex: r.Int64N(4)}
	case *telemetrypb.Event_ActionCategory:
		e.Action = &telemetrypb.Event_ActionCategory{ActionCategory: "offer_" + string("abcd"[r.IntN(4)])}
		e.ActionProb, e.TargetProb = proto.Float64(math.Abs(number())), proto.Float64(math.Abs(number()))
		e.Labels = map[string]string{"region": []string{"eu", "us"}[r.IntN(2)]}
	}
	for _, xs := range []map[string]float64{e.Observation, e.RewardComponents, e.NextObservation} {
		for name := range xs {
			xs[name] = number()
		}
	}
	for i := range e.ObservationArray {
		e.ObservationArray[i] = number()
	}
	e.Outcomes["conversion"] = float64(r.IntN(2))
	return e
}

// BenchmarkAgainstJSON reads the same events in both encodings.
func BenchmarkAgainstJSON(b *testing.B) {
	for _, c := range []struct {
		name  string
		event func() *telemetrypb.Event
	}{{"example", example}, {"short", short}} {
		b.Run(c.name, func(b *testing.B) {
			r := rand.New(rand.NewPCG(9, 9))
			inJSON, inProtobuf := make([]ingest.Message, 4000), make([]ingest.Message, 4000)
			for i := range inJSON {
				e := vary(r, i, c.event())
				inJSON[i].Value, inProtobuf[i].Value = asJSON(e), marshal(b, e)
			}
			o := ingest.DecoderOptions{MaxRecord: ingest.DefaultMaxRecord}
			ingesttest.InTurns(b,
				ingesttest.Side{Name: "json", Decoder: telemetry.V1{}.NewDecoder(o), Messages: inJSON},
				ingesttest.Side{Name: "protobuf", Decoder: V1{}.NewDecoder(o), Messages: inProtobuf})
		})
	}
}
