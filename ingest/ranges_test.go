package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

func TestCheckRangesNamesAllThatAreGone(t *testing.T) {
	b := newBench(t, 2)
	b.produce(0, 100)
	b.produce(1, 10)
	if err := b.broker.DeleteRecords(0, 20); err != nil {
		t.Fatal(err)
	}
	check := func(ranges ...ingest.Range) error { return ingest.CheckRanges(waitContext(t), b.cfg, ranges) }
	if err := check(ingest.Range{First: 20, Last: 99}, ingest.Range{Partition: 1, First: 0, Last: 9}); err != nil {
		t.Error(err)
	}
	err := check(ingest.Range{First: 19, Last: 30}, ingest.Range{Partition: 1, First: 0, Last: 9}, ingest.Range{Partition: 1, First: 3, Last: 10})
	want := "offsets 19 to 30 of partition 0 of the topic events: the topic does not hold these offsets, but 20 up to 99\n" +
		"offsets 3 to 10 of partition 1 of the topic events: the topic does not hold these offsets, but 0 up to 9"
	if !errors.Is(err, ingest.ErrRangeGone) || err.Error() != strings.ReplaceAll(want, "topic events", "topic "+b.cfg.Topic) {
		t.Errorf("says %v", err)
	}
	if err := check(ingest.Range{First: 19, Last: 30}, ingest.Range{Partition: 7}); err == nil || errors.Is(err, ingest.ErrRangeGone) {
		t.Errorf("a partition that there is none of: %v", err)
	}
}

// Accepted records are told with their texts, those of one message one by one.
func TestTopicTellsOfAcceptedRecords(t *testing.T) {
	b := newBench(t, 1)
	const first, second = `{"policy":"p","reward":1}`, ` {"policy":"q","reward":2,"x":[null]}`
	if err := b.broker.Produce(waitContext(t), 0, []byte(first), []byte("\n"+second+"\n{broken\n"+first)); err != nil {
		t.Fatal(err)
	}
	var told []string
	cfg := ingest.TopicConfig{Kafka: b.cfg, Accepted: func(e *ingest.Event, record []byte) {
		told = append(told, fmt.Sprint(e.Pos, " ", e.Policy, " ", e.Reward, " ", string(record)))
	}}
	counts, err := ingest.ReadTopic(waitContext(t), cfg, &byPartition{run: &topicRun{recorder: ingesttest.NewRecorder()}, parts: map[int32]ingest.Processor{}})
	want := []string{"0/0 p 1 " + first, "0/1 q 2 " + second, "0/1/2 p 1 " + first}
	if err != nil || !slices.Equal(told, want) || counts.Accepted != 3 {
		t.Errorf("told %q, want %q; %+v, %v", told, want, counts, err)
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
