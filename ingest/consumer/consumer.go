// Package consumer reads the partitions that its consumer group assigns, each from its checkpoint and in offset order,
// into the states of its Handler. Partitions of one number, of several topics, feed one state.
package consumer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
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
//
// Topics replace the topic of the KafkaConfig and Format. Their order must not change, but more may follow later:
// checkpoints and positions hold the index of a topic.
type Options struct {
	Stores          ingest.Stores
	CheckpointEvery time.Duration     // after a crash, at most this much is read again
	Format          ingest.Format     // of the events
	Topics          []ingest.Topic    // if there are several, or nil
	Joined          bool              // records of the topics are joined: while one cannot be read, the others wait
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
	topics  []*topic
	events  *eventMetrics // nil if whole messages are taken
	now     func() time.Time
	// Messages that every record or attempt could cause are logged a few times a minute.
	refusals, outages zerolog.Logger

	partitions []int // of each topic, when last checked; used by Run's goroutine and by the one that watches a generation
	fences     int   // generations in a row that ended with one; used by the generation's goroutine

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
		client: network.Client(cfg.Brokers), now: time.Now,
		refusals: opts.Log.Sample(&zerolog.BurstSampler{Burst: 5, Period: time.Minute}),
		outages:  opts.Log.Sample(&zerolog.BurstSampler{Burst: 10, Period: time.Minute}),
	}
	if len(opts.Topics) == 0 {
		opts.Topics = []ingest.Topic{{Name: cfg.Topic, Format: opts.Format}}
	}
	for i, t := range opts.Topics {
		added, err := newTopic(t, i, newBoard(c.now), opts.Registerer)
		if err != nil {
			return nil, err
		}
		c.topics = append(c.topics, added)
	}
	network.Transport.MetadataTopics = c.names()
	if opts.DeadLetters != nil {
		c.events = newEventMetrics(opts.DeadLetters, opts.Registerer)
	}
	return c, nil
}

