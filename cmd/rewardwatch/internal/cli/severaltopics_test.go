package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/cluster"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/config"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
)

// stall is a shop whose decisions and clicks are in two topics. Robots report their episodes to the topic of the
// clicks.
type stall struct {
	t         *testing.T
	broker    string
	client    *kgo.Client
	decisions int
	more      int32  // number of partitions that the topic of the decisions got later
	apart     bool   // clicks are in other partitions than their decisions
	joinedBy  string // topic through which the service forwards them; empty for none
	every     string // interval between checkpoints
	dir       string // of the service
}

const stallPartitions = 2

func newStall(t *testing.T, broker string) *stall { return newStallWith(t, broker, stallPartitions) }

// newStallWith returns a stall with the given number of partitions for the clicks.
func newStallWith(t *testing.T, broker string, ofClicks int32) *stall {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	create := kmsg.NewPtrCreateTopicsRequest()
	for name, partitions := range map[string]int32{"decisions": stallPartitions, "clicks": ofClicks} {
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, partitions, 1
		create.Topics = append(create.Topics, topic)
	}
	if _, err := create.RequestWith(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	return &stall{t: t, broker: broker, client: client, every: "1s", dir: t.TempDir()}
}

// opened returns the time of the shop's first decision.
func opened() time.Time { return time.Now().Add(-6 * time.Hour).Truncate(time.Hour) }

// decide makes n decisions, one per second, and clicks on every third after ten seconds.
func (s *stall) decide(start time.Time, n int) {
	s.t.Helper()
	var records []*kgo.Record
	write := func(topic string, at time.Time, line string) {
		partition := int32(s.decisions % stallPartitions)
		if topic == "decisions" {
			partition = int32(s.decisions) % (stallPartitions + s.more)
		}
		if s.apart && topic == "clicks" {
			partition = stallPartitions - 1 - partition
		}
		records = append(records, &kgo.Record{Topic: topic, Partition: partition, Timestamp: at, Value: fmt.Appendf(nil, line, at.UnixNano()/1e6)})
	}
	for range n {
		at := start.Add(time.Duration(s.decisions) * time.Second)
		write("decisions", at, fmt.Sprintf(`{"policy":"shop","episode_id":"%d","agent_id":"web","action":"a","ts":%%d}`, s.decisions))
		if s.decisions%3 == 0 {
			write("clicks", at.Add(10*time.Second), fmt.Sprintf(`{"policy":"shop","episode_id":"%d","reward":1,"ts":%%d}`, s.decisions))
		}
		write("clicks", at, `{"policy":"robot","agent_id":"r","episode":{"r":1,"l":5},"ts":%d}`)
		s.decisions++
	}
	s.produce(records)
}

// lastKeys is a number of keys that suffices to reach all partitions of any topic here.
const lastKeys = 20

// end ends the windows of all decisions.
func (s *stall) end(start time.Time) {
	var records []*kgo.Record
	for key := range lastKeys {
		at := start.Add(time.Duration(s.decisions)*time.Second + 10*time.Minute)
		records = append(records, &kgo.Record{
			Topic: "decisions", Partition: int32(key % stallPartitions), Timestamp: at,
			Value: fmt.Appendf(nil, `{"policy":"shop","episode_id":"last-%d","agent_id":"web","action":"a","ts":%d}`, key, at.UnixNano()/1e6),
		})
	}
	s.produce(records)
}

func (s *stall) produce(records []*kgo.Record) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	if err := s.client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		s.t.Fatal(err)
	}
}

// config returns the configuration of a service that watches the stall.
func (s *stall) config() string {
	s.t.Helper()
	return testkit.WriteConfig(s.t, fmt.Sprintf(`
ingest:
  kafka: {brokers: [%q], topics: [{topic: decisions}, {topic: clicks}], repartition_topic: %q}
  dead_letters: {directory: %q}
checkpoint: {directory: %q, every: %s}
policies:
  - match: shop
    feedback: {key: episode_id, window: 1m, default: {reward: 0}}
  - match: "*"
http: {listen: "127.0.0.1:0"}
`, s.broker, s.joinedBy, filepath.Join(s.dir, "dead-letters"), s.checkpoints(), s.every))
}

func (s *stall) checkpoints() string { return filepath.Join(s.dir, "checkpoints") }

// read returns a topic of each consumer group of the service.
func (s *stall) read() []string {
	if s.joinedBy == "" {
		return []string{"decisions"}
	}
	return []string{"decisions", s.joinedBy}
}

