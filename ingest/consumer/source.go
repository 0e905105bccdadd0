package consumer

import (
	"context"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/fetch"
	"github.com/segmentio/kafka-go"
)

// source is where the partitions of a Consumer are: on brokers, or in a log on this machine.
type source interface {
	// run has the Consumer read until ctx ends, in generations.
	run(ctx context.Context)
	// connect connects to a partition.
	connect(ctx context.Context, topic string, partition int32) (connection, error)
	// existing returns how many partitions each topic has.
	existing(ctx context.Context) ([]int, error)
	// ends returns the first offset and the end of partitions of one topic.
	ends(ctx context.Context, readers ...*reader) ([]kafka.PartitionOffsets, error)
	// watchPartitions confirms to the Handler several times a second that the numbers of partitions are those that are
	// known. It returns true when one has changed, and false when ctx ends.
	watchPartitions(ctx context.Context, known []int) (changed bool)
	// check logs what would lose telemetry.
	check(ctx context.Context)
	// startOver returns instructions for reading a partition from its start, for when its state does not fit.
	startOver(checkpoint string) string
}

// connection is a connection to a partition. A Close while it is used ends what waits.
type connection interface {
	SetDeadline(t time.Time) error // of ReadOffsets
	// ReadOffsets returns the offset of the first message and that of the next one to be written.
	ReadOffsets() (first, end int64, err error)
	// Fetch returns messages from an offset on, about size bytes of them. Where there are none, it waits for some time
	// that there are. Values longer than limit may be truncated.
	Fetch(from int64, size int, limit ingest.ByteSize, wait time.Duration) (*fetch.Answer, error)
	Close() error
}

// committer takes the offsets of the next messages to read, by topic and partition, once all before are part of a
// checkpoint.
type committer interface {
	CommitOffsets(offsets map[string]map[int]int64) error
}
