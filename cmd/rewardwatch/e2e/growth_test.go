//go:build e2e && throughput

package e2e

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/metrics"
)

var (
	growthGroups = flag.Int("largest", 20_000, "the largest number of groups of TestGrowth")
	growthDir    = flag.String("growth", "", "directory to which TestGrowth writes growth.txt and growth.svg")
)

// grown is a point of a plot: what an event costs at one size.
type grown struct {
	against string // what grows
	at      float64
	micros  float64 // CPU an event
	ratio   float64 // to the bare loop
	rss     float64 // MiB, of all processes
}

// TestGrowth measures what a one-step decision costs against streams, partitions and processes.
func TestGrowth(t *testing.T) {
	b, binary := startBroker(t, ""), build(t)
	var points []grown
	point := func(p grown) {
		points = append(points, p)
		fmt.Fprintf(os.Stderr, "| %s | %.0f | %.2f | %.1f | %.0f |\n", p.against, p.at, p.micros, p.ratio, p.rss)
	}
	fmt.Fprintf(os.Stderr, "| against | at | CPU us an event | of the bare loop | resident MiB |\n| --- | --- | --- | --- | --- |\n")
	for groups := 2; groups <= *growthGroups; groups *= 10 {
		t.Run(fmt.Sprint("groups/", groups), func(t *testing.T) { point(growth(t, b, binary, "streams", newPopulation(groups))) })
	}
	for _, partitions := range []int{1, 4, 16, 64} {
		t.Run(fmt.Sprint("partitions/", partitions), func(t *testing.T) {
			f := newPopulation(200)
			f.partitions = partitions
			point(growth(t, b, binary, "partitions", f))
		})
	}
	for processes := 1; processes <= 4; processes++ {
		t.Run(fmt.Sprint("processes/", processes), func(t *testing.T) { point(growthOfCluster(t, b, binary, processes)) })
	}
	if *growthDir == "" {
		return
	}
	var data []byte
	for _, p := range points {
		data = fmt.Appendf(data, "%s\t%.0f\t%.3f\t%.2f\t%.0f\n", p.against, p.at, p.micros, p.ratio, p.rss)
	}
	for name, content := range map[string][]byte{"growth.txt": data, "growth.svg": growthPlot(points)} {
		if err := os.WriteFile(filepath.Join(*growthDir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// growth is the steady state of one process.
func growth(t *testing.T, b *broker, binary, against string, f population) grown {
	t.Helper()
	m := newMeasured(t, b, binary, trafficNamed("one-step decisions"), f)
	m.endow(t, m.copyBanks)
	idle, from := m.read(t, 0, nil), m.ends(t)
	steady := m.read(t, *throughputEvents, nil).less(idle)
	p := grown{against: against, at: float64(f.partitions), micros: steady.micros(), ratio: steady.micros() / m.bareFrom(t, from).micros(), rss: steady.rss / (1 << 20)}
	if against == "streams" {
		p.at = float64(f.groups() * streamsOfGroup)
	}
	return p
}

// streamsOfGroup are those of one-step decisions: return, reward, episode_length, action and an outcome.
const streamsOfGroup = 5

// growthOfCluster is the steady state of several processes that share 4 partitions, which they have joined before the events come.
// Producing these is no part of their cost.
func growthOfCluster(t *testing.T, b *broker, binary string, processes int) grown {
	t.Helper()
	suffix := fmt.Sprint("-", processes)
	one := newMeasured(t, b, binary, trafficNamed("one-step decisions"), newPopulation(20),
		fmt.Sprintf("cluster: {units_topic: units%s, checkpoints_topic: checkpoints%[1]s}", suffix))
	one.read(t, one.eventsOf(baselineUnits), one.calibrated)
	from := one.ends(t)
	idle := one.share(t, processes, 0)
	c := one.share(t, processes, *throughputEvents).less(idle)
	return grown{against: "processes", at: float64(processes), micros: c.micros(), ratio: c.micros() / one.bareFrom(t, from).micros(), rss: c.rss / (1 << 20)}
}

// share has several processes read events, and returns what all of them took.
func (m *measured) share(t *testing.T, processes, events int) (c cost) {
	t.Helper()
	all, runs := []*measured{m}, []*run{m.run(t)}
	for range processes - 1 {
		s := m.sibling(t)
		all, runs = append(all, s), append(runs, s.run(t))
	}
	judged := func() (units float64, err error) {
		for _, s := range all {
			of, err := s.sums(metrics.MetricUnits, "")
			if err != nil {
				return 0, err
			}
			units += of
		}
		return units, nil
	}
	runs[0].until(t, "the processes share the partitions", func() error { return settled(all) })
	before, err := judged()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	m.produce(t, m.broker, m.topic, events)
	runs[0].until(t, "the events are judged", func() error {
		units, err := judged()
		if err == nil && units < before+float64(events) {
			err = fmt.Errorf("%.0f of %d units", units-before, events)
		}
		return err
	})
	c.events, c.took = events, time.Since(began)
	for _, r := range runs {
		r.stop(t)
		cpu, rss := r.used()
		c.cpu, c.rss = c.cpu+cpu, c.rss+rss
	}
	return c
}

// settled returns an error unless the instances have all partitions between them, and have read these.
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
