package consumer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest/fetch"
	"github.com/segmentio/kafka-go"
)

// brokers is the source of a Consumer that reads topics as a member of a consumer group.
type brokers struct {
	*Consumer
	network    *fetch.Network
	client     *kafka.Client
	partitions []int // number of partitions of each topic at the last check; used by the goroutines that run the consumer and watch a generation
}

// run implements source.
func (c *brokers) run(ctx context.Context) {
	defer c.network.Cut()
	defer context.AfterFunc(ctx, c.network.Retire)()
	for ctx.Err() == nil {
		if c.awaitTopics(ctx) {
			c.consume(ctx)
		}
	}
}

// connect implements source.
func (c *brokers) connect(ctx context.Context, topic string, partition int32) (connection, error) {
	return c.network.Leader(ctx, c.cfg.Brokers, topic, int(partition))
}

// startOver implements source.
func (c *brokers) startOver(checkpoint string) string {
	return fmt.Sprintf("to continue from there, move its checkpoint %s aside and reset the offset of group %s", checkpoint, c.cfg.Group)
}

// awaitTopics waits until all topics exist, and logs this from time to time. It never creates topics, because a wrong
// number of partitions would be permanent.
func (c *brokers) awaitTopics(ctx context.Context) bool {
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
			c.opts.Log.Warn().Err(err).Strs("brokers", c.cfg.Brokers).Strs("topics", c.names()).
				Msg("waiting for the topic; check that the brokers can be reached and that the topic exists")
		}
		if !fetch.Sleep(ctx, c.timing.watchTopic) {
			return false
		}
	}
}

// refuseCompaction stops the consumer if a topic is compacted. If it is not allowed to check this, missing records are
// still counted when they are noticed.
func (c *brokers) refuseCompaction(ctx context.Context) bool {
	err := c.compacted(ctx)
	switch {
	case err == nil:
		return true
	case errors.Is(err, ErrCompacted):
		c.fail(err)
		return false
	}
	if ctx.Err() == nil {
		c.opts.Log.Warn().Err(err).Msg("failed to check whether the topic is compacted: grant DescribeConfigs on it; " +
			"until then, compaction is detected only when records are missing")
	}
	return ctx.Err() == nil
}

// consume is a member of the group until ctx ends or a topic no longer exists.
func (c *brokers) consume(ctx context.Context) {
	group, err := kafka.NewConsumerGroup(c.groupConfig())
	if err != nil {
		c.fail(fmt.Errorf("set up the consumer group: %w", err))
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
			c.outages.Warn().Err(err).Str("group", c.cfg.Group).Msg("failed to join the consumer group, retrying")
			continue
		}
		if !c.lacksTopic(ctx) && c.start(ctx, generation) {
			continue
		}
		// Without the topic, each generation would end immediately and the next one would begin.
		fetch.Sleep(ctx, c.timing.watchTopic)
		if _, err := c.existing(ctx); errors.Is(err, kafka.UnknownTopicOrPartition) {
			return
		}
	}
}

func (c *brokers) groupConfig() kafka.ConsumerGroupConfig {
	cfg := kafka.ConsumerGroupConfig{
		ID: c.cfg.Group, Brokers: c.cfg.Brokers, Topics: c.names(), Dialer: c.network.Dialer,
		// With LastOffset, a restart would skip records written between the first join and the first commit.
		StartOffset:       kafka.FirstOffset,
		HeartbeatInterval: c.timing.heartbeat, SessionTimeout: c.timing.session, RebalanceTimeout: c.timing.rebalance,
		JoinGroupBackoff: c.timing.joinBackoff,
		ErrorLogger:      kafka.LoggerFunc(func(msg string, args ...any) { c.opts.Log.Debug().Msgf("kafka-go: "+msg, args...) }),
	}
	switch {
	case c.opts.Merged:
		cfg.GroupBalancers = []kafka.GroupBalancer{alone{}}
	case len(c.topics) > 1:
		cfg.GroupBalancers = []kafka.GroupBalancer{together{}}
	}
	return cfg
}

// leave waits until the partitions have stopped, and leaves the group.
func (c *brokers) leave(ctx context.Context, group *kafka.ConsumerGroup) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		group.Close() // always returns nil
	}()
	c.running.Wait()
	if ctx.Err() != nil {
		c.network.Cut()
	}
	<-closed
}

// start begins reading the partitions of a generation. It returns false if there are none.
func (c *brokers) start(ctx context.Context, g *kafka.Generation) bool {
	c.running.Wait() // otherwise, the previous generation could revoke partitions that this one assigns
	partitions := c.assigned(g)
	own := &generation{c: c.Consumer, partitions: partitions, told: make(chan struct{})}
	own.known, own.counted = slices.Clone(c.partitions), time.Now().Add(-fetch.MetadataAge)
	own.existing = c.count(ctx, partitions)
	c.tellUnlike()
	c.running.Add(1)
	// The generation would end as soon as this function returns.
	g.Start(func(generation context.Context) {
		defer c.running.Done()
		ctx, end := context.WithCancel(ctx)
		defer end()
		defer context.AfterFunc(generation, end)()
		own.run(ctx)
	})
	return len(partitions) > 0
}

// tellUnlike logs an error if joined topics have different numbers of partitions. The same key is then in partitions
// with different numbers.
func (c *brokers) tellUnlike() {
	if c.opts.Joined && !c.opts.Merged && len(c.partitions) > 1 && slices.Min(c.partitions) != slices.Max(c.partitions) {
		c.opts.Log.Error().Strs("topics", c.names()).Ints("partitions", c.partitions).
			Msg("decisions and feedback are joined by partition, but their topics have different numbers of partitions, so feedback is " +
				"lost: recreate the smaller topic with more partitions, or set ingest.kafka.repartition_topic")
	}
}

// assigned returns the assigned partitions of a generation, by number.
func (c *brokers) assigned(g *kafka.Generation) []*partition {
	byNumber, turn := map[int]*partition{}, newTurns()
	for _, t := range c.topics {
		var ids []int
		for _, a := range g.Assignments[t.Name] {
			p := byNumber[a.ID]
			if p == nil {
				if !c.opts.Merged {
					turn = newTurns()
				}
				p = newPartition(c.Consumer, g, int32(a.ID), turn)
				byNumber[a.ID] = p
			}
			p.add(t, a.Offset)
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

// count returns the number of partitions of the largest topic, as reported by the brokers or implied by the assigned
// partitions.
func (c *brokers) count(ctx context.Context, assigned []*partition) int {
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
