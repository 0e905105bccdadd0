package recording_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
	"github.com/rewardwatch/rewardwatch/ingest/recording"
)

// patience limits every wait of these tests.
const patience = 10 * time.Second

func waitContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// bench is a topic, and where it is.
type bench struct {
	t        testing.TB
	broker   *ingesttest.Broker
	cfg      ingest.KafkaConfig
	produced map[int32]int // messages of each partition
}

func (b *bench) place() recording.Place { return recording.Place{Kafka: b.cfg} }

func newBench(t testing.TB, partitions int32) *bench {
	t.Helper()
	broker, err := ingesttest.Start(partitions, "telemetry")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	cfg := ingest.DefaultKafkaConfig()
	cfg.Brokers, cfg.Topic = broker.Addrs(), broker.Topic
	return &bench{t: t, broker: broker, cfg: cfg, produced: map[int32]int{}}
}

// value returns the telemetry at an offset.
func value(offset int) []byte {
	return fmt.Appendf(nil, `{"policy":"p","ts":%d,"reward":%d}`, 1_700_000_000+offset, offset)
}

// produce writes the next messages of a partition, as one record batch.
func (b *bench) produce(partition int32, messages int) {
	b.t.Helper()
	values := make([][]byte, messages)
	for i := range values {
		values[i] = value(b.produced[partition] + i)
	}
	b.produceValues(partition, values...)
}

func (b *bench) produceValues(partition int32, values ...[]byte) {
	b.t.Helper()
	if err := b.broker.Produce(waitContext(b.t), partition, values...); err != nil {
		b.t.Fatalf("producing: %v", err)
	}
	b.produced[partition] += len(values)
}
