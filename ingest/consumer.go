package ingest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/segmentio/kafka-go"
)

// The errors with which Run asks for an operator: what to do is a choice between losing telemetry and reading it again,
// and nothing that the service knows makes it.
var (
	// ErrOffsetPastEnd says that a partition ends before the offset that was to be read next.
	ErrOffsetPastEnd = errors.New("the partition ends before the offset that is to be read next: the topic was recreated or has lost records")
	// ErrTopicRecreated says that a partition holds another record than before at the offset that was read last.
	ErrTopicRecreated = errors.New("the partition holds another record than before at the offset that was read last: the topic was recreated or has lost records")
	// ErrCheckpointDamaged says that the state of a partition was saved and cannot be restored.
	ErrCheckpointDamaged = errors.New("the checkpoint of the partition is damaged")
)

// ErrProcessor says that the Processor or the Handler of a partition failed or panicked. Its state may hold half a
// batch, so nothing is saved any more: a restart replays from the last checkpoint.
var ErrProcessor = errors.New("processing a partition failed")

// ConsumerOptions are the parts a Consumer works with. All are needed, but for DeadLetters where the Handler takes whole
// messages: without them there are no metrics of events either. The metrics of the consumer itself have the label topic,
// so that several of different topics can share a Registerer.
type ConsumerOptions struct {
	Stores          Stores
	CheckpointEvery time.Duration // after a crash, at most this much is read again
	DeadLetters     DeadLetters   // closed by the caller, after Run
	Handler         Handler
	Log             zerolog.Logger
	Registerer      prometheus.Registerer
}

// timing is how long things take. Tests are more impatient.
type timing struct {
	heartbeat, session, rebalance, joinBackoff time.Duration
	watchPartitions                            time.Duration // between looks for new partitions
	watchTopic                                 time.Duration // between looks for a topic that does not exist yet
	maxWait                                    time.Duration // for which a broker holds back an empty answer
	minBackoff, maxBackoff                     time.Duration // before connecting to a partition again
	stall                                      time.Duration // without progress, while there is something to read
}

func defaultTiming() timing {
	return timing{
		heartbeat: 2 * time.Second, session: 10 * time.Second, rebalance: 30 * time.Second, joinBackoff: time.Second,
		watchPartitions: 5 * time.Second, watchTopic: 2 * time.Second, maxWait: 250 * time.Millisecond,
		minBackoff: 100 * time.Millisecond, maxBackoff: 5 * time.Second, stall: 30 * time.Second,
	}
}

// backoff gives the time before the next try after so many failures. Its spread keeps the partitions of a broker that comes
// back from knocking all at once.
func (t timing) backoff(failures int) time.Duration {
	d := t.minBackoff << min(failures-1, 20)
	d = min(max(d, t.minBackoff), t.maxBackoff)
	return d/2 + rand.N(d)
}

// Consumer reads the partitions of a topic that its group gives it, each in a goroutine of its own: from the
// checkpoint on, in offset order, every record once into the state that the next checkpoint holds.
type Consumer struct {
	cfg     KafkaConfig
	opts    ConsumerOptions
	timing  timing
	network *network
	client  *kafka.Client
	metrics *metrics
	events  *eventMetrics // nil where whole messages are taken
	board   *board
	// What could be logged with every record and every attempt is logged a few times a minute.
	refusals, outages zerolog.Logger

	partitions int // of the topic, when it was last looked at; of the goroutine of Run
	fences     int // generations in a row that ended with one; of the goroutine of the generation

	running sync.WaitGroup // generations
	cancel  context.CancelCauseFunc
	failed  atomic.Bool // nothing may be saved any more
}

// NewConsumer reads the certificates and secrets that the configuration names. It does not connect.
func NewConsumer(cfg KafkaConfig, opts ConsumerOptions) (*Consumer, error) {
	network, err := newNetwork(cfg)
	if err != nil {
		return nil, err
	}
	c := &Consumer{
		cfg: cfg, opts: opts, timing: defaultTiming(), network: network,
		client:  network.client(cfg.Brokers),
		metrics: newMetrics(ofTopic(cfg.Topic, opts.Registerer)), board: newBoard(time.Now),
		refusals: opts.Log.Sample(&zerolog.BurstSampler{Burst: 5, Period: time.Minute}),
		outages:  opts.Log.Sample(&zerolog.BurstSampler{Burst: 10, Period: time.Minute}),
	}
	if err := ofTopic(cfg.Topic, opts.Registerer).Register(newCollector(c.board)); err != nil {
		return nil, fmt.Errorf("registering the metrics of partitions: %w", err)
	}
	if opts.DeadLetters != nil {
		c.events = newEventMetrics(opts.DeadLetters, opts.Registerer)
	}
	return c, nil
}

// Ready gives nil when the group is joined and every assigned partition is read up to the lag that is allowed, else
// what is missing.
func (c *Consumer) Ready() error { return c.board.ready(c.cfg.ReadyLag) }

// Run reads until ctx ends; then it finishes the batches in hand, saves, commits, leaves the group and returns nil. Any
// other end is an error after which nothing was saved: ErrOffsetPastEnd, ErrTopicRecreated and ErrCheckpointDamaged
// need an operator, ErrProcessor a restart. Outages of Kafka are waited out, and so is ErrFenced: the partition is given up
// without being saved, and the group joined anew. Run is called once.
func (c *Consumer) Run(ctx context.Context) error {
	ctx, c.cancel = context.WithCancelCause(ctx)
	defer c.cancel(nil)
	defer c.network.cut()
	defer context.AfterFunc(ctx, c.network.retire)()
	defer c.board.leave("it has stopped")
	for ctx.Err() == nil {
		if c.awaitTopic(ctx) {
			c.consume(ctx)
		}
	}
	return fatal(ctx)
}

