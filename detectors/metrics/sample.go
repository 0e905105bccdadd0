package metrics

import (
	"cmp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"
)

// sample is a metric that shares its labels with others. prometheus.MustNewConstMetric creates all labels of each
// metric, and a scrape of thousands of groups would take twice the memory.
type sample struct {
	desc   *prometheus.Desc
	kind   prometheus.ValueType
	value  float64
	labels []*dto.LabelPair // sorted by name
}

// Desc implements prometheus.Metric.
func (s *sample) Desc() *prometheus.Desc { return s.desc }

// Write implements prometheus.Metric.
func (s *sample) Write(out *dto.Metric) error {
	out.Label = s.labels
	if s.kind == prometheus.CounterValue {
		out.Counter = &dto.Counter{Value: &s.value}
	} else {
		out.Gauge = &dto.Gauge{Value: &s.value}
	}
	return nil
}

// pairs holds the labels of one scrape that many groups have, such as the names of signals.
type pairs map[[2]string]*dto.LabelPair

// join returns the shared labels and those of the given names and values, sorted by name.
func (p pairs) join(shared []*dto.LabelPair, names, values []string) []*dto.LabelPair {
	labels := append(make([]*dto.LabelPair, 0, len(shared)+len(names)), shared...)
	for i, name := range names {
		labels = append(labels, p.of(name, values[i]))
	}
	slices.SortFunc(labels, func(a, b *dto.LabelPair) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return labels
}

func (p pairs) of(name, value string) *dto.LabelPair {
	pair := p[[2]string{name, value}]
	if pair == nil {
		pair = &dto.LabelPair{Name: proto.String(name), Value: proto.String(value)}
		p[[2]string{name, value}] = pair
	}
	return pair
}
