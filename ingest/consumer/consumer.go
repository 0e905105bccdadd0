// Package consumer reads the partitions of a topic that its consumer group assigns, each from its checkpoint and in
// offset order, into the state of its Handler.
package consumer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/deadletter"
	"github.com/rewardwatch/rewardwatch/ingest/fetch"
	"github.com/rs/zerolog"
	"github.com/segmentio/kafka-go"
)

// Run returns these errors when an operator must act. The operator has to choose between losing telemetry and reading
// it again, and nothing the service knows can decide that.
var (
	// ErrOffsetPastEnd means that a partition ends before the offset to read next.
	ErrOffsetPastEnd = errors.New("the partition ends before the offset that is to be read next: the topic was recreated or has lost records")
	// ErrTopicRecreated means that a partition now holds another record at the offset that was read last.
	ErrTopicRecreated = errors.New("the partition holds another record than before at the offset that was read last: the topic was recreated or has lost records")
	// ErrCompacted means that the topic is compacted, which removes records before they are read.
	ErrCompacted = errors.New("the topic is compacted, which removes records before they are read")
	// ErrCheckpointDamaged means that the saved state of a partition cannot be restored.
	ErrCheckpointDamaged = errors.New("the checkpoint of the partition is damaged")
)

// ErrProcessor means that the Processor or the Handler of a partition failed or panicked. Its state may hold half a
// batch, so nothing is saved from then on: a restart replays from the last checkpoint.
var ErrProcessor = errors.New("processing a partition failed")

// Options are the parts a Consumer works with. All are required, except that a Handler of whole messages needs no
// Format and no DeadLetters; without DeadLetters there are no metrics of events. The metrics of the consumer itself
// have the label topic, so that consumers of different topics can share a Registerer.
type Options struct {
	Stores          ingest.Stores
	CheckpointEvery time.Duration     // after a crash, at most this much is read again
	Format          ingest.Format     // of the events
	DeadLetters     deadletter.Keeper // closed by the caller, after Run
	Handler         ingest.Handler
	Log             zerolog.Logger
	Registerer      prometheus.Registerer
}

// timing holds the consumer's intervals and limits. Tests shorten them.
type timing struct {
	heartbeat, session, rebalance, joinBackoff time.Duration
	watchPartitions                            time.Duration // between checks for new partitions
	watchTopic                                 time.Duration // between checks for a topic that does not exist yet
	maxWait                                    time.Duration // how long a broker holds back an empty answer
	minBackoff, maxBackoff                     time.Duration // before reconnecting to a partition
	stall                                      time.Duration // without progress, while there is something to read
}

func defaultTiming() timing {
	return timing{
		heartbeat: 2 * time.Second, session: 10 * time.Second, rebalance: 30 * time.Second, joinBackoff: time.Second,
		watchPartitions: time.Second, watchTopic: 2 * time.Second, maxWait: fetch.MaxWait,
		minBackoff: 100 * time.Millisecond, maxBackoff: 5 * time.Second, stall: 30 * time.Second,
	}
}

// backoff returns the delay after so many failures. Its jitter keeps partitions from reconnecting to a recovered broker
// all at once.
func (t timing) backoff(failures int) time.Duration {
	d := t.minBackoff << min(failures-1, 20)
	d = min(max(d, t.minBackoff), t.maxBackoff)
	return d/2 + rand.N(d)
}

// Consumer reads the partitions that its group assigns, each in its own goroutine. A partition is read from its
// checkpoint in offset order, and every record enters the state of the next checkpoint exactly once.
type Consumer struct {
	cfg     ingest.KafkaConfig
	opts    Options
	timing  timing
	network *fetch.Network
	client  *kafka.Client
	metrics *metrics
	events  *eventMetrics // nil if whole messages are taken
	board   *board
	// Messages that every record or attempt could cause are logged a few times a minute.
	refusals, outages zerolog.Logger

	partitions int // of the topic, when last checked; used by Run's goroutine and by the one that watches a generation
	fences     int // generations in a row that ended with one; used by the generation's goroutine

	running sync.WaitGroup // generations
	cancel  context.CancelCauseFunc
	failed  atomic.Bool // nothing may be saved from now on
	large   sync.Mutex  // held while a large state is saved, as its whole snapshot is in memory
}

