package ingest

import "strconv"

// Partition identifies a partition of the telemetry: it holds the index of its topic in the configured list, and its
// number within that topic. Of the first topic it is the number itself, as in files, whose only partition is 0.
type Partition int32

// partitionBits is how many bits of a Partition are its number. No topic has as many partitions.
const partitionBits = 20

// MaxTopics is how many topics of telemetry there can be.
const MaxTopics = 64

// PartitionOf returns the partition of a number of the topic with an index.
func PartitionOf(topic int, number int32) Partition {
	return Partition(topic)<<partitionBits | Partition(number)
}

// Topic returns the index of the topic.
func (p Partition) Topic() int { return int(p >> partitionBits) }

// Number returns the number of the partition within its topic.
func (p Partition) Number() int32 { return int32(p & (1<<partitionBits - 1)) }

// MarshalJSON writes the number alone, as String does.
func (p Partition) MarshalJSON() ([]byte, error) { return []byte(p.String()), nil }

// String returns the number. Whoever needs the topic too names it.
func (p Partition) String() string { return strconv.Itoa(int(p.Number())) }
