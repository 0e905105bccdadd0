// Package consumer reads the partitions that its consumer group assigns, each from its checkpoint and in offset order,
// into the states of its Handler. Partitions of one number, of several topics, feed one state: they are assigned together,
// and share one checkpoint, with a position per topic.
//
// Topics are merged by Kafka's time while reading the past; at the live end, records are taken as they arrive. So the
// order between topics can change after a restart. What a bank uses to recognize a unit, its place in a lane and its
// record, must depend on that lane alone. Feedback from another topic only adds to the unit of its decision: it neither
// moves the clock of that lane nor ends a decision. Anything else that joins topics must follow the same rule.
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

// Run returns these errors when an operator must act. The operator has to choose between losing telemetry and reading
// it again, and nothing the service knows can decide that.
var (
	// ErrOffsetPastEnd means that a partition ends before the offset to read next.
	ErrOffsetPastEnd = errors.New("the partition ends before the next offset: the topic was recreated or lost records")
	// ErrTopicRecreated means that a partition now holds another record at the offset that was read last.
	ErrTopicRecreated = errors.New("the last record read has changed: the topic was recreated or lost records")
	// ErrCompacted means that the topic is compacted, which removes records before they are read.
	ErrCompacted = errors.New("the topic is compacted, which removes records before they are read")
	// ErrCheckpointDamaged means that the saved state of a partition cannot be restored.
	ErrCheckpointDamaged = errors.New("the checkpoint of the partition is damaged")
)

// ErrProcessor means that the Processor or the Handler of a partition failed or panicked. Its state may hold half a
// batch, so nothing is saved from then on: a restart replays from the last checkpoint.
var ErrProcessor = errors.New("failed to process a partition")

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
	Merged          bool              // one member of the group reads all partitions, in the order of Kafka's times of their messages
	AsRecorded      bool              // events get their AsRecorded
	DeadLetters     deadletter.Keeper // closed by the caller, after Run
	Handler         ingest.Handler
	Log             zerolog.Logger
	Registerer      prometheus.Registerer
	Events          prometheus.Registerer // of the metrics of events, if that is another one
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
		watchPartitions: 50 * time.Millisecond, watchTopic: 2 * time.Second, maxWait: fetch.MaxWait,
		minBackoff: 100 * time.Millisecond, maxBackoff: 5 * time.Second, stall: 30 * time.Second,
	}
}

// untilAsked returns the delay before the numbers of partitions are asked for, after so many failures.
func (t timing) untilAsked(failures int) time.Duration {
	if failures == 0 {
		return t.watchPartitions
	}
	return max(t.watchPartitions, t.backoff(failures))
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
	cfg    ingest.KafkaConfig
	opts   Options
	timing timing
	source source
	topics []*topic
	events *eventMetrics // nil if whole messages are taken
	now    func() time.Time
	// Messages that every record or attempt could cause are logged a few times a minute.
	refusals, outages zerolog.Logger

	fences int // generations in a row that ended with one; used by the generation's goroutine

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

// Run reads until ctx ends; then it finishes the current batches, saves, commits, leaves the group and returns nil. Any
// other return is an error, after which nothing was saved: ErrOffsetPastEnd, ErrTopicRecreated, ErrCompacted and
// ErrCheckpointDamaged need an operator, ErrProcessor a restart. Run waits out outages of Kafka. On ErrFenced it drops
// the partition unsaved and joins the group again. Run may be called once.
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
