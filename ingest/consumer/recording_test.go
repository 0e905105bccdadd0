package consumer_test

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
	"github.com/rewardwatch/rewardwatch/ingest/recording"
)

// A reader of recordings meets the same answers of brokers as a consumer.

// topicRun is the result of one ReadTopic call.
type topicRun struct {
	recorder *ingesttest.Recorder
	counts   recording.Counts
	refused  []ingest.RecordError
}

// readTopic reads the topic, which has one partition.
func (b *bench) readTopic(newest int64) (*topicRun, error) {
	b.t.Helper()
	run := &topicRun{recorder: ingesttest.NewRecorder()}
	state, err := run.recorder.Assign(0, nil)
	if err != nil {
		return nil, err
	}
	cfg := recording.TopicConfig{Place: recording.Place{Kafka: b.cfg}, Format: b.format, Newest: newest, Refuse: func(e *ingest.RecordError, _ []byte) {
		run.refused = append(run.refused, *e)
	}}
	run.counts, err = recording.ReadTopic(waitContext(b.t), cfg, state.(ingest.Processor))
	return run, err
}

// ignoring is a Processor that does nothing.
type ignoring struct{ ingest.Processor }

func (ignoring) Process(context.Context, []ingest.Event) error { return nil }

// Records that compaction has removed at the end of a record batch do not keep the reader waiting.
func TestReadTopicOverCompactedRecords(t *testing.T) {
	for name, codec := range map[string]kgo.CompressionCodec{"plain": kgo.NoCompression(), "zstd": kgo.ZstdCompression()} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 1)
			compactTail(t, b, codec)
			run, err := b.readTopic(0)
			if err != nil {
				t.Fatal(err)
			}
			if e := run.recorder.Events(0); len(e) != 21 || e[19].Pos.Offset != 19 || e[20].Pos.Offset != 22 {
				t.Errorf("%d events, the last at %v, want 21 and offset 22", len(e), e[len(e)-1].Pos)
			}
		})
	}
}
