//go:build e2e && throughput

package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

var (
	growthSmallest = flag.Int("smallest", 2, "the smallest number of groups of TestGrowth")
	growthGroups   = flag.Int("largest", 20_000, "the largest number of groups of TestGrowth; it measures ten times the smallest, and so on")
	growthDir      = flag.String("growth", "", "directory to which TestGrowth writes growth.txt and growth.svg")
)

// grown is a point of a plot: the cost of an event at one size.
type grown struct {
	against string // what grows
	at      float64
	micros  float64 // CPU per event
	ratio   float64 // to the bare loop
	rss     float64 // MiB, of all processes
	stop    float64 // seconds of CPU from the end of the measurement to the end of the processes
}

// How long the steady state is observed: twice the interval between the checkpoints of a small fleet; for a large
// fleet, the maximum time that a policy may go without a save, after every policy has been saved.
const (
	growthWindow, growthSettled           = 20 * time.Second, 2 * time.Second
	growthWindowOfMany, growthSettledMany = 2 * time.Minute, 50 * time.Second
)

// TestGrowth measures the cost of a one-step decision depending on the number of streams, partitions and processes,
// while more decisions wait than are read.
func TestGrowth(t *testing.T) {
	b, binary := startBroker(t, ""), build(t)
	var points []grown
	point := func(p grown) {
		points = append(points, p)
		writeGrowth(t, points)
		fmt.Fprintf(os.Stderr, "| %s | %.0f | %.2f | %.1f | %.0f | %.1f |\n", p.against, p.at, p.micros, p.ratio, p.rss, p.stop)
	}
	fmt.Fprintf(os.Stderr, "| against | at | CPU us an event | of the bare loop | resident MiB | CPU s of the stop |\n| --- | --- | --- | --- | --- | --- |\n")
	for groups := *growthSmallest; groups <= *growthGroups; groups *= 10 {
		t.Run(fmt.Sprint("groups/", groups), func(t *testing.T) { point(growth(t, b, binary, "streams", newPopulation(groups))) })
	}
	for _, partitions := range []int{1, 8, 64} {
		t.Run(fmt.Sprint("partitions/", partitions), func(t *testing.T) {
			f := newPopulation(200)
			f.partitions = partitions
			point(growth(t, b, binary, "partitions", f))
		})
	}
	for _, processes := range []int{1, 2, 4} {
		t.Run(fmt.Sprint("processes/", processes), func(t *testing.T) { point(growthOfCluster(t, b, binary, processes)) })
	}
}

