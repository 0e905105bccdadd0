//go:build e2e && throughput

package e2e

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/names"
	"github.com/rewardwatch/rewardwatch/ingest"
)

var firstStartGroups = flag.Int("first-start-groups", 10_000, "groups of TestFirstStart")

// TestFirstStart starts a service on a topic in which every group of a fleet has twice the units of its baseline, and
// prints how it calibrates all groups while it continues to read. If calibrations blocked reading, the rate would be
// low.
func TestFirstStart(t *testing.T) {
	m := newMeasured(t, startBroker(t, ""), build(t), trafficNamed("one-step decisions"), newPopulation(*firstStartGroups))
	m.produce(t, m.broker, m.topic, m.eventsOf(2*baselineUnits))

	fmt.Fprintf(os.Stderr, "%d groups:\n\n| after | read/s | read | baselines | calibrations that wait | resident MiB |\n| --- | --- | --- | --- | --- | --- |\n", m.groups())
	process, began := m.run(t), time.Now()
	process.until(t, "the service answers", m.answers("/-/healthy"))
	before := reading{at: began}
	process.until(t, "the baselines are calibrated", func() error {
		if time.Since(before.at) < lookEvery {
			return errors.New("not asked again yet")
		}
		var err error
		if before, err = m.firstStartRow(began, before); err != nil {
			return err
		}
		return m.calibrated()
	})
	process.until(t, "the topic is read", m.ready)
	if _, err := m.firstStartRow(began, before); err != nil {
		t.Error(err)
	}
	process.stop(t)
	cpu, rss := process.used()
	fmt.Fprintf(os.Stderr, "\n%s of CPU, %.0f ms a group, at most %.0f MiB\n", cpu.Round(time.Second), float64(cpu.Milliseconds())/float64(m.groups()), rss/(1<<20))
}

// lookEvery is the time between two rows. Listing the baselines of a large fleet more often would cost as much as
// judging it.
const lookEvery = 10 * time.Second

// reading is how much a service has read at a time.
type reading struct {
	at     time.Time
	events float64
}

// firstStartRow prints and returns the progress of the service; before and an error if the service does not report it
// in time.
func (m *measured) firstStartRow(began time.Time, before reading) (reading, error) {
	var values [3]float64
	for i, of := range []struct{ metric, label string }{
		{ingest.MetricEvents, ""}, {names.MetricCalibrations, `state="waiting"`}, {"process_resident_memory_bytes", ""},
	} {
		var err error
		if values[i], err = m.sums(of.metric, of.label); err != nil {
			return before, err
		}
	}
	final, _, err := m.baselines()
	if err != nil {
		return before, err
	}
	now := reading{at: time.Now(), events: values[0]}
	fmt.Fprintf(os.Stderr, "| %s | %.0f | %.0f | %d | %.0f | %.0f |\n", now.at.Sub(began).Round(time.Second),
		(now.events-before.events)/now.at.Sub(before.at).Seconds(), now.events, final, values[1], values[2]/(1<<20))
	return now, nil
}
