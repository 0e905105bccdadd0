// Package ingesttest provides an in-process Kafka broker with fault injection, and simple implementations of the
// interfaces of package ingest that record what they receive.
package ingesttest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// brokers is the number of brokers of a cluster. There are several, so that leaders and coordinators can move.
const brokers = 3

// Broker is an in-process cluster. Its methods are safe for concurrent use.
type Broker struct {
	Topic string

	cluster *kfake.Cluster
	options []kfake.Opt
	client  *kgo.Client
	net     *wires
}

// Start starts a cluster of three brokers on loopback with one topic, or no topic if partitions is 0. options are those
// of kfake, such as DataDir. Close stops the cluster.
func Start(partitions int32, topic string, options ...kfake.Opt) (*Broker, error) {
	return start(partitions, topic, options, nil)
}

// StartTLS is like Start, but the listeners use TLS. client configures the Broker's own connection.
func StartTLS(partitions int32, topic string, server, client *tls.Config, options ...kfake.Opt) (*Broker, error) {
	return start(partitions, topic, append(options, kfake.TLS(server)), []kgo.Opt{kgo.DialTLSConfig(client)})
}

// StartSASL is like Start, but the brokers require a password. client configures the Broker's own connection.
func StartSASL(partitions int32, topic string, client kgo.Opt, options ...kfake.Opt) (*Broker, error) {
	return start(partitions, topic, append(options, kfake.EnableSASL()), []kgo.Opt{client})
}

func start(partitions int32, topic string, options []kfake.Opt, client []kgo.Opt) (*Broker, error) {
	b := &Broker{Topic: topic, net: &wires{open: map[*wire]struct{}{}}}
	options = append(options, kfake.NumBrokers(brokers), kfake.ListenFn(b.net.listen),
		kfake.GroupMinSessionTimeout(100*time.Millisecond))
	if partitions > 0 {
		options = append(options, kfake.SeedTopics(partitions, topic))
	}
	b.options = options
	var err error
	if b.cluster, err = kfake.NewCluster(options...); err != nil {
		return nil, fmt.Errorf("start the cluster: %w", err)
	}
	b.client, err = kgo.NewClient(append(client, kgo.SeedBrokers(b.Addrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.AlwaysRetryEOF(), // for brokers that stop while a client connects
		kgo.MetadataMinAge(10*time.Millisecond), kgo.ProducerLinger(0),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.MaxVersions(kversion.V3_0_0()))...) // later versions address topics by ID in some requests
	if err != nil {
		b.cluster.Close()
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return b, nil
}

// Close stops the cluster.
func (b *Broker) Close() {
	b.client.Close()
	b.cluster.Close()
}

// Stop stops the brokers of a cluster that was started with kfake.DataDir. again restarts them with the same addresses
// and records.
func (b *Broker) Stop() (again func() error) {
	var ports []int
	for _, a := range b.Addrs() {
		_, port, _ := net.SplitHostPort(a)
		n, _ := strconv.Atoi(port)
		ports = append(ports, n)
	}
	b.cluster.Close()
	return func() (err error) {
		b.cluster, err = kfake.NewCluster(append(b.options, kfake.Ports(ports...))...)
		return err
	}
}

// Addrs returns host:port of each broker.
func (b *Broker) Addrs() []string { return b.cluster.ListenAddrs() }

// Cluster returns the underlying cluster, for faults that this package does not offer.
func (b *Broker) Cluster() *kfake.Cluster { return b.cluster }

// Client returns a client of the cluster, for requests that this package does not offer.
func (b *Broker) Client() *kgo.Client { return b.client }

// Produce writes values to a partition as one record batch, and returns once they are in the log. A nil value is a
// tombstone.
func (b *Broker) Produce(ctx context.Context, partition int32, values ...[]byte) error {
	return b.client.ProduceSync(ctx, b.records(partition, values)...).FirstErr()
}

// together is how long a client waits for further records of a batch. They are produced without delay, but on a busy
// machine their goroutine may have to wait between two of them.
const together = 200 * time.Millisecond

// ProduceWith is like Produce with additional client options, such as compression. If these make the client
// transactional, the values form one transaction, which is committed or aborted.
func (b *Broker) ProduceWith(ctx context.Context, partition int32, commit bool, values [][]byte, options ...kgo.Opt) error {
	client, err := kgo.NewClient(append(options, kgo.SeedBrokers(b.Addrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(together))...)
	if err != nil {
		return err
	}
	defer client.Close()
	if client.OptValue(kgo.TransactionalID) == "" {
		return client.ProduceSync(ctx, b.records(partition, values)...).FirstErr()
	}
	if err := client.BeginTransaction(); err != nil {
		return err
	}
	if err := client.ProduceSync(ctx, b.records(partition, values)...).FirstErr(); err != nil {
		return err
	}
	return client.EndTransaction(ctx, kgo.TransactionEndTry(commit))
}

func (b *Broker) records(partition int32, values [][]byte) []*kgo.Record {
	records := make([]*kgo.Record, len(values))
	for i, v := range values {
		records[i] = &kgo.Record{Topic: b.Topic, Partition: partition, Value: v}
	}
	return records
}

// End returns the high-water mark of a partition.
func (b *Broker) End(partition int32) int64 {
	info := b.cluster.PartitionInfo(b.Topic, partition)
	if info == nil {
		return -1
	}
	return info.HighWatermark
}

// Committed returns the next offset that a group has committed for a partition, or -1.
func (b *Broker) Committed(ctx context.Context, group string, partition int32) (int64, error) {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Group = group
	topic := kmsg.NewOffsetFetchRequestTopic()
	topic.Topic, topic.Partitions = b.Topic, []int32{partition}
	req.Topics = append(req.Topics, topic)
	res, err := req.RequestWith(ctx, b.client)
	if err != nil {
		return 0, err
	}
	for _, t := range res.Topics {
		for _, p := range t.Partitions {
			return p.Offset, kerr.ErrorForCode(p.ErrorCode)
		}
	}
	return 0, errors.New("the response contains no offset")
}

// Grow adds partitions to the topic up to the given number.
func (b *Broker) Grow(ctx context.Context, partitions int32) error {
	req := kmsg.NewPtrCreatePartitionsRequest()
	topic := kmsg.NewCreatePartitionsRequestTopic()
	topic.Topic, topic.Count = b.Topic, partitions
	req.Topics = append(req.Topics, topic)
	res, err := req.RequestWith(ctx, b.client)
	if err != nil {
		return err
	}
	for _, t := range res.Topics {
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
			return err
		}
	}
	b.client.PurgeTopicsFromClient(b.Topic) // otherwise, it would not know the new partitions for a while
	return nil
}

// DeleteRecords removes the records before an offset, like retention.
func (b *Broker) DeleteRecords(partition int32, before int64) error {
	return b.cluster.DeleteRecords(b.Topic, partition, before)
}

// Recreate deletes the topic and creates it again without records.
func (b *Broker) Recreate(partitions int32) error {
	if err := b.cluster.DeleteTopic(b.Topic); err != nil {
		return err
	}
	b.client.PurgeTopicsFromClient(b.Topic)
	return b.cluster.CreateTopic(b.Topic, partitions, nil)
}

// MovePartition makes another broker the leader of a partition.
func (b *Broker) MovePartition(partition int32) error {
	leader := b.cluster.LeaderFor(b.Topic, partition)
	return b.cluster.MoveTopicPartition(b.Topic, partition, (leader+1)%brokers)
}

// MoveCoordinator makes another broker the coordinator of groups.
func (b *Broker) MoveCoordinator() { b.cluster.RehashCoordinators() }

// Fail makes the next count requests with the given key fail.
func (b *Broker) Fail(key kmsg.Key, err *kerr.Error, count int) *kfake.FaultHandle {
	return b.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{key}, Err: err, Count: count})
}