// unitsByPolicy returns the number of units of each policy that the service has judged.
func (p *process) unitsByPolicy() map[string]int64 {
	var a struct {
		Streams []struct {
			Policy string `json:"policy"`
			Units  int64  `json:"units"`
		} `json:"streams"`
	}
	p.get("/api/v1/streams", &a)
	most := map[string]int64{}
	for _, s := range a.Streams {
		most[s.Policy] = max(most[s.Policy], s.Units)
	}
	return most
}

// testTwoTopics kills the service repeatedly while two topics are written: every decision and every episode is judged
// once.
func testTwoTopics(t *testing.T, s *stall, kills int) *process {
	start, file := opened(), s.config()
	s.decide(start, 200)
	p := startService(t, file)
	for range kills {
		before := s.decisions
		s.decide(start, 200)
		testkit.Eventually(t, "some of the decisions", func() bool { return p.unitsByPolicy()["shop"] > int64(before)/2 })
		p.killMember(t, s.read()...)
		p = startService(t, file)
	}
	s.decide(start, 200)
	s.end(start)
	want := int64(s.decisions)
	judged := func() bool {
		n := p.unitsByPolicy()
		return n["shop"] >= want && n["robot"] >= want
	}
	testkit.Eventually(t, "all decisions and episodes", judged)
	if n := p.unitsByPolicy(); n["shop"] != want || n["robot"] != want {
		t.Errorf("%v units, want %d of each", n, want)
	}
	return p
}

func TestTwoTopicsLoseNothingWhenKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	t.Parallel()
	testTwoTopics(t, newStall(t, startBroker(t, 1)), 2).interrupt(t)
}

// Two instances share two topics; one leaves in between.
func TestTwoInstancesShareTwoTopics(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	t.Parallel()
	testTwoInstances(t, newStall(t, startBroker(t, 1)))
}

func testTwoInstances(t *testing.T, s *stall) {
	start := opened()
	cfg, err := config.Load(s.config())
	if err != nil {
		t.Fatal(err)
	}
	groups := 2 // lines of the log
	if s.joinedBy != "" {
		groups = 4
	}
	cfg.Cluster = cluster.Config{UnitsTopic: "units", CheckpointsTopic: "checkpoints"}
	cfg.Checkpoint.Every = model.Duration(time.Second)
	s.decide(start, 200)
	a := startInstance(t, *cfg, groups)
	testkit.Eventually(t, "the first units", func() bool { return unitsOf(a) > 100 })
	b := startInstance(t, *cfg, groups)
	s.decide(start, 200)
	testkit.Eventually(t, "more units", func() bool { return unitsOf(a, b) > 400 })
	s.decide(start, 200)
	a.stop()
	s.decide(start, 200)
	s.end(start)
	want := 2 * int64(s.decisions) // decisions and episodes
	testkit.Eventually(t, "all units", func() bool { return unitsOf(b) >= want })
	if got := unitsOf(b); got != want {
		t.Errorf("%d units, want %d", got, want)
	}
}

// If clicks are in other partitions than their decisions, or in a topic with another number of partitions, a warning is
// logged.
func TestTopicsThatAreNotPartitionedAlikeAreTold(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	t.Parallel()
	broker := startBroker(t, 1)
	s, start := newStallWith(t, broker, stallPartitions+1), opened()
	s.apart = true
	s.decide(start, 3000)
	s.end(start)
	p := startService(t, s.config())
	testkit.Eventually(t, "the error of the numbers", func() bool {
		return p.said("decisions and feedback are joined by partition, but their topics have different numbers of partitions, so feedback is lost") > 0
	})
	testkit.Eventually(t, "the error of the keys", func() bool { return p.said("in different partitions") > 0 })
	_, text := p.fetch(t, "/metrics")
	if !regexp.MustCompile(`rewardwatch_feedback_lost_total\{decision="other_partition"\} [1-9]\d+`).MatchString(text) {
		t.Errorf("metrics\n%s", text)
	}
	p.interrupt(t)
}

// If both topics are partitioned alike, there is no warning.
func TestTopicsThatArePartitionedAlikeAreNotTold(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	t.Parallel()
	broker := startBroker(t, 1)
	s, start := newStall(t, broker), opened()
	s.decide(start, 3000)
	s.end(start)
	p := startService(t, s.config())
	testkit.Eventually(t, "all decisions", func() bool { return p.unitsByPolicy()["shop"] >= 3000 })
	if _, text := p.fetch(t, "/metrics"); p.said("different numbers")+p.said("in different partitions") > 0 ||
		!strings.Contains(text, `rewardwatch_feedback_lost_total{decision="other_partition"} 0`) {
		t.Errorf("metrics\n%s", text)
	}
	p.interrupt(t)
}