// New reads the certificates and secrets that the configuration names. It does not connect.
func New(cfg ingest.KafkaConfig, opts Options) (*Consumer, error) {
	network, err := fetch.NewNetwork(cfg)
	if err != nil {
		return nil, err
	}
	c := &Consumer{
		cfg: cfg, opts: opts, timing: defaultTiming(), network: network,
		client:  network.Client(cfg.Brokers),
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

// Ready returns nil when the group is joined and every assigned partition is within the allowed lag. Otherwise the
// error says what is missing.
func (c *Consumer) Ready() error { return c.board.ready(c.cfg.ReadyLag) }

// Run reads until ctx ends; then it finishes the current batches, saves, commits, leaves the group and returns nil. Any
// other return is an error, after which nothing was saved: ErrOffsetPastEnd, ErrTopicRecreated, ErrCompacted and
// ErrCheckpointDamaged need an operator, ErrProcessor a restart. Run waits out outages of Kafka. On ErrFenced it drops
// the partition unsaved and joins the group again. Run may be called once.
func (c *Consumer) Run(ctx context.Context) error {
	ctx, c.cancel = context.WithCancelCause(ctx)
	defer c.cancel(nil)
	defer c.network.Cut()
	defer context.AfterFunc(ctx, c.network.Retire)()
	defer c.board.leave("it has stopped")
	for ctx.Err() == nil {
		if c.awaitTopic(ctx) {
			c.consume(ctx)
		}
	}
	return fatal(ctx)
}

// fail stops the consumer with an error.
func (c *Consumer) fail(err error) {
	c.failed.Store(true)
	c.cancel(&fatalError{err})
}

// fatalError stops the consumer.
type fatalError struct{ err error }

func (e *fatalError) Error() string { return e.err.Error() }
func (e *fatalError) Unwrap() error { return e.err }

// fatal returns the error that ended ctx, or nil if ctx is alive or its owner ended it.
func fatal(ctx context.Context) error {
	var f *fatalError
	if errors.As(context.Cause(ctx), &f) {
		return f.err
	}
	return nil
}

// awaitTopic waits until the topic exists, and logs that from time to time. It never creates the topic: a wrong number
// of partitions would be permanent.
func (c *Consumer) awaitTopic(ctx context.Context) bool {
	for n := 0; ; n++ {
		partitions, err := c.existing(ctx)
		if err == nil {
			c.partitions = partitions
			c.metrics.existing.Set(float64(partitions))
			return c.refuseCompaction(ctx)
		}
		if ctx.Err() != nil {
			return false
		}
		c.board.leave(err.Error())
		if n%30 == 0 {
			c.opts.Log.Warn().Err(err).Strs("brokers", c.cfg.Brokers).Str("topic", c.cfg.Topic).Msg("waiting for the topic")
		}
		if !fetch.Sleep(ctx, c.timing.watchTopic) {
			return false
		}
	}
}

// refuseCompaction stops the consumer if the topic is compacted. If it may not ask, records removed by compaction are
// still counted when they are found missing.
func (c *Consumer) refuseCompaction(ctx context.Context) bool {
	err := c.compacted(ctx)
	switch {
	case err == nil:
		return true
	case errors.Is(err, ErrCompacted):
		c.fail(err)
		return false
	}
	if ctx.Err() == nil {
		c.opts.Log.Warn().Err(err).Msg("cannot find out whether the topic is compacted: allow DescribeConfigs on it; " +
			"until then, compaction shows only in the records that it removed")
	}
	return ctx.Err() == nil
}

// compacted returns ErrCompacted, with the remedy, if the topic is compacted.
func (c *Consumer) compacted(ctx context.Context) error {
	policy, err := fetch.TopicSetting(ctx, c.client, c.cfg.Topic, "cleanup.policy")
	if err != nil || !strings.Contains(policy, "compact") {
		return err
	}
	return fmt.Errorf("%w: cleanup.policy of %s is %s; change it with: kafka-configs.sh --bootstrap-server %s --alter "+
		"--entity-type topics --entity-name %s --add-config cleanup.policy=delete",
		ErrCompacted, c.cfg.Topic, policy, strings.Join(c.cfg.Brokers, ","), c.cfg.Topic)
}

// existing returns the number of partitions of the topic.
func (c *Consumer) existing(ctx context.Context) (int, error) {
	return fetch.PartitionCount(ctx, c.client, c.cfg.Topic)
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
			c.outages.Warn().Err(err).Str("group", c.cfg.Group).Msg("joining the group failed, trying again")
			continue
		}
		assigned := generation.Assignments[c.cfg.Topic]
		c.start(ctx, generation, assigned)
		if len(assigned) > 0 {
			continue
		}
		// Without the topic, each generation would end at once and the next one begin.
		fetch.Sleep(ctx, c.timing.watchTopic)
		if _, err := c.existing(ctx); errors.Is(err, kafka.UnknownTopicOrPartition) {
			return
		}
	}
}

