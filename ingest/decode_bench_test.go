package ingest

import (
	"context"
	"strings"
	"testing"
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
			d := NewDecoder(DefaultMaxRecord)
			msg := []byte(c.msg)
			refuse := func(e *RecordError, _ []byte) { b.Fatal(e) }
			dst := make([]Event, 0, 1)
			b.ReportAllocs()
			b.SetBytes(int64(len(msg)))
			for b.Loop() {
				d.Reset()
				dst = d.Decode(dst[:0], msg, Position{}, refuse)
			}
		})
	}
}

func BenchmarkReadFiles(b *testing.B) {
	const lines = 10_000
	content := strings.Repeat(exampleEvent+"\n", lines)
	b.SetBytes(int64(len(content)))
	for b.Loop() {
		var p discard
		cfg := FilesConfig{Stdin: strings.NewReader(content)}
		if _, err := ReadFiles(b.Context(), cfg, []string{"-"}, &p); err != nil || p.events != lines {
			b.Fatal(p.events, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/lines, "ns/event")
}

// discard is a Processor that only counts.
type discard struct {
	fileProcessor
	events int
}

func (d *discard) Process(_ context.Context, batch []Event) error {
	d.events += len(batch)
	return nil
}
