package recording_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
	"github.com/rewardwatch/rewardwatch/ingest/recording"
	"github.com/rewardwatch/rewardwatch/ingest/telemetry"
)

func (b *bench) readRanges(ranges ...ingest.Range) (*topicRun, error) {
	run := &topicRun{recorder: ingesttest.NewRecorder()}
	var err error
	run.counts, err = recording.ReadRanges(waitContext(b.t), recording.TopicConfig{Place: b.place(), Format: telemetry.V1{}}, ranges, &byPartition{run: run, parts: map[int32]ingest.Processor{}})
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
		if run, err := b.readRanges(of); !errors.Is(err, recording.ErrRangeGone) || run.counts.Read != 0 {
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
	check := func(ranges ...ingest.Range) error { return recording.CheckRanges(waitContext(t), b.place(), ranges) }
	if err := check(ingest.Range{First: 20, Last: 99}, ingest.Range{Partition: 1, First: 0, Last: 9}); err != nil {
		t.Error(err)
	}
	err := check(ingest.Range{First: 19, Last: 30}, ingest.Range{Partition: 1, First: 0, Last: 9}, ingest.Range{Partition: 1, First: 3, Last: 10})
	want := "offsets 19 to 30 of partition 0 of topic events: the topic does not contain these offsets, only 20 to 99\n" +
		"offsets 3 to 10 of partition 1 of topic events: the topic does not contain these offsets, only 0 to 9"
	if !errors.Is(err, recording.ErrRangeGone) || err.Error() != strings.ReplaceAll(want, "topic events", "topic "+b.cfg.Topic) {
		t.Errorf("says %v", err)
	}
	if err := check(ingest.Range{First: 19, Last: 30}, ingest.Range{Partition: 7}); err == nil || errors.Is(err, recording.ErrRangeGone) {
		t.Errorf("a partition that there is none of: %v", err)
	}
}

// telling is a Processor that stores events as they were recorded.
type telling struct {
	ingest.Processor
	told []string
}

func (p *telling) Process(_ context.Context, batch []ingest.Event) error {
	for _, e := range batch {
		r := e.AsRecorded
		p.told = append(p.told, fmt.Sprintf("%s %s %s %s %s", e.Pos, r.Action, r.ActionProb, r.Observation, r.NextObservation))
	}
	return nil
}

// Events are available with their members as recorded, in valid JSON, separately for each event of a message.
func TestTopicGivesEventsAsRecorded(t *testing.T) {
	b := newBench(t, 1)
	const first, second = `{"policy":"p","action" : [1, -inf],"observation":{"NaN":"nan","b":[+NaN]},"action_prob":null}`,
		` {"policy":"q","action":"\"Inf","action":null,"action_prob":0.50,"next_observation":[{"x":true}]}`
	const refused = `{"action_prob":0.9,"next_observation":1` // of which the next record must have nothing
	if err := b.broker.Produce(waitContext(t), 0, []byte(first), []byte("\n"+second+"\n"+refused+"\n"+first)); err != nil {
		t.Fatal(err)
	}
	p := &telling{}
	counts, err := recording.ReadTopic(waitContext(t), recording.TopicConfig{Place: b.place(), Format: telemetry.V1{}, AsRecorded: true}, p)
	want := []string{
		`0/0 [1, "-inf"]  {"NaN":"nan","b":["+NaN"]} `, `0/1 "\"Inf" 0.50  [{"x":true}]`,
		`0/1/2 [1, "-inf"]  {"NaN":"nan","b":["+NaN"]} `,
	}
	if err != nil || !slices.Equal(p.told, want) || counts.Accepted != 3 {
		t.Errorf("told %q, want %q; %+v, %v", p.told, want, counts, err)
	}
}

// If retention overtakes the reader, every resulting gap is reported.
func TestReadRangesWhileRetentionRemovesThem(t *testing.T) {
	b := newBench(t, 1)
	b.produce(0, 100)
	removes := &afterFirst{do: func() error { return b.broker.DeleteRecords(0, 20) }}
	_, err := recording.ReadRanges(waitContext(t), recording.TopicConfig{Place: b.place(), Format: telemetry.V1{}}, []ingest.Range{{First: 0, Last: 99}}, removes)
	if !errors.Is(err, recording.ErrRangeGone) {
		t.Errorf("got %v", err)
	}
}

// afterFirst is a processor that calls a function after its first batch.
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

func TestExtendRanges(t *testing.T) {
	b := newBench(t, 3)
	b.produce(0, 10)
	between := time.Now().Add(2 * time.Millisecond)
	for !time.Now().After(between.Add(2 * time.Millisecond)) { // Kafka counts milliseconds
		runtime.Gosched()
	}
	b.produce(0, 10)
	b.produce(2, 5)
	cut := []ingest.Range{{Partition: 2, First: 1, Last: 1}, {Partition: 0, First: 3, Last: 4}}
	for _, tt := range []struct {
		until     time.Time
		last, two int64
	}{{time.Time{}, 19, 4}, {between, 9, 1}, {between.Add(time.Hour), 19, 4}, {between.Add(-time.Hour), 4, 1}} {
		got, err := recording.ExtendRanges(waitContext(t), b.place(), cut, tt.until)
		want := []ingest.Range{{Partition: 2, First: 1, Last: tt.two}, {Partition: 0, First: 3, Last: tt.last}}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("until %s: %v, %v, want %v", tt.until, got, err, want)
		}
	}
	if cut[1].Last != 4 {
		t.Error("the ranges that were given have changed")
	}
	if _, err := recording.ExtendRanges(waitContext(t), b.place(), []ingest.Range{{Partition: 7}}, time.Time{}); err == nil {
		t.Error("a partition that there is none of reaches further")
	}
}
