package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/segmentio/kafka-go"
)

const (
	dialTimeout = 5 * time.Second
	// OperationTimeout is the timeout of every read and write for which kafka-go sets no deadline, such as the SASL
	// handshake. Otherwise, a broker that accepts connections but never responds would block the caller forever.
	OperationTimeout = 15 * time.Second
	// farewell is the maximum time for leaving the group once everything else has stopped.
	farewell = 2 * time.Second
	// MetadataAge is the maximum age of a client's topic metadata.
	MetadataAge = time.Second
)

// Network creates all connections to the cluster, so that all have the same security and timeouts.
type Network struct {
	Dialer    *kafka.Dialer
	Transport *kafka.Transport
	tls       *tls.Config // for the dialer's connections; nil for none
	end       context.CancelFunc

	mu      sync.Mutex
	retired bool
	conns   map[*boundedConn]struct{} // of the dialer; open, and created before Retire
}

// NewNetwork returns a Network. It reads the secrets and certificates named in the configuration, but does not connect.
func NewNetwork(c ingest.KafkaConfig) (*Network, error) {
	encryption, err := c.TLS.Load()
	if err != nil {
		return nil, err
	}
	identity, err := c.SASL.Load()
	if err != nil {
		return nil, err
	}
	n := &Network{conns: map[*boundedConn]struct{}{}, tls: encryption}
	n.Dialer = &kafka.Dialer{ClientID: c.ClientID, Timeout: dialTimeout, DialFunc: n.dial, SASLMechanism: identity}
	ctx, end := context.WithCancel(context.Background())
	n.end = end
	n.Transport = &kafka.Transport{
		Context: ctx, ClientID: c.ClientID, DialTimeout: dialTimeout, TLS: encryption, SASL: identity, MetadataTTL: MetadataAge,
		MetadataTopics: []string{c.Topic},
	}
	return n, nil
}

// Client returns a client for requests that do not address a single partition.
func (n *Network) Client(brokers []string) *kafka.Client {
	return &kafka.Client{Addr: kafka.TCP(brokers...), Transport: n.Transport, Timeout: OperationTimeout}
}

// PartitionCount returns the number of partitions of a topic. It never creates the topic.
func PartitionCount(ctx context.Context, client *kafka.Client, topic string) (int, error) {
	answer, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("the broker closed the connection; check TLS and SASL: %w", err)
	}
	if err != nil {
		return 0, fmt.Errorf("query topic %s: %w", topic, err)
	}
	for _, t := range answer.Topics {
		if t.Name != topic {
			continue
		}
		if t.Error != nil {
			return 0, fmt.Errorf("query topic %s: %w", topic, t.Error)
		}
		if len(t.Partitions) > 0 {
			return len(t.Partitions), nil
		}
	}
	return 0, fmt.Errorf("query topic %s: %w", topic, kafka.UnknownTopicOrPartition)
}

// TopicSetting returns the effective value of a topic's setting, such as cleanup.policy.
func TopicSetting(ctx context.Context, client *kafka.Client, topic, name string) (string, error) {
	answer, err := client.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{Resources: []kafka.DescribeConfigRequestResource{
		{ResourceType: kafka.ResourceTypeTopic, ResourceName: topic, ConfigNames: []string{name}},
	}})
	if err != nil {
		return "", fmt.Errorf("query %s of topic %s: %w", name, topic, err)
	}
	for _, r := range answer.Resources {
		if r.Error != nil {
			return "", fmt.Errorf("query %s of topic %s: %w", name, topic, r.Error)
		}
		for _, e := range r.ConfigEntries {
			if e.ConfigName == name {
				return e.ConfigValue, nil
			}
		}
	}
	return "", fmt.Errorf("the brokers do not report %s of topic %s", name, topic)
}

// Leader connects to the leader of a partition, as reported by the first broker that responds.
func (n *Network) Leader(ctx context.Context, brokers []string, topic string, partition int) (*Leader, error) {
	var errs []error
	for _, broker := range brokers {
		found, err := n.findLeader(ctx, broker, topic, partition)
		if err != nil {
			errs = append(errs, fmt.Errorf("query %s for the leader: %w", broker, err))
			continue
		}
		l, err := n.connect(ctx, broker, found)
		if err != nil {
			return nil, fmt.Errorf("connect to the leader: %w", err)
		}
		return l, nil
	}
	return nil, errors.Join(errs...)
}

