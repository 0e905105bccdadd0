package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/kafkalog"
)

var _ ingest.Stores = (*Topic)(nil)

// Topic stores the checkpoints of each partition in a compacted Kafka topic, where the next instance that is assigned
// the partition finds them. The checkpoints of partition p are in partition p modulo the topic's number of partitions.
// This number must never change.
type Topic struct {
	cfg     ingest.KafkaConfig
	topic   string
	log     *kafkalog.Log
	logger  zerolog.Logger
	metrics *metrics
	// Logs messages that every record could cause, limited to a few per minute.
	strangers zerolog.Logger

	mu         sync.Mutex
	partitions int // of the topic, 0 until it is known
}

// OpenTopic returns the checkpoints in a topic. It reads the certificates and secrets named in the configuration, but
// does not connect.
func OpenTopic(cfg ingest.KafkaConfig, topic string, log zerolog.Logger, reg prometheus.Registerer) (*Topic, error) {
	l, err := kafkalog.Open(cfg, topic, log)
	if err != nil {
		return nil, err
	}
	return &Topic{cfg: cfg, topic: topic, log: l, logger: log, metrics: newMetrics(reg), strangers: log.Sample(&zerolog.BurstSampler{Burst: 5, Period: time.Minute})}, nil
}

// Close closes all connections.
func (t *Topic) Close() error { return t.log.Close() }

// assignment is the result of Open: the store of a partition while it is assigned, and a journal.
type assignment struct {
	*Store
	held *lease
}

// Append durably sets the newest value of a key. An empty value removes the key. It retries until ctx ends. The error
// is ingest.ErrFenced once the partition has another owner.
func (a assignment) Append(ctx context.Context, key string, value []byte) error {
	return a.held.note(ctx, key, value)
}

// Read calls visit with the newest value of each key, in the order in which the values were appended. visit must not
// modify them.
func (a assignment) Read(visit func(key string, value []byte)) { a.held.readNotes(visit) }

// Open implements ingest.Stores. The returned store can list the names of its checkpoints. It is also a journal, whose
// methods Append and Read store small values by key.
func (t *Topic) Open(ctx context.Context, topic string, partition int32, owner func() error) (ingest.CheckpointStore, error) {
	count, err := t.prepare(ctx, topic)
	if err != nil {
		return nil, err
	}
	scope := fmt.Sprintf("%s/%d", topic, partition)
	held := newLease(t.log, t.topic, int(partition)%count, scope)
	held.foreign = func(r kafkalog.Record, err error) { t.foreign(int(partition)%count, r, err) }
	if err := held.begin(ctx, owner); err != nil {
		return nil, fmt.Errorf("take over the checkpoints of %s: %w", scope, err)
	}
	for _, what := range held.damaged {
		t.logger.Error().Str("scope", scope).Str("topic", t.topic).Str("damaged", what).Msg("a checkpoint record is damaged")
	}
	s := newStore(held, t.logger, t.metrics)
	s.topic = t.topic
	return assignment{s, held}, nil
}

// foreign logs a record that is damaged or was written by another program.
func (t *Topic) foreign(partition int, r kafkalog.Record, why error) {
	t.metrics.failures.WithLabelValues(kindOther).Inc()
	t.strangers.Error().Err(why).Str("topic", t.topic).Int("partition", partition).Int64("offset", r.Offset).Bytes("key", r.Key).
		Msg("skipped a record in the checkpoints topic that is not part of a checkpoint: no other program may write to this topic")
}

// settings returns the settings with which the topic is created. Log segments are small, because only closed ones are
// compacted.
func settings() map[string]string {
	return map[string]string{"cleanup.policy": "compact", "segment.bytes": "67108864", "segment.ms": "600000"}
}

// prepare creates the topic with as many partitions as the telemetry topic, or checks that an existing one is suitable.
func (t *Topic) prepare(ctx context.Context, telemetry string) (partitions int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.partitions > 0 {
		return t.partitions, nil
	}
	n, err := t.log.Partitions(ctx)
	if errors.Is(err, ingest.ErrNoTopic) {
		n, err = t.make(ctx, telemetry)
	}
	if err == nil {
		err = t.check(ctx)
	}
	if err == nil {
		err = t.checkWidth(ctx, n)
	}
	if err != nil {
		return 0, err
	}
	t.partitions = n
	return n, nil
}

func (t *Topic) make(ctx context.Context, telemetry string) (int, error) {
	l, err := kafkalog.Open(t.cfg, telemetry, t.logger)
	if err != nil {
		return 0, err
	}
	defer l.Close() // always succeeds
	n, err := l.Partitions(ctx)
	if err == nil {
		err = t.log.Make(ctx, n, settings())
	}
	if err != nil {
		return 0, err
	}
	return t.log.Partitions(ctx) // another instance may have created it first
}

// errUnfit means that the topic has a setting that would cause checkpoints to be lost.
var errUnfit = errors.New("the topic settings are not suitable for checkpoints")

func (t *Topic) check(ctx context.Context) error {
	policy, err := t.log.Setting(ctx, "cleanup.policy")
	if err != nil {
		return err
	}
	if policy != "compact" { // "compact,delete" also deletes records
		return t.unfit("cleanup.policy", policy, "compact")
	}
	kept, err := t.log.Setting(ctx, "delete.retention.ms")
	if err != nil {
		return err
	}
	// A tombstone must not be removed while a reader may still have to see it, or the record that it deletes would
	// reappear.
	if ms, err := strconv.ParseInt(kept, 10, 64); err != nil || ms < 2*topicTakeOver.Milliseconds() {
		return t.unfit("delete.retention.ms", kept, "86400000")
	}
	return nil
}

// checkWidth checks that the topic has as many partitions as at its first use, when the number was written to a record.
func (t *Topic) checkWidth(ctx context.Context, partitions int) error {
	had := partitions
	noted := false
	_, err := t.log.ReadOn(ctx, 0, 0, 0, func(r kafkalog.Record) error {
		if _, at, err := parseKey(r.Key); err == nil && at.kind == kindWidth {
			noted = true
			if int(at.number) != partitions {
				had = int(at.number)
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case had != partitions:
		return fmt.Errorf("%w: topic %s now has %d partitions instead of %d, so checkpoints would not be found; %s",
			errUnfit, t.topic, partitions, had, FromNothing)
	case noted:
		return nil
	}
	width := record{kind: kindWidth, number: uint64(partitions)}
	return t.log.Append(ctx, 0, kafkalog.Record{Key: width.key(""), Value: seal(fmt.Append(nil, partitions))})
}

func (t *Topic) unfit(setting, is, want string) error {
	return fmt.Errorf("%w: %s of topic %s is %q; to fix this, run: kafka-configs.sh --bootstrap-server %s --alter --entity-type topics "+
		"--entity-name %s --add-config %s=%s", errUnfit, setting, t.topic, is, strings.Join(t.cfg.Brokers, ","), t.topic, setting, want)
}
