package ingest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"
)

const (
	dialTimeout = 5 * time.Second
	// operationTimeout bounds every read and write for which kafka-go sets no deadline, such as the SASL handshake: a
	// broker that accepts connections and does not answer would hold the caller forever.
	operationTimeout = 15 * time.Second
	// farewell is how long leaving the group may take once everything else has stopped.
	farewell = 2 * time.Second
)

// network makes all connections to the cluster, so that each of them is secured and bounded alike.
type network struct {
	dialer    *kafka.Dialer
	transport *kafka.Transport

	mu      sync.Mutex
	retired bool
	conns   map[*boundedConn]struct{} // of the dialer, open and made before retire
}

// newNetwork reads the secrets and certificates that the configuration names.
func newNetwork(c KafkaConfig) (*network, error) {
	encryption, err := c.TLS.load()
	if err != nil {
		return nil, err
	}
	identity, err := c.SASL.load()
	if err != nil {
		return nil, err
	}
	n := &network{conns: map[*boundedConn]struct{}{}}
	n.dialer = &kafka.Dialer{
		ClientID: c.ClientID, Timeout: dialTimeout, DialFunc: n.dial, TLS: encryption, SASLMechanism: identity,
	}
	n.transport = &kafka.Transport{
		ClientID: c.ClientID, DialTimeout: dialTimeout, TLS: encryption, SASL: identity, MetadataTTL: time.Second,
		MetadataTopics: []string{c.Topic},
	}
	return n, nil
}

func (c TLSConfig) load() (*tls.Config, error) {
	if !c.Enabled {
		return nil, nil
	}
	out := &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: c.ServerName, InsecureSkipVerify: c.InsecureSkipVerify,
	}
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("reading the certificate authority of Kafka: %w", err)
		}
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("reading the certificate authority of Kafka: %s holds no certificate", c.CAFile)
		}
	}
	if c.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("reading the client certificate for Kafka: %w", err)
		}
		out.Certificates = []tls.Certificate{pair}
	}
	return out, nil
}

func (c SASLConfig) load() (sasl.Mechanism, error) {
	if c.Mechanism == "" {
		return nil, nil
	}
	password, err := c.password()
	if err != nil {
		return nil, err
	}
	switch c.Mechanism {
	case SASLPlain:
		return plain.Mechanism{Username: c.Username, Password: password}, nil
	case SASLScramSHA256:
		return scram.Mechanism(scram.SHA256, c.Username, password)
	case SASLScramSHA512:
		return scram.Mechanism(scram.SHA512, c.Username, password)
	}
	return nil, fmt.Errorf("there is no SASL mechanism %q", c.Mechanism)
}

func (c SASLConfig) password() (string, error) {
	if c.PasswordEnv != "" {
		password := os.Getenv(c.PasswordEnv)
		if password == "" {
			return "", fmt.Errorf("the environment variable %s, which is to hold the password for Kafka, is empty", c.PasswordEnv)
		}
		return password, nil
	}
	text, err := os.ReadFile(c.PasswordFile)
	if err != nil {
		return "", fmt.Errorf("reading the password for Kafka: %w", err)
	}
	password := strings.TrimRight(string(text), "\r\n")
	if password == "" {
		return "", fmt.Errorf("the password file for Kafka, %s, is empty", c.PasswordFile)
	}
	return password, nil
}

// client makes a client for requests that do not go to one partition.
func (n *network) client(brokers []string) *kafka.Client {
	return &kafka.Client{Addr: kafka.TCP(brokers...), Transport: n.transport, Timeout: operationTimeout}
}

// partitionCount counts the partitions of a topic. It never makes the topic.
func partitionCount(ctx context.Context, client *kafka.Client, topic string) (int, error) {
	answer, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("the broker ended the connection, as it does where TLS or SASL is not what it wants: %w", err)
	}
	if err != nil {
		return 0, fmt.Errorf("asking for the topic %s: %w", topic, err)
	}
	for _, t := range answer.Topics {
		if t.Name != topic {
			continue
		}
		if t.Error != nil {
			return 0, fmt.Errorf("asking for the topic %s: %w", topic, t.Error)
		}
		if len(t.Partitions) > 0 {
			return len(t.Partitions), nil
		}
	}
	return 0, fmt.Errorf("asking for the topic %s: %w", topic, kafka.UnknownTopicOrPartition)
}

// partition connects to the leader of a partition, as the first broker that answers names it.
func (n *network) partition(ctx context.Context, brokers []string, topic string, partition int) (*kafka.Conn, error) {
	var errs []error
	for _, broker := range brokers {
		found, err := n.leader(ctx, broker, topic, partition)
		if err != nil {
			errs = append(errs, fmt.Errorf("asking %s for the leader: %w", broker, err))
			continue
		}
		conn, err := n.dialer.DialPartition(ctx, "tcp", broker, found)
		if err != nil {
			return nil, fmt.Errorf("connecting to the leader: %w", err)
		}
		return conn, nil
	}
	return nil, errors.Join(errs...)
}

func (n *network) leader(ctx context.Context, broker, topic string, partition int) (kafka.Partition, error) {
	conn, err := n.dialer.DialContext(ctx, "tcp", broker)
	if err != nil {
		return kafka.Partition{}, err
	}
	defer conn.Close() // its answers have been read
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

// dial makes the connections of the dialer.
func (n *network) dial(ctx context.Context, protocol, address string) (net.Conn, error) {
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

func (n *network) forget(c *boundedConn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.conns, c)
}

// retire tells old connections from those that are made from now on, to leave the group, which have a short life.
func (n *network) retire() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.retired = true
}

// cut closes the connections that were made before retire, so that a join that waits for other members, half a minute
// at worst, does not hold up the end.
func (n *network) cut() {
	n.mu.Lock()
	left := make([]*boundedConn, 0, len(n.conns))
	for c := range n.conns {
		left = append(left, c)
	}
	n.mu.Unlock()
	for _, c := range left {
		c.Close() // nobody waits for what it still says
	}
	n.transport.CloseIdleConnections()
}

// boundedConn is a connection that never waits without a deadline.
type boundedConn struct {
	net.Conn
	closed func() // nil where nobody wants to know
}

func bounded(t time.Time) time.Time {
	if t.IsZero() {
		return time.Now().Add(operationTimeout)
	}
	return t
}

// SetDeadline takes "no deadline" for the longest there is.
func (c *boundedConn) SetDeadline(t time.Time) error { return c.Conn.SetDeadline(bounded(t)) }

// SetReadDeadline takes "no deadline" for the longest there is.
func (c *boundedConn) SetReadDeadline(t time.Time) error { return c.Conn.SetReadDeadline(bounded(t)) }

// SetWriteDeadline takes "no deadline" for the longest there is.
func (c *boundedConn) SetWriteDeadline(t time.Time) error { return c.Conn.SetWriteDeadline(bounded(t)) }

// Close closes the connection.
func (c *boundedConn) Close() error {
	if c.closed != nil {
		c.closed()
	}
	return c.Conn.Close()
}
