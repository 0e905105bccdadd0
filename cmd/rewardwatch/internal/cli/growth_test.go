package cli

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/cluster"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/config"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

// live writes episodes as they happen, to all partitions that there are.
func live(t *testing.T, broker *ingesttest.Broker, growAt int, episodes int) (ended int) {
	t.Helper()
	partitions, ts := int32(4), time.Time{}
	rng := rand.New(rand.NewPCG(77, 1))
	pace := time.NewTicker(10 * time.Millisecond)
	defer pace.Stop()
	for ended < episodes {
		<-pace.C
		if partitions == 4 && ended >= growAt {
			if err := broker.Grow(t.Context(), 8); err != nil {
				t.Fatal(err)
			}
			partitions = 8
		}
		for range 8 {
			mean := 0.
			if ended >= growAt {
				mean = -2
			}
			if now := time.Now(); now.After(ts) { // the clock just before it is written, or it may come too late
				ts = now
			} else {
				ts = ts.Add(time.Nanosecond)
			}
			value := fmt.Appendf(nil, `{"policy":"ranker","agent_id":"a-%d","episode_id":"%d","episode":{"r":%g,"l":10},"ts":%q}`,
				ended%16, ended, mean+rng.NormFloat64(), ts.Format(time.RFC3339Nano))
			if err := broker.Produce(t.Context(), int32(ended)%partitions, value); err != nil {
				t.Fatal(err)
			}
			ended++
		}
	}
	return ended
}

// judgedInOrder has a service judge what is written while the topic gets partitions.
func judgedInOrder(t *testing.T, cluster cluster.Config, growAt int) (verdict, config.Config, *ingesttest.Broker) {
	t.Helper()
	cfg := clusterConfig(t, 1)
	broker, err := ingesttest.Start(4, cfg.Ingest.Kafka.Topic)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	cfg.Ingest.Kafka.Brokers, cfg.Cluster = broker.Addrs(), cluster
	groups := 1
	if cluster.Enabled() {
		groups = 2
	}
	i := startInstance(t, cfg, groups)
	ended := live(t, broker, growAt, 2000)
	testkit.Eventually(t, "all units", func() bool { return unitsOf(i) == int64(ended) })
	v := verdictOf(t, lateUnits(t, i), i)
	i.stop()
	return v, cfg, broker
}

// While episodes are written, the topic gets partitions just as the policy drifts: the alarms are those of a service that reads
// everything afterwards.
func TestPartitionsAddedUnderWayChangeNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	t.Parallel()
	topics := cluster.Config{UnitsTopic: "units", CheckpointsTopic: "checkpoints"}
	for name, c := range map[string]struct {
		cluster cluster.Config
		growAt  int
	}{
		"alone":                  {cluster.Config{}, 1200},
		"alone, another phase":   {cluster.Config{}, 1550},
		"over the topics":        {topics, 1200},
		"over them, later phase": {topics, 1550},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, cfg, broker := judgedInOrder(t, c.cluster, c.growAt)
			cfg.Cluster, cfg.Ingest.Kafka.Group = cluster.Config{}, "afterwards"
			i := startInstance(t, cfg, 1)
			testkit.Eventually(t, "all units afterwards", func() bool { return unitsOf(i) == int64(2000) })
			want := verdictOf(t, 0, i)
			i.stop()
			_ = broker
			if len(want.Incidents) == 0 {
				t.Fatal("no incident")
			}
			if got.Late > 0 || !maps.Equal(got.Units, want.Units) || !maps.EqualFunc(got.Incidents, want.Incidents, slices.Equal) {
				t.Errorf("found %s\nwant %s", got, want)
			}
		})
	}
}