// connect connects to the leader of a partition and authenticates there.
func (n *Network) connect(ctx context.Context, broker string, found kafka.Partition) (*Leader, error) {
	var wire net.Conn
	dialer := *n.Dialer
	dialer.DialFunc = func(ctx context.Context, protocol, address string) (conn net.Conn, err error) {
		wire, err = n.dial(ctx, protocol, address)
		return wire, err
	}
	conn, err := dialer.DialPartition(ctx, "tcp", broker, found)
	if err != nil {
		return nil, err
	}
	return newLeader(conn, wire, n.Dialer.ClientID, found.Topic, found.ID), nil
}

// AnyBroker connects to the first broker that responds.
func (n *Network) AnyBroker(ctx context.Context, brokers []string) (*kafka.Conn, error) {
	var errs []error
	for _, broker := range brokers {
		conn, err := n.Dialer.DialContext(ctx, "tcp", broker)
		if err == nil {
			return conn, nil
		}
		errs = append(errs, fmt.Errorf("connect to %s: %w", broker, err))
	}
	return nil, errors.Join(errs...)
}

func (n *Network) findLeader(ctx context.Context, broker, topic string, partition int) (kafka.Partition, error) {
	conn, err := n.Dialer.DialContext(ctx, "tcp", broker)
	if err != nil {
		return kafka.Partition{}, err
	}
	defer conn.Close() // all responses have been read
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	all, err := conn.ReadPartitions(topic)
	if err != nil {
		return kafka.Partition{}, err
	}
	for _, p := range all {
		if p.ID == partition && p.Leader.Host != "" {
			return p, nil
		}
	}
	return kafka.Partition{}, kafka.LeaderNotAvailable
}

// dial opens connections for the dialer.
func (n *Network) dial(ctx context.Context, protocol, address string) (net.Conn, error) {
	conn, err := n.open(ctx, protocol, address)
	if err != nil || n.tls == nil {
		return conn, err
	}
	config := n.tls.Clone()
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(address)
	}
	secured := tls.Client(conn, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return secured, nil
}

func (n *Network) open(ctx context.Context, protocol, address string) (net.Conn, error) {
	raw, err := (&net.Dialer{}).DialContext(ctx, protocol, address)
	if err != nil {
		return nil, err
	}
	conn := &boundedConn{Conn: raw}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.retired {
		time.AfterFunc(farewell, func() { raw.Close() })
		return conn, nil
	}
	conn.closed = func() { n.forget(conn) }
	n.conns[conn] = struct{}{}
	return conn, nil
}

func (n *Network) forget(c *boundedConn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.conns, c)
}

// Retire separates the existing connections from short-lived ones that are opened later to leave the group.
func (n *Network) Retire() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.retired = true
}

// Cut closes the connections opened before Retire. Otherwise, a join that waits for other members could delay the
// shutdown by half a minute.
func (n *Network) Cut() {
	n.mu.Lock()
	left := make([]*boundedConn, 0, len(n.conns))
	for c := range n.conns {
		left = append(left, c)
	}
	n.mu.Unlock()
	for _, c := range left {
		c.Close() // no reader is left
	}
	n.end() // otherwise, a late request would open a pool of connections that stays open
	n.Transport.CloseIdleConnections()
}

// boundedConn is a connection whose operations always have a deadline.
type boundedConn struct {
	net.Conn
	closed func() // nil if unused
}

func bounded(t time.Time) time.Time {
	if t.IsZero() {
		return time.Now().Add(OperationTimeout)
	}
	return t
}

// SetDeadline replaces "no deadline" with the latest one allowed.
func (c *boundedConn) SetDeadline(t time.Time) error { return c.Conn.SetDeadline(bounded(t)) }

// SetReadDeadline replaces "no deadline" with the latest one allowed.
func (c *boundedConn) SetReadDeadline(t time.Time) error { return c.Conn.SetReadDeadline(bounded(t)) }

// SetWriteDeadline replaces "no deadline" with the latest one allowed.
func (c *boundedConn) SetWriteDeadline(t time.Time) error { return c.Conn.SetWriteDeadline(bounded(t)) }

// Close closes the connection.
func (c *boundedConn) Close() error {
	if c.closed != nil {
		c.closed()
	}
	return c.Conn.Close()
}