// Run reads until ctx ends; then it finishes the current batches, saves, commits, leaves the group and returns nil. Any
// other return is an error, after which nothing was saved: ErrOffsetPastEnd, ErrTopicRecreated, ErrCompacted and
// ErrCheckpointDamaged need an operator, ErrProcessor a restart. Run waits out outages of Kafka. On ErrFenced it drops
// the partition unsaved and joins the group again. Run may be called once.
func (c *Consumer) Run(ctx context.Context) error {
	ctx, c.cancel = context.WithCancelCause(ctx)
	defer c.cancel(nil)
	defer c.network.Cut()
	defer context.AfterFunc(ctx, c.network.Retire)()
	defer c.left("it has stopped")
	for ctx.Err() == nil {
		if c.awaitTopics(ctx) {
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

// awaitTopics waits until all topics exist, and logs that from time to time. It never creates one: a wrong number of
// partitions would be permanent.
func (c *Consumer) awaitTopics(ctx context.Context) bool {
	for n := 0; ; n++ {
		partitions, err := c.existing(ctx)
		if err == nil {
			c.partitions = partitions
			return c.refuseCompaction(ctx)
		}
		if ctx.Err() != nil {
			return false
		}
		c.left(err.Error())
		if n%30 == 0 {
			c.opts.Log.Warn().Err(err).Strs("brokers", c.cfg.Brokers).Strs("topics", c.names()).Msg("waiting for the topic")
		}
		if !fetch.Sleep(ctx, c.timing.watchTopic) {
			return false
		}
	}
}

// refuseCompaction stops the consumer if a topic is compacted. If it may not ask, records removed by compaction are
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

// consume is a member of the group until ctx ends or a topic is gone.
func (c *Consumer) consume(ctx context.Context) {
	group, err := kafka.NewConsumerGroup(c.groupConfig())
	if err != nil {
		c.fail(fmt.Errorf("setting up the consumer group: %w", err))
		return
	}
	defer c.leave(ctx, group)
	c.left("waiting for partitions to be assigned")
	for {
		generation, err := group.Next(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			c.left(err.Error())
			c.outages.Warn().Err(err).Str("group", c.cfg.Group).Msg("joining the group failed, trying again")
			continue
		}
		if !c.lacksTopic(ctx) && c.start(ctx, generation) {
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
	cfg := kafka.ConsumerGroupConfig{
		ID: c.cfg.Group, Brokers: c.cfg.Brokers, Topics: c.names(), Dialer: c.network.Dialer,
		// With LastOffset, a restart would lose what is written between the first join and the first commit.
		StartOffset:       kafka.FirstOffset,
		HeartbeatInterval: c.timing.heartbeat, SessionTimeout: c.timing.session, RebalanceTimeout: c.timing.rebalance,
		JoinGroupBackoff: c.timing.joinBackoff,
		ErrorLogger:      kafka.LoggerFunc(func(msg string, args ...any) { c.opts.Log.Debug().Msgf("kafka-go: "+msg, args...) }),
	}
	if len(c.topics) > 1 {
		cfg.GroupBalancers = []kafka.GroupBalancer{together{}}
	}
	return cfg
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

// start begins reading the partitions of a generation. It returns false without any.
func (c *Consumer) start(ctx context.Context, g *kafka.Generation) bool {
	c.running.Wait() // a straggler of the previous generation would revoke partitions that this one assigns
	partitions := c.assigned(g)
	own := &generation{c: c, partitions: partitions, told: make(chan struct{})}
	own.known, own.counted = slices.Clone(c.partitions), time.Now().Add(-fetch.MetadataAge)
	own.existing = c.count(ctx, partitions)
	c.tellUnlike()
	c.running.Add(1)
	// If the function returned before the generation ends, that would end it.
	g.Start(func(generation context.Context) {
		defer c.running.Done()
		ctx, end := context.WithCancel(ctx)
		defer end()
		defer context.AfterFunc(generation, end)()
		own.run(ctx)
	})
	return len(partitions) > 0
}

// tellUnlike logs that topics whose records are joined have different numbers of partitions: a key is then in partitions
// of different numbers, however it is hashed.
func (c *Consumer) tellUnlike() {
	if c.opts.Joined && len(c.partitions) > 1 && slices.Min(c.partitions) != slices.Max(c.partitions) {
		c.opts.Log.Error().Strs("topics", c.names()).Ints("partitions", c.partitions).
			Msg("decisions and feedback are joined by partition, and the topics have different numbers of them: feedback is lost unless " +
				"they are the same; create the smaller topic anew with as many partitions")
	}
}

// assigned returns the partitions of a generation, by number.
func (c *Consumer) assigned(g *kafka.Generation) []*partition {
	byNumber := map[int]*partition{}
	for _, t := range c.topics {
		var ids []int
		for _, a := range g.Assignments[t.Name] {
			p := byNumber[a.ID]
			if p == nil {
				p = newPartition(c, g, int32(a.ID))
				byNumber[a.ID] = p
			}
			p.readers = append(p.readers, newReader(p, t, a.Offset))
			ids = append(ids, a.ID)
		}
		c.opts.Log.Info().Int32("generation", g.ID).Str("topic", t.Name).Str("group", c.cfg.Group).Ints("partitions", ids).
			Msg("partitions assigned")
	}
	partitions := make([]*partition, 0, len(byNumber))
	for _, number := range slices.Sorted(maps.Keys(byNumber)) {
		partitions = append(partitions, byNumber[number])
	}
	return partitions
}

// count returns the largest number of partitions of a topic, as far as the brokers say how many there are.
func (c *Consumer) count(ctx context.Context, assigned []*partition) int {
	if n, err := c.existing(ctx); err == nil {
		c.partitions = n
	}
	for _, p := range assigned {
		for _, r := range p.readers {
			c.partitions[r.topic.index] = max(c.partitions[r.topic.index], int(p.id)+1)
		}
	}
	return slices.Max(c.partitions)
}
