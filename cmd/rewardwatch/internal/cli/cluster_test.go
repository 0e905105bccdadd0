package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/app"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/cluster"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/config"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/names"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/kafkalog"
	"github.com/rewardwatch/rewardwatch/ingest/order"
)

// instance is one of several services inside the test.
type instance struct {
	*app.App
	stop func()

	mu  sync.Mutex
	log bytes.Buffer
}

// Write receives a line of the log.
func (i *instance) Write(line []byte) (int, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.log.Write(line)
}

func (i *instance) said(text string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return strings.Count(i.log.String(), text)
}

// startInstance starts a service with a configuration, and waits until it has its partitions: the in-process broker
// keeps a member that ends while joining forever.
func startInstance(t *testing.T, cfg config.Config, groups int) *instance {
	t.Helper()
	i := &instance{}
	dir := t.TempDir()
	cfg.Checkpoint.Directory, cfg.Ingest.DeadLetters.Directory = filepath.Join(dir, "checkpoints"), filepath.Join(dir, "dead-letters")
	ctx, cancel := context.WithCancel(t.Context())
	var err error
	if i.App, err = app.New(ctx, &cfg, func() error { return nil }, zerolog.New(i)); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- i.Run(ctx) }()
	var once sync.Once
	i.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("an instance ended with %v", err)
			}
			if t.Failed() {
				t.Log(i.log.String())
			}
		})
	}
	t.Cleanup(i.stop)
	testkit.Eventually(t, "the groups", func() bool { return i.said("partitions assigned") >= groups })
	return i
}

// fleets holds the telemetry of policies that all drift, in four parts.
type fleets struct {
	parts []fleet
	ended int // number of episodes of the parts that were sent
	until time.Time
}

// stepEvery is the time between two steps of a policy.
const stepEvery = 200 * time.Microsecond

func newFleets(policies int) *fleets {
	all := &fleets{parts: make([]fleet, 4)}
	for p := range policies {
		f := newFleet(uint64(30+p), 5)
		f.policy = fmt.Sprint("ranker-", p)
		for i, drive := range []func(){
			func() { f.episodes(300) },
			func() { f.episodes(260) },
			func() {
				f.mean, f.shares, f.version = -1.1, [3]float64{.2, .3, .5}, "2"
				f.episodes(100)
			},
			func() {
				f.mean, f.shares, f.version = -.5, [3]float64{.5, .3, .2}, "3"
				f.episodes(250)
			},
		} {
			before := f.ended
			f.lines, f.keys = nil, nil
			drive()
			part := &all.parts[i]
			part.ended += f.ended - before
			for n, line := range f.lines {
				part.lines, part.keys = append(part.lines, line), append(part.keys, fmt.Sprintf("%06d %s %s", n, f.policy, f.keys[n]))
			}
		}
	}
	return all
}

// writing is the maximum time to write a part while it is read.
const writing = 20 * time.Second

// produce sends the next part in the order of its timestamps. The timestamps are shifted to be after those of the
// preceding part and at least ahead from now; what happens in a part does not depend on them. produce returns the first
// timestamp. Units wait for the time of their timestamps: a part that is written before anything reads it needs no
// ahead, but one that is written while it is read needs the time for writing, or later units are out of order.
func (a *fleets) produce(t *testing.T, broker string, ahead time.Duration) (from time.Time) {
	t.Helper()
	part := &a.parts[0]
	a.parts = a.parts[1:]
	a.ended += part.ended
	if soon := time.Now().Add(ahead); soon.After(a.until) {
		a.until = soon
	}
	from = a.until
	order := make([]int, len(part.lines))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return strings.Compare(part.keys[i], part.keys[j]) })
	sent := &fleet{}
	for _, i := range order {
		number, agent, _ := strings.Cut(part.keys[i], " ")
		n, err := strconv.Atoi(number)
		if err != nil {
			t.Fatal(err)
		}
		ts := from.Add(time.Duration(n) * stepEvery)
		body := part.lines[i][:bytes.LastIndex(part.lines[i], []byte(`"ts":`))] // the last field
		sent.lines, sent.keys = append(sent.lines, fmt.Appendf(nil, `%s"ts":%q}`, body, ts.Format(time.RFC3339Nano))), append(sent.keys, agent)
		a.until = ts.Add(stepEvery)
	}
	sent.produce(t, broker, 0, len(sent.lines))
	return from
}

