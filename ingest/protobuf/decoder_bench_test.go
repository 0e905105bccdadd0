package protobuf

import (
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
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

// BenchmarkAgainstJSON decodes the same event in both forms by turns, and reports the time of Protobuf as a multiple of
// that of JSON.
func BenchmarkAgainstJSON(b *testing.B) {
	for name, e := range map[string]*telemetrypb.Event{"example": example(), "short": short()} {
		b.Run(name, func(b *testing.B) {
			o := ingest.DecoderOptions{MaxRecord: ingest.DefaultMaxRecord}
			refuse := func(e *ingest.RecordError, _ []byte) { b.Fatal(e) }
			dst := make([]ingest.Event, 0, 1)
			var spent [2]time.Duration
			sides := [2]ingest.Decoder{telemetry.V1{}.NewDecoder(o), V1{}.NewDecoder(o)}
			messages := [2]*ingest.Message{{Value: asJSON(e)}, {Value: marshal(b, e)}}
			b.ReportAllocs()
			const turn = 1000
			for b.Loop() {
				for side, d := range sides {
					begun := time.Now()
					for range turn {
						d.Reset()
						dst = d.Decode(dst[:0], messages[side], refuse)
					}
					spent[side] += time.Since(begun)
				}
			}
			events := float64(b.N) * turn
			b.ReportMetric(float64(spent[0].Nanoseconds())/events, "ns/json")
			b.ReportMetric(float64(spent[1].Nanoseconds())/events, "ns/protobuf")
			b.ReportMetric(float64(spent[1])/float64(spent[0]), "times-json")
		})
	}
}