// FailWhole makes the next count requests with the given key fail with a top-level error, as requests of group members
// do.
func (b *Broker) FailWhole(key kmsg.Key, err *kerr.Error, count int) *kfake.FaultHandle {
	return b.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{key}, Err: err, Count: count, TopLevel: true})
}

// CutConnections closes all connections to the cluster.
func (b *Broker) CutConnections() { b.net.cut() }

// CutAfter closes the next connection that has sent the given number of bytes to its client, even within a batch.
func (b *Broker) CutAfter(bytes int64) { b.net.cutAfter(bytes) }

// wires contains the connections of a cluster.
type wires struct {
	mu    sync.Mutex
	open  map[*wire]struct{}
	limit int64 // number of bytes after which a connection is cut; 0 for none
}

func (w *wires) listen(network, address string) (net.Listener, error) {
	l, err := net.Listen(network, address)
	if err != nil {
		return nil, err
	}
	return &listener{Listener: l, wires: w}, nil
}

func (w *wires) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.open {
		c.Conn.Close() // the connection is meant to break
	}
}

func (w *wires) cutAfter(bytes int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.limit = bytes
	for c := range w.open {
		c.sent = 0
	}
}

// allow returns how many of the bytes may be sent before the connection is cut.
func (w *wires) allow(c *wire, bytes int) (allowed int, cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.limit == 0 || c.sent+int64(bytes) <= w.limit {
		c.sent += int64(bytes)
		return bytes, false
	}
	allowed = int(w.limit - c.sent)
	w.limit = 0
	return allowed, true
}

type listener struct {
	net.Listener
	wires *wires
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	w := &wire{Conn: c, wires: l.wires, closed: make(chan struct{})}
	l.wires.mu.Lock()
	defer l.wires.mu.Unlock()
	l.wires.open[w] = struct{}{}
	return w, nil
}

// wire is a connection whose end the cluster does not notice until Close, as when a network fails. Otherwise, kfake
// would forever keep a member whose connection ended before the response to its JoinGroup. With wire, the session of
// the member times out. Each connection takes a goroutine and a file descriptor until the cluster is closed.
type wire struct {
	net.Conn
	wires  *wires
	sent   int64
	once   sync.Once
	closed chan struct{}
}

func (w *wire) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	if err != nil && n == 0 {
		<-w.closed
	}
	return n, err
}

func (w *wire) Write(b []byte) (int, error) {
	allowed, cut := w.wires.allow(w, len(b))
	_, _ = w.Conn.Write(b[:allowed]) // errors are ignored, as if the bytes were in the buffers of a failed network
	if cut {
		w.Conn.Close() // the connection is meant to break
	}
	return len(b), nil
}

func (w *wire) Close() error {
	w.wires.mu.Lock()
	delete(w.wires.open, w)
	w.wires.mu.Unlock()
	w.once.Do(func() { close(w.closed) })
	return w.Conn.Close()
}
