package consumer

import (
	"context"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/fetch"
	"github.com/segmentio/kafka-go"
)

// source provides the partitions of a Consumer. They are on brokers, or in a log on this machine.
type source interface {
	// run lets the Consumer read until ctx ends, in generations.
	run(ctx context.Context)
	// connect connects to a partition.
	connect(ctx context.Context, topic string, partition int32) (connection, error)
	// existing returns the number of partitions of each topic.
	existing(ctx context.Context) ([]int, error)
	// ends returns the first and end offsets of partitions of one topic.
	ends(ctx context.Context, readers ...*reader) ([]kafka.PartitionOffsets, error)
	// watchPartitions confirms to the Handler several times per second that the numbers of partitions are still the known
	// ones. It returns true once a number has changed, and false when ctx ends.
	watchPartitions(ctx context.Context, known []int) (changed bool)
	// check logs settings that cause telemetry to be lost.
	check(ctx context.Context)
	// startOver returns instructions for starting again if the state of a partition does not match its log.
	startOver(checkpoint string) string
}

// connection is a connection to a partition. Close interrupts pending operations.
type connection interface {
	SetDeadline(t time.Time) error // for ReadOffsets
	// ReadOffsets returns the offsets of the first message and of the next one to be written.
	ReadOffsets() (first, end int64, err error)
	// Fetch returns about size bytes of messages, starting at the offset from. If there are none yet, it waits for them
	// for the given time. Values longer than limit may be truncated.
	Fetch(from int64, size int, limit ingest.ByteSize, wait time.Duration) (*fetch.Answer, error)
	Close() error
}

// committer receives the offsets of the next messages to read, by topic and partition, once all earlier messages are
// part of a checkpoint.
type committer interface {
	CommitOffsets(offsets map[string]map[int]int64) error
}
