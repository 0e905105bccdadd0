package consumer

import (
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/segmentio/kafka-go"
)

// Hurry shortens all delays except that of the watchdog, for tests. Call it before Run.
func (c *Consumer) Hurry() {
	c.timing = timing{
		heartbeat: 30 * time.Millisecond, session: 5 * time.Second, rebalance: 5 * time.Second,
		joinBackoff: 20 * time.Millisecond, watchPartitions: 30 * time.Millisecond, watchTopic: 10 * time.Millisecond,
		maxWait: 50 * time.Millisecond, minBackoff: 5 * time.Millisecond, maxBackoff: 50 * time.Millisecond,
		stall: c.timing.stall,
	}
	c.source.(*brokers).network.Transport.MetadataTTL = 20 * time.Millisecond
}

// SetMaxWait sets how long a broker may delay an empty response.
func (c *Consumer) SetMaxWait(d time.Duration) { c.timing.maxWait = d }

// SetStall sets the time after which the watchdog acts.
func (c *Consumer) SetStall(d time.Duration) { c.timing.stall = d }

// PartitionState encodes a checkpoint. The last message read has the offset last and the given value.
func PartitionState(topic string, partition int32, next, last int64, value, snapshot []byte) ingest.Parts {
	at := position{topic: topic, partition: partition, next: next, mark: mark{offset: last, sum: ingest.Checksum(value)}}
	return ingest.Parts{statePart: append(at.append(nil), snapshot...)}
}

// StatePart is the name of the part of a partition.
const StatePart = statePart

// PartitionNext returns the next offset in a checkpoint.
func PartitionNext(checkpoint ingest.Parts) (int64, error) {
	at, _, err := cutPositions(checkpoint[statePart])
	if err != nil {
		return 0, err
	}
	return at[0].next, nil
}

// Assigned returns the members to which a group with the given number of members assigns the partitions of topics, by
// topic and partition.
func Assigned(topics []int, members int) []map[int]string {
	return assignedBy(together{}, topics, members)
}

// Ranges returns the result of RangeGroupBalancer for one topic.
func Ranges(partitions, members int) map[int]string {
	return assignedBy(kafka.RangeGroupBalancer{}, []int{partitions}, members)[0]
}

func assignedBy(b kafka.GroupBalancer, topics []int, members int) []map[int]string {
	var group []kafka.GroupMember
	var names []string
	var partitions []kafka.Partition
	out := make([]map[int]string, len(topics))
	for i, n := range topics {
		names = append(names, string(rune('a'+i)))
		out[i] = map[int]string{}
		for id := range n {
			partitions = append(partitions, kafka.Partition{Topic: names[i], ID: id})
		}
	}
	for i := range members {
		group = append(group, kafka.GroupMember{ID: string(rune('A' + i)), Topics: names})
	}
	for member, of := range b.AssignGroups(group, partitions) {
		for i, name := range names {
			for _, id := range of[name] {
				out[i][id] = member
			}
		}
	}
	return out
}
