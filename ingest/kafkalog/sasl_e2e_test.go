//go:build e2e

package kafkalog

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/deploy/deploytest"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// startSecuredBroker starts a broker with the topic secured that requires authentication on its second port, with the
// settings of the mechanism and further variables for kafka.sh in env. It returns the configuration of clients for that
// port.
func startSecuredBroker(t *testing.T, settings string, env ...string) ingest.KafkaConfig {
	t.Helper()
	ports := deploytest.FreePorts(t, 3)
	listeners := fmt.Sprintf("PLAINTEXT://127.0.0.1:%s,SASL_PLAINTEXT://127.0.0.1:%s,CONTROLLER://127.0.0.1:%s", ports[0], ports[1], ports[2])
	properties := filepath.Join(t.TempDir(), "sasl.properties")
	text := "listeners=" + listeners + "\nadvertised.listeners=" + listeners + `
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT
` + settings
	if err := os.WriteFile(properties, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	deploytest.StartKafka(t, "../..", ports[0], ports[2], append(env, "KAFKA_PROPERTIES="+properties)...)("topic", "secured")
	cfg := ingest.DefaultKafkaConfig()
	cfg.Brokers, cfg.Topic = []string{"127.0.0.1:" + ports[1]}, "secured"
	return cfg
}

// exchange writes a record to the topic secured and reads it. It returns a sender that connects for each message.
func exchange(ctx context.Context, t *testing.T, cfg ingest.KafkaConfig) *Sender {
	t.Helper()
	log, err := Open(cfg, cfg.Topic, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	if err := log.Append(ctx, 0, Record{Key: []byte("a"), Value: []byte("b")}); err != nil {
		t.Fatal(err)
	}
	read := 0
	if _, err := log.ReadOn(ctx, 0, 0, 1, func(Record) error { read++; return nil }); err != nil || read != 1 {
		t.Errorf("%d records were read, %v", read, err)
	}
	sender, err := NewSender(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	return sender
}
