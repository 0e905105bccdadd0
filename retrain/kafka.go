package retrain

import (
	"context"
	"errors"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// kafkaTopic is the adapter of a Kafka topic.
type kafkaTopic struct {
	sender *ingest.Sender
	line   line
}

func (k KafkaTarget) adapter(line line) (adapter, error) {
	if k.telemetry { // who reads the telemetry from those brokers has said that they are meant
		line.dial = dialer(true)
	}
	sender, err := ingest.NewSender(k.config(), line.dial)
	return kafkaTopic{sender, line}, err
}

// send writes the webhook's body under the policy as the key, so that requests of one policy stay in their order. An attempt
// that failed may have written it: readers know a repetition by the header id.
func (k kafkaTopic) send(ctx context.Context, m message) outcome {
	err := k.sender.Send(ctx, []byte(m.policy), m.body,
		ingest.Header{Key: "id", Value: m.id}, ingest.Header{Key: "type", Value: m.event}, ingest.Header{Key: "content-type", Value: "application/json"})
	switch {
	case err == nil:
		return outcome{result: ResultDelivered}
	case errors.Is(err, ingest.ErrNotTaken):
		return outcome{result: ResultRejected, err: err.Error()}
	}
	return k.line.broken(err)
}
