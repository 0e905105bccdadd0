package consumer_test

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rewardwatch/rewardwatch/ingest/consumer"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
	"github.com/rewardwatch/rewardwatch/ingest/telemetry"
)

// A compacted topic is refused, and nothing is read from it.
func TestACompactedTopicIsRefused(t *testing.T) {
	for _, policy := range []string{"compact", "compact,delete"} {
		b := newBench(t, 1)
		setPolicy(t, b, policy)
		b.produce(0, 3)
		m := b.join()
		wantEnd(t, m, consumer.ErrCompacted)
		if err := m.end(); !strings.Contains(err.Error(), "--entity-name telemetry --add-config cleanup.policy=delete") {
			t.Errorf("error %v, want one that says what to do", err)
		}
		if m.Count() != 0 {
			t.Errorf("%d events were read", m.Count())
		}
		setPolicy(t, b, "delete")
		m = b.join()
		m.awaitAll(0)
		m.stop()
	}
}

// If the brokers do not allow the check, the consumer reads anyway.
func TestCompactionThatCannotBeAskedFor(t *testing.T) {
	b := newBench(t, 1)
	b.broker.Fail(kmsg.DescribeConfigs, kerr.TopicAuthorizationFailed, 1000)
	b.produce(0, 3)
	m := b.join()
	m.awaitAll(0)
	m.stop()
}

// If a topic becomes compacted while it is being read, reading continues, and an error is logged.
func TestATopicThatBecomesCompacted(t *testing.T) {
	b := newBench(t, 1)
	b.produce(0, 3)
	said := &lines{}
	consumer, err := consumer.New(b.cfg, consumer.Options{
		Stores: b.store, CheckpointEvery: time.Second, Format: telemetry.V1{}, DeadLetters: b.letters, Handler: ingesttest.NewRecorder(),
		Log: zerolog.New(said), Registerer: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	consumer.Hurry()
	consumer.SetStall(30 * time.Millisecond)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- consumer.Run(ctx) }()
	for consumer.Ready() != nil {
		time.Sleep(10 * time.Millisecond)
	}
	setPolicy(t, b, "compact")
	for wait := waitContext(t); !said.hold("the topic settings cause telemetry loss") && wait.Err() == nil; {
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	if err := <-ended; err != nil || !said.hold("the topic settings cause telemetry loss") || !said.hold("cleanup.policy=delete") {
		t.Errorf("error %v, said %s", err, said)
	}
}

// lines contains the log output.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) hold(part string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), part)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func setPolicy(t *testing.T, b *bench, policy string) {
	t.Helper()
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	resource := kmsg.NewIncrementalAlterConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeTopic, b.cfg.Topic
	config := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	config.Name, config.Value = "cleanup.policy", &policy
	resource.Configs = append(resource.Configs, config)
	req.Resources = append(req.Resources, resource)
	res, err := req.RequestWith(waitContext(t), b.broker.Client())
	if err == nil {
		err = kerr.ErrorForCode(res.Resources[0].ErrorCode)
	}
	if err != nil {
		t.Fatal(err)
	}
}
