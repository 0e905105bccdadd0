package main

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
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/checkpoint"
)

// How long the units topic keeps units, as long as nobody reads them, no longer than that; and when that is told to be short.
const (
	unitsKept    = 7 * 24 * time.Hour
	unitsKeptFew = 24 * time.Hour
)

// clusterWatch is how often it is looked whether a topic that is needed is there.
const clusterWatch = 2 * time.Second

// cluster is what one of several instances has beside the telemetry: it writes the units of the partitions that it reads
// to the units topic, and judges the policies of those partitions of the units topic that the group gives it.
type cluster struct {
	kafka      ingest.KafkaConfig
	unitsTopic string
	log        zerolog.Logger

	stores    *checkpoint.Topic
	telemetry *ingest.Log // to count its partitions
	units     *ingest.Log
	writer    *unitWriter
	judging   *ingest.Consumer
}

// openCluster reads the certificates and secrets that the configuration names. It does not connect.
func openCluster(cfg *Config, p *pipeline, log zerolog.Logger, reg prometheus.Registerer) (c *cluster, err error) {
	c = &cluster{kafka: cfg.Ingest.Kafka, unitsTopic: cfg.Cluster.UnitsTopic, log: log}
	records, err := ingest.NewUnitRecords()
	if err != nil {
		return nil, err
	}
	if c.stores, err = checkpoint.OpenTopic(c.kafka, cfg.Cluster.CheckpointsTopic, log, reg); err != nil {
		return nil, err
	}
	if c.telemetry, err = ingest.OpenLog(c.kafka, c.kafka.Topic, log); err != nil {
		return nil, errors.Join(err, c.close())
	}
	if c.units, err = ingest.OpenLog(c.kafka, c.unitsTopic, log); err != nil {
		return nil, errors.Join(err, c.close())
	}
	c.writer = newUnitWriter(p, records, c.units)
	units := c.kafka
	units.Topic, units.Group, units.MaxMessage = c.unitsTopic, units.Group+"-units", ingest.MaxLogBatch
	if c.judging, err = ingest.NewConsumer(units, ingest.ConsumerOptions{
		Stores: c.stores, CheckpointEvery: time.Duration(cfg.Checkpoint.Every), Handler: newUnitReaders(p, records, c.writer.width),
		Log: log, Registerer: reg,
	}); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// close ends all connections, once run has returned.
func (c *cluster) close() error {
	var errs []error
	for _, l := range []*ingest.Log{c.units, c.telemetry} {
		if l != nil {
			errs = append(errs, l.Close())
		}
	}
	return errors.Join(append(errs, c.stores.Close())...)
}

// partition gives the partition of the units topic that a policy lies in.
func (c *cluster) partition(policy string) int32 {
	return int32(unitPartition(policy, c.writer.width()))
}

// run reads the telemetry and judges until ctx ends or one of them fails. The telemetry ends first: its partitions are saved
// once what they gave is in the units topic.
func (c *cluster) run(ctx context.Context, telemetry *ingest.Consumer) error {
	partitions, err := c.prepare(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	c.writer.start(partitions)
	defer c.writer.close()
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
	c.writer.close()
	stopJudging()
	judges.Wait()
	return errors.Join(err, failed)
}

// prepare waits for the telemetry topic, and makes the units topic with as many partitions where it does not exist. The
// errors are those for which an operator is needed; outages are waited out.
func (c *cluster) prepare(ctx context.Context) (partitions int, err error) {
	for n := 0; ; n++ {
		partitions, err = c.unitsPartitions(ctx)
		if err == nil || errors.Is(err, errUnitsTopicUnfit) {
			return partitions, err
		}
		if n%30 == 0 && ctx.Err() == nil {
			c.log.Warn().Err(err).Strs("brokers", c.kafka.Brokers).Msg("Waiting for the topics of the cluster")
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(clusterWatch):
		}
	}
}

func (c *cluster) unitsPartitions(ctx context.Context) (int, error) {
	n, err := c.units.Partitions(ctx)
	if errors.Is(err, ingest.ErrNoTopic) {
		if n, err = c.telemetry.Partitions(ctx); err == nil {
			err = c.units.Make(ctx, n, map[string]string{
				"cleanup.policy": "delete", "retention.ms": fmt.Sprint(unitsKept.Milliseconds()),
			})
		}
		if err == nil {
			n, err = c.units.Partitions(ctx) // another instance may have been first
		}
	}
	if err != nil {
		return 0, err
	}
	return n, c.checkUnits(ctx)
}

// errUnitsTopicUnfit says that units would be lost.
var errUnitsTopicUnfit = errors.New("the units topic is not fit for units")

func (c *cluster) checkUnits(ctx context.Context) error {
	policy, err := c.units.Setting(ctx, "cleanup.policy")
	if err != nil {
		return err
	}
	if strings.Contains(policy, "compact") {
		return fmt.Errorf("%w: compaction would remove all but the newest of a policy; mend it with: %s",
			errUnitsTopicUnfit, c.unitsCommand("cleanup.policy=delete"))
	}
	largest, err := c.units.Number(ctx, "max.message.bytes")
	if err != nil {
		return err
	}
	if largest < ingest.MaxLogBatch {
		return fmt.Errorf("%w: its max.message.bytes is %d, and a unit may take %d; mend it with: %s",
			errUnitsTopicUnfit, largest, ingest.MaxLogBatch, c.unitsCommand(fmt.Sprint("max.message.bytes=", ingest.MaxLogBatch)))
	}
	kept, err := c.units.Number(ctx, "retention.ms")
	if err == nil && kept >= 0 && kept < unitsKeptFew.Milliseconds() {
		c.log.Warn().Dur("kept", time.Duration(kept)*time.Millisecond).
			Str("mend", c.unitsCommand(fmt.Sprint("retention.ms=", unitsKept.Milliseconds()))).
			Msg("The units topic keeps units for a short time: those that nobody reads for so long are lost")
	}
	return err
}

// unitsCommand is the command that changes a setting of the units topic.
func (c *cluster) unitsCommand(setting string) string {
	return fmt.Sprintf("kafka-configs.sh --bootstrap-server %s --alter --entity-type topics --entity-name %s --add-config %s",
		strings.Join(c.kafka.Brokers, ","), c.unitsTopic, setting)
}

// ready gives nil when the group has been joined, and units are read up to the lag that is allowed.
func (c *cluster) ready() error {
	if err := c.judging.Ready(); err != nil {
		return fmt.Errorf("units: %w", err)
	}
	return nil
}

// join has the notifier take up what was told of the policies that desks judge from now on.
func (c *cluster) join(n *alerts.Notifier, d *desks) {
	if told, ok := d.store.(alerts.Journal); ok {
		n.Join(d.partition, told)
	}
}
