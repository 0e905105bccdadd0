// Package cluster lets several instances share the work: units are sent through a topic to the instance that judges
// their policy.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/checkpoint"
	"github.com/rewardwatch/rewardwatch/ingest/consumer"
	"github.com/rewardwatch/rewardwatch/ingest/kafkalog"
)

// The retention of a new units topic, and the retention below which a warning is logged. Units that stay unread for
// longer than the retention are lost.
const (
	unitsKept    = 7 * 24 * time.Hour
	unitsKeptFew = 24 * time.Hour
)

// clusterWatch is the interval between checks for a required topic.
const clusterWatch = 2 * time.Second

// Cluster is the part that only one of several instances has. It writes the units of the telemetry partitions that it
// reads to the units topic. It judges the policies in the partitions of the units topic that the consumer group assigns
// to it.
type Cluster struct {
	Kafka      ingest.KafkaConfig
	UnitsTopic string
	Log        zerolog.Logger

	Stores      *checkpoint.Topic
	checkpoints *kafkalog.Log   // to check that they still exist
	telemetry   []*kafkalog.Log // telemetry topics, to count their partitions
	Units       *kafkalog.Log
	Writer      *unitWriter
	judging     *consumer.Consumer
}

// Open reads the certificates and secrets that the configuration names. It does not connect. topics are the telemetry
// topics. drop must drop the open episodes of a policy that the cluster forgets.
func Open(cfg Config, kafka ingest.KafkaConfig, topics []string, p *engine.Pipeline, drop func(policy string, at time.Time), log zerolog.Logger, reg prometheus.Registerer) (c *Cluster, err error) {
	c = &Cluster{Kafka: kafka, UnitsTopic: cfg.UnitsTopic, Log: log}
	records, err := ingest.NewUnitRecords()
	if err != nil {
		return nil, err
	}
	if c.Stores, err = checkpoint.OpenTopic(c.Kafka, cfg.CheckpointsTopic, log, reg); err != nil {
		return nil, err
	}
	c.telemetry = make([]*kafkalog.Log, len(topics))
	for i, topic := range topics {
		if c.telemetry[i], err = kafkalog.Open(c.Kafka, topic, log); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	for _, l := range []struct {
		log   **kafkalog.Log
		topic string
	}{{&c.Units, c.UnitsTopic}, {&c.checkpoints, cfg.CheckpointsTopic}} {
		if *l.log, err = kafkalog.Open(c.Kafka, l.topic, log); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	c.Writer = newUnitWriter(p, records, c.Units)
	units := c.Kafka
	units.Topic, units.Group, units.MaxMessage = c.UnitsTopic, c.judges(), kafkalog.MaxBatch
	if c.judging, err = consumer.New(units, consumer.Options{
		Stores: c.Stores, CheckpointEvery: time.Duration(p.Cfg.Checkpoint.Every), Handler: newUnitReaders(p, records, c.Writer.width, drop),
		Log: log, Registerer: reg,
	}); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// judges returns the name of the consumer group of the units topic.
func (c *Cluster) judges() string { return c.Kafka.Group + "-units" }

// Close closes all connections. Call it after Run has returned.
func (c *Cluster) Close() error {
	var errs []error
	for _, l := range append([]*kafkalog.Log{c.checkpoints, c.Units}, c.telemetry...) {
		if l != nil {
			errs = append(errs, l.Close())
		}
	}
	return errors.Join(append(errs, c.Stores.Close())...)
}

// Partition returns the partition of the units topic in which a policy is judged.
func (c *Cluster) Partition(policy string) int32 {
	return int32(unitPartition(policy, c.Writer.width()))
}

// Run reads the telemetry and judges until ctx ends or either fails. The telemetry stops first, because its partitions
// are saved once their units are in the units topic.
func (c *Cluster) Run(ctx context.Context, telemetry *consumer.Consumer) error {
	partitions, err := c.prepare(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	c.Writer.start(partitions)
	defer c.Writer.close()
	judging, stopJudging := context.WithCancel(context.WithoutCancel(ctx))
	defer stopJudging()
	reading, stopReading := context.WithCancel(ctx)
	defer stopReading()
	var judges sync.WaitGroup
	var failed error
	judges.Go(func() {
		failed = c.judging.Run(judging)
		stopReading()
	})
	err = telemetry.Run(reading)
	c.Writer.close()
	stopJudging()
	judges.Wait()
	return errors.Join(err, failed)
}

// prepare waits for the telemetry topic, and creates the units topic with as many partitions if it does not exist. It
// returns errors that an operator must resolve, and waits while brokers are unavailable.
func (c *Cluster) prepare(ctx context.Context) (partitions int, err error) {
	for n := 0; ; n++ {
		partitions, err = c.UnitsPartitions(ctx)
		if err == nil {
			err = c.checkCheckpoints(ctx)
		}
		if err == nil || errors.Is(err, ErrUnitsTopicUnfit) || errors.Is(err, ErrCheckpointsLost) {
			return partitions, err
		}
		if n%30 == 0 && ctx.Err() == nil {
			c.Log.Warn().Err(err).Strs("brokers", c.Kafka.Brokers).Msg("waiting for the cluster topics")
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(clusterWatch):
		}
	}
}

// UnitsPartitions returns the number of partitions of the units topic.
func (c *Cluster) UnitsPartitions(ctx context.Context) (int, error) {
	n, err := c.Units.Partitions(ctx)
	if errors.Is(err, ingest.ErrNoTopic) {
		if n, err = c.telemetryPartitions(ctx); err == nil {
			err = c.Units.Make(ctx, n, map[string]string{
				"cleanup.policy": "delete", "retention.ms": fmt.Sprint(unitsKept.Milliseconds()),
			})
		}
		if err == nil {
			n, err = c.Units.Partitions(ctx) // another instance may have created it first
		}
	}
	if err != nil {
		return 0, err
	}
	return n, c.checkUnits(ctx)
}

// telemetryPartitions returns the largest number of partitions of any telemetry topic.
func (c *Cluster) telemetryPartitions(ctx context.Context) (most int, err error) {
	for _, topic := range c.telemetry {
		n, err := topic.Partitions(ctx)
		if err != nil {
			return 0, err
		}
		most = max(most, n)
	}
	return most, nil
}

// ErrCheckpointsLost is returned if the checkpoints are gone, because units would be counted twice.
var ErrCheckpointsLost = errors.New("the checkpoints topic was deleted")

// checkCheckpoints refuses to start if the checkpoints topic has lost its records. There must be some: an instance
// commits an offset of the units topic only after the checkpoints topic has its first record.
func (c *Cluster) checkCheckpoints(ctx context.Context) error {
	used, err := c.Units.Committed(ctx, c.judges()) // first, since another instance may be creating the topic
	if err != nil || !used {
		return err
	}
	topic := c.checkpoints.Topic()
	partitions, err := c.checkpoints.Partitions(ctx)
	if errors.Is(err, ingest.ErrNoTopic) {
		return c.checkpointsLost(topic + " does not exist")
	}
	if err != nil {
		return err
	}
	for p := range partitions {
		if end, err := c.checkpoints.End(ctx, p); err != nil || end > 0 {
			return err
		}
	}
	return c.checkpointsLost(topic + " is empty")
}

func (c *Cluster) checkpointsLost(how string) error {
	return fmt.Errorf("%w: %s, but the group %s has already judged units, which would be counted twice without its checkpoints; restore the topic, or %s",
		ErrCheckpointsLost, how, c.judges(), checkpoint.FromNothing)
}

// ErrUnitsTopicUnfit is returned if the settings of the units topic would lose units.
var ErrUnitsTopicUnfit = errors.New("the settings of the units topic are not suitable")

func (c *Cluster) checkUnits(ctx context.Context) error {
	policy, err := c.Units.Setting(ctx, "cleanup.policy")
	if err != nil {
		return err
	}
	if strings.Contains(policy, "compact") {
		return fmt.Errorf("%w: compaction would remove all but the newest unit of a policy; to fix this, run: %s",
			ErrUnitsTopicUnfit, c.unitsCommand("cleanup.policy=delete"))
	}
	largest, err := c.Units.Number(ctx, "max.message.bytes")
	if err != nil {
		return err
	}
	if largest < kafkalog.MaxBatch {
		return fmt.Errorf("%w: max.message.bytes is %d, but a unit can be up to %d bytes long; to fix this, run: %s",
			ErrUnitsTopicUnfit, largest, kafkalog.MaxBatch, c.unitsCommand(fmt.Sprint("max.message.bytes=", kafkalog.MaxBatch)))
	}
	kept, err := c.Units.Number(ctx, "retention.ms")
	if err == nil && kept >= 0 && kept < unitsKeptFew.Milliseconds() {
		c.Log.Warn().Stringer("kept", time.Duration(kept)*time.Millisecond).
			Str("mend", c.unitsCommand(fmt.Sprint("retention.ms=", unitsKept.Milliseconds()))).
			Msg("the units topic has a short retention: units that expire before they are read are lost")
	}
	return err
}

// unitsCommand returns the command that changes a setting of the units topic.
func (c *Cluster) unitsCommand(setting string) string {
	return fmt.Sprintf("kafka-configs.sh --bootstrap-server %s --alter --entity-type topics --entity-name %s --add-config %s",
		strings.Join(c.Kafka.Brokers, ","), c.UnitsTopic, setting)
}

// Ready returns nil once the group is joined, and units are read up to the allowed lag.
func (c *Cluster) Ready() error {
	if err := c.judging.Ready(); err != nil {
		return fmt.Errorf("units: %w", err)
	}
	return nil
}

// Join passes to the notifier the record of notifications about the policies that the workers judge from now on.
func (c *Cluster) Join(n *alerts.Notifier, d *engine.Workers) {
	if told, ok := d.Store.(alerts.Journal); ok {
		n.Join(d.Partition, told)
	}
}
