package alerts

import (
	"maps"
	"slices"
	"sync"
	"time"

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
	open   map[ingest.Group]openIncident
}

// openIncident is what is shown of an open incident.
type openIncident struct {
	id       string
	severity Severity
	cause    Cause
	onset    int64 // Unix seconds, 0 without a clock
}

type severityKey struct {
	group    ingest.Group
	severity Severity
}

type causeKey struct {
	group ingest.Group
	cause Cause
}

// NewMetrics makes the collector of MetricAlarms, MetricAlarmsMuted, MetricIncidentsOpened, MetricIncidentsClosed and
// MetricIncidentOnset, and registers it. groups gives the groups that are watched: what none of them has yet is exported as 0, or
// increase() would miss the first one, and a graph would show nothing where all is well.
func NewMetrics(reg prometheus.Registerer, groups func() []ingest.Group) *Metrics {
	m := &Metrics{
		groups: groups, firing: map[severityKey]int{}, muted: map[severityKey]int{}, opened: map[ingest.Group]int{},
		closed: map[causeKey]int{}, open: map[ingest.Group]openIncident{},
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
	delete(m.open, i.Group)
	if !i.Closed {
		m.open[i.Group] = openIncident{i.ID, i.Severity, i.Cause, i.Earliest().Onset.TS / int64(time.Second)}
	}
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
	maps.DeleteFunc(m.open, func(g ingest.Group, _ openIncident) bool { return slices.Contains(policies, g.Policy) })
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
		for _, c := range Causes() {
			m.closed[causeKey{group, c}] += 0
		}
		for _, s := range Severities() {
			m.firing[severityKey{group, s}] += 0
		}
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
	m.collectOpen(ch)
}

// collectOpen gives the open incidents.
func (m *Metrics) collectOpen(ch chan<- prometheus.Metric) {
	for group, i := range m.open {
		ch <- groupMetric(MetricIncidentOnset, "When the drift of an open incident began.", prometheus.GaugeValue, i.onset, group,
			ingest.Label{Name: "incident", Value: i.id}, ingest.Label{Name: "severity", Value: string(i.severity)},
			ingest.Label{Name: "cause", Value: string(i.cause)})
	}
}

// groupMetric makes one sample with the labels of its group and some more.
func groupMetric[N int | int64](
	name, help string, kind prometheus.ValueType, n N, group ingest.Group, more ...ingest.Label,
) prometheus.Metric {
	names, values := []string{"policy"}, []string{labelValue(group.Policy)}
	for _, l := range append(groupLabels(group), more...) {
		names, values = append(names, l.Name), append(values, l.Value)
	}
	return prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, names, nil), kind, float64(n), values...)
}
