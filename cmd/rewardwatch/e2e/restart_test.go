//go:build e2e && throughput

package e2e

import (
	"bytes"
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	clientprometheus "github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/checkpoint"
)

var restartGroups = flag.Int("restart-groups", 10_000, "groups of TestRestart and TestTakeOver")

// TestRestart kills a service that judges a large fleet, and measures how long the next process takes.
func TestRestart(t *testing.T) {
	m := newMeasured(t, startBroker(t, ""), build(t), trafficNamed("one-step decisions"), newPopulation(*restartGroups))
	m.endow(t, m.copyBanks)
	m.produce(t, m.broker, m.topic, m.eventsOf(2))
	first := m.run(t)
	first.until(t, "the topic is read", m.ready)
	first.kill(t)
	m.produce(t, m.broker, m.topic, m.eventsOf(1))
	m.drift(t, policyName(0))

	began := time.Now()
	process := m.run(t)
	fmt.Fprintf(os.Stderr, "%d groups of %d policies, killed and started again:\n\n| | after | CPU |\n| --- | --- | --- |\n", m.groups(), m.policies)
	for _, step := range []struct {
		what  string
		check func() error
	}{
		{"`/-/healthy` answers", m.answers("/-/healthy")},
		{"restored", m.answers("/api/v1/incidents")},
		{"everything read, which is ready", m.ready},
		{"first incident", func() error { return m.incidentOf(policyName(0)) }},
	} {
		process.until(t, step.what, step.check)
		fmt.Fprintf(os.Stderr, "| %s | %s | %s |\n", step.what, time.Since(began).Round(10*time.Millisecond), process.spent(t))
	}
	process.stop(t)
	cpu, rss := process.used()
	fmt.Fprintf(os.Stderr, "\n%s of CPU with the stop, at most %.0f MiB\n", cpu.Round(10*time.Millisecond), rss/(1<<20))
}

// TestTakeOver kills one of two instances that judge a large fleet, and measures when the other one judges all of it.
func TestTakeOver(t *testing.T) {
	one := newMeasured(t, startBroker(t, ""), build(t), trafficNamed("one-step decisions"), newPopulation(*restartGroups),
		"cluster: {units_topic: units, checkpoints_topic: checkpoints}")
	one.endow(t, one.copyBanksInTopic)
	other := one.sibling(t)
	survivor := one.run(t)
	survivor.until(t, "one instance has all", one.ownsAll)
	victim := other.run(t)
	victim.until(t, "the two share the partitions", func() error { return other.shares(one) })
	one.produce(t, one.broker, one.topic, one.eventsOf(1))
	survivor.until(t, "one has read its partitions", one.ready)
	victim.until(t, "the other has read its partitions", other.ready)
	policy, err := other.firstPolicy()
	if err != nil {
		t.Fatal(err)
	}

	victim.kill(t)
	began := time.Now()
	one.produce(t, one.broker, one.topic, one.eventsOf(1))
	one.drift(t, policy)
	fmt.Fprintf(os.Stderr, "%d groups of %d policies, one of two instances killed:\n\n| | after |\n| --- | --- |\n", one.groups(), one.policies)
	survivor.until(t, "partitions taken over", one.assigned)
	fmt.Fprintf(os.Stderr, "| partitions assigned to the other, and restored | %s |\n", time.Since(began).Round(10*time.Millisecond))
	survivor.until(t, "everything judged", one.ownsAll)
	fmt.Fprintf(os.Stderr, "| everything read | %s |\n", time.Since(began).Round(10*time.Millisecond))
	survivor.until(t, "first incident", func() error { return one.incidentOf(policy) })
	fmt.Fprintf(os.Stderr, "| first incident of a policy of the one killed | %s |\n", time.Since(began).Round(10*time.Millisecond))
	survivor.stop(t)
}

// spent returns the CPU time that a process has used so far. Unlike elapsed time, it barely depends on what else is
// running.
func (r *run) spent(t *testing.T) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	ticks := 0
	for _, field := range fields[11:13] { // utime and stime
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * (time.Second / 100)
}

func trafficNamed(name string) traffic {
	return traffics[slices.IndexFunc(traffics, func(k traffic) bool { return k.name == name })]
}

