//go:build e2e && throughput

package e2e

import (
	"bytes"
	"context"
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

	clientprometheus "github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/segmentio/kafka-go"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/names"
	"github.com/rewardwatch/rewardwatch/deploy/deploytest"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/checkpoint"
)

// cost is what it took to read a number of events.
type cost struct {
	events  int
	cpu     time.Duration // user and system, of the whole process
	took    time.Duration
	mallocs float64
	rss     float64 // the maximum, in bytes
}

// less returns the cost minus that of a run that read nothing.
func (c cost) less(idle cost) cost {
	c.cpu, c.mallocs = c.cpu-idle.cpu, c.mallocs-idle.mallocs
	return c
}

// rate returns the number of events per second.
func (c cost) rate() float64 { return float64(c.events) / c.took.Seconds() }

func (c cost) micros() float64 { return float64(c.cpu.Nanoseconds()) / 1e3 / float64(c.events) }

// measured is one service that reads one topic, run several times.
type measured struct {
	*broker
	*actors
	binary, dir, address, topic string
	settings                    []string // additional lines of configuration
}

// patienceOfBenchmarks is the maximum time that a fleet may take to reach a state.
var patienceOfBenchmarks = flag.Duration("patience", time.Hour, "how long a benchmark waits for a step of the service")

// largeFleet is a number of groups with more streams than the default limits allow, which are therefore raised.
const largeFleet = 2000

// newMeasured creates the topic, and the configuration of the service that reads it: the default one, except that the
// service is ready only when it has read everything, and that a large fleet is within its limits. more holds additional
// lines of configuration.
func newMeasured(t *testing.T, b *broker, binary string, kind traffic, f population, more ...string) *measured {
	t.Helper()
	m := &measured{
		broker: b, binary: binary, topic: "traffic-" + regexp.MustCompile(`\W+`).ReplaceAllString(t.Name(), "-"),
		actors: newActors(kind, f), settings: append(more, kind.config),
	}
	if f.groups() > largeFleet {
		m.settings = append(m.settings, "limits: {streams: 1000000, memory: 12GiB}")
	}
	b.createTopic(t, m.topic, f.partitions)
	m.configure(t)
	return m
}

// sibling returns another instance of the cluster that the settings describe.
func (m *measured) sibling(t *testing.T) *measured {
	t.Helper()
	s := *m
	s.configure(t)
	return &s
}

