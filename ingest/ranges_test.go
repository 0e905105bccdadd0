package ingest_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

func (b *bench) readRanges(ranges ...ingest.Range) (*topicRun, error) {
	run := &topicRun{recorder: ingesttest.NewRecorder()}
	var err error
	run.counts, err = ingest.ReadRanges(waitContext(b.t), ingest.TopicConfig{Kafka: b.cfg}, ranges, &byPartition{run: run, parts: map[int32]ingest.Processor{}})
	return run, err
}

func TestReadRangesReadsWhatIsAskedForAndLeavesNoTrace(t *testing.T) {
	b := newBench(t, 3)
	b.produce(0, 1000)
	b.produce(2, 30)
	run, err := b.readRanges(ingest.Range{Partition: 2, First: 29, Last: 29}, ingest.Range{Partition: 0, First: 7, Last: 702})
	if err != nil {
		t.Fatal(err)
	}
	run.wantTopic(t, 0, 7, 703)
	run.wantTopic(t, 2, 29, 30)
	if !slices.Equal(run.order, []int32{2, 0}) || run.counts.Accepted != 697 {
		t.Errorf("partitions %v, counts %+v", run.order, run.counts)
	}
	groups, err := kmsg.NewPtrListGroupsRequest().RequestWith(waitContext(t), b.broker.Client())
	if err != nil || len(groups.Groups) > 0 {
		t.Errorf("groups %+v, %v", groups, err)
	}
}

func TestReadRangesSaysWhatIsGone(t *testing.T) {
	b := newBench(t, 1)
	b.produce(0, 100)
	if err := b.broker.DeleteRecords(0, 20); err != nil {
		t.Fatal(err)
	}
	for _, of := range []ingest.Range{{First: 19, Last: 50}, {First: 50, Last: 100}, {First: 0, Last: 5}, {First: 200, Last: 300}} {
		if run, err := b.readRanges(of); !errors.Is(err, ingest.ErrRangeGone) || run.counts.Read != 0 {
			t.Errorf("%+v gives %v after %d records", of, err, run.counts.Read)
		}
	}
	run, err := b.readRanges(ingest.Range{First: 20, Last: 99})
	if err != nil {
		t.Fatal(err)
	}
	run.wantTopic(t, 0, 20, 100)
	if _, err := b.readRanges(ingest.Range{Partition: 7, First: 1, Last: 2}); err == nil {
		t.Error("a partition that there is none of can be read")
	}
}

// Retention that overtakes the reader leaves no hole that nobody is told of.
func TestReadRangesWhileRetentionRemovesThem(t *testing.T) {
	b := newBench(t, 1)
	b.produce(0, 100)
	removes := &afterFirst{do: func() error { return b.broker.DeleteRecords(0, 20) }}
	_, err := ingest.ReadRanges(waitContext(t), ingest.TopicConfig{Kafka: b.cfg}, []ingest.Range{{First: 0, Last: 99}}, removes)
	if !errors.Is(err, ingest.ErrRangeGone) {
		t.Errorf("got %v", err)
	}
}

// afterFirst is a processor that does something with its first batch.
type afterFirst struct {
	ingest.Processor
	do func() error
}

func (a *afterFirst) Process(context.Context, []ingest.Event) error {
	if a.do == nil {
		return nil
	}
	do := a.do
	a.do = nil
	return do()
}
