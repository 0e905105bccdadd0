package consumer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/fetch"
	"github.com/segmentio/kafka-go"
)

// topic is one of the topics that a Consumer reads.
type topic struct {
	ingest.Topic
	index   int // in the configured list
	metrics *metrics
	board   *board
}

// newTopic returns a topic, and registers its metrics. They have the label topic.
func newTopic(t ingest.Topic, index int, b *board, reg prometheus.Registerer) (*topic, error) {
	reg = ofTopic(t.Name, reg)
	out := &topic{Topic: t, index: index, metrics: newMetrics(reg), board: b}
	if err := reg.Register(newCollector(b)); err != nil {
		return nil, fmt.Errorf("register the metrics of partitions: %w", err)
	}
	return out, nil
}

// at returns the identity of a partition of the topic.
func (t *topic) at(number int32) ingest.Partition { return ingest.PartitionOf(t.index, number) }

// names returns the names of the topics by index.
func (c *Consumer) names() []string {
	names := make([]string, len(c.topics))
	for i, t := range c.topics {
		names[i] = t.Name
	}
	return names
}

// existing returns the number of partitions of each topic. The error names the first topic that cannot be read.
func (c *brokers) existing(ctx context.Context) ([]int, error) {
	counts := make([]int, len(c.topics))
	for i, t := range c.topics {
		n, err := fetch.PartitionCount(ctx, c.client, t.Name)
		if err != nil {
			return nil, err
		}
		counts[i] = n
		t.metrics.existing.Set(float64(n))
	}
	return counts, nil
}

// lacksTopic reports whether one of several topics no longer exists. In this case, none of them is read, because joined
// data would be incomplete.
func (c *brokers) lacksTopic(ctx context.Context) bool {
	if len(c.topics) == 1 {
		return false
	}
	_, err := c.existing(ctx)
	return errors.Is(err, kafka.UnknownTopicOrPartition)
}

// compacted returns ErrCompacted with a remedy if a topic is compacted.
func (c *brokers) compacted(ctx context.Context) error {
	for _, t := range c.topics {
		policy, err := fetch.TopicSetting(ctx, c.client, t.Name, "cleanup.policy")
		if err != nil {
			return err
		}
		if strings.Contains(policy, "compact") {
			return fmt.Errorf("%w: cleanup.policy of topic %s is %s; to fix this, run: kafka-configs.sh --bootstrap-server %s --alter "+
				"--entity-type topics --entity-name %s --add-config cleanup.policy=delete",
				ErrCompacted, t.Name, policy, strings.Join(c.cfg.Brokers, ","), t.Name)
		}
	}
	return nil
}

// joined records that the group has been joined.
func (c *Consumer) joined() {
	for _, t := range c.topics {
		t.board.join()
	}
}

func (c *Consumer) left(why string) {
	for _, t := range c.topics {
		t.board.leave(why)
	}
}

// Ready returns nil if the group has been joined and the lag of every assigned partition is within the limit.
// Otherwise, the error says what is missing.
func (c *Consumer) Ready() error {
	for _, t := range c.topics {
		err := t.board.ready(c.cfg.ReadyLag)
		if err != nil && len(c.topics) > 1 && !errors.Is(err, errNotJoined) {
			err = fmt.Errorf("topic %s: %w", t.Name, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// alone is a balancer that assigns all partitions to one member, which merges them.
type alone struct{}

// ProtocolName implements kafka.GroupBalancer. The name keeps members with other balancers out of the group.
func (alone) ProtocolName() string { return "rewardwatch-alone" }

// UserData implements kafka.GroupBalancer.
func (alone) UserData() ([]byte, error) { return nil, nil }

// AssignGroups implements kafka.GroupBalancer.
func (alone) AssignGroups(members []kafka.GroupMember, partitions []kafka.Partition) kafka.GroupMemberAssignments {
	out, first := kafka.GroupMemberAssignments{}, ""
	for _, m := range members {
		out[m.ID] = map[string][]int{}
		if first == "" || m.ID < first {
			first = m.ID
		}
	}
	for _, p := range partitions {
		out[first][p.Topic] = append(out[first][p.Topic], p.ID)
	}
	return out
}

// together is a balancer that assigns the partitions with the same number, in all topics, to the same member, because
// they feed one state. The numbers are divided into ranges, as by RangeGroupBalancer for a single topic.
type together struct{}

// ProtocolName implements kafka.GroupBalancer. The name keeps members with other balancers out of the group.
func (together) ProtocolName() string { return "rewardwatch-together" }

// UserData implements kafka.GroupBalancer.
func (together) UserData() ([]byte, error) { return nil, nil }

// AssignGroups implements kafka.GroupBalancer.
func (together) AssignGroups(members []kafka.GroupMember, partitions []kafka.Partition) kafka.GroupMemberAssignments {
	ids := make([]string, len(members))
	for i, m := range members {
		ids[i] = m.ID
	}
	slices.Sort(ids)
	numbers := 0
	for _, p := range partitions {
		numbers = max(numbers, p.ID+1)
	}
	out := kafka.GroupMemberAssignments{}
	for _, id := range ids {
		out[id] = map[string][]int{}
	}
	for _, p := range partitions {
		// Inverse of the ranges from i*numbers/members to (i+1)*numbers/members.
		owner := out[ids[((p.ID+1)*len(ids)-1)/numbers]]
		owner[p.Topic] = append(owner[p.Topic], p.ID)
	}
	return out
}
