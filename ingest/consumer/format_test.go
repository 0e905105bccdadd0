package consumer_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/format"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
	"github.com/rewardwatch/rewardwatch/ingest/mapping"
	"github.com/rewardwatch/rewardwatch/ingest/recording"
)

// spying is a format in which every message is an event. It records the messages.
type spying struct {
	mu   sync.Mutex
	seen []string
}

// NewDecoder implements ingest.Format.
func (s *spying) NewDecoder(ingest.DecoderOptions) ingest.Decoder { return s }

// Decode implements ingest.Decoder.
func (s *spying) Decode(dst []ingest.Event, m *ingest.Message, _ func(*ingest.RecordError, []byte)) []ingest.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := fmt.Sprintf("%s %s %s %q", m.Topic, m.Pos, time.Unix(0, m.TS).UTC().Format(time.RFC3339Nano), m.Key)
	for _, h := range m.Headers {
		text += fmt.Sprintf(" %s=%q", h.Key, h.Value)
	}
	s.seen = append(s.seen, fmt.Sprintf("%s %q", text, m.Value))
	return append(dst, ingest.Event{Pos: m.Pos, Policy: string(m.Key)})
}

// Reset implements ingest.Decoder.
func (s *spying) Reset() {}

// A format gets everything that Kafka has of a message, from the consumer and from readers of the topic without a
// group.
func TestAFormatSeesTheWholeMessage(t *testing.T) {
	b := newBench(t, 2)
	at := time.Date(2026, 11, 20, 10, 0, 0, 123e6, time.UTC)
	for offset := range 2 {
		r := &kgo.Record{
			Topic: b.broker.Topic, Partition: 1, Timestamp: at.Add(time.Duration(offset) * time.Second), Value: fmt.Append(nil, offset),
			Key: []byte("agent"), Headers: []kgo.RecordHeader{{Key: "type", Value: []byte("step")}, {Key: "none"}},
		}
		if err := b.broker.Client().ProduceSync(waitContext(t), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		`telemetry 1/0 2026-11-20T10:00:00.123Z "agent" type="step" none="" "0"`,
		`telemetry 1/1 2026-11-20T10:00:01.123Z "agent" type="step" none="" "1"`,
	}
	read := &spying{}
	if _, err := recording.ReadTopic(waitContext(t), recording.TopicConfig{Place: recording.Place{Kafka: b.cfg}, Format: read}, ignoring{}); err != nil {
		t.Fatal(err)
	}
	b.format = &spying{}
	m := b.joinAs(ingesttest.NewRecorder(), b.letters, prometheus.NewPedanticRegistry())
	m.await("the events", func() bool { return m.Count() == 2 })
	m.stop()
	for _, s := range []*spying{read, b.format.(*spying)} {
		if !slices.Equal(s.seen, want) {
			t.Errorf("seen\n%q\nwant\n%q", s.seen, want)
		}
	}
}

// Records that a mapping skips are counted. They are neither events nor dead letters.
func TestRecordsThatAMappingLeavesOutAreCounted(t *testing.T) {
	b := newBench(t, 1)
	opened, err := format.Topic{Topic: "telemetry", Mapping: mapping.Config{
		Take: []mapping.Condition{{Source: mapping.Source{Path: "type"}, In: []mapping.Literal{{JSON: []byte(`"click"`)}}}},
		Fields: map[string]mapping.Field{
			"policy": {Source: mapping.Source{Key: []byte("true")}}, "reward": {Source: mapping.Source{Path: "score"}},
		},
	}}.Open()
	if err != nil {
		t.Fatal(err)
	}
	b.format = opened
	for _, value := range []string{`{"type":"click","score":1}`, `{"type":"view"}`, `{"type":"click","score":"x"}`, `{"type":"view"}`} {
		r := &kgo.Record{Topic: b.broker.Topic, Key: []byte("ranker"), Value: []byte(value)}
		if err := b.broker.Client().ProduceSync(waitContext(t), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
		b.produced[0]++
	}
	m := b.join()
	b.awaitSaved(0, 4)
	m.await("the event", func() bool { return m.Count() == 1 })
	m.stop()
	if e := m.Events(0)[0]; e.Policy != "ranker" || e.Reward != 1 {
		t.Errorf("%+v", e)
	}
	for _, want := range []struct {
		metric, label string
		n             float64
	}{{ingest.MetricMessagesSkipped, "not_taken", 2}, {ingest.MetricEvents, "refused", 1}, {ingest.MetricEvents, "accepted", 1}} {
		if got := gathered(m, want.metric, want.label); got != want.n {
			t.Errorf("%s of %s is %g, want %g", want.metric, want.label, got, want.n)
		}
	}
}
