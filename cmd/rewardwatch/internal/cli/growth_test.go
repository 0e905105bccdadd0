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
	"github.com/rewardwatch/rewardwatch/ingest/order"
)

// live writes episodes in real time, to all existing partitions. It returns the maximum time that an episode took to be
// written: on a busy machine, it may arrive too late to be judged in order.
func live(t *testing.T, broker *ingesttest.Broker, growAt int, episodes int) (slowest time.Duration) {
	t.Helper()
	partitions, ts := int32(4), time.Time{}
	rng := rand.New(rand.NewPCG(77, 1))
	pace := time.NewTicker(10 * time.Millisecond)
	defer pace.Stop()
	for ended := 0; ended < episodes; {
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
			if now := time.Now(); now.After(ts) { // the current time right before writing, or it may arrive too late
				ts = now
			} else {
				ts = ts.Add(time.Nanosecond)
			}
			value := fmt.Appendf(nil, `{"policy":"ranker","agent_id":"a-%d","episode_id":"%d","episode":{"r":%g,"l":10},"ts":%q}`,
				ended%16, ended, mean+rng.NormFloat64(), ts.Format(time.RFC3339Nano))
			if err := broker.Produce(t.Context(), int32(ended)%partitions, value); err != nil {
				t.Fatal(err)
			}
			slowest = max(slowest, time.Since(ts))
			ended++
		}
	}
	return slowest
}

// judgedInOrder lets a service judge what is written while the topic gets partitions. It repeats this once if the
// machine could not write in time.
func judgedInOrder(t *testing.T, cluster cluster.Config, growAt int) (verdict, config.Config) {
	t.Helper()
	for {
		v, cfg, slowest := judgedAsWritten(t, cluster, growAt)
		if slowest < order.WatermarkDelay/2 {
			return v, cfg
		}
		t.Logf("an episode was written after %s", slowest)
	}
}

func judgedAsWritten(t *testing.T, cluster cluster.Config, growAt int) (verdict, config.Config, time.Duration) {
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
	const episodes = 2000
	slowest := live(t, broker, growAt, episodes)
	testkit.Eventually(t, "all units", func() bool { return unitsOf(i) == episodes })
	v := verdictOf(t, lateUnits(t, i), i)
	i.stop()
	return v, cfg, slowest
}

// If the topic gets partitions while episodes are written and the policy drifts, the alarms are those of a service that
// reads everything afterwards.
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
			got, cfg := judgedInOrder(t, c.cluster, c.growAt)
			cfg.Cluster, cfg.Ingest.Kafka.Group = cluster.Config{}, "afterwards"
			i := startInstance(t, cfg, 1)
			testkit.Eventually(t, "all units afterwards", func() bool { return unitsOf(i) == int64(2000) })
			want := verdictOf(t, 0, i)
			i.stop()
			if len(want.Incidents) == 0 {
				t.Fatal("no incident")
			}
			if got.Late > 0 || !maps.Equal(got.Units, want.Units) || !maps.EqualFunc(got.Incidents, want.Incidents, slices.Equal) {
				t.Errorf("found %s\nwant %s", got, want)
			}
		})
	}
}
