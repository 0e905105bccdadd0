// Package consumer reads the partitions that its consumer group assigns into the states of its Handler. It reads each
// partition from its checkpoint, in offset order. Partitions with the same number in several topics feed one state.
// They are assigned together, and share one checkpoint with a position per topic.
//
// While the consumer catches up, topics are merged by Kafka timestamp. At the end of the log, records are processed as
// they arrive. So the order between topics can change after a restart. Anything by which a bank recognizes a unit, its
// place in a lane and its record, must therefore depend on that lane alone. Feedback from another topic only adds to
// the unit of its decision: it neither advances the clock of that lane nor ends a decision. Anything else that joins
// topics must follow the same rule.
package consumer

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/deadletter"
	"github.com/rewardwatch/rewardwatch/ingest/fetch"
	"github.com/rs/zerolog"
)

// Run returns these errors if an operator must decide whether to lose telemetry or to read it again.
var (
	// ErrOffsetPastEnd means that a partition ends before the offset to read next.
	ErrOffsetPastEnd = errors.New("the partition ends before the next offset: the topic was recreated or lost records")
	// ErrTopicRecreated means that the record at the offset that was read last is now a different one.
	ErrTopicRecreated = errors.New("the last record read has changed: the topic was recreated or lost records")
	// ErrCompacted means that the topic is compacted, which removes records before they are read.
	ErrCompacted = errors.New("the topic is compacted, which removes records before they are read")
	// ErrCheckpointDamaged means that the saved state of a partition cannot be restored.
	ErrCheckpointDamaged = errors.New("the checkpoint of the partition is damaged")
)

// ErrProcessor means that the Processor or the Handler of a partition failed or panicked. Its state may contain half a
// batch, so nothing is saved afterwards, and a restart replays from the last checkpoint.
var ErrProcessor = errors.New("failed to process a partition")

// Options configures a Consumer. All fields are required, except that a Handler of whole messages needs no Format and
// no DeadLetters. Without DeadLetters, there are no event metrics. The consumer's other metrics have the label topic,
// so consumers of different topics can share a Registerer.
//
// Topics replaces the topic of the KafkaConfig and Format. The order of topics must not change, because checkpoints and
// positions contain their indexes. New topics can be added at the end.
type Options struct {
	Stores          ingest.Stores
	CheckpointEvery time.Duration     // maximum time that is read again after a crash
	Format          ingest.Format     // of the events
	Topics          []ingest.Topic    // if there are several; otherwise nil
	Joined          bool              // records of the topics are joined: while one topic cannot be read, the others wait
	Merged          bool              // one member of the group reads all partitions, in the order of the messages' Kafka timestamps
	AsRecorded      bool              // set Event.AsRecorded
	DeadLetters     deadletter.Keeper // closed by the caller after Run
	Handler         ingest.Handler
	Log             zerolog.Logger
	Registerer      prometheus.Registerer
	Events          prometheus.Registerer // for event metrics, if different from Registerer
}

// timing contains the consumer's intervals and limits. Tests shorten them.
type timing struct {
	heartbeat, session, rebalance, joinBackoff time.Duration
	watchPartitions                            time.Duration // between checks for new partitions
	watchTopic                                 time.Duration // between checks for a topic that does not exist yet
	maxWait                                    time.Duration // how long a broker may delay an empty response
	minBackoff, maxBackoff                     time.Duration // before reconnecting to a partition
	stall                                      time.Duration // without progress, while there is something to read
}

func defaultTiming() timing {
	return timing{
		heartbeat: 2 * time.Second, session: 10 * time.Second, rebalance: 30 * time.Second, joinBackoff: time.Second,
		watchPartitions: 50 * time.Millisecond, watchTopic: 2 * time.Second, maxWait: fetch.MaxWait,
		minBackoff: 100 * time.Millisecond, maxBackoff: 5 * time.Second, stall: 30 * time.Second,
	}
}

// untilAsked returns the delay before the next query for the numbers of partitions, after the given number of failures.
func (t timing) untilAsked(failures int) time.Duration {
	if failures == 0 {
		return t.watchPartitions
	}
	return max(t.watchPartitions, t.backoff(failures))
}

// backoff returns the delay after the given number of failures. Its jitter keeps partitions from reconnecting to a
// recovered broker all at once.
func (t timing) backoff(failures int) time.Duration {
	d := t.minBackoff << min(failures-1, 20)
	d = min(max(d, t.minBackoff), t.maxBackoff)
	return d/2 + rand.N(d)
}

// Consumer reads the partitions that its group assigns, each in its own goroutine. It reads a partition from its
// checkpoint in offset order. Every record is part of the next checkpoint's state exactly once.
type Consumer struct {
	cfg    ingest.KafkaConfig
	opts   Options
	timing timing
	source source
	topics []*topic
	events *eventMetrics // nil if the states take whole messages
	now    func() time.Time
	// Log messages that every record or attempt could cause, limited to a few per minute.
	refusals, outages zerolog.Logger

	fences int // consecutive generations that ended with ErrFenced; used by the generation's goroutine

	running sync.WaitGroup // generations
	cancel  context.CancelCauseFunc
	failed  atomic.Bool // if set, nothing is saved
	large   sync.Mutex  // held while a large state is saved, because its whole snapshot is in memory
}

// New returns a consumer. It reads the certificates and secrets named in the configuration, but does not connect.
func New(cfg ingest.KafkaConfig, opts Options) (*Consumer, error) {
	network, err := fetch.NewNetwork(cfg)
	if err != nil {
		return nil, err
	}
	c, err := newConsumer(cfg, opts)
	if err != nil {
		return nil, err
	}
	network.Transport.MetadataTopics = c.names()
	c.source = &brokers{Consumer: c, network: network, client: network.Client(cfg.Brokers)}
	return c, nil
}

func newConsumer(cfg ingest.KafkaConfig, opts Options) (*Consumer, error) {
	c := &Consumer{
		cfg: cfg, opts: opts, timing: defaultTiming(), now: time.Now,
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
	if opts.DeadLetters != nil {
		reg := opts.Events
		if reg == nil {
			reg = opts.Registerer
		}
		c.events = newEventMetrics(opts.DeadLetters, reg)
	}
	return c, nil
}

// Run reads until ctx ends. Then it finishes the current batches, saves, commits, leaves the group and returns nil.
// After any error, nothing was saved. ErrOffsetPastEnd, ErrTopicRecreated, ErrCompacted and ErrCheckpointDamaged
// require an operator, ErrProcessor a restart. Run waits while Kafka is unavailable. On ErrFenced, it drops the
// partition without saving it and rejoins the group. Run may be called only once.
func (c *Consumer) Run(ctx context.Context) error {
	ctx, c.cancel = context.WithCancelCause(ctx)
	defer c.cancel(nil)
	defer c.left("it has stopped")
	c.source.run(ctx)
	return fatal(ctx)
}

// fail stops the consumer with an error.
func (c *Consumer) fail(err error) {
	c.failed.Store(true)
	c.cancel(&fatalError{err})
}

// fatalError is an error that stops the consumer.
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
