//go:build e2e && throughput

package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/names"
	"github.com/rewardwatch/rewardwatch/ingest"
)

var (
	sustainedRate = flag.Float64("rate", 100_000, "one-step decisions a second that TestSustained produces")
	sustainedFor  = flag.Duration("duration", 10*time.Minute, "how long TestSustained produces them")
)

// TestSustained lets 20 groups decide at a constant rate, one decision per episode, and prints the resource usage of a
// service with the default configuration. A service that cannot keep up has a growing lag.
func TestSustained(t *testing.T) {
	m := newMeasured(t, startBroker(t, ""), build(t), trafficNamed("one-step decisions"), newPopulation(20))
	m.read(t, m.eventsOf(baselineUnits), m.calibrated)
	client := m.writer(t, m.topic)
	defer client.Close()
	process := m.run(t)
	process.until(t, "the service is ready", m.ready)
	ctx, cancel := context.WithCancelCause(t.Context())
	m.clock = func() int64 { return time.Now().UnixMilli() }
	loaded := make(chan struct{})
	go func() { defer close(loaded); m.load(ctx, cancel, client, *sustainedRate) }()

	fmt.Fprintf(os.Stderr, "| after | produced/s | read/s | records behind | resident MiB | log of units, MiB |\n| --- | --- | --- | --- | --- | --- |\n")
	began, look := time.Now(), time.NewTicker(*sustainedFor/20)
	defer look.Stop()
	before, most, mostLog := m.progress(t), 0.0, 0.0
	for time.Since(began) < *sustainedFor {
		<-look.C
		now := m.progress(t)
		seconds := now.at.Sub(before.at).Seconds()
		rss, log := m.sum(t, "process_resident_memory_bytes")/(1<<20), m.sum(t, names.MetricUnitLogBytes)/(1<<20)
		most, mostLog = max(most, rss), max(mostLog, log)
		fmt.Fprintf(os.Stderr, "| %s | %.0f | %.0f | %.0f | %.0f | %.0f |\n", now.at.Sub(began).Round(time.Second),
			(now.produced-before.produced)/seconds, (now.read-before.read)/seconds, now.produced-now.read, rss, log)
		before = now
	}
	cancel(nil)
	<-loaded
	process.stop(t)
	cpu, _ := process.used()
	fmt.Fprintf(os.Stderr, "\nat most %.0f MiB resident and %.0f MiB of log; %.2f us of CPU a decision that was read\n", most, mostLog,
		float64(cpu.Microseconds())/before.read)
}

// progress is the progress of a load and of the service that reads it.
type progress struct {
	at             time.Time
	produced, read float64 // since the load began
}

func (m *measured) progress(t *testing.T) progress {
	t.Helper()
	p := progress{at: time.Now(), read: m.sum(t, ingest.MetricEvents)}
	p.produced = p.read + m.sum(t, ingest.MetricLagRecords)
	return p
}