// verdict is what services have found: incidents with their alarms, and the units of each stream.
type verdict struct {
	Incidents map[string][]string
	Units     map[string]int64
	Late      float64
}

func verdictOf(t *testing.T, late float64, instances ...*instance) verdict {
	t.Helper()
	v := verdict{Incidents: map[string][]string{}, Units: map[string]int64{}, Late: late}
	for _, i := range instances {
		for _, incident := range i.Incidents() {
			for _, a := range incident.Alarms {
				v.Incidents[incident.ID] = append(v.Incidents[incident.ID], a.ID)
			}
			slices.Sort(v.Incidents[incident.ID])
		}
		for _, s := range i.Summaries() {
			for _, g := range s.Groups {
				for _, stream := range g.Streams {
					v.Units[fmt.Sprint(g.Group, " ", stream.Signal)] += g.Units
				}
			}
		}
	}
	return v
}

// lateUnits returns the counter of an instance.
func lateUnits(t *testing.T, i *instance) float64 {
	t.Helper()
	families, err := i.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == names.MetricLateUnits {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatal("no counter of late units")
	return 0
}

func unitsOf(instances ...*instance) int64 {
	n := int64(0)
	for _, i := range instances {
		for _, s := range i.Summaries() {
			for _, g := range s.Groups {
				n += g.Units
			}
		}
	}
	return n
}

func (v verdict) String() string {
	text, _ := json.MarshalIndent(v, "", " ")
	return string(text)
}

// clusterConfig returns a configuration with a separate broker.
func clusterConfig(t *testing.T, partitions int32) config.Config {
	t.Helper()
	cfg := config.Default()
	cfg.Ingest.Kafka.Brokers = []string{startBroker(t, partitions)}
	watched := watch.DefaultConfig()
	watched.FalseAlarms.Per = watch.Per{Amount: 20000, Unit: watch.PerEpisodes}
	cfg.Policies = []engine.PolicyConfig{{Match: "*", Config: watched}}
	cfg.Checkpoint.Every = model.Duration(time.Second)
	cfg.HTTP.Listen = "127.0.0.1:0"
	return cfg
}

// oneInstance lets one instance judge all parts.
func oneInstance(t *testing.T, partitions int32, cluster cluster.Config) verdict {
	t.Helper()
	cfg, f := clusterConfig(t, partitions), newFleets(4)
	cfg.Cluster = cluster
	for range 4 {
		f.produce(t, cfg.Ingest.Kafka.Brokers[0], 0)
	}
	groups := 1
	if cluster.Enabled() {
		groups = 2
	}
	i := startInstance(t, cfg, groups)
	testkit.Eventually(t, "all units", func() bool { return unitsOf(i) == int64(f.ended) })
	v := verdictOf(t, lateUnits(t, i), i)
	i.stop()
	return v
}

// threeInstances judges with three instances. One leaves after the first part, while the second is being written;
// another one joins after that, and one more leaves during the drift.
func threeInstances(t *testing.T, partitions int32, cluster cluster.Config) verdict {
	t.Helper()
	cfg, f := clusterConfig(t, partitions), newFleets(4)
	cfg.Cluster = cluster
	late := 0.
	leave := func(i *instance) {
		late += lateUnits(t, i)
		i.stop()
	}
	inTime := func() {
		from := f.produce(t, cfg.Ingest.Kafka.Brokers[0], writing)
		if behind := time.Since(from); behind > order.WatermarkDelay {
			t.Errorf("the machine is too slow: what was written while it was read came too late by %s", behind-order.WatermarkDelay)
		}
	}
	f.produce(t, cfg.Ingest.Kafka.Brokers[0], 0)
	a, b, c := startInstance(t, cfg, 2), startInstance(t, cfg, 2), startInstance(t, cfg, 2)
	judged := func(part string, instances ...*instance) {
		testkit.Eventually(t, part, func() bool { return unitsOf(instances...) >= int64(f.ended)*9/10 })
		t.Logf("%s: %d of %d units", part, unitsOf(instances...), f.ended)
	}
	judged("the first part", a, b, c)
	leaving := make(chan struct{})
	go func() {
		defer close(leaving)
		leave(a)
	}()
	inTime()
	<-leaving
	d := startInstance(t, cfg, 2)
	judged("the second part", b, c, d)
	inTime()
	leave(b)
	judged("the third part", c, d)
	inTime()
	testkit.Eventually(t, "all units", func() bool { return unitsOf(c, d) == int64(f.ended) })
	for _, i := range []*instance{c, d} {
		late += lateUnits(t, i)
		if n := len(i.Summaries()); n == 4 {
			t.Error("one instance judges all policies")
		}
	}
	v := verdictOf(t, late, c, d)
	leave(c)
	leave(d)
	return v
}

// The same telemetry leads to the same incidents and alarms, with the same IDs, and to the same units in every stream:
// over any number of partitions, with a single instance, with one that writes its units to the topic, and with several
// that join and leave. Only the last case runs under the race detector.
func TestInstancesFindTogetherWhatOneFindsAlone(t *testing.T) {
	findTogether(t, map[int32][]string{3: {"several"}})
}

func TestSimInstancesFindTogetherOnOtherPartitions(t *testing.T) {
	findTogether(t, map[int32][]string{
		1: {"alone", "over the topics"}, 3: {"alone", "over the topics"}, 5: {"alone", "over the topics", "several"},
	})
}

// findTogether compares the findings of instances of some kinds, on topics with some numbers of partitions, with those
// of one instance on a single partition.
func findTogether(t *testing.T, fleets map[int32][]string) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	t.Parallel()
	topics := cluster.Config{UnitsTopic: "units", CheckpointsTopic: "checkpoints"}
	judge := map[string]func(*testing.T, int32) verdict{
		"alone":           func(t *testing.T, n int32) verdict { return oneInstance(t, n, cluster.Config{}) },
		"over the topics": func(t *testing.T, n int32) verdict { return oneInstance(t, n, topics) },
		"several":         func(t *testing.T, n int32) verdict { return threeInstances(t, n, topics) },
	}
	want := judge["alone"](t, 1)
	if len(want.Incidents) < 4 || len(want.Units) != 4*4 {
		t.Fatalf("alone it finds %s", want)
	}
	for partitions, kinds := range fleets {
		for _, kind := range kinds {
			t.Run(fmt.Sprint(partitions, " partitions, ", kind), func(t *testing.T) {
				t.Parallel()
				got := judge[kind](t, partitions)
				if got.Late > 0 || !maps.Equal(got.Units, want.Units) || !maps.EqualFunc(got.Incidents, want.Incidents, slices.Equal) {
					t.Errorf("found %s\nwant %s", got, want)
				}
			})
		}
	}
}

