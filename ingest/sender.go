package ingest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/segmentio/kafka-go"
)

// ErrNotTaken is the class of answers by which a broker refuses a message.
var ErrNotTaken = errors.New("the broker has not taken the message")

// Header is a header of a message.
type Header struct{ Key, Value string }

// Sender writes messages to a topic for others to read, now and then: it connects for each of them.
type Sender struct {
	cfg     KafkaConfig // with the topic
	network *network
}

// NewSender reads the certificates and secrets that the configuration names. It does not connect; dial makes the
// connections.
func NewSender(cfg KafkaConfig, dial func(ctx context.Context, network, address string) (net.Conn, error)) (*Sender, error) {
	network, err := newNetwork(cfg)
	if err != nil {
		return nil, err
	}
	network.transport.Dial = dial
	return &Sender{cfg: cfg, network: network}, nil
}

// Send writes a message, and returns when all in-sync replicas have it. The key gives its partition, the same as with the
// producers of Apache Kafka. It makes one attempt, and ends it when ctx ends; one that fails may have written the message.
func (s *Sender) Send(ctx context.Context, key, value []byte, headers ...Header) error {
	defer s.network.transport.CloseIdleConnections()
	client := s.network.client(s.cfg.Brokers)
	partitions, err := partitionCount(ctx, client, s.cfg.Topic)
	if err != nil {
		return notTaken(err)
	}
	record := kafka.Record{Key: kafka.NewBytes(key), Value: kafka.NewBytes(value), Time: time.Now()}
	for _, h := range headers {
		record.Headers = append(record.Headers, kafka.Header{Key: h.Key, Value: []byte(h.Value)})
	}
	answer, err := client.Produce(ctx, &kafka.ProduceRequest{
		Topic: s.cfg.Topic, Partition: partitionOf(key, partitions), RequiredAcks: kafka.RequireAll, Records: kafka.NewRecordReader(record),
	})
	if err == nil {
		err = answer.Error
	}
	if err != nil {
		return notTaken(fmt.Errorf("writing to the topic %s: %w", s.cfg.Topic, err))
	}
	return nil
}

func partitionOf(key []byte, partitions int) int {
	all := make([]int, partitions)
	for i := range all {
		all[i] = i
	}
	return kafka.Murmur2Balancer{Consistent: true}.Balance(kafka.Message{Key: key}, all...)
}

// notTaken tells what a broker says from what became of the connection, or the time.
func notTaken(err error) error {
	var said kafka.Error
	if errors.As(err, &said) && !said.Timeout() {
		return fmt.Errorf("%w: %w", ErrNotTaken, err)
	}
	return err
}
