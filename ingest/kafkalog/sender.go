package kafkalog

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/fetch"
	"github.com/segmentio/kafka-go"
)

// ErrNotTaken means that a broker refused a message.
var ErrNotTaken = errors.New("the broker did not accept the message")

// Sender sends occasional messages to a topic that others read. It connects for each message.
type Sender struct {
	cfg     ingest.KafkaConfig // with the topic
	network *fetch.Network
}

// NewSender returns a Sender. It reads the certificates and secrets named in the configuration, but does not connect.
// It uses dial to open connections later.
func NewSender(cfg ingest.KafkaConfig, dial func(ctx context.Context, network, address string) (net.Conn, error)) (*Sender, error) {
	network, err := fetch.NewNetwork(cfg)
	if err != nil {
		return nil, err
	}
	network.Transport.Dial = dial
	return &Sender{cfg: cfg, network: network}, nil
}

// Send sends a message, and returns once all in-sync replicas have it. The key determines its partition, as with the
// producers of Apache Kafka. There is only one attempt, which is limited by ctx. A failed attempt may have written the
// message.
func (s *Sender) Send(ctx context.Context, key, value []byte, headers ...ingest.Header) error {
	defer s.network.Transport.CloseIdleConnections()
	client := s.network.Client(s.cfg.Brokers)
	partitions, err := fetch.PartitionCount(ctx, client, s.cfg.Topic)
	if err != nil {
		return notTaken(err)
	}
	record := kafka.Record{Key: kafka.NewBytes(key), Value: kafka.NewBytes(value), Headers: headersOf(headers), Time: time.Now()}
	answer, err := client.Produce(ctx, &kafka.ProduceRequest{
		Topic: s.cfg.Topic, Partition: PartitionOf(key, partitions), RequiredAcks: kafka.RequireAll, Records: kafka.NewRecordReader(record),
	})
	if err == nil {
		err = answer.Error
	}
	if err != nil {
		return notTaken(fmt.Errorf("write to topic %s: %w", s.cfg.Topic, err))
	}
	return nil
}

func headersOf(headers []ingest.Header) (out []kafka.Header) {
	for _, h := range headers {
		out = append(out, kafka.Header{Key: h.Key, Value: h.Value})
	}
	return out
}

// PartitionOf returns the partition for a key, as the producers of Apache Kafka choose it.
func PartitionOf(key []byte, partitions int) int {
	all := make([]int, partitions)
	for i := range all {
		all[i] = i
	}
	return kafka.Murmur2Balancer{Consistent: true}.Balance(kafka.Message{Key: key}, all...)
}

// notTaken wraps the refusal of a broker with ErrNotTaken, to distinguish it from a failed connection or a timeout.
func notTaken(err error) error {
	var said kafka.Error
	if errors.As(err, &said) && !said.Timeout() {
		return fmt.Errorf("%w: %w", ErrNotTaken, err)
	}
	return err
}
