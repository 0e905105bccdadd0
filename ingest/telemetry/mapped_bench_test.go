package telemetry

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
	"github.com/rewardwatch/rewardwatch/ingest/mapping"
)

// otherEvent is exampleEvent as another team would write it: nested, with other names, a time in milliseconds, and as
// many unused members.
const otherEvent = `{"type":"step","time_ms":1795168800123,"model":{"name":"checkout-ranker","build":"2026-11-01.3"},"env":{"name":"prod-eu","build":"41"},` +
	`"reward_fn":"r7","user":{"id":"a-17"},"session":{"id":"a-17/881","turn":12},"features":{"basket":3.2},"item":{"id":"offer_b",` +
	`"p":0.31},"score":-0.25,"parts":{"click":0.1,"latency":-0.35},"next":{"features":{"basket":3.4}},` +
	`"done":false,"cut":false,"order":{"paid":1},"tags":{"region":"eu"}}`

func otherMapping() mapping.Config {
	return mapping.Config{Fields: map[string]mapping.Field{
		"policy": from("model.name"), "policy_version": from("model.build"), "env": from("env.name"), "env_version": from("env.build"),
		"reward_version": from("reward_fn"), "agent_id": from("user.id"), "episode_id": from("session.id"), "step": from("session.turn"),
		"ts": {Source: mapping.Source{Path: "time_ms"}, Unit: "ms"}, "observation": from("features"), "action": from("item.id"), "action_prob": from("item.p"),
		"reward": {Source: mapping.Source{Path: "score"}, Default: []byte("0")}, "reward_components": from("parts"), "next_observation": from("next.features"),
		"terminated": from("done"), "truncated": from("cut"), "outcomes.conversion": from("order.paid"), "labels": from("tags"),
	}}
}

func from(path string) mapping.Field { return mapping.Field{Source: mapping.Source{Path: path}} }

// BenchmarkMapped reads records of telemetry version 1 and records with the same content in another shape, both with
// prediction.
func BenchmarkMapped(b *testing.B) {
	for _, c := range []struct {
		name   string
		change func(*mapping.Config)
	}{
		{"paths", func(*mapping.Config) {}},
		{"condition", func(c *mapping.Config) {
			c.Take = []mapping.Condition{{Source: mapping.Source{Path: "type"}, In: []mapping.Literal{{JSON: []byte(`"step"`)}}}}
		}},
		{"choices", func(c *mapping.Config) { // which no template can stand for
			c.Fields["terminated"] = mapping.Field{Source: mapping.Source{Path: "done"}, Choices: map[string]json.RawMessage{"yes": []byte("true")}}
		}},
		{"expression", func(c *mapping.Config) {
			c.Fields["reward"] = mapping.Field{Source: mapping.Source{Expression: "record.score > 0 ? 1 : 0"}}
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			mapped := otherMapping()
			c.change(&mapped)
			plan, err := mapped.Compile()
			if err != nil {
				b.Fatal(err)
			}
			telemetry, other := make([]ingest.Message, 4000), make([]ingest.Message, 4000)
			r := rand.New(rand.NewPCG(9, 9))
			for i := range telemetry {
				telemetry[i].Value = []byte(benchExample(r, i))
				other[i].Value = asOther(b, telemetry[i].Value)
			}
			o := ingest.DecoderOptions{MaxRecord: ingest.DefaultMaxRecord}
			ingesttest.InTurns(b,
				ingesttest.Side{Name: "telemetry", Decoder: V1{}.NewDecoder(o), Messages: telemetry},
				ingesttest.Side{Name: "mapped", Decoder: Mapped{Plan: plan}.NewDecoder(o), Messages: other})
		})
	}
}

// asOther converts a record of benchExample to the shape of otherEvent.
func asOther(b *testing.B, record []byte) []byte {
	b.Helper()
	var v struct {
		TS          time.Time          `json:"ts"`
		AgentID     string             `json:"agent_id"`
		EpisodeID   string             `json:"episode_id"`
		Step        int                `json:"step"`
		Observation map[string]float64 `json:"observation"`
		Action      string             `json:"action"`
		ActionProb  float64            `json:"action_prob"`
		Reward      float64            `json:"reward"`
		Components  map[string]float64 `json:"reward_components"`
		Next        map[string]float64 `json:"next_observation"`
		Terminated  bool               `json:"terminated"`
		Outcomes    map[string]float64 `json:"outcomes"`
		Labels      map[string]string  `json:"labels"`
	}
	if err := json.Unmarshal(record, &v); err != nil {
		b.Fatal(err)
	}
	return fmt.Appendf(nil, `{"type":"step","time_ms":%d,"model":{"name":"checkout-ranker","build":"2026-11-01.3"},"env":{"name":"prod-eu","build":"41"},`+
		`"reward_fn":"r7","user":{"id":%q},"session":{"id":%q,"turn":%d},"features":{"basket":%v},"item":{"id":%q,"p":%v},"score":%v,`+
		`"parts":{"click":%v,"latency":%v},"next":{"features":{"basket":%v}},"done":%t,"cut":false,"order":{"paid":%v},"tags":{"region":%q}}`,
		v.TS.UnixMilli(), v.AgentID, v.EpisodeID, v.Step, v.Observation["basket"], v.Action, v.ActionProb, v.Reward,
		v.Components["click"], v.Components["latency"], v.Next["basket"], v.Terminated, v.Outcomes["conversion"], v.Labels["region"])
}
