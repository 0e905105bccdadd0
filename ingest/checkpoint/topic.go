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
)

var _ ingest.Stores = (*Topic)(nil)

// Topic keeps the checkpoints of each partition with the partition, in a compacted topic of Kafka: whichever instance is
// assigned the partition finds them there. Those of partition p are in partition p modulo the number of partitions of the
// topic, which must stay what it is.
type Topic struct {
	cfg     ingest.KafkaConfig
	topic   string
	log     *ingest.Log
	logger  zerolog.Logger
	metrics *metrics
	// What could be logged with every record is logged a few times a minute.
	strangers zerolog.Logger

	mu         sync.Mutex
	partitions int // of the topic, 0 before it has been looked at
}

// OpenTopic reads the certificates and secrets that the configuration names. It does not connect.
func OpenTopic(cfg ingest.KafkaConfig, topic string, log zerolog.Logger, reg prometheus.Registerer) (*Topic, error) {
	l, err := ingest.OpenLog(cfg, topic, log)
	if err != nil {
		return nil, err
	}
	return &Topic{cfg: cfg, topic: topic, log: l, logger: log, metrics: newMetrics(reg), strangers: log.Sample(&zerolog.BurstSampler{Burst: 5, Period: time.Minute})}, nil
}

// Close ends all connections.
func (t *Topic) Close() error { return t.log.Close() }

// assignment is what Open gives: the store of a partition while it is assigned, and a journal.
type assignment struct {
	*Store
	held *tenure
}

// Append makes a value durable as the newest of its key; an empty one makes the key forgotten. It tries until ctx ends. The
// error is ingest.ErrFenced once the partition has another owner.
func (a assignment) Append(ctx context.Context, key string, value []byte) error {
	return a.held.note(ctx, key, value)
}

// Read gives the newest value of each key, in the order in which they were appended. They must not be changed.
func (a assignment) Read(visit func(key string, value []byte)) { a.held.readNotes(visit) }

// Open implements ingest.Stores. What it gives lists the names of its checkpoints, and is a journal too: it has methods
// Append and Read that keep small values by key.
func (t *Topic) Open(ctx context.Context, topic string, partition int32, owner func() error) (ingest.CheckpointStore, error) {
	count, err := t.prepare(ctx, topic)
	if err != nil {
		return nil, err
	}
	scope := fmt.Sprintf("%s/%d", topic, partition)
	held := newTenure(t.log, t.topic, int(partition)%count, scope)
	held.foreign = func(r ingest.LogRecord, err error) { t.foreign(int(partition)%count, r, err) }
	if err := held.begin(ctx, owner); err != nil {
		return nil, fmt.Errorf("taking over the checkpoints of %s: %w", scope, err)
	}
	for _, what := range held.damaged {
		t.logger.Error().Str("scope", scope).Str("topic", t.topic).Str("damaged", what).Msg("A record of the checkpoints is damaged")
	}
	s := newStore(held, t.logger, t.metrics)
	s.topic = t.topic
	return assignment{s, held}, nil
}

// foreign tells of a record that somebody else has written to the topic, or that was damaged.
func (t *Topic) foreign(partition int, r ingest.LogRecord, why error) {
	t.metrics.failures.WithLabelValues(kindOther).Inc()
	t.strangers.Error().Err(why).Str("topic", t.topic).Int("partition", partition).Int64("offset", r.Offset).Bytes("key", r.Key).
		Msg("A record of the checkpoints topic is no part of a checkpoint and is left out: nothing else may write to this topic")
}

// settings are those with which the topic is made. Segments are small, since only those that are closed are compacted.
func settings() map[string]string {
	return map[string]string{"cleanup.policy": "compact", "segment.bytes": "67108864", "segment.ms": "600000"}
}

// prepare makes the topic, with as many partitions as that of the telemetry, or sees that it is fit to keep checkpoints.
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
	l, err := ingest.OpenLog(t.cfg, telemetry, t.logger)
	if err != nil {
		return 0, err
	}
	defer l.Close() // it always succeeds
	n, err := l.Partitions(ctx)
	if err == nil {
		err = t.log.Make(ctx, n, settings())
	}
	if err != nil {
		return 0, err
	}
	return t.log.Partitions(ctx) // another instance may have been first
}

// errUnfit says that the topic has a setting with which checkpoints would be lost.
var errUnfit = errors.New("the topic is not fit to keep checkpoints")

func (t *Topic) check(ctx context.Context) error {
	policy, err := t.log.Setting(ctx, "cleanup.policy")
	if err != nil {
		return err
	}
	if policy != "compact" { // "compact,delete" deletes as well
		return t.unfit("cleanup.policy", policy, "compact")
	}
	kept, err := t.log.Setting(ctx, "delete.retention.ms")
	if err != nil {
		return err
	}
	// What was removed must not come back for one who is still reading.
	if ms, err := strconv.ParseInt(kept, 10, 64); err != nil || ms < 2*topicTakeOver.Milliseconds() {
		return t.unfit("delete.retention.ms", kept, "86400000")
	}
	return nil
}

// checkWidth makes sure that the topic has as many partitions as when it was first used, which the topic itself says.
func (t *Topic) checkWidth(ctx context.Context, partitions int) error {
	had := partitions
	noted := false
	_, err := t.log.ReadOn(ctx, 0, 0, 0, func(r ingest.LogRecord) error {
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
		return fmt.Errorf("%w: %s has %d partitions and had %d, so that checkpoints would be looked for elsewhere; stop all instances and name "+
			"a new topic in cluster.checkpoints_topic: policies then warm up new baselines, and partitions are read on from the offsets that "+
			"were committed", errUnfit, t.topic, partitions, had)
	case noted:
		return nil
	}
	width := record{kind: kindWidth, number: uint64(partitions)}
	return t.log.Append(ctx, 0, ingest.LogRecord{Key: width.key(""), Value: seal(fmt.Append(nil, partitions))})
}

func (t *Topic) unfit(setting, is, want string) error {
	return fmt.Errorf("%w: %s of %s is %q; mend it with: kafka-configs.sh --bootstrap-server %s --alter --entity-type topics "+
		"--entity-name %s --add-config %s=%s", errUnfit, setting, t.topic, is, strings.Join(t.cfg.Brokers, ","), t.topic, setting, want)
}
