// Package alarmmetrics exports the alarms and incidents of all policies, and what people decided on them, as metrics.
package alarmmetrics

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Metrics exports the alarms of all policies. Its methods may be called by several goroutines.
type Metrics struct {
	groups   func() []ingest.Group
	delivery func(incident string) alerts.Delivery

	mu     sync.Mutex
	firing map[severityKey]int
	muted  map[severityKey]int
	opened map[ingest.Group]int
	closed map[causeKey]int
	open   map[ingest.Group]openIncident
	latest map[ingest.Group]decided
}

// openIncident is the exported part of an open incident.
type openIncident struct {
	id       string
	severity alerts.Severity
	cause    alerts.Cause
	onset    int64 // Unix seconds, 0 without a clock
	muted    bool
	versions versionChanges
}

type severityKey struct {
	group    ingest.Group
	severity alerts.Severity
}

type causeKey struct {
	group ingest.Group
	cause alerts.Cause
}

// New returns the collector of alerts.MetricAlarms and the other metrics of alarms and incidents. groups returns the
// monitored groups, and delivery the delivery state of an incident's alert. A group that has had no incident exports zero
// opened incidents and zero critical alarms: otherwise increase() would miss the first incident, and graphs of a healthy
// fleet would be empty. Its other zeros are exported from its first incident on, because a fleet of 20,000 groups would
// otherwise export 160,000 of them.
func New(groups func() []ingest.Group, delivery func(incident string) alerts.Delivery) *Metrics {
	return &Metrics{
		groups: groups, delivery: delivery, firing: map[severityKey]int{}, muted: map[severityKey]int{}, opened: map[ingest.Group]int{},
		closed: map[causeKey]int{}, open: map[ingest.Group]openIncident{}, latest: map[ingest.Group]decided{},
	}
}

// Restore exports the alarms of incidents from before this process. They do not count as opened or closed.
func (m *Metrics) Restore(incidents []alerts.Incident) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range incidents {
		m.count(&incidents[i])
	}
}

// Update applies the changes of a Tracker.
func (m *Metrics) Update(changes []alerts.Change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range changes {
		if c.Incident != nil {
			m.update(c, m.latest[c.Incident.Group])
		}
	}
}

// update applies a change to an incident; before is the latest incident of its group so far. A comment on a closed
// incident must not count as closing it again, and a comment on an earlier incident must not replace the open one.
func (m *Metrics) update(c alerts.Change, before decided) {
	i := c.Incident
	if i.Closed && before.id != "" && before.id != i.ID {
		return
	}
	m.count(i)
	switch {
	case c.Fired && c.Alarm.ID == i.ID:
		m.opened[i.Group]++
	case i.Closed && (before.id != i.ID || !before.closed):
		m.closed[causeKey{i.Group, i.Cause}]++
	}
}

// count sets the number of firing alarms. A group has at most one open incident, so the latest one is the whole count.
// Alarms of a muted incident are counted separately, so that alerting rules stay silent.
func (m *Metrics) count(i *alerts.Incident) {
	m.countFromZero(i.Group)
	m.latest[i.Group] = decidedOn(i)
	delete(m.open, i.Group)
	if !i.Closed {
		m.open[i.Group] = openIncident{i.ID, i.Severity, i.Cause, i.Earliest().Onset.TS / int64(time.Second), i.IsMuted(), changedVersions(i)}
	}
	key := severityKey{i.Group, i.Severity}
	for _, other := range alerts.Severities() { // an improvement may have turned into a deterioration
		before := severityKey{i.Group, other}
		if _, counted := m.firing[before]; counted && other != i.Severity {
			delete(m.muted, before)
			m.firing[before] = 0
		}
	}
	if i.IsMuted() {
		m.firing[key], m.muted[key] = 0, i.Firing()
		return
	}
	m.firing[key] = i.Firing()
	delete(m.muted, key)
}

// countFromZero exports all counts of a group that has an incident, including zeros. A scrape then sees the zero before
// the incident closes, so that increase() counts it.
func (m *Metrics) countFromZero(group ingest.Group) {
	for _, c := range alerts.Causes() {
		m.closed[causeKey{group, c}] += 0
	}
	for _, s := range alerts.Severities() {
		m.firing[severityKey{group, s}] += 0
	}
}

// Forget stops exporting the alarms of policies that this process no longer judges. Counters keep their values, so a
// sum over the instances that successively judged a policy counts each incident once.
func (m *Metrics) Forget(policies []string) {
	gone := func(k severityKey, _ int) bool { return slices.Contains(policies, k.group.Policy) }
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.firing, gone)
	maps.DeleteFunc(m.muted, gone)
	maps.DeleteFunc(m.open, func(g ingest.Group, _ openIncident) bool { return slices.Contains(policies, g.Policy) })
	maps.DeleteFunc(m.latest, func(g ingest.Group, _ decided) bool { return slices.Contains(policies, g.Policy) })
}

