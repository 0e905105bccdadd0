package fetch

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"go.uber.org/goleak"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// A request after Cut fails and leaves no connection pool behind.
func TestNothingIsAskedAfterCut(t *testing.T) {
	before := goleak.IgnoreCurrent()
	broker, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	n, err := NewNetwork(ingest.KafkaConfig{Topic: "agent-telemetry"})
	if err != nil {
		t.Fatal(err)
	}
	n.Cut()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	client := n.Client([]string{broker.Addr().String()})
	if _, err := client.Metadata(ctx, &kafka.MetadataRequest{}); err == nil || ctx.Err() != nil {
		t.Errorf("a request after Cut ended with %v, that of the test with %v", err, ctx.Err())
	}
	goleak.VerifyNone(t, before)
}