func (c *Consumer) groupConfig() kafka.ConsumerGroupConfig {
	return kafka.ConsumerGroupConfig{
		ID: c.cfg.Group, Brokers: c.cfg.Brokers, Topics: []string{c.cfg.Topic}, Dialer: c.network.Dialer,
		// With LastOffset, a restart would lose what is written between the first join and the first commit.
		StartOffset:       kafka.FirstOffset,
		HeartbeatInterval: c.timing.heartbeat, SessionTimeout: c.timing.session, RebalanceTimeout: c.timing.rebalance,
		JoinGroupBackoff: c.timing.joinBackoff,
		ErrorLogger:      kafka.LoggerFunc(func(msg string, args ...any) { c.opts.Log.Debug().Msgf("kafka-go: "+msg, args...) }),
	}
}

// leave waits for the partitions to stop, and leaves the group.
func (c *Consumer) leave(ctx context.Context, group *kafka.ConsumerGroup) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		group.Close() // it always returns nil
	}()
	c.running.Wait()
	if ctx.Err() != nil {
		c.network.Cut()
	}
	<-closed
}

// start begins reading the partitions of a generation.
func (c *Consumer) start(ctx context.Context, g *kafka.Generation, assigned []kafka.PartitionAssignment) {
	c.running.Wait() // a straggler of the previous generation would revoke partitions that this one assigns
	ids := make([]int, len(assigned))
	partitions := make([]*partition, len(assigned))
	for i, a := range assigned {
		partitions[i], ids[i] = newPartition(c, g, a), a.ID
	}
	c.opts.Log.Info().Int32("generation", g.ID).Str("topic", c.cfg.Topic).Str("group", c.cfg.Group).Ints("partitions", ids).
		Msg("partitions assigned")
	own := &generation{c: c, partitions: partitions, told: make(chan struct{})}
	own.known, own.counted = c.partitions, time.Now().Add(-fetch.MetadataAge)
	own.existing = c.count(ctx, ids)
	c.running.Add(1)
	// If the function returned before the generation ends, that would end it.
	g.Start(func(generation context.Context) {
		defer c.running.Done()
		ctx, end := context.WithCancel(ctx)
		defer end()
		defer context.AfterFunc(generation, end)()
		own.run(ctx)
	})
}

// count returns the number of partitions of the topic, or the last known one if the brokers do not say.
func (c *Consumer) count(ctx context.Context, assigned []int) int {
	if n, err := c.existing(ctx); err == nil {
		c.partitions = n
	}
	for _, id := range assigned {
		c.partitions = max(c.partitions, id+1)
	}
	return c.partitions
}
