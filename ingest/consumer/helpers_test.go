package consumer_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// commit sets the committed offset of the group while it has no members.
func commit(t *testing.T, b *bench, partition int32, next int64) {
	t.Helper()
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Generation = b.cfg.Group, -1
	topic := kmsg.NewOffsetCommitRequestTopic()
	topic.Topic = b.cfg.Topic
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Partition, p.Offset = partition, next
	topic.Partitions = append(topic.Partitions, p)
	req.Topics = append(req.Topics, topic)
	res, err := req.RequestWith(waitContext(t), b.broker.Client())
	if err != nil {
		t.Fatal(err)
	}
	if err := kerr.ErrorForCode(res.Topics[0].Partitions[0].ErrorCode); err != nil {
		t.Fatal(err)
	}
}

// wantEnd waits until the consumer ends with an error, and checks that it saved nothing afterwards.
func wantEnd(t *testing.T, m *member, want error) {
	t.Helper()
	if err := m.end(); !errors.Is(err, want) {
		t.Fatalf("Run: %v, want %v", err, want)
	}
}

// wantMetrics compares the complete metrics with the given names.
func wantMetrics(t *testing.T, m *member, want string, names ...string) {
	t.Helper()
	if err := testutil.GatherAndCompare(m.registry, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}

// gathered returns the value of the metric that has this label value, in addition to the topic.
func gathered(m *member, name, label string) float64 {
	m.b.t.Helper()
	families, err := m.registry.Gather()
	if err != nil {
		m.b.t.Fatal(err)
	}
	for _, f := range families {
		for _, x := range f.GetMetric() {
			if f.GetName() == name && hasLabel(x.GetLabel(), label) {
				return x.GetCounter().GetValue() + x.GetGauge().GetValue()
			}
		}
	}
	return 0
}

func hasLabel(labels []*dto.LabelPair, value string) bool {
	return slices.ContainsFunc(labels, func(l *dto.LabelPair) bool { return l.GetName() != "topic" && l.GetValue() == value })
}