// configure writes the configuration to a new directory.
func (m *measured) configure(t *testing.T) {
	t.Helper()
	m.dir, m.address = t.TempDir(), "127.0.0.1:"+deploytest.FreePorts(t, 1)[0]
	config := fmt.Sprintf(`ingest:
  kafka:
    brokers: [%q]
    group: %s
    ready_lag: 0
    topics:
      - topic: %[2]s
        %[3]s
  dead_letters: {directory: %q}
checkpoint: {directory: %q}
alerts: {alertmanager: {urls: []}}
http: {listen: %q}
%s`, m.broker.address, m.topic, m.traffic.topic, filepath.Join(m.dir, "dead-letters"), m.checkpoints(), m.address, strings.Join(m.settings, "\n"))
	if err := os.WriteFile(m.config(), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (m *measured) config() string      { return filepath.Join(m.dir, "rewardwatch.yml") }
func (m *measured) checkpoints() string { return filepath.Join(m.dir, "checkpoints") }

// baselineUnits is a number of units that suffices for a group's baselines.
const baselineUnits = 520

// endow gives a fleet its baselines: some policies collect and calibrate them, and their state is copied for the
// others. The fleet continues from there.
func (m *measured) endow(t *testing.T, copyBanks func(t *testing.T, from, to int)) {
	t.Helper()
	whole, few := m.actors, newActors(m.traffic, m.fewest())
	few.rate *= float64(few.groups()) / float64(whole.groups()) // a group is equally busy before and after
	m.actors = few
	m.read(t, few.eventsOf(baselineUnits), m.calibrated)
	copyBanks(t, few.policies, whole.policies)
	whole.now = few.now
	for i := range whole.all {
		whole.all[i].episode = 1_000_000 // otherwise the episodes of the few would recur
	}
	m.actors = whole
	m.read(t, whole.eventsOf(1), m.endowed)
}

// copyBanks saves the state of the first policies as that of others.
func (m *measured) copyBanks(t *testing.T, from, to int) {
	t.Helper()
	directory, err := checkpoint.NewDirectory(m.checkpoints())
	if err != nil {
		t.Fatal(err)
	}
	store := checkpoint.NewStore(directory, zerolog.Nop(), clientprometheus.NewRegistry())
	for i := from; i < to; i++ {
		bank := loadBank(t, store, i%from)
		if err := store.Save(engine.BankPrefix+policyName(i), bank.renamed(i%from, i), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := directory.Close(); err != nil {
		t.Fatal(err)
	}
}

// savedBank is the part of a checkpoint for a policy.
type savedBank ingest.Parts

func loadBank(t *testing.T, store ingest.CheckpointStore, policy int) savedBank {
	t.Helper()
	parts, err := store.Load(engine.BankPrefix + policyName(policy))
	if err != nil {
		t.Fatal(err)
	}
	return savedBank(parts)
}

// renamed returns the state as that of another policy, whose name has the same length.
func (b savedBank) renamed(from, to int) ingest.Parts {
	parts := ingest.Parts{}
	for name, part := range b {
		parts[strings.ReplaceAll(name, policyName(from), policyName(to))] = bytes.ReplaceAll(part, []byte(policyName(from)), []byte(policyName(to)))
	}
	return parts
}

// read produces events and then runs the service until it has read them and, if done is not nil, until done returns no
// error. It ends by stopping the service, which is part of the cost.
func (m *measured) read(t *testing.T, events int, done func() error) cost {
	t.Helper()
	m.produce(t, m.broker, m.topic, events)
	c := cost{events: events}
	began := time.Now()
	process := m.run(t)
	process.until(t, "the topic is read", m.ready)
	c.took = time.Since(began)
	if done != nil {
		process.until(t, "the baselines are calibrated", done)
		c.took = time.Since(began)
	}
	c.mallocs = m.sum(t, "go_memstats_mallocs_total")
	process.stop(t)
	c.cpu, c.rss = process.used()
	return c
}

// run is one process of the service.
type run struct {
	*exec.Cmd
	log   bytes.Buffer
	ended chan error // receives the result of Wait
}

// run starts the service. If it is still running at the end of the test, it is killed.
func (m *measured) run(t *testing.T) *run {
	t.Helper()
	r := &run{Cmd: exec.Command(m.binary, "run", "--config", m.config()), ended: make(chan error, 1)}
	r.Dir, r.Stderr = m.dir, &r.log
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
	select {
	case err := <-r.ended:
		if err != nil {
			t.Fatalf("stop the service: %v\n%s", err, &r.log)
		}
	case <-time.After(5 * time.Minute): // for a large fleet under load
		t.Fatalf("the service does not stop\n%s", &r.log)
	}
}

// kill ends the service as a power cut would.
func (r *run) kill(t *testing.T) {
	t.Helper()
	if err := r.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-r.ended; err == nil {
		t.Fatalf("the service had ended by itself\n%s", &r.log)
	}
}

// used returns the CPU time and the peak memory, in bytes, of a process that has ended.
func (r *run) used() (cpu time.Duration, rss float64) {
	usage, _ := r.ProcessState.SysUsage().(*syscall.Rusage)
	return r.ProcessState.UserTime() + r.ProcessState.SystemTime(), float64(usage.Maxrss << 10)
}

// until calls check every 20 ms until it returns no error, for at most as long as a large fleet may take.
func (r *run) until(t *testing.T, what string, check func() error) {
	t.Helper()
	deadline, pause := time.NewTimer(*patienceOfBenchmarks), time.NewTicker(20*time.Millisecond)
	defer deadline.Stop()
	defer pause.Stop()
	for err := check(); err != nil; err = check() {
		select {
		case <-pause.C:
		case <-deadline.C:
			t.Fatalf("%s: %v\n%s", what, err, &r.log)
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

// calibrated returns an error until 19 of 20 groups have a baseline that is not provisional. In the rest, a chance
// finding during the warm-up may prolong the collection.
func (m *measured) calibrated() error {
	final, _, err := m.baselines()
	if want := (m.groups()*19 + 19) / 20; err == nil && final < want {
		err = fmt.Errorf("%d baselines, and not %d", final, want)
	}
	return err
}

// endowed returns an error unless the groups of the fleet have baselines, and there are no other groups.
func (m *measured) endowed() error {
	final, groups, err := m.baselines()
	if err == nil && (final < m.groups()*19/20 || groups != m.groups()) {
		err = fmt.Errorf("%d groups have %d baselines, and not %d", groups, final, m.groups())
	}
	return err
}

// baselines returns the number of baselines that are not provisional, and the number of groups.
func (m *measured) baselines() (final, groups int, err error) {
	accepted, err := m.sums(names.MetricGroups, `baseline="accepted"`)
	if err != nil {
		return 0, 0, err
	}
	all, err := m.sums(names.MetricGroups, "")
	return int(accepted), int(all), err
}

// sum returns the sum of all series of a metric.
func (m *measured) sum(t *testing.T, metric string) float64 {
	t.Helper()
	sum, err := m.sums(metric, "")
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// sums returns the sum of the series of a metric that have a label.
func (m *measured) sums(metric, label string) (sum float64, err error) {
	body, err := get("http://" + m.address + "/metrics")
	if err != nil {
		return 0, err
	}
	return sumIn(body, metric, label)
}

// sumIn returns the sum of the series of a scrape that have a label.
func sumIn(body []byte, metric, label string) (sum float64, err error) {
	for _, found := range regexp.MustCompile(`(?m)^`+metric+`(?:\{.*\})? (\S+)$`).FindAllSubmatch(body, -1) {
		if !bytes.Contains(found[0], []byte(label)) {
			continue
		}
		n, err := strconv.ParseFloat(string(found[1]), 64)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// ends returns the offset after the last record of each partition.
func (m *measured) ends(t *testing.T) []int64 {
	t.Helper()
	ends := make([]int64, m.partitions)
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

// bare returns the cost of the bare loop over the whole topic.
func (m *measured) bare(t *testing.T) cost {
	t.Helper()
	return m.bareFrom(t, make([]int64, m.partitions))
}

// bareFrom reads every message from the given offsets on into one buffer, one partition after another, and does nothing
// else: the minimum cost of reading this topic.
func (m *measured) bareFrom(t *testing.T, from []int64) cost {
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
	return cost{events: messages * m.message, cpu: spent(&after) - spent(&before), took: time.Since(began)}
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
