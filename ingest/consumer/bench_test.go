package consumer_test

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/consumer"
	"github.com/rewardwatch/rewardwatch/ingest/telemetry"
)

// counting is a Handler that only counts.
type counting struct {
	events  int
	want    int
	reached chan struct{}
}

func (c *counting) Begin(int)    {}
func (c *counting) Ending()      {}
func (c *counting) Revoke(int32) {}

func (c *counting) Assign(int32, ingest.CheckpointStore) (ingest.State, error) { return c, nil }

func (c *counting) Process(_ context.Context, batch []ingest.Event) error {
	before := c.events
	if c.events += len(batch); before < c.want && c.events >= c.want {
		close(c.reached)
	}
	return nil
}

func (c *counting) Confirm(time.Time) {}

func (c *counting) Idle(context.Context, time.Time) error { return nil }
func (c *counting) Snapshot(io.Writer) error              { return nil }
func (c *counting) Restore(io.Reader) error               { return nil }

// BenchmarkConsumer reads one partition with events of 250 bytes, one or many per message, from a broker in this
// process.
func BenchmarkConsumer(b *testing.B) {
	for _, perMessage := range []int{1, 64} {
		b.Run(fmt.Sprintf("%d a message", perMessage), func(b *testing.B) {
			s := newBench(b, 1)
			messages := (b.N + perMessage - 1) / perMessage
			produceTelemetry(b, s, messages, perMessage)
			c := &counting{want: b.N, reached: make(chan struct{})}
			consumer, err := consumer.New(s.cfg, consumer.Options{
				Stores: s.store, CheckpointEvery: time.Second, Format: telemetry.V1{}, DeadLetters: s.letters, Handler: c, Log: zerolog.Nop(),
				Registerer: prometheus.NewRegistry(),
			})
			if err != nil {
				b.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			ended := make(chan error, 1)
			b.ResetTimer()
			go func() { ended <- consumer.Run(ctx) }()
			<-c.reached
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
			cancel()
			if err := <-ended; err != nil {
				b.Fatal(err)
			}
		})
	}
}

func produceTelemetry(b *testing.B, s *bench, messages, perMessage int) {
	const batch = 500
	values := make([][]byte, 0, batch)
	step := 0
	for i := range messages {
		var value []byte
		for range perMessage {
			step++
			value = fmt.Appendf(value, `{"ts":"2026-11-20T10:00:00.123Z","policy":"checkout-ranker","policy_version":"2026-11-01.3",`+
				`"env":"prod-eu","env_version":"41","agent_id":"a-17","episode_id":"a-17/881","step":%d,"action":"offer_b",`+
				`"reward":-0.25,"terminated":false,"outcomes":{"conversion":1}}`+"\n", step)
		}
		if values = append(values, value); len(values) == batch/perMessage+1 || i == messages-1 {
			s.produceValues(0, values...)
			values = values[:0]
		}
	}
}