// Regardless of which instance is asked to forget a policy, the one that judges it does, and all others continue.
func TestAnyInstanceForgetsForAll(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	t.Parallel()
	cfg, f := clusterConfig(t, 3), newFleets(4)
	cfg.Cluster = cluster.Config{UnitsTopic: "units", CheckpointsTopic: "checkpoints"}
	f.produce(t, cfg.Ingest.Kafka.Brokers[0], 0)
	a, b := startInstance(t, cfg, 2), startInstance(t, cfg, 2)
	testkit.Eventually(t, "all units", func() bool { return unitsOf(a, b) == int64(f.ended) })
	judges := func(i *instance) (names []string) {
		for _, s := range i.Summaries() {
			names = append(names, s.Policy)
		}
		return names
	}
	if len(judges(a)) == 0 || len(judges(b)) == 0 || len(judges(a))+len(judges(b)) != 4 {
		t.Fatalf("one judges %v, the other %v", judges(a), judges(b))
	}
	decision := testkit.DecisionOf("reset", time.Time{})
	for asked, policy := range map[*instance]string{a: judges(b)[0], b: judges(a)[0]} {
		if pending, err := asked.Server.Orders.Forget(t.Context(), policy, decision); err != nil || !pending {
			t.Fatalf("%v, %v", pending, err)
		}
	}
	testkit.Eventually(t, "two policies are left", func() bool { return len(judges(a))+len(judges(b)) == 2 })
	if n := a.said("forgetting a policy on all instances, as requested") + b.said("forgetting a policy on all instances, as requested"); n != 2 {
		t.Errorf("the log tells of it %d times", n)
	}
	left := append(judges(a), judges(b)...)
	for _, i := range []*instance{a, b} {
		for _, policy := range judges(i) {
			if _, err := i.Server.Orders.Forget(t.Context(), policy+"-unknown", decision); err != nil && !errors.Is(err, engine.ErrUnknownPolicy) {
				t.Error(err)
			}
		}
	}
	f.produce(t, cfg.Ingest.Kafka.Brokers[0], writing) // the forgotten policies start again
	testkit.Eventually(t, "units of four policies again", func() bool {
		all := append(a.Summaries(), b.Summaries()...)
		return len(all) == 4 && !slices.ContainsFunc(all, func(s *finding.Summary) bool { return len(s.Groups) == 0 })
	})
	for _, i := range []*instance{a, b} {
		for _, s := range i.Summaries() {
			kept, units := slices.Contains(left, s.Policy), s.Groups[0].Units
			if kept != (units >= 300) {
				t.Errorf("%s: kept %v, %d units", s.Policy, kept, units)
			}
		}
	}
	a.stop()
	b.stop()
}

