package deadletter_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/deadletter"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

func start(t *testing.T) (*ingesttest.Broker, ingest.KafkaConfig) {
	t.Helper()
	broker, err := ingesttest.Start(1, "telemetry")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	cfg := ingest.DefaultKafkaConfig()
	cfg.Brokers, cfg.Topic = broker.Addrs(), broker.Topic
	return broker, cfg
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestKafkaDeadLetters(t *testing.T) {
	broker, cfg := start(t)
	if err := broker.Cluster().CreateTopic("letters", 2, nil); err != nil {
		t.Fatal(err)
	}
	letters, err := deadletter.NewTopic(cfg, "letters", zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	raw := []byte("first")
	for i := range 50 {
		keep(t, letters, deadletter.Letter{
			Topic: "telemetry", Pos: ingest.Position{Partition: 3, Offset: int64(i), Record: 2}, Reason: ingest.ReasonInvalidJSON,
			Msg: "no object", Raw: raw, Size: 100, Truncated: true, Time: time.UnixMilli(1_700_000_000_000),
		})
		copy(raw, "later") // the memory is reused
	}
	if err := letters.Close(); err != nil {
		t.Fatal(err)
	}
	if err := letters.Keep(context.Background(), deadletter.Letter{}); err == nil {
		t.Error("a letter was kept after Close")
	}
	if got := letters.Lost(); got != 0 {
		t.Errorf("lost %d letters", got)
	}
	records := readTopic(t, broker, "letters", 50)
	for i := range 50 {
		r := records[fmt.Sprint(i)]
		if r == nil {
			t.Fatalf("the letter of offset %d is not there", i)
		}
		want := "reason=invalid_json topic=telemetry partition=3 offset=" + fmt.Sprint(i) + " record=2 message=no object size=100 truncated=true"
		if got := headers(r); got != want {
			t.Errorf("headers %q, want %q", got, want)
		}
		if value := map[bool]string{true: "first", false: "later"}[i == 0]; !bytes.Equal(r.Value, []byte(value)) {
			t.Errorf("letter %d holds %q, want %q", i, r.Value, value)
		}
	}
}

func keep(t *testing.T, letters deadletter.Keeper, l deadletter.Letter) {
	t.Helper()
	if err := letters.Keep(context.Background(), l); err != nil {
		t.Fatal(err)
	}
}

func headers(r *kgo.Record) string {
	var b bytes.Buffer
	for i, h := range r.Headers {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%s=%s", h.Key, h.Value)
	}
	return b.String()
}

// readTopic returns the records of a topic by their offset header.
func readTopic(t *testing.T, broker *ingesttest.Broker, topic string, records int) map[string]*kgo.Record {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(broker.Addrs()...), kgo.ConsumeTopics(topic))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	out := map[string]*kgo.Record{}
	ctx := within(t)
	for len(out) < records {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) { out[string(r.Headers[3].Value)] = r })
	}
	return out
}

func TestKafkaDeadLettersThatCannotBeWrittenAreCounted(t *testing.T) {
	_, cfg := start(t)
	letters, err := deadletter.NewTopic(cfg, "no-such-topic", zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		keep(t, letters, deadletter.Letter{Raw: []byte("x")})
	}
	if err := letters.Close(); err != nil {
		t.Fatal(err)
	}
	if got := letters.Lost(); got != 3 {
		t.Errorf("lost %d letters, want 3", got)
	}
	if err := letters.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
}

func TestKafkaDeadLettersNeverBlock(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections but never responds
	if err != nil {
		t.Fatal(err)
	}
	cfg := ingest.DefaultKafkaConfig()
	cfg.Brokers = []string{silent.Addr().String()}
	letters, err := deadletter.NewTopic(cfg, "letters", zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	kept, refused := 0, 0
	for range 5000 {
		if letters.Keep(context.Background(), deadletter.Letter{Raw: []byte("x")}) == nil {
			kept++
		} else {
			refused++
		}
	}
	if kept == 0 || refused == 0 {
		t.Errorf("kept %d, refused %d: the queue must be bounded", kept, refused)
	}
	if err := errors.Join(silent.Close(), letters.Close()); err != nil {
		t.Fatal(err)
	}
	if got := letters.Lost(); got != int64(kept) {
		t.Errorf("lost %d letters, want all %d that were kept", got, kept)
	}
}