// fail ends the consumer.
func (c *Consumer) fail(err error) {
	c.failed.Store(true)
	c.cancel(&fatalError{err})
}

// fatalError ends the consumer.
type fatalError struct{ err error }

func (e *fatalError) Error() string { return e.err.Error() }
func (e *fatalError) Unwrap() error { return e.err }

// fatal gives the error for which ctx was ended, nil where it was not or its owner ended it.
func fatal(ctx context.Context) error {
	var f *fatalError
	if errors.As(context.Cause(ctx), &f) {
		return f.err
	}
	return nil
}

// awaitTopic waits until the topic exists. It says so once, and every now and then. It never makes the topic: with the
// wrong number of partitions it would be there for good.
func (c *Consumer) awaitTopic(ctx context.Context) bool {
	for n := 0; ; n++ {
		partitions, err := c.existing(ctx)
		if err == nil {
			c.partitions = partitions
			c.metrics.existing.Set(float64(partitions))
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		c.board.leave(err.Error())
		if n%30 == 0 {
			c.opts.Log.Warn().Err(err).Strs("brokers", c.cfg.Brokers).Str("topic", c.cfg.Topic).Msg("Waiting for the topic")
		}
		if !sleep(ctx, c.timing.watchTopic) {
			return false
		}
	}
}

// existing counts the partitions of the topic.
func (c *Consumer) existing(ctx context.Context) (int, error) {
	return partitionCount(ctx, c.client, c.cfg.Topic)
}

// consume is a member of the group until ctx ends or the topic is gone.
func (c *Consumer) consume(ctx context.Context) {
	group, err := kafka.NewConsumerGroup(c.groupConfig())
	if err != nil {
		c.fail(fmt.Errorf("setting up the consumer group: %w", err))
		return
	}
	defer c.leave(ctx, group)
	c.board.leave("waiting for partitions to be assigned")
	for {
		generation, err := group.Next(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			c.board.leave(err.Error())
			c.outages.Warn().Err(err).Str("group", c.cfg.Group).Msg("Joining the group failed, trying again")
			continue
		}
		assigned := generation.Assignments[c.cfg.Topic]
		c.start(ctx, generation, assigned)
		if len(assigned) > 0 {
			continue
		}
		// Without the topic, each generation would end at once and the next one begin.
		sleep(ctx, c.timing.watchTopic)
		if _, err := c.existing(ctx); errors.Is(err, kafka.UnknownTopicOrPartition) {
			return
		}
	}
}

func (c *Consumer) groupConfig() kafka.ConsumerGroupConfig {
	return kafka.ConsumerGroupConfig{
		ID: c.cfg.Group, Brokers: c.cfg.Brokers, Topics: []string{c.cfg.Topic}, Dialer: c.network.dialer,
		// With LastOffset, what is written between the first join and the first commit would be lost to a restart.
		StartOffset:       kafka.FirstOffset,
		HeartbeatInterval: c.timing.heartbeat, SessionTimeout: c.timing.session, RebalanceTimeout: c.timing.rebalance,
		JoinGroupBackoff:      c.timing.joinBackoff,
		WatchPartitionChanges: true, PartitionWatchInterval: c.timing.watchPartitions,
		ErrorLogger: kafka.LoggerFunc(func(msg string, args ...any) { c.opts.Log.Debug().Msgf("kafka-go: "+msg, args...) }),
	}
}

// leave waits for the partitions to let go, and leaves the group.
func (c *Consumer) leave(ctx context.Context, group *kafka.ConsumerGroup) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		group.Close() // it is always nil
	}()
	c.running.Wait()
	if ctx.Err() != nil {
		c.network.cut()
	}
	<-closed
}

// start begins to read the partitions of a generation.
func (c *Consumer) start(ctx context.Context, g *kafka.Generation, assigned []kafka.PartitionAssignment) {
	c.running.Wait() // a straggler of the generation before would let go of partitions that this one assigns
	ids := make([]int, len(assigned))
	partitions := make([]*partition, len(assigned))
	for i, a := range assigned {
		partitions[i], ids[i] = newPartition(c, g, a), a.ID
	}
	c.opts.Log.Info().Int32("generation", g.ID).Str("topic", c.cfg.Topic).Str("group", c.cfg.Group).Ints("partitions", ids).
		Msg("Partitions assigned")
	own := &generation{c: c, existing: c.count(ctx, ids), partitions: partitions, told: make(chan struct{})}
	c.running.Add(1)
	// The function must not return before the generation has ended, or that would end it.
	g.Start(func(generation context.Context) {
		defer c.running.Done()
		ctx, end := context.WithCancel(ctx)
		defer end()
		defer context.AfterFunc(generation, end)()
		own.run(ctx)
	})
}

// count gives the number of partitions of the topic, as it was last known where the brokers do not say.
func (c *Consumer) count(ctx context.Context, assigned []int) int {
	if n, err := c.existing(ctx); err == nil {
		c.partitions = n
	}
	for _, id := range assigned {
		c.partitions = max(c.partitions, id+1)
	}
	return c.partitions
}

// sleep waits, unless ctx ends before.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