// If an existing units topic would lose data, that is an error or a warning, with the command that repairs it.
func TestUnitsTopicsThatAreUnfit(t *testing.T) {
	t.Parallel()
	cfg := ingest.DefaultKafkaConfig()
	cfg.Brokers = []string{startBroker(t, 1)}
	for topic, c := range map[string]struct {
		settings map[string]string
		err, log string
	}{
		"plain":      {},
		"compacting": {map[string]string{"cleanup.policy": "compact,delete"}, "--entity-name compacting --add-config cleanup.policy=delete", ""},
		"small":      {map[string]string{"max.message.bytes": "524288"}, "--entity-name small --add-config max.message.bytes=1048576", ""},
		"short":      {map[string]string{"retention.ms": "3600000"}, "", "--entity-name short --add-config retention.ms=604800000"},
		"for ever":   {map[string]string{"retention.ms": "-1"}, "", ""},
	} {
		topic = strings.ReplaceAll(topic, " ", "-")
		l, err := kafkalog.Open(cfg, topic, zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Make(t.Context(), 1, c.settings); err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		units := &cluster.Cluster{Kafka: cfg, UnitsTopic: topic, Units: l, Log: zerolog.New(&said)}
		_, err = units.UnitsPartitions(t.Context())
		if (err != nil) != (c.err != "") || err != nil && (!errors.Is(err, cluster.ErrUnitsTopicUnfit) || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %v, want %q", topic, err, c.err)
		}
		if (said.Len() > 0) != (c.log != "") || !strings.Contains(said.String(), c.log) {
			t.Errorf("%s: says %q, want %q", topic, said.String(), c.log)
		}
		_ = l.Close()
	}
}
