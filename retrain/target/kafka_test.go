package target

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
	"github.com/rewardwatch/rewardwatch/retrain/recipe"
)

// kafkaAdapter creates the adapter of a target with separate brokers.
func kafkaAdapter(t *testing.T, topic string, allowPrivate bool, brokers ...string) Adapter {
	t.Helper()
	return hastyAdapter(t, time.Minute, topic, allowPrivate, brokers...)
}

// hastyAdapter waits for brokers no longer than a timeout.
func hastyAdapter(t *testing.T, timeout time.Duration, topic string, allowPrivate bool, brokers ...string) Adapter {
	t.Helper()
	published, err := recipe.NewValidator()
	check(t, err)
	target := Target{Name: "k", Timeout: model.Duration(timeout), AllowPrivate: allowPrivate, Kafka: Kafka{Topic: topic, Brokers: brokers}}
	a, err := newAdapter(target, Means{Check: published.Check, Transport: NewTransport})
	check(t, err)
	return a
}

func TestKafkaTopicHoldsTheOrders(t *testing.T) {
	broker, err := ingesttest.Start(4, "retraining")
	check(t, err)
	defer broker.Close()
	acks := make(chan int16, 3)
	broker.Cluster().ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		broker.Cluster().KeepControl()
		acks <- r.(*kmsg.ProduceRequest).Acks
		return nil, nil, false
	})
	a := kafkaAdapter(t, "retraining", true, broker.Addrs()...)
	var sent []Message
	for _, policy := range []string{"ranker", "bidder", "ranker"} {
		m := testMessage(t, policy, nil)
		m.ID = fmt.Sprint("rr_", len(sent))
		if o := a.Send(t.Context(), m); o.Result != ResultDelivered {
			t.Fatalf("%+v", o)
		}
		if n := <-acks; n != -1 { // all in-sync replicas
			t.Errorf("acks %d", n)
		}
		sent = append(sent, m)
	}
	partitions := map[string]int32{}
	got := readAll(t, broker, "retraining", len(sent))
	for _, m := range sent {
		r := got[m.ID]
		if r == nil || string(r.Key) != m.Policy || !bytes.Equal(r.Value, m.Body) {
			t.Fatalf("%s: %+v", m.ID, r)
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(r.Value))
		check(t, err)
		check(t, published(t).Validate(value))
		if p, seen := partitions[m.Policy]; seen && p != r.Partition {
			t.Errorf("%s is in partitions %d and %d", m.Policy, p, r.Partition)
		}
		partitions[m.Policy] = r.Partition
		headers := ""
		for _, h := range r.Headers {
			headers += h.Key + "=" + string(h.Value) + " "
		}
		if want := "id=" + m.ID + " type=retrain.requested content-type=application/json "; headers != want {
			t.Errorf("headers %q, want %q", headers, want)
		}
		if want := kgo.StickyKeyPartitioner(nil).ForTopic("retraining").Partition(r, 4); int(r.Partition) != want {
			t.Errorf("%s is in partition %d, other producers put it into %d", m.Policy, r.Partition, want)
		}
	}
}

// readAll returns the records of a topic by their header id.
func readAll(t *testing.T, broker *ingesttest.Broker, topic string, n int) map[string]*kgo.Record {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(broker.Addrs()...), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	check(t, err)
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out := map[string]*kgo.Record{}
	for len(out) < n {
		fetches := client.PollFetches(ctx)
		check(t, fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) { out[string(r.Headers[0].Value)] = r })
	}
	return out
}

func TestKafkaFaults(t *testing.T) {
	broker, err := ingesttest.Start(1, "retraining")
	check(t, err)
	defer broker.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections and sends nothing
	check(t, err)
	defer silent.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	check(t, closed.Close())
	fail := func(err *kerr.Error) func() {
		return func() { broker.Fail(kmsg.Produce, err, 1) }
	}
	here := broker.Addrs()[0]
	tests := []struct {
		name, topic, broker string
		allowed             bool
		fault               func()
		want                Result
		err                 string
	}{
		{"no such topic", "nowhere", here, true, nil, ResultRejected, "nowhere"},
		{"too large", "retraining", here, true, fail(kerr.MessageTooLarge), ResultRejected, "Size Too Large"},
		{"not allowed", "retraining", here, true, fail(kerr.TopicAuthorizationFailed), ResultRejected, "Authorization Failed"},
		{"too few replicas", "retraining", here, true, fail(kerr.NotEnoughReplicas), ResultRejected, "Not Enough Replicas"},
		{"connections are cut", "retraining", here, true, func() { broker.CutAfter(200) }, ResultUnreachable, ""},
		{"nobody listens", "retraining", closed.Addr().String(), true, nil, ResultUnreachable, "refused"},
		{"no answer", "retraining", silent.Addr().String(), true, nil, ResultTimeout, "within"},
		{"private", "retraining", here, false, nil, ResultRefused, "127.0.0.1 is a loopback address"},
		{"well", "retraining", here, true, nil, ResultDelivered, ""},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			a := kafkaAdapter(t, tc.topic, tc.allowed, tc.broker)
			if tc.want == ResultTimeout {
				a = hastyAdapter(t, time.Second, tc.topic, tc.allowed, tc.broker)
			}
			if tc.fault != nil {
				tc.fault()
			}
			if o := a.Send(t.Context(), testMessage(t, "ranker", nil)); o.Result != tc.want || !strings.Contains(o.Err, tc.err) {
				t.Errorf("%+v, want %s with %q", o, tc.want, tc.err)
			}
		})
	}
}

// A target without its own brokers uses those of the telemetry, which need no permission.
func TestKafkaOnTheBrokersOfTheTelemetry(t *testing.T) {
	broker, err := ingesttest.Start(1, "retraining")
	check(t, err)
	defer broker.Close()
	telemetry := ingest.DefaultKafkaConfig()
	telemetry.Brokers = broker.Addrs()
	given := Target{Name: "k", Timeout: model.Duration(time.Minute), Kafka: Kafka{Topic: "retraining"}}
	onThose := given.OnBrokersOf(telemetry)
	if len(given.Kafka.Brokers) != 0 {
		t.Error("the configuration was changed")
	}
	published, err := recipe.NewValidator()
	check(t, err)
	a, err := newAdapter(onThose, Means{Check: published.Check, Transport: NewTransport})
	check(t, err)
	if o := a.Send(t.Context(), testMessage(t, "ranker", nil)); o.Result != ResultDelivered {
		t.Errorf("%+v", o)
	}
}
