package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/detectors/bank"
)

// instance is one of several services inside the test.
type instance struct {
	*app
	stop func()

	mu  sync.Mutex
	log bytes.Buffer
}

// Write takes a line of the log.
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

// startInstance starts a service with a configuration, and waits until it has its partitions: the in-process broker keeps a
// member that ends while it joins for good.
func startInstance(t *testing.T, cfg Config, groups int) *instance {
	t.Helper()
	i := &instance{}
	dir := t.TempDir()
	cfg.Checkpoint.Directory, cfg.Ingest.DeadLetters.Directory = filepath.Join(dir, "checkpoints"), filepath.Join(dir, "dead-letters")
	ctx, cancel := context.WithCancel(t.Context())
	var err error
	if i.app, err = newApp(ctx, &cfg, func() error { return nil }, zerolog.New(i)); err != nil {
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
	eventually(t, "the groups", func() bool { return i.said("Partitions assigned") >= groups })
	return i
}

// fleets make the telemetry of policies that all drift, in four parts.
type fleets struct {
	of    []*fleet
	part  int
	ended int // episodes
	until time.Time
}

func newFleets(policies int) *fleets {
	all := &fleets{}
	for p := range policies {
		f := newFleet(uint64(30+p), 5)
		f.policy, f.every = fmt.Sprint("ranker-", p), 200*time.Microsecond
		all.of = append(all.of, f)
	}
	return all
}

// writing is how long it may take to write a part while it is read.
const writing = 10 * time.Second

// produce sends the next part, in the order of its time stamps, which begin behind the part before and so that none is
// late. What happens in it does not depend on them.
func (a *fleets) produce(t *testing.T, broker string) {
	t.Helper()
	if soon := time.Now().Add(writing); soon.After(a.until) {
		a.until = soon
	}
	from, sent := a.until, &fleet{}
	for _, f := range a.of {
		f.ts, f.lines, f.keys = from, nil, nil
		a.ended -= f.ended
		switch a.part {
		case 0:
			f.episodes(300)
		case 1:
			f.episodes(260)
		case 2:
			f.mean, f.shares, f.version = -1.1, [3]float64{.2, .3, .5}, "2"
			f.episodes(100)
		case 3:
			f.mean, f.shares, f.version = -.5, [3]float64{.5, .3, .2}, "3"
			f.episodes(250)
		}
		a.ended += f.ended
		if f.ts.After(a.until) {
			a.until = f.ts
		}
	}
	for line, more := 0, true; more; line++ {
		more = false
		for _, f := range a.of {
			if line < len(f.lines) {
				sent.lines, sent.keys, more = append(sent.lines, f.lines[line]), append(sent.keys, f.policy+f.keys[line]), true
			}
		}
	}
	a.part++
	sent.produce(t, broker, 0, len(sent.lines))
	if behind := time.Since(from); behind > watermarkDelay {
		t.Errorf("the machine is too slow: what was written last is late by %s", behind-watermarkDelay)
	}
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

// lateUnits reads the counter of an instance.
func lateUnits(t *testing.T, i *instance) float64 {
	t.Helper()
	families, err := i.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == MetricLateUnits {
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

// clusterConfig is a configuration on a broker of its own.
func clusterConfig(t *testing.T, partitions int32) Config {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Ingest.Kafka.Brokers = []string{startBroker(t, partitions)}
	watched := bank.DefaultConfig()
	watched.FalseAlarms.Per = bank.Per{Amount: 20000, Unit: bank.PerEpisodes}
	cfg.Policies = []PolicyConfig{{Match: "*", Config: watched}}
	cfg.Checkpoint.Every = model.Duration(time.Second)
	cfg.HTTP.Listen = "127.0.0.1:0"
	return cfg
}

// oneInstance has one instance judge all parts.
func oneInstance(t *testing.T, partitions int32, cluster ClusterConfig) verdict {
	t.Helper()
	cfg, f := clusterConfig(t, partitions), newFleets(4)
	cfg.Cluster = cluster
	for range 4 {
		f.produce(t, cfg.Ingest.Kafka.Brokers[0])
	}
	groups := 1
	if cluster.enabled() {
		groups = 2
	}
	i := startInstance(t, cfg, groups)
	eventually(t, "all units", func() bool { return unitsOf(i) == int64(f.ended) })
	v := verdictOf(t, lateUnits(t, i), i)
	i.stop()
	return v
}

// threeInstances judge together. One leaves after the first part, while the second is being written; another one joins after
// that, and one more leaves in the midst of the drift.
func threeInstances(t *testing.T, partitions int32, cluster ClusterConfig) verdict {
	t.Helper()
	cfg, f := clusterConfig(t, partitions), newFleets(4)
	cfg.Cluster = cluster
	late := 0.
	leave := func(i *instance) {
		late += lateUnits(t, i)
		i.stop()
	}
	f.produce(t, cfg.Ingest.Kafka.Brokers[0])
	a, b, c := startInstance(t, cfg, 2), startInstance(t, cfg, 2), startInstance(t, cfg, 2)
	judged := func(part string, instances ...*instance) {
		eventually(t, part, func() bool { return unitsOf(instances...) >= int64(f.ended)*9/10 })
		t.Logf("%s: %d of %d units", part, unitsOf(instances...), f.ended)
	}
	judged("the first part", a, b, c)
	leaving := make(chan struct{})
	go func() {
		defer close(leaving)
		leave(a)
	}()
	f.produce(t, cfg.Ingest.Kafka.Brokers[0])
	<-leaving
	d := startInstance(t, cfg, 2)
	judged("the second part", b, c, d)
	f.produce(t, cfg.Ingest.Kafka.Brokers[0])
	leave(b)
	judged("the third part", c, d)
	f.produce(t, cfg.Ingest.Kafka.Brokers[0])
	eventually(t, "all units", func() bool { return unitsOf(c, d) == int64(f.ended) })
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

// The same telemetry gives the same incidents and alarms, with the same ids, and the same units in every stream: over any
// number of partitions, to an instance that is alone, to one that writes its units to the topic, and to several that come
// and go.
func TestInstancesFindTogetherWhatOneFindsAlone(t *testing.T) {
	topics := ClusterConfig{UnitsTopic: "units", CheckpointsTopic: "checkpoints"}
	want := oneInstance(t, 1, ClusterConfig{})
	if len(want.Incidents) < 4 || len(want.Units) != 4*4 {
		t.Fatalf("alone it finds %s", want)
	}
	for _, partitions := range []int32{1, 3, 5} {
		for name, judge := range map[string]func(*testing.T) verdict{
			"alone":           func(t *testing.T) verdict { return oneInstance(t, partitions, ClusterConfig{}) },
			"over the topics": func(t *testing.T) verdict { return oneInstance(t, partitions, topics) },
			"several":         func(t *testing.T) verdict { return threeInstances(t, partitions, topics) },
		} {
			if partitions == 1 && name == "several" {
				continue // there is nothing to share
			}
			t.Run(fmt.Sprint(partitions, " partitions, ", name), func(t *testing.T) {
				t.Parallel()
				got := judge(t)
				if got.Late > 0 || !maps.Equal(got.Units, want.Units) || !maps.EqualFunc(got.Incidents, want.Incidents, slices.Equal) {
					t.Errorf("found %s\nwant %s", got, want)
				}
			})
		}
	}
}
