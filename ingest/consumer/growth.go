package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest/fetch"
	"github.com/segmentio/kafka-go"
)

// watchPartitions polls the number of partitions of the topic until ctx ends, and confirms to the Handler each time
// that it has not changed. It returns true when it has: joining the group again then assigns the new partitions.
//
// It uses its own connection, as the client answers such requests from a cache.
func (c *Consumer) watchPartitions(ctx context.Context, known int) (changed bool) {
	var conn *kafka.Conn
	defer func() { closeConn(conn) }()
	for fetch.Sleep(ctx, c.timing.watchPartitions) {
		asked := time.Now()
		n, err := c.askPartitions(ctx, &conn)
		switch {
		case ctx.Err() != nil:
			return false
		case err != nil:
			closeConn(conn)
			conn = nil
			c.opts.Log.Debug().Err(err).Msg("asking for the partitions of the topic failed, trying again")
			continue
		}
		c.metrics.existing.Set(float64(n))
		if n != known {
			c.partitions = n
			c.opts.Log.Info().Str("topic", c.cfg.Topic).Int("partitions", n).Int("before", known).
				Msg("the topic has another number of partitions, joining the group again")
			return true
		}
		c.opts.Handler.Confirm(asked)
	}
	return false
}

func closeConn(conn *kafka.Conn) {
	if conn != nil {
		conn.Close() // its answers have been read
	}
}

// askPartitions asks a broker for the number of partitions, 0 if the topic is gone. It connects if there is no
// connection.
func (c *Consumer) askPartitions(ctx context.Context, conn **kafka.Conn) (int, error) {
	if *conn == nil {
		var err error
		if *conn, err = c.network.AnyBroker(ctx, c.cfg.Brokers); err != nil {
			return 0, err
		}
	}
	defer context.AfterFunc(ctx, func() { (*conn).Close() })()
	if err := (*conn).SetDeadline(time.Now().Add(fetch.OperationTimeout)); err != nil {
		return 0, fmt.Errorf("asking for the topic %s: %w", c.cfg.Topic, err)
	}
	partitions, err := (*conn).ReadPartitions(c.cfg.Topic)
	if err != nil && !errors.Is(err, kafka.UnknownTopicOrPartition) {
		return 0, fmt.Errorf("asking for the topic %s: %w", c.cfg.Topic, err)
	}
	return len(partitions), nil
}
