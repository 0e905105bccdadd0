//go:build e2e && throughput

package e2e

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	throughputGroups     = flag.String("groups", "20,1000", "numbers of groups that TestThroughput measures, separated by commas")
	throughputCalibrated = flag.Int("calibrated", 20, "the most groups whose calibration TestThroughput measures; larger fleets get copies of baselines")
	throughputEvents     = flag.Int("events", 2_000_000, "events of the steady state in TestThroughput")
	throughputKinds      = flag.String("traffic", ".", "regular expression of the kinds of traffic that TestThroughput measures")
	throughputResult     = flag.String("result", "", "file to which TestThroughput appends its results for benchstat")
)

// TestThroughput measures the cost of reading and judging, compared with a loop that only reads the same topics and, if
// Python is installed, with a consumer in Python with the detectors of river. All of them are separate processes,
// except for the bare loop.
func TestThroughput(t *testing.T) {
	kinds := regexp.MustCompile(*throughputKinds)
	b, binary := startBroker(t, ""), build(t)
	fmt.Fprintln(os.Stderr, "| traffic | groups | state | events/s | CPU us an event | of the bare loop | allocations an event | resident MiB |")
	fmt.Fprintln(os.Stderr, "| --- | --- | --- | --- | --- | --- | --- | --- |")
	for _, groups := range strings.Split(*throughputGroups, ",") {
		n, err := strconv.Atoi(groups)
		if err != nil {
			t.Fatalf("-groups: %v", err)
		}
		for _, kind := range traffics {
			if kinds.MatchString(kind.name) {
				t.Run(kind.name+"/"+groups, func(t *testing.T) { measureTraffic(t, b, binary, kind, n) })
			}
		}
	}
}

// measureTraffic takes a fleet through its states: before its first baselines, while these are calibrated, and after. A
// large fleet is endowed instead of calibrated.
func measureTraffic(t *testing.T, b *broker, binary string, kind traffic, groups int) {
	m := newMeasured(t, b, binary, kind, newPopulation(groups))
	idle := m.read(t, 0, nil)
	m.row(t, "warm-up", m.read(t, min(m.eventsOf(90), max(*throughputEvents, m.eventsOf(1))), nil).less(idle), m.bare(t))
	if groups <= *throughputCalibrated {
		calibrated := m.read(t, m.eventsOf(baselineUnits-90), m.calibrated).less(idle)
		m.row(t, "calibration", calibrated, m.bare(t))
		fmt.Fprintf(os.Stderr, "\n%.0f ms of CPU a group, with the reading\n\n", float64(calibrated.cpu.Milliseconds())/float64(m.groups()))
	} else {
		m.startOver(t)
	}

	idle = m.read(t, 0, nil)
	from := m.ends(t)
	steady := m.read(t, *throughputEvents, nil).less(idle)
	bare := m.bareFrom(t, from)
	m.row(t, "bare loop", bare, bare)
	m.row(t, "steady", steady, bare)
	if river, ok := m.river(t, from); ok {
		m.row(t, "river in Python", river, bare)
	}
}

// startOver endows the fleet from scratch, in a separate topic.
func (m *measured) startOver(t *testing.T) {
	t.Helper()
	m.topic += "-endowed"
	m.createTopic(t, m.topic, m.partitions)
	m.configure(t)
	m.actors = newActors(m.traffic, m.population)
	m.endow(t, m.copyBanks)
}

// riverEvents is enough to measure a loop that is this slow.
const riverEvents = 20_000

// river returns the cost of a consumer in Python that feeds the rewards of each policy to ADWIN and KSWIN of river. It
// returns false if river is not installed, and for traffic that the consumer cannot read.
func (m *measured) river(t *testing.T, from []int64) (cost, bool) {
	t.Helper()
	python := cmp.Or(os.Getenv("REWARDWATCH_PEERS_PYTHON"), filepath.Join(root, ".cache/venv-peers/bin/python"))
	if _, err := os.Stat(python); err != nil || m.traffic.topic != "" || m.message > 1 {
		return cost{}, false
	}
	at, err := json.Marshal(from)
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := exec.Command(python, "throughput.py", m.broker.address, m.topic, string(at), strconv.Itoa(min(riverEvents, *throughputEvents)))
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("throughput.py: %v\n%s", err, &stderr)
	}
	var said struct {
		Events int     `json:"events"`
		CPU    float64 `json:"cpu_seconds"`
		Took   float64 `json:"seconds"`
		RSS    float64 `json:"rss"`
	}
	if err := json.Unmarshal(out, &said); err != nil {
		t.Fatalf("throughput.py printed %q: %v", out, err)
	}
	return cost{events: said.Events, cpu: time.Duration(said.CPU * 1e9), took: time.Duration(said.Took * 1e9), rss: said.RSS}, true
}

// row prints a cost compared with that of the bare loop, and appends the ratio to the results.
func (m *measured) row(t *testing.T, state string, c, bare cost) {
	t.Helper()
	ratio := c.micros() / bare.micros()
	fmt.Fprintf(os.Stderr, "| %s | %d | %s | %.0f | %.2f | %.1f | %.2f | %.0f |\n", m.name, m.groups(), state,
		c.rate(), c.micros(), ratio, c.mallocs/float64(c.events), c.rss/(1<<20))
	if *throughputResult == "" || state == "bare loop" {
		return
	}
	f, err := os.OpenFile(*throughputResult, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.NewReplacer(" ", "-", ",", "").Replace(fmt.Sprintf("BenchmarkThroughput/%s/groups=%d/%s", m.name, m.groups(), state))
	_, err = fmt.Fprintf(f, "%s 1 %.3f x-bare-loop %.3f allocs/event %.0f RSS-bytes\n", name, ratio, c.mallocs/float64(c.events), c.rss)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}
