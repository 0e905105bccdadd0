package engine

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rewardwatch/rewardwatch/alerts"
)

// delayBounds are the upper bounds of the buckets for the delays of units.
var delayBounds = [...]time.Duration{
	50 * time.Millisecond, 200 * time.Millisecond, time.Second, 5 * time.Second, 15 * time.Second, alerts.FreshWithin * time.Second,
	5 * time.Minute, 30 * time.Minute, 2 * time.Hour,
}

// delays counts the delays of judged units. A worker counts its own and adds them to the metric together, because the
// workers share the memory of the metric.
type delays struct {
	within [len(delayBounds)]uint64 // by the first bucket whose bound is not exceeded
	number uint64
	sum    float64 // in nanoseconds
}

// add counts the delay of a unit that was judged at now, if the unit has a clock. If the clock of the agent is ahead,
// the delay counts as 0.
func (d *delays) add(end int64, now time.Time) {
	if end == 0 {
		return
	}
	delay := max(0, now.UnixNano()-end)
	d.number, d.sum = d.number+1, d.sum+float64(delay)
	for i, bound := range &delayBounds {
		if delay <= int64(bound) {
			d.within[i]++
			return
		}
	}
}

// delayMetric is a histogram of delays.
type delayMetric struct {
	desc *prometheus.Desc
	mu   sync.Mutex
	all  delays
}

// take adds counted delays, and resets them.
func (m *delayMetric) take(d *delays) {
	if d.number == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, n := range d.within {
		m.all.within[i] += n
	}
	m.all.number, m.all.sum = m.all.number+d.number, m.all.sum+d.sum
	*d = delays{}
}

// Describe implements prometheus.Collector.
func (m *delayMetric) Describe(out chan<- *prometheus.Desc) { out <- m.desc }

// Collect implements prometheus.Collector.
func (m *delayMetric) Collect(out chan<- prometheus.Metric) {
	m.mu.Lock()
	all := m.all
	m.mu.Unlock()
	upTo, n := make(map[float64]uint64, len(delayBounds)), uint64(0)
	for i, bound := range delayBounds {
		n += all.within[i]
		upTo[bound.Seconds()] = n
	}
	out <- prometheus.MustNewConstHistogram(m.desc, all.number, all.sum/float64(time.Second), upTo)
}
