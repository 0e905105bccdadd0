package recording_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
	"github.com/rewardwatch/rewardwatch/ingest/recording"
	"github.com/rewardwatch/rewardwatch/ingest/telemetry"
)

// topicRun is the result of one ReadTopic.
type topicRun struct {
	recorder *ingesttest.Recorder
	counts   recording.Counts
	refused  []ingest.RecordError
	order    []int32 // of partitions
}

// byPartition is a processor with one recording per partition.
type byPartition struct {
	run   *topicRun
	parts map[int32]ingest.Processor
	ingest.Processor
}

func (b *byPartition) Process(ctx context.Context, batch []ingest.Event) error {
	p := batch[0].Pos.Partition.Number()
	if b.parts[p] == nil {
		state, _ := b.run.recorder.Assign(p, nil)
		b.parts[p] = state.(ingest.Processor)
		b.run.order = append(b.run.order, p)
	}
	return b.parts[p].Process(ctx, batch)
}

func (b *bench) readTopic(newest int64) (*topicRun, error) {
	run := &topicRun{recorder: ingesttest.NewRecorder()}
	cfg := recording.TopicConfig{Place: b.place(), Format: telemetry.V1{}, Newest: newest, Refuse: func(e *ingest.RecordError, _ []byte) {
		run.refused = append(run.refused, *e)
	}}
	var err error
	run.counts, err = recording.ReadTopic(waitContext(b.t), cfg, &byPartition{run: run, parts: map[int32]ingest.Processor{}})
	return run, err
}

// wantTopic checks that a partition was read once and in order from one offset up to another.
func (r *topicRun) wantTopic(t *testing.T, partition int32, from, to int) {
	t.Helper()
	events := r.recorder.Events(partition)
	if len(events) != to-from {
		t.Fatalf("%d events of partition %d, want %d", len(events), partition, to-from)
	}
	for i, e := range events {
		if int(e.Pos.Offset) != from+i || int(e.Reward) != from+i || e.Pos.Partition != ingest.Partition(partition) {
			t.Fatalf("event %d of partition %d: %+v, want offset %d", i, partition, e, from+i)
		}
	}
}

func TestReadTopicLeavesNoTrace(t *testing.T) {
	b := newBench(t, 3)
	b.produce(0, 1000)
	b.produce(2, 30)
	run, err := b.readTopic(0)
	if err != nil {
		t.Fatal(err)
	}
	run.wantTopic(t, 0, 0, 1000)
	run.wantTopic(t, 1, 0, 0)
	run.wantTopic(t, 2, 0, 30)
	if !slices.Equal(run.order, []int32{0, 2}) || run.counts.Accepted != 1030 || run.counts.Read != 1030 {
		t.Errorf("partitions %v, counts %+v", run.order, run.counts)
	}
	groups, err := kmsg.NewPtrListGroupsRequest().RequestWith(waitContext(t), b.broker.Client())
	if err != nil || len(groups.Groups) > 0 {
		t.Errorf("groups %+v, %v", groups, err)
	}
}

func TestReadTopicReadsTheNewest(t *testing.T) {
	b := newBench(t, 3)
	for partition, messages := range []int{1000, 10, 500} {
		b.produce(int32(partition), messages)
	}
	for newest, want := range map[int64][3]int{
		0: {0, 0, 0}, 5000: {0, 0, 0}, 210: {900, 0, 400}, 810: {600, 0, 100}, 1510: {0, 0, 0}, 1110: {400, 0, 0}, 2: {999, 10, 499},
	} {
		run, err := b.readTopic(newest)
		if err != nil {
			t.Fatal(err)
		}
		for partition, from := range want {
			run.wantTopic(t, int32(partition), from, b.produced[int32(partition)])
		}
	}
}

func TestReadTopicRefusesAndGoesOn(t *testing.T) {
	b := newBench(t, 1)
	b.cfg.MaxMessage = ingest.KiB
	b.produceValues(0, value(0), nil, []byte("nothing"), []byte(strings.Repeat("x", 2000)), []byte("{}\n"+string(value(4))))
	run, err := b.readTopic(0)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"0/2 invalid_json", "0/3 too_large", "0/4 missing_policy"}
	var got []string
	for _, e := range run.refused {
		got = append(got, fmt.Sprint(e.Pos, " ", e.Reason))
	}
	if !slices.Equal(got, want) || run.counts.Accepted != 2 || run.counts.Read != 5 || run.counts.Refused[ingest.ReasonTooLarge] != 1 {
		t.Errorf("refused %q, counts %+v", got, run.counts)
	}
}

func TestReadTopicOverOutages(t *testing.T) {
	b := newBench(t, 2)
	b.produce(0, 5000)
	b.produce(0, 5000)
	b.produce(1, 100)
	if err := b.broker.DeleteRecords(1, 40); err != nil {
		t.Fatal(err)
	}
	b.broker.CutAfter(100_000)
	if err := b.broker.MovePartition(1); err != nil {
		t.Fatal(err)
	}
	run, err := b.readTopic(0)
	if err != nil {
		t.Fatal(err)
	}
	run.wantTopic(t, 0, 0, 10_000)
	run.wantTopic(t, 1, 40, 100)
}

func TestReadTopicThatIsNone(t *testing.T) {
	b := newBench(t, 1)
	b.cfg.Topic, b.broker.Topic = "telemetrie", "telemetrie"
	if _, err := b.readTopic(0); !errors.Is(err, ingest.ErrNoTopic) {
		t.Errorf("got %v", err)
	}
	if b.broker.End(0) != -1 {
		t.Error("the topic was made")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.cfg.Brokers = []string{listener.Addr().String()}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.readTopic(0); err == nil || errors.Is(err, ingest.ErrNoTopic) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("without a broker: %v", err)
	}
}

func TestReadTopicEndsWithItsContextAndItsProcessor(t *testing.T) {
	b := newBench(t, 1)
	b.produce(0, 3000)
	broken := errors.New("broken")
	cfg := recording.TopicConfig{Place: b.place(), Format: telemetry.V1{}}
	if _, err := recording.ReadTopic(waitContext(t), cfg, failing{err: broken}); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(waitContext(t))
	cancel()
	if _, err := recording.ReadTopic(ctx, cfg, failing{err: broken}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// failing is a processor that fails.
type failing struct {
	err error
	ingest.Processor
}

func (f failing) Process(context.Context, []ingest.Event) error { return f.err }