// writeGrowth writes the points so far, so that an interrupted run leaves its measurements.
func writeGrowth(t *testing.T, points []grown) {
	t.Helper()
	if *growthDir == "" {
		return
	}
	var data []byte
	for _, p := range points {
		data = fmt.Appendf(data, "%s\t%.0f\t%.3f\t%.2f\t%.0f\t%.1f\n", p.against, p.at, p.micros, p.ratio, p.rss, p.stop)
	}
	for name, content := range map[string][]byte{"growth.txt": data, "growth.svg": growthPlot(points)} {
		if err := os.WriteFile(filepath.Join(*growthDir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// growth measures the steady state of one process.
func growth(t *testing.T, b *broker, binary, against string, f population) grown {
	t.Helper()
	m := newMeasured(t, b, binary, trafficNamed("one-step decisions"), f)
	m.endow(t, m.copyBanks)
	p := m.steady(t, []*measured{m}, []*run{m.run(t)})
	p.against, p.at = against, float64(f.partitions)
	if against == "streams" {
		p.at = float64(f.groups() * streamsOfGroup)
	}
	return p
}

// streamsOfGroup is the number of streams of one-step decisions: return, reward, episode_length, action and an outcome.
const streamsOfGroup = 5

// growthOfCluster measures the steady state of several processes that share 4 partitions, which they have joined before
// events arrive.
func growthOfCluster(t *testing.T, b *broker, binary string, processes int) grown {
	t.Helper()
	suffix := fmt.Sprint("-", processes)
	one := newMeasured(t, b, binary, trafficNamed("one-step decisions"), newPopulation(20),
		fmt.Sprintf("cluster: {units_topic: units%s, checkpoints_topic: checkpoints%[1]s}", suffix))
	one.read(t, one.eventsOf(baselineUnits), one.calibrated)
	all, runs := []*measured{one}, []*run{one.run(t)}
	for range processes - 1 {
		s := one.sibling(t)
		all, runs = append(all, s), append(runs, s.run(t))
	}
	runs[0].until(t, "the processes share the partitions", func() error { return settled(all) })
	p := one.steady(t, all, runs)
	p.against, p.at = "processes", float64(processes)
	return p
}

// steady observes processes that read the topic of m, to which it writes more than they can read. What they do before
// and after is not part of the cost of an event.
func (m *measured) steady(t *testing.T, all []*measured, runs []*run) grown {
	t.Helper()
	window, settle := growthWindow, growthSettled
	if m.groups() >= largeFleet {
		window, settle = growthWindowOfMany, growthSettledMany
	}
	from := m.ends(t)
	for i, r := range runs {
		r.until(t, "what was there is read", all[i].ready)
	}
	stop := m.feed(t, all)
	m.pass(t, runs, settle)
	before := spentBy(t, all)
	m.pass(t, runs, window)
	after := spentBy(t, all)
	stop()
	p := grown{micros: (after.cpu - before.cpu) * 1e6 / (after.events - before.events), rss: after.rss / (1 << 20), stop: -after.cpu}
	p.ratio = p.micros / m.bareFrom(t, from).micros()
	for _, r := range runs {
		r.stop(t)
		cpu, _ := r.used()
		p.stop += cpu.Seconds()
	}
	return p
}

// pass waits while the processes are running.
func (m *measured) pass(t *testing.T, runs []*run, long time.Duration) {
	t.Helper()
	over := time.Now().Add(long)
	runs[0].until(t, "the time is over", func() error {
		if left := time.Until(over); left > 0 {
			return fmt.Errorf("%s are left", left)
		}
		return nil
	})
}

// The number of records that a partition is kept behind, and how often that is checked.
const (
	fedAhead = 25_000
	fedEvery = 50 * time.Millisecond
)

// feed writes events as long as the processes read, so that records wait in each of their partitions.
func (m *measured) feed(t *testing.T, all []*measured) (stop func()) {
	t.Helper()
	client := m.writer(t, m.topic)
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		look := time.NewTicker(fedEvery)
		defer look.Stop()
		for {
			select {
			case <-look.C:
			case <-ctx.Done():
				return
			}
			if least(all) < fedAhead {
				m.send(ctx, cancel, client, fedAhead*m.partitions)
			}
		}
	}()
	return func() {
		cancel(nil)
		<-done
		client.Close()
		if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("write to %s: %v", m.topic, err)
		}
	}
}

// least returns the minimum number of records that a partition is behind, as reported by the instances for their
// partitions.
func least(all []*measured) int {
	fewest := math.MaxInt
	for _, m := range all {
		partition, behind := 0, 0
		if err := m.ready(); err != nil {
			_, said, _ := strings.Cut(err.Error(), "not ready: ")
			if _, err := fmt.Sscanf(said, "partition %d is %d records behind", &partition, &behind); err != nil {
				behind = math.MaxInt // it is being restored or rebalanced
			}
		}
		fewest = min(fewest, behind)
	}
	return fewest
}

// spent is what processes have used together.
type spent struct{ cpu, events, rss float64 }

// spentBy scrapes the processes, which costs each of them a scrape.
func spentBy(t *testing.T, all []*measured) (s spent) {
	t.Helper()
	patient := http.Client{Timeout: 5 * time.Minute} // for the scrape of a large fleet that is busy
	for _, m := range all {
		body, err := getWith(&patient, "http://"+m.address+"/metrics")
		if err != nil {
			t.Fatal(err)
		}
		for metric, sum := range map[string]*float64{
			ingest.MetricEvents: &s.events, "process_cpu_seconds_total": &s.cpu, "process_resident_memory_bytes": &s.rss,
		} {
			of, err := sumIn(body, metric, "")
			if err != nil {
				t.Fatal(err)
			}
			*sum += of
		}
	}
	return s
}

// settled returns an error unless the instances have all partitions together, and have read them.
func settled(all []*measured) error {
	held := 0
	for _, m := range all {
		n, err := m.partitionsHeld()
		if err == nil {
			err = m.ready()
		}
		if err == nil && n == 0 {
			err = fmt.Errorf("%s has no partition", m.address)
		}
		if err != nil {
			return err
		}
		held += n
	}
	if want := 2 * all[0].partitions; held != want {
		return fmt.Errorf("%d partitions are assigned, and not %d", held, want)
	}
	return nil
}
