package target

import (
	"context"
	"errors"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/kafkalog"
)

// Kafka is a topic that receives the requests.
type Kafka struct {
	Topic   string            `yaml:"topic"`   // topic, which must exist
	Brokers []string          `yaml:"brokers"` // brokers as `host:port` (default: those in `ingest.kafka`, with their `tls` and `sasl` settings)
	TLS     ingest.TLSConfig  `yaml:"tls"`
	SASL    ingest.SASLConfig `yaml:"sasl"`

	telemetry bool // the brokers are those of the telemetry
}

func (k Kafka) given() bool {
	return k.Topic != "" || len(k.Brokers) > 0 || k.TLS != ingest.TLSConfig{} || k.SASL != ingest.SASLConfig{}
}

func (k Kafka) address() string {
	return "kafka://" + strings.Join(k.Brokers, ",") + "/" + k.Topic
}

func (k Kafka) check(report func(key, msg string)) {
	report = below("kafka", report)
	if len(k.Brokers) == 0 {
		if (k.TLS != ingest.TLSConfig{}) || (k.SASL != ingest.SASLConfig{}) {
			report("brokers", "must be set; otherwise, tls and sasl have no effect because those of ingest.kafka apply")
		}
		k.Brokers = ingest.DefaultKafkaConfig().Brokers
	}
	k.Config().Check(report)
}

// Config returns the configuration of the connections to the topic.
func (k Kafka) Config() ingest.KafkaConfig {
	c := ingest.DefaultKafkaConfig()
	c.Brokers, c.Topic, c.TLS, c.SASL = k.Brokers, k.Topic, k.TLS, k.SASL
	return c
}

// kafkaTopic is the adapter of a Kafka topic.
type kafkaTopic struct {
	sender *kafkalog.Sender
	line   line
}

func (k Kafka) adapter(line line) (Adapter, error) {
	if k.telemetry { // the telemetry configuration has already approved these brokers
		line.dial = dialer(true)
	}
	sender, err := kafkalog.NewSender(k.Config(), line.dial)
	if err != nil {
		return nil, err
	}
	password, err := k.SASL.Secret()
	return kafkaTopic{sender, line.hiding(password)}, err
}

// Send writes the webhook's body with the policy as the key, which keeps the requests of one policy in order. A failed
// attempt may have written it: readers detect a repetition by the header id.
func (k kafkaTopic) Send(ctx context.Context, m Message) Attempt {
	err := k.sender.Send(ctx, []byte(m.Policy), m.Body,
		ingest.Header{Key: "id", Value: []byte(m.ID)}, ingest.Header{Key: "type", Value: []byte(m.Event)},
		ingest.Header{Key: "content-type", Value: []byte("application/json")})
	switch {
	case err == nil:
		return Attempt{Result: ResultDelivered}
	case errors.Is(err, kafkalog.ErrNotTaken):
		return Attempt{Result: ResultRejected, Err: k.line.clean(err.Error())}
	}
	return k.line.broken(err)
}
