package repartition

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/fetch"
	"github.com/rewardwatch/rewardwatch/ingest/kafkalog"
)

// keptFew is the retention below which a warning is logged. Records that are unread for longer than the retention are
// lost.
const keptFew = 24 * time.Hour

// watch is the interval between checks for a topic that cannot be read yet.
const watch = 2 * time.Second

var (
	// ErrUnfit means that the topic would lose or delay telemetry.
	ErrUnfit = errors.New("the settings of the topic in ingest.kafka.repartition_topic are not suitable for telemetry")
	// ErrOtherWay means that events would be counted twice if they were forwarded as configured now.
	ErrOtherWay = errors.New("cannot change how telemetry is repartitioned")
)

// Largest returns the maximum size of a message in the topic, given the maximum size of telemetry messages.
func Largest(message ingest.ByteSize) ingest.ByteSize { return message + room }

// prepare waits for the telemetry topics, and creates the topic if it does not exist. It returns its number of
// partitions. It retries while Kafka is unavailable.
func (w *Writer) prepare(ctx context.Context) (partitions int, err error) {
	for n := 0; ; n++ {
		partitions, err = w.make(ctx)
		switch {
		case err == nil, errors.Is(err, ErrUnfit), ctx.Err() != nil:
			return partitions, err
		case !kafkalog.Passes(err):
			return 0, fmt.Errorf("prepare the topic in ingest.kafka.repartition_topic: %w", err)
		}
		if n%30 == 0 {
			w.Log.Warn().Err(err).Strs("brokers", w.Kafka.Brokers).Msg("waiting for the telemetry topics to repartition")
		}
		if !fetch.Sleep(ctx, watch) {
			return 0, ctx.Err()
		}
	}
}

// make creates the topic, unless it exists, and checks it. A new topic has as many partitions as the largest telemetry
// topic. An existing topic may have any number of partitions.
func (w *Writer) make(ctx context.Context) (partitions int, err error) {
	most, err := w.most(ctx)
	if err != nil {
		return 0, err
	}
	partitions, err = w.topic.Partitions(ctx)
	if errors.Is(err, ingest.ErrNoTopic) {
		if err = w.create(ctx, most); err == nil {
			partitions, err = w.topic.Partitions(ctx) // another instance may have created it first
		}
	}
	if err != nil {
		return 0, err
	}
	return partitions, w.check(ctx)
}

// most returns the number of partitions of the largest telemetry topic.
func (w *Writer) most(ctx context.Context) (partitions int, err error) {
	for _, topic := range w.sources {
		n, err := topic.Partitions(ctx)
		if err != nil {
			return 0, err
		}
		partitions = max(partitions, n)
	}
	return partitions, nil
}

// watchPartitions stops the reading once the topic has more partitions than at the start. It runs until the Writer
// ends. Without marks in the new partitions, the units of all partitions would be delayed.
func (w *Writer) watchPartitions() {
	for fetch.Sleep(w.ctx, watch) {
		if n, err := w.topic.Partitions(w.ctx); err == nil && n > len(w.queues) {
			w.end(fmt.Errorf("%w: topic %s now has %d partitions instead of %d; restart the service to use them", ErrUnfit, w.Topic, n, len(w.queues)))
			return
		}
	}
}

// create creates the topic. Its retention is the longest of the telemetry topics.
func (w *Writer) create(ctx context.Context, partitions int) error {
	kept := int64(0)
	for _, topic := range w.sources {
		ms, err := topic.Number(ctx, "retention.ms")
		if err != nil {
			return err
		}
		if kept = max(kept, ms); ms < 0 { // unlimited
			kept = ms
			break
		}
	}
	return w.topic.Make(ctx, partitions, map[string]string{
		"cleanup.policy": "delete", "retention.ms": fmt.Sprint(kept), "max.message.bytes": fmt.Sprint(int64(Largest(w.Kafka.MaxMessage))),
	})
}

// check checks the settings of the topic.
func (w *Writer) check(ctx context.Context) error {
	policy, err := w.topic.Setting(ctx, "cleanup.policy")
	if err != nil {
		return err
	}
	if strings.Contains(policy, "compact") {
		return fmt.Errorf("%w: compaction would remove telemetry; to fix this, run: %s", ErrUnfit, w.command("cleanup.policy=delete"))
	}
	largest, err := w.topic.Number(ctx, "max.message.bytes")
	if err != nil {
		return err
	}
	if least := int64(Largest(w.Kafka.MaxMessage)); largest < least {
		return fmt.Errorf("%w: max.message.bytes is %d, but a record can be up to %d bytes long; to fix this, run: %s",
			ErrUnfit, largest, least, w.command(fmt.Sprint("max.message.bytes=", least)))
	}
	kept, err := w.topic.Number(ctx, "retention.ms")
	if err == nil && kept >= 0 && kept < keptFew.Milliseconds() {
		w.Log.Warn().Stringer("kept", time.Duration(kept)*time.Millisecond).Str("topic", w.Topic).
			Msg("the topic in ingest.kafka.repartition_topic has a short retention: telemetry that expires before it is read is lost")
	}
	return err
}

// command returns the command that changes a setting of the topic.
func (w *Writer) command(setting string) string {
	return fmt.Sprintf("kafka-configs.sh --bootstrap-server %s --alter --entity-type topics --entity-name %s --add-config %s",
		strings.Join(w.Kafka.Brokers, ","), w.Topic, setting)
}
