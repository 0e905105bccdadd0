package cli

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/segmentio/kafka-go"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/app"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/cluster"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/config"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/kafkalog"
)

// deleteTopic deletes a topic and waits until it is gone.
func deleteTopic(t *testing.T, l *kafkalog.Log, broker string) {
	t.Helper()
	transport := &kafka.Transport{}
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(broker), Transport: transport}
	answer, err := client.DeleteTopics(t.Context(), &kafka.DeleteTopicsRequest{Topics: []string{l.Topic()}})
	if err != nil || answer.Errors[l.Topic()] != nil {
		t.Fatal(err, answer)
	}
	testkit.Eventually(t, "the end of the topic", func() bool {
		_, err := l.Partitions(t.Context())
		return errors.Is(err, ingest.ErrNoTopic)
	})
}

// refusedStart starts an instance that is expected to end by itself, and returns its error.
func refusedStart(t *testing.T, cfg config.Config) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	dir := t.TempDir()
	cfg.Checkpoint.Directory, cfg.Ingest.DeadLetters.Directory = dir+"/checkpoints", dir+"/dead-letters"
	i := &instance{}
	a, err := app.New(ctx, &cfg, func() error { return nil }, zerolog.New(i))
	if err != nil {
		t.Fatal(err)
	}
	err = a.Run(ctx)
	if ctx.Err() != nil {
		t.Errorf("the start was not refused:\n%s", i.log.String())
	}
	return err
}

// A cluster whose checkpoints topic was deleted, or deleted and recreated, does not start: it would count units twice.
func TestACheckpointsTopicThatWasDeleted(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	t.Parallel()
	cfg, f := clusterConfig(t, 2), newFleets(2)
	cfg.Cluster = cluster.Config{UnitsTopic: "units", CheckpointsTopic: "checkpoints"}
	broker := cfg.Ingest.Kafka.Brokers[0]
	f.produce(t, broker, 0)
	i := startInstance(t, cfg, 2)
	testkit.Eventually(t, "units", func() bool { return unitsOf(i) > 0 })
	i.stop()
	startInstance(t, cfg, 2).stop() // with its checkpoints, it starts again
	l, err := kafkalog.Open(cfg.Ingest.Kafka.KafkaConfig, "checkpoints", zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	deleteTopic(t, l, broker)
	if err := refusedStart(t, cfg); !errors.Is(err, cluster.ErrCheckpointsLost) {
		t.Errorf("without the topic: %v, want %v", err, cluster.ErrCheckpointsLost)
	}
	if err := l.Make(t.Context(), 2, map[string]string{"cleanup.policy": "compact"}); err != nil {
		t.Fatal(err)
	}
	if err := refusedStart(t, cfg); !errors.Is(err, cluster.ErrCheckpointsLost) {
		t.Errorf("with an empty topic: %v, want %v", err, cluster.ErrCheckpointsLost)
	}
	cfg.Cluster = cluster.Config{UnitsTopic: "units-2", CheckpointsTopic: "checkpoints-2"}
	cfg.Ingest.Kafka.Group = "rewardwatch-2"
	again := startInstance(t, cfg, 2) // as the error says
	testkit.Eventually(t, "the units again", func() bool { return unitsOf(again) > 0 })
}