// drift makes the first group of a policy lose reward.
func (m *measured) drift(t *testing.T, policy string) {
	t.Helper()
	client := m.writer(t, m.topic)
	defer client.Close()
	i := slices.IndexFunc(m.all, func(a actor) bool { return a.policy == policy })
	of := &m.all[i]
	var records []*kgo.Record
	for step := range 300 {
		e := moment{ts: int64(m.now) + int64(step), world: 42, policy: policy, env: of.env, agent: of.name, episode: of.episode + step, last: true, action: "offer_a", reward: -5 + float64(step%7)}
		records = append(records, &kgo.Record{Partition: int32(of.partition), Value: m.encode(nil, &e)})
	}
	of.episode += len(records)
	m.now += float64(len(records))
	if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// answers returns a check that a path responds with 200.
func (m *measured) answers(path string) func() error {
	return func() error {
		_, err := get("http://" + m.address + path)
		return err
	}
}

func (m *measured) incidentOf(policy string) error {
	body, err := get("http://" + m.address + "/api/v1/incidents")
	if err == nil && !bytes.Contains(body, []byte(`"policy":"`+policy+`"`)) {
		err = fmt.Errorf("no incident of %s", policy)
	}
	return err
}

// partitionsHeld returns the number of partitions of the telemetry and the units topic that are assigned to the
// instance.
func (m *measured) partitionsHeld() (int, error) {
	sums, err := m.sums(ingest.MetricPartitions, `kind="assigned"`)
	return int(sums), err
}

// assigned returns an error unless all partitions are assigned to the instance.
func (m *measured) assigned() error {
	held, err := m.partitionsHeld()
	if err == nil && held != 2*m.partitions {
		err = fmt.Errorf("%d partitions are assigned", held)
	}
	return err
}

// ownsAll returns an error unless the instance has read all partitions to their ends.
func (m *measured) ownsAll() error {
	if err := m.assigned(); err != nil {
		return err
	}
	return m.ready()
}

// shares returns an error unless both instances have partitions, and have read them.
func (m *measured) shares(with *measured) error {
	held, err := m.partitionsHeld()
	if err != nil {
		return err
	}
	rest, err := with.partitionsHeld()
	switch {
	case err != nil:
		return err
	case held == 0 || rest == 0 || held+rest != 2*m.partitions:
		return fmt.Errorf("%d and %d partitions are assigned", held, rest)
	}
	if err := m.ready(); err != nil {
		return err
	}
	return with.ready()
}

// firstPolicy returns a policy that the instance judges.
func (m *measured) firstPolicy() (string, error) {
	var answer struct {
		Baselines []struct {
			Policy string `json:"policy"`
		} `json:"baselines"`
	}
	err := getJSON("http://"+m.address+"/api/v1/baselines", &answer)
	if err == nil && len(answer.Baselines) == 0 {
		err = fmt.Errorf("%s judges no policy", m.address)
	}
	if err != nil {
		return "", err
	}
	return answer.Baselines[0].Policy, nil
}

// copyBanksInTopic saves the state of the first policies as that of others, each in the scope of its partition of the
// units topic, like the owner of that partition.
func (m *measured) copyBanksInTopic(t *testing.T, from, to int) {
	t.Helper()
	topic, err := checkpoint.OpenTopic(ingest.KafkaConfig{Brokers: []string{m.broker.address}}, "checkpoints", zerolog.Nop(), clientprometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	defer topic.Close()
	stores := make([]ingest.CheckpointStore, m.partitions)
	banks := map[string]savedBank{}
	for p := range stores {
		if stores[p], err = topic.Open(t.Context(), "units", int32(p), func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		for i := range from {
			if parts, err := stores[p].Load(engine.BankPrefix + policyName(i)); err == nil {
				banks[policyName(i)] = savedBank(parts)
			}
		}
	}
	for i := from; i < to; i++ {
		name := policyName(i)
		bank := banks[policyName(i%from)]
		if err := stores[unitPartition(name, m.partitions)].Save(engine.BankPrefix+name, bank.renamed(i%from, i), nil); err != nil {
			t.Fatal(err)
		}
	}
}

// unitPartition returns the partition of the units topic that holds a policy, as chosen by internal/cluster. A policy
// that is saved elsewhere is not found, and has no baseline.
func unitPartition(policy string, partitions int) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(policy))
	return int(h.Sum32() % uint32(partitions))
}
