package telemetry

import (
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
)

const exampleEvent = `{"ts":"2026-11-20T10:00:00.123Z","policy":"checkout-ranker","policy_version":"2026-11-01.3","env":"prod-eu","env_version":"41",` +
	`"reward_version":"r7","agent_id":"a-17","episode_id":"a-17/881","step":12,"observation":{"basket":3.2},"action":"offer_b",` +
	`"action_prob":0.31,"reward":-0.25,"reward_components":{"click":0.1,"latency":-0.35},"next_observation":{"basket":3.4},` +
	`"terminated":false,"truncated":false,"outcomes":{"conversion":1},"labels":{"region":"eu"}}`

func BenchmarkDecode(b *testing.B) {
	for _, c := range []struct{ name, msg string }{
		{"example", exampleEvent},
		{"short", `{"ts":1795168800.123,"policy":"checkout-ranker","env":"prod-eu","agent_id":"a-17","episode_id":"a-17/881","step":12,"observation":[0.01,-0.2,3.25,0.5],"action":1,"reward":-0.25,"terminated":false,"truncated":false,"outcomes":{"conversion":1}}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			d := V1{}.NewDecoder(ingest.DecoderOptions{MaxRecord: ingest.DefaultMaxRecord})
			msg := &ingest.Message{Value: []byte(c.msg)}
			refuse := func(e *ingest.RecordError, _ []byte) { b.Fatal(e) }
			dst := make([]ingest.Event, 0, 1)
			b.ReportAllocs()
			b.SetBytes(int64(len(c.msg)))
			for b.Loop() {
				d.Reset()
				dst = d.Decode(dst[:0], msg, refuse)
			}
		})
	}
}