// Describe sends nothing: labels differ between policies, so this is an unchecked collector.
func (m *Metrics) Describe(chan<- *prometheus.Desc) {}

// Collect sends the current metrics.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	shared := descs{}
	m.export(func(f *exported, value float64, group ingest.Group, more ...ingest.Label) {
		ch <- shared.metric(f, value, group, more...)
	})
}

// exported describes a metric: the name, help and type of all of its series.
type exported struct {
	name, help string
	kind       prometheus.ValueType
}

// export calls put for each current sample. It works on copies, so alarms can be counted meanwhile.
func (m *Metrics) export(put func(f *exported, value float64, group ingest.Group, more ...ingest.Label)) {
	watched := m.groups()
	m.mu.Lock()
	for _, group := range watched {
		m.opened[group] += 0
		m.firing[severityKey{group, alerts.Critical}] += 0
	}
	firing, muted, opened, closed, open := maps.Clone(m.firing), maps.Clone(m.muted), maps.Clone(m.opened), maps.Clone(m.closed), maps.Clone(m.open)
	latest := maps.Clone(m.latest)
	m.mu.Unlock()
	f := &exported{alerts.MetricAlarms, "Firing alarms that are not muted.", prometheus.GaugeValue}
	for k, n := range firing {
		put(f, float64(n), k.group, ingest.Label{Name: "severity", Value: string(k.severity)})
	}
	f = &exported{alerts.MetricAlarmsMuted, "Firing alarms that are muted.", prometheus.GaugeValue}
	for k, n := range muted {
		put(f, float64(n), k.group, ingest.Label{Name: "severity", Value: string(k.severity)})
	}
	f = &exported{alerts.MetricIncidentsOpened, "Number of incidents opened.", prometheus.CounterValue}
	for group, n := range opened {
		put(f, float64(n), group)
	}
	f = &exported{alerts.MetricIncidentsClosed, "Number of incidents closed, by cause.", prometheus.CounterValue}
	for k, n := range closed {
		put(f, float64(n), k.group, ingest.Label{Name: "cause", Value: string(k.cause)})
	}
	f = &exported{alerts.MetricIncidentOnset, "Onset of an open incident, in Unix time.", prometheus.GaugeValue}
	for group, i := range open {
		put(f, float64(i.onset), group, ingest.Label{Name: "incident", Value: i.id},
			ingest.Label{Name: "severity", Value: string(i.severity)}, ingest.Label{Name: "cause", Value: string(i.cause)})
	}
	f = &exported{alerts.MetricIncidentAlert, "State of the alert for an open incident: 0 not pushed and left to Prometheus rules, 1 not accepted by any Alertmanager, 2 accepted, 3 muted.", prometheus.GaugeValue}
	for group, i := range open {
		put(f, float64(m.stateOf(i)), group, ingest.Label{Name: "incident", Value: i.id})
	}
	f = &exported{alerts.MetricIncidentVersions, "Versions that changed at the onset of an open incident, and the versions since then.", prometheus.GaugeValue}
	for group, i := range open {
		put(f, 1, group, append(i.versions.labels(), ingest.Label{Name: "incident", Value: i.id})...)
	}
	f = &exported{alerts.MetricIncidentDecision, "Time of the most recent decision of each kind on the latest incident of a group, in Unix time.", prometheus.GaugeValue}
	now := time.Now()
	for group, d := range latest {
		d.export(now, func(at float64, labels ...ingest.Label) { put(f, at, group, labels...) })
	}
}

// stateOf returns the delivery state of the alert for an open incident.
func (m *Metrics) stateOf(i openIncident) alerts.DeliveryState {
	if i.muted {
		return alerts.Silenced
	}
	return m.delivery(i.id).State
}

// descs caches the descriptors of one scrape by metric name and label names, which most groups share.
type descs map[string]*prometheus.Desc

// metric returns one sample with the labels of its group and some more.
func (d descs) metric(f *exported, value float64, group ingest.Group, more ...ingest.Label) prometheus.Metric {
	names, values := []string{"policy"}, []string{alerts.LabelValue(group.Policy)}
	for _, l := range append(alerts.GroupLabels(group), more...) {
		names, values = append(names, l.Name), append(values, alerts.LabelValue(l.Value))
	}
	key := f.name + " " + strings.Join(names, " ")
	if d[key] == nil {
		d[key] = prometheus.NewDesc(f.name, f.help, names, nil)
	}
	return prometheus.MustNewConstMetric(d[key], f.kind, value, values...)
}
