package alerts

import (
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Metrics shows the alarms of all policies. It may be updated from several goroutines.
type Metrics struct {
	groups func() []ingest.Group

	mu     sync.Mutex
	firing map[severityKey]int
	muted  map[severityKey]int
	opened map[ingest.Group]int
	closed map[causeKey]int
}

type severityKey struct {
	group    ingest.Group
	severity Severity
}

type causeKey struct {
	group ingest.Group
	cause Cause
}

// NewMetrics makes the collector of MetricAlarms, MetricAlarmsMuted, MetricIncidentsOpened and MetricIncidentsClosed and registers it.
// groups gives the groups that are watched: those without an incident are exported as 0, or increase() would miss
// their first one.
func NewMetrics(reg prometheus.Registerer, groups func() []ingest.Group) *Metrics {
	m := &Metrics{
		groups: groups, firing: map[severityKey]int{}, muted: map[severityKey]int{}, opened: map[ingest.Group]int{},
		closed: map[causeKey]int{},
	}
	reg.MustRegister(m)
	return m
}

// Restore shows the alarms of incidents that were there before this process. They do not count as opened or closed.
func (m *Metrics) Restore(incidents []Incident) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range incidents {
		m.count(&incidents[i])
	}
}

// Update follows the changes of a Book.
func (m *Metrics) Update(changes []Change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range changes {
		if c.Incident == nil {
			continue
		}
		m.count(c.Incident)
		switch {
		case c.Fired && c.Alarm.ID == c.Incident.ID:
			m.opened[c.Incident.Group]++
		case c.Incident.Closed:
			m.closed[causeKey{c.Incident.Group, c.Incident.Cause}]++
		}
	}
}

// count sets the number of firing alarms; a group has one open incident at most, so that the latest says it all. Those
// of a muted one are counted apart, so that alerting rules stay silent.
func (m *Metrics) count(i *Incident) {
	key := severityKey{i.Group, i.Severity}
	if i.IsMuted() {
		m.firing[key], m.muted[key] = 0, i.Firing()
		return
	}
	m.firing[key] = i.Firing()
	delete(m.muted, key)
}

// Forget stops showing the alarms of policies that are not judged by this process any more. What it has counted of them
// stays: a sum over the instances that judged a policy one after the other counts each incident once.
func (m *Metrics) Forget(policies []string) {
	gone := func(k severityKey, _ int) bool { return slices.Contains(policies, k.group.Policy) }
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.firing, gone)
	maps.DeleteFunc(m.muted, gone)
}

// Describe describes nothing: the labels differ between policies, which makes this an unchecked collector.
func (m *Metrics) Describe(chan<- *prometheus.Desc) {}

// Collect gives the metrics as they are now.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	watched := m.groups()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, group := range watched {
		m.opened[group] += 0
	}
	for k, n := range m.firing {
		ch <- groupMetric(MetricAlarms, "Alarms that fire now and are not muted.", prometheus.GaugeValue, n, k.group,
			ingest.Label{Name: "severity", Value: string(k.severity)})
	}
	for k, n := range m.muted {
		ch <- groupMetric(MetricAlarmsMuted, "Alarms that fire now, of incidents that a person has muted.", prometheus.GaugeValue,
			n, k.group, ingest.Label{Name: "severity", Value: string(k.severity)})
	}
	for group, n := range m.opened {
		ch <- groupMetric(MetricIncidentsOpened, "Incidents that have opened.", prometheus.CounterValue, n, group)
	}
	for k, n := range m.closed {
		ch <- groupMetric(MetricIncidentsClosed, "Incidents that have closed.", prometheus.CounterValue, n, k.group,
			ingest.Label{Name: "cause", Value: string(k.cause)})
	}
}

// groupMetric makes one sample with the labels of its group and some more.
func groupMetric(
	name, help string, kind prometheus.ValueType, n int, group ingest.Group, more ...ingest.Label,
) prometheus.Metric {
	names, values := []string{"policy"}, []string{labelValue(group.Policy)}
	for _, l := range append(groupLabels(group), more...) {
		names, values = append(names, l.Name), append(values, l.Value)
	}
	return prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, names, nil), kind, float64(n), values...)
}
