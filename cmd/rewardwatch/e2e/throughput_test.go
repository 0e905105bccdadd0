//go:build e2e && throughput

package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/rewardwatch/rewardwatch/deploy/deploytest"
)

var (
	throughputGroups = flag.String("groups", "20,1000", "numbers of groups that TestThroughput measures, separated by commas")
	throughputEvents = flag.Int("events", 2_000_000, "events of the steady state in TestThroughput")
	throughputKinds  = flag.String("traffic", ".", "regular expression of the kinds of traffic that TestThroughput measures")
	throughputResult = flag.String("result", "", "file to which TestThroughput appends its results for benchstat")
)

// cost is what it took to read a number of events.
type cost struct {
	events  int
	cpu     time.Duration // user and system, of the whole process
	took    time.Duration
	mallocs float64
	rss     float64 // at its largest, in bytes
}

// less returns the cost without that of a run that read nothing.
func (c cost) less(idle cost) cost {
	c.cpu, c.mallocs = c.cpu-idle.cpu, c.mallocs-idle.mallocs
	return c
}

// rate is in events a second.
func (c cost) rate() float64 { return float64(c.events) / c.took.Seconds() }

func (c cost) micros() float64 { return float64(c.cpu.Nanoseconds()) / 1e3 / float64(c.events) }

// TestThroughput measures what reading and judging costs, beside a loop that only reads the same topics, and, where Python is
// installed, beside a consumer in Python with the detectors of river. All are processes of their own, but for the bare loop.
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

// measured is one service that reads one topic, life after life.
type measured struct {
	*broker
	binary, config, address, topic string
	actors                         *actors
	groups                         int
}

