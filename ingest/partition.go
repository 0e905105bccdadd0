package ingest

import (
	"fmt"
	"slices"
	"strconv"
)

// Partition identifies a partition of the telemetry. It combines the index of its topic in the configured list with its
// number within the topic. For the first topic, and for files, whose only partition is 0, it equals the number.
type Partition int32

// partitionBits is the number of bits of a Partition that contain its number. No topic has that many partitions.
const partitionBits = 20

// MaxTopics is the maximum number of telemetry topics.
const MaxTopics = 64

// PartitionOf returns the partition with the given number in the topic with the given index.
func PartitionOf(topic int, number int32) Partition {
	return Partition(topic)<<partitionBits | Partition(number)
}

// Topic returns the index of the topic.
func (p Partition) Topic() int { return int(p >> partitionBits) }

// Number returns the number of the partition within its topic.
func (p Partition) Number() int32 { return int32(p & (1<<partitionBits - 1)) }

// TopicNames returns the names of topics.
func TopicNames(topics []Topic) []string {
	names := make([]string, len(topics))
	for i, t := range topics {
		names[i] = t.Name
	}
	return names
}

// Named returns a copy of ranges with the names of their topics, by index. With fewer than two topics, it returns
// ranges unchanged.
func Named(topics []string, ranges []Range) []Range {
	if len(topics) < 2 || len(ranges) == 0 {
		return ranges
	}
	out := slices.Clone(ranges)
	for i := range out {
		if topic := out[i].Partition.Topic(); topic < len(topics) {
			out[i].Topic = topics[topic]
		}
	}
	return out
}

// In returns the topic of a range and its index in topics. The topic is found by name or, if the range has no name, by
// partition.
func (r Range) In(topics []Topic) (Topic, int, error) {
	i := r.Partition.Topic()
	if r.Topic != "" {
		i = slices.IndexFunc(topics, func(t Topic) bool { return t.Name == r.Topic })
	}
	if i < 0 || i >= len(topics) {
		return Topic{}, 0, fmt.Errorf("offsets %s: the topic is not configured", r)
	}
	return topics[i], i, nil
}

// MarshalJSON encodes only the number, like String.
func (p Partition) MarshalJSON() ([]byte, error) { return []byte(p.String()), nil }

// String returns the number, without the topic.
func (p Partition) String() string { return strconv.Itoa(int(p.Number())) }
