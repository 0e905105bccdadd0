package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest/fetch"
	"github.com/segmentio/kafka-go"
)

// watchPartitions polls the numbers of partitions of the topics until ctx ends. Each time that they are unchanged, it
// confirms this to the Handler. It returns true when a number has changed. Rejoining the group then assigns the new
// partitions.
//
// It uses its own connection, because the client answers such requests from a cache.
func (c *brokers) watchPartitions(ctx context.Context, known []int) (changed bool) {
	var conn *kafka.Conn
	defer func() { closeConn(conn) }()
	failures := 0
	for fetch.Sleep(ctx, c.timing.untilAsked(failures)) {
		asked := time.Now()
		n, err := c.askPartitions(ctx, &conn)
		switch {
		case ctx.Err() != nil:
			return false
		case err != nil:
			closeConn(conn)
			conn = nil
			failures++
			c.opts.Log.Debug().Err(err).Msg("failed to list the partitions of the topic, retrying")
			continue
		}
		c.partitions, failures = n, 0
		for i, t := range c.topics {
			t.metrics.existing.Set(float64(n[i]))
			if n[i] != known[i] {
				c.opts.Log.Info().Str("topic", t.Name).Int("partitions", n[i]).Int("before", known[i]).
					Msg("the number of partitions changed, rejoining the group")
				changed = true
			}
		}
		if changed {
			return true
		}
		c.opts.Handler.Confirm(asked)
	}
	return false
}

func closeConn(conn *kafka.Conn) {
	if conn != nil {
		conn.Close() // all responses have been read
	}
}

// askPartitions asks a broker for the numbers of partitions. The number is 0 for a topic that no longer exists. It
// connects first if there is no connection.
func (c *brokers) askPartitions(ctx context.Context, conn **kafka.Conn) ([]int, error) {
	if *conn == nil {
		var err error
		if *conn, err = c.network.AnyBroker(ctx, c.cfg.Brokers); err != nil {
			return nil, err
		}
	}
	defer context.AfterFunc(ctx, func() { (*conn).Close() })()
	counts := make([]int, len(c.topics))
	for i, t := range c.topics {
		if err := (*conn).SetDeadline(time.Now().Add(fetch.OperationTimeout)); err != nil {
			return nil, fmt.Errorf("query topic %s: %w", t.Name, err)
		}
		partitions, err := (*conn).ReadPartitions(t.Name)
		if err != nil && !errors.Is(err, kafka.UnknownTopicOrPartition) {
			return nil, fmt.Errorf("query topic %s: %w", t.Name, err)
		}
		counts[i] = len(partitions)
	}
	return counts, nil
}
