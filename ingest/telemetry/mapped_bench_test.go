package telemetry

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/mapping"
)

// otherEvent is exampleEvent as another team would write it: nested, with other names, a time in milliseconds, and as
// many members that nobody wants.
const otherEvent = `{"time_ms":1795168800123,"model":{"name":"checkout-ranker","build":"2026-11-01.3"},"env":{"name":"prod-eu","build":"41"},` +
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

// BenchmarkMapped reads records of another shape and, without prediction, records of telemetry version 1 that hold the
// same, in turns, so that a busy machine slows both down. It reports the time of the processor for each, and their ratio.
func BenchmarkMapped(b *testing.B) {
	for _, c := range []struct {
		name   string
		change func(mapping.Config)
	}{
		{"paths", func(mapping.Config) {}},
		{"expression", func(c mapping.Config) {
			c.Fields["reward"] = mapping.Field{Source: mapping.Source{Expression: "record.score > 0 ? 1 : 0"}}
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			mapped := otherMapping()
			c.change(mapped)
			plan, err := mapped.Compile()
			if err != nil {
				b.Fatal(err)
			}
			o := ingest.DecoderOptions{MaxRecord: ingest.DefaultMaxRecord}
			one, other := newLane(b, newDecoder(o), exampleEvent), newLane(b, Mapped{Plan: plan}.NewDecoder(o), otherEvent)
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			b.ReportAllocs()
			for b.Loop() {
				one.read()
				other.read()
			}
			n := float64(b.N) * turns
			b.ReportMetric(float64(one.spent)/n, "telemetry-ns/event")
			b.ReportMetric(float64(other.spent)/n, "mapped-ns/event")
			b.ReportMetric(float64(other.spent)/float64(one.spent), "ratio")
		})
	}
}

// turns is how many records are read before the other lane has its turn.
const turns = 200

// lane reads one record over and over.
type lane struct {
	decoder ingest.Decoder
	message ingest.Message
	refuse  func(*ingest.RecordError, []byte)
	events  []ingest.Event
	spent   int64 // nanoseconds of the processor
}

func newLane(b *testing.B, d ingest.Decoder, record string) *lane {
	return &lane{
		decoder: d, message: ingest.Message{Value: []byte(record)},
		refuse: func(e *ingest.RecordError, _ []byte) { b.Fatal(e) }, events: make([]ingest.Event, 0, 1),
	}
}

func (l *lane) read() {
	start := processorTime()
	for range turns {
		l.decoder.Reset()
		l.events = l.decoder.Decode(l.events[:0], &l.message, l.refuse)
	}
	l.spent += processorTime() - start
}

// processorTime returns the time that the thread has had of a processor, in nanoseconds.
func processorTime() int64 {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &at); err != nil {
		return time.Now().UnixNano()
	}
	return at.Nano()
}
