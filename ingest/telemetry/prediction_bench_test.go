package telemetry

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

// BenchmarkPrediction reads records with and without prediction.
func BenchmarkPrediction(b *testing.B) {
	for _, c := range []struct {
		name   string
		record func(r *rand.Rand, i int) string
	}{
		{"agents-1", func(r *rand.Rand, i int) string { return benchRecord(r, i, 1, 1) }},
		{"agents-400", func(r *rand.Rand, i int) string { return benchRecord(r, i, 400, 1) }},
		{"policies-8", func(r *rand.Rand, i int) string { return benchRecord(r, i, 400, 8) }},
		{"policies-400", func(r *rand.Rand, i int) string { return benchRecord(r, i, 400, 400) }},
		{"example", func(r *rand.Rand, i int) string { return benchExample(r, i) }},
		{"shapes-2", shaped(2)},
		{"shapes-6", shaped(6)},
		{"shapes-12", shaped(12)},
		{"random-key-order", func(r *rand.Rand, i int) string { return shuffled(r, benchRecord(r, i, 400, 1)) }},
		{"unknown-member", func(r *rand.Rand, i int) string {
			return strings.TrimSuffix(benchRecord(r, i, 400, 1), "}") + fmt.Sprintf(`,"trace":"%x"}`, r.Uint64())
		}},
		{"unknown-array", func(r *rand.Rand, i int) string {
			return strings.TrimSuffix(benchRecord(r, i, 400, 1), "}") + `,"tokens":[1` + strings.Repeat(",1", r.IntN(64)) + `]}`
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := rand.New(rand.NewPCG(9, 9))
			messages := make([]ingest.Message, 4000)
			for i := range messages {
				messages[i].Value = []byte(c.record(r, i))
			}
			o := ingest.DecoderOptions{MaxRecord: ingest.DefaultMaxRecord}
			ingesttest.InTurns(b,
				ingesttest.Side{Name: "decoder", Decoder: newDecoder(o), Messages: messages},
				ingesttest.Side{Name: "predicting", Decoder: V1{}.NewDecoder(o), Messages: messages})
		})
	}
}

func benchRecord(r *rand.Rand, i, agents, policies int) string {
	agent, at := i%agents, 1795168800_000+int64(i)
	return fmt.Sprintf(`{"ts":%d.%03d,"policy":"checkout-ranker-%d","env":"prod-eu","agent_id":"agent-%d","episode_id":"agent-%d/%d","step":%d,`+
		`"observation":[%.4f,%.4f,%.4f,%.4f],"action":%d,"reward":%.6f,"terminated":%t,"truncated":false,"outcomes":{"conversion":%d}}`,
		at/1000, at%1000, agent%policies, agent, agent, i/agents/50, i/agents%50, r.NormFloat64(), r.NormFloat64(), r.NormFloat64(), r.NormFloat64(),
		r.IntN(4), r.NormFloat64(), i/agents%50 == 49, r.IntN(2))
}

// benchExample returns exampleEvent with changing values.
func benchExample(r *rand.Rand, i int) string {
	return fmt.Sprintf(`{"ts":"2026-11-20T10:%02d:%02d.%03dZ","policy":"checkout-ranker","policy_version":"2026-11-01.3","env":"prod-eu","env_version":"41",`+
		`"reward_version":"r7","agent_id":"a-%d","episode_id":"a-%d/881","step":%d,"observation":{"basket":%.2f},"action":"offer_%c",`+
		`"action_prob":%.3f,"reward":%.3f,"reward_components":{"click":%.3f,"latency":%.3f},"next_observation":{"basket":%.2f},`+
		`"terminated":%t,"truncated":false,"outcomes":{"conversion":%d},"labels":{"region":"%s"}}`,
		i/60000%60, i/1000%60, i%1000, i%400, i%400, i/400%50, r.Float64(), 'a'+r.IntN(4), r.Float64(), r.NormFloat64(), r.NormFloat64(), r.NormFloat64(),
		r.Float64(), i/400%50 == 49, r.IntN(2), pick(r, "eu", "us"))
}

// shaped returns records of several shapes in random order. Each shape has a different outcome.
func shaped(shapes int) func(*rand.Rand, int) string {
	return func(r *rand.Rand, i int) string {
		rec := benchRecord(r, i, 400, 1)
		return strings.Replace(rec, `{"conversion"`, fmt.Sprintf(`{"of-%d":%d,"conversion"`, r.IntN(shapes), r.IntN(2)), 1)
	}
}

// shuffled returns a record with its members in random order.
func shuffled(r *rand.Rand, rec string) string {
	members := strings.Split(rec[1:len(rec)-1], `,"`)
	for i := range members {
		members[i] = strings.TrimPrefix(members[i], `"`)
	}
	r.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return `{"` + strings.Join(members, `,"`) + `}`
}