// measureTraffic takes a fleet through its states: before its first baselines, while these are calibrated, and after.
func measureTraffic(t *testing.T, b *broker, binary string, kind traffic, groups int) {
	m := newMeasured(t, b, binary, kind, groups)
	idle := m.read(t, 0, nil)
	m.row(t, "warm-up", m.read(t, m.actors.eventsOf(groups, 90), nil).less(idle), m.bare(t))

	calibrated := m.read(t, m.actors.eventsOf(groups, 430), m.calibrated).less(idle)
	m.row(t, "calibration", calibrated, m.bare(t))
	fmt.Fprintf(os.Stderr, "\n%.0f ms of CPU a group, with the reading\n\n", float64(calibrated.cpu.Milliseconds())/float64(groups))

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

// newMeasured creates the topic, and the configuration of the service that reads it. It is the default one, except that
// the service is ready only when it has read everything. More lines of configuration may follow.
func newMeasured(t *testing.T, b *broker, binary string, kind traffic, groups int, more ...string) *measured {
	t.Helper()
	dir, topic := t.TempDir(), "traffic-"+regexp.MustCompile(`\W+`).ReplaceAllString(t.Name(), "-")
	b.createTopic(t, topic, trafficPartitions)
	m := &measured{
		broker: b, binary: binary, config: filepath.Join(dir, "rewardwatch.yml"), topic: topic, groups: groups,
		address: "127.0.0.1:" + deploytest.FreePorts(t, 1)[0], actors: newActors(kind, groups),
	}
	config := fmt.Sprintf(`ingest:
  kafka:
    brokers: [%q]
    ready_lag: 0
    topics:
      - topic: %s
        %s
  dead_letters: {directory: %q}
checkpoint: {directory: %q}
alerts: {alertmanager: {urls: []}}
http: {listen: %q}
%s`, b.address, topic, kind.topic, filepath.Join(dir, "dead-letters"), filepath.Join(dir, "checkpoints"), m.address, strings.Join(more, "\n"))
	if err := os.WriteFile(m.config, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	return m
}

// read produces events and then runs the service until it has read them and, if there is one, until a condition holds. It
// ends with the stop of the service, which is part of the cost.
func (m *measured) read(t *testing.T, events int, done func() error) cost {
	t.Helper()
	m.actors.produce(t, m.broker, m.topic, events)
	c := cost{events: events}
	began := time.Now()
	process := m.run(t)
	process.until(t, "the topic is read", m.ready)
	c.took = time.Since(began)
	if done != nil {
		process.until(t, "the baselines are calibrated", done)
		c.took = time.Since(began)
	}
	c.mallocs = m.mallocs(t)
	process.stop(t)
	usage, _ := process.ProcessState.SysUsage().(*syscall.Rusage)
	c.cpu = process.ProcessState.UserTime() + process.ProcessState.SystemTime()
	c.rss = float64(usage.Maxrss << 10)
	return c
}

// run is one life of the service.
type run struct {
	*exec.Cmd
	log   bytes.Buffer
	ended chan error // by Wait
}

// run starts the service. It is killed at the end of the test if it still runs.
func (m *measured) run(t *testing.T) *run {
	t.Helper()
	r := &run{Cmd: exec.Command(m.binary, "run", "--config", m.config), ended: make(chan error, 1)}
	r.Dir, r.Stderr = filepath.Dir(m.config), &r.log
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { r.ended <- r.Wait() }()
	t.Cleanup(func() { _ = r.Process.Kill() })
	return r
}

// stop ends the service as its supervisor would.
func (r *run) stop(t *testing.T) {
	t.Helper()
	if err := r.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-r.ended; err != nil {
		t.Fatalf("stop the service: %v\n%s", err, &r.log)
	}
}

// until asks every 20 ms until check returns no error, for as long as a large fleet may take.
func (r *run) until(t *testing.T, what string, check func() error) {
	t.Helper()
	deadline, pause := time.NewTimer(time.Hour), time.NewTicker(20*time.Millisecond)
	defer deadline.Stop()
	defer pause.Stop()
	for err := check(); err != nil; err = check() {
		select {
		case <-pause.C:
		case <-deadline.C:
			t.Fatalf("%s: %v", what, err)
		case end := <-r.ended:
			t.Fatalf("%s: the service ended: %v\n%s", what, end, &r.log)
		}
	}
}

// ready returns an error until the service has read everything.
func (m *measured) ready() error {
	_, err := get("http://" + m.address + "/-/ready")
	return err
}

// calibrated returns an error until 19 groups in 20 have a baseline that is not provisional. A chance finding in a warm-up
// makes the rest collect longer.
func (m *measured) calibrated() error {
	var answer struct {
		Baselines []struct {
			ID          *string `json:"id"`
			Provisional bool    `json:"provisional"`
		} `json:"baselines"`
	}
	if err := getJSON("http://"+m.address+"/api/v1/baselines", &answer); err != nil {
		return err
	}
	final := 0
	for _, b := range answer.Baselines {
		if b.ID != nil && !b.Provisional {
			final++
		}
	}
	if final < m.groups*19/20 {
		return fmt.Errorf("%d of %d baselines", final, m.groups)
	}
	return nil
}

var mallocsTotal = regexp.MustCompile(`(?m)^go_memstats_mallocs_total (\S+)$`)

// mallocs returns how many objects the service has allocated.
func (m *measured) mallocs(t *testing.T) float64 {
	t.Helper()
	body, err := get("http://" + m.address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	found := mallocsTotal.FindSubmatch(body)
	if found == nil {
		t.Fatal("/metrics has no go_memstats_mallocs_total")
	}
	n, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// ends returns the offset behind the last record of each partition.
func (m *measured) ends(t *testing.T) (ends [trafficPartitions]int64) {
	t.Helper()
	for p := range ends {
		conn, err := kafka.DialLeader(t.Context(), "tcp", m.broker.address, m.topic, p)
		if err == nil {
			ends[p], err = conn.ReadLastOffset()
			_ = conn.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return ends
}

// bare is the cost of the bare loop over the whole topic.
func (m *measured) bare(t *testing.T) cost {
	t.Helper()
	return m.bareFrom(t, [trafficPartitions]int64{})
}

// bareFrom reads every message from the given offsets on into one buffer, one partition after another, and does nothing
// else: the least that reading this topic can cost.
func (m *measured) bareFrom(t *testing.T, from [trafficPartitions]int64) cost {
	t.Helper()
	var before, after syscall.Rusage
	ends, messages := m.ends(t), 0
	began := time.Now()
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &before); err != nil {
		t.Fatal(err)
	}
	for p := range from {
		n, err := m.drain(t.Context(), p, from[p], ends[p])
		if err != nil {
			t.Fatalf("read %s/%d: %v", m.topic, p, err)
		}
		messages += n
	}
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &after); err != nil {
		t.Fatal(err)
	}
	spent := func(r *syscall.Rusage) time.Duration { return time.Duration(r.Utime.Nano() + r.Stime.Nano()) }
	return cost{events: messages * m.actors.message, cpu: spent(&after) - spent(&before), took: time.Since(began)}
}

// drain reads a partition from one offset to another.
func (m *measured) drain(ctx context.Context, partition int, next, end int64) (messages int, err error) {
	conn, err := kafka.DialLeader(ctx, "tcp", m.broker.address, m.topic, partition)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if _, err := conn.Seek(next, kafka.SeekAbsolute); err != nil {
		return 0, err
	}
	buffer := make([]byte, 1<<20)
	for next < end {
		batch := conn.ReadBatchWith(kafka.ReadBatchConfig{MinBytes: 1, MaxBytes: 10 << 20, MaxWait: time.Second})
		for {
			if _, err := batch.Read(buffer); err != nil {
				break
			}
			if batch.Offset()-1 >= next { // a batch begins at the head of its record batch
				next = batch.Offset()
				messages++
			}
		}
		if err := batch.Close(); err != nil && !errors.Is(err, io.EOF) {
			return messages, err
		}
	}
	return messages, nil
}

// riverEvents are enough to measure so slow a loop.
const riverEvents = 20_000

// river is the cost of a consumer in Python that feeds the rewards of each policy to ADWIN and KSWIN of river. It returns
// false where river is not installed, and for what it cannot read.
func (m *measured) river(t *testing.T, from [trafficPartitions]int64) (cost, bool) {
	t.Helper()
	python := cmp.Or(os.Getenv("REWARDWATCH_PEERS_PYTHON"), filepath.Join(root, ".cache/venv-peers/bin/python"))
	if _, err := os.Stat(python); err != nil || m.actors.topic != "" || m.actors.message > 1 {
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

// row prints a cost beside that of the bare loop, and appends the ratio to the results.
func (m *measured) row(t *testing.T, state string, c, bare cost) {
	t.Helper()
	ratio := c.micros() / bare.micros()
	fmt.Fprintf(os.Stderr, "| %s | %d | %s | %.0f | %.2f | %.1f | %.2f | %.0f |\n", m.actors.name, m.groups, state,
		c.rate(), c.micros(), ratio, c.mallocs/float64(c.events), c.rss/(1<<20))
	if *throughputResult == "" || state == "bare loop" {
		return
	}
	f, err := os.OpenFile(*throughputResult, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.NewReplacer(" ", "-", ",", "").Replace(fmt.Sprintf("BenchmarkThroughput/%s/groups=%d/%s", m.actors.name, m.groups, state))
	_, err = fmt.Fprintf(f, "%s 1 %.3f x-bare-loop %.3f allocs/event %.0f RSS-bytes\n", name, ratio, c.mallocs/float64(c.events), c.rss)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}
